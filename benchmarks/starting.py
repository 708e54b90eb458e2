"""P13: how long it takes to begin: from the command to the first page, from Start to the first number.

The first page is that of Home in a Chromium that is already open, from `streamlit run app.py` in a new
process until the page stands and its script has run; the files are in the disk's cache. From a press of Start
on the Training page it is measured until the page shows the first number of the run, and until that number
stands in the run's records: with a worker that waits warm, and right after the server has started, when there
is none yet. The peer is to import transformers' GPT-2, alone, in a new process of the same run.
"""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from benchmarks.app import App, chromium_path, new_page, running, wait_for
from benchmarks.client import Person, Tab
from benchmarks.rows import Goal, Measure, Options, Row, Spread
from engine.runs import RunStore

PAGE_S, METRIC_S = 5.0, 2.0
WARM_S = 0.7  # a worker that has used no processor for so long waits for its run
PATIENCE = 90.0  # s
PEER = "from transformers import GPT2LMHeadModel"
STANDS = """() => {
  const app = document.querySelector("[data-testid=stApp]")
  return app && app.dataset.testScriptState === "notRunning" && document.querySelector("h1")
    && !document.querySelector("[data-stale=true]")
}"""
Times = dict[str, list[float]]


def first_page(page: Page) -> float:
    """Seconds from the command to Home in the browser."""
    with running(wait=False) as app:
        wait_for(app)
        page.goto(app.url)
        page.wait_for_function(STANDS, timeout=1000 * PATIENCE, polling="raf")
        return time.perf_counter() - app.started


def first_answer() -> float:
    """The same without a browser: until Home has run once."""
    with running() as app:
        asyncio.run(_home(app))
        return time.perf_counter() - app.started


async def _home(app: App) -> None:
    async with Person(app.url) as person:
        if not (await person.open()).heading():
            raise RuntimeError("The first page has no title.")


def has_number(tab: Tab) -> bool:
    """Whether the curve on the page has a point."""
    curves = [one for one in tab.all("bidi_component") if "live_curve" in one.component_name]
    lines = [line for one in curves for line in json.loads(one.json)["series"]]
    return bool(tab.ticks) and any(y is not None for line in lines for y in line["y"])


def recorded(home: str) -> float | None:
    """When the first number of the run came to stand in its records; time.time(), None before that."""
    for file in Path(home).glob("runs/*/metrics.jsonl"):
        if any('"step"' in line or '"eval"' in line for line in file.read_text("utf-8").splitlines()):
            return time.time()
    return None


async def until_recorded(home: str) -> float:
    """Seconds until a run's first number is recorded."""
    began = time.perf_counter()
    while recorded(home) is None:
        await asyncio.sleep(0.02)
        if time.perf_counter() - began > PATIENCE:
            raise RuntimeError("The run records nothing.")
    return time.perf_counter() - began


async def until_shown(tab: Tab) -> float:
    """Press Start; seconds until the page shows a number."""
    began = time.perf_counter()
    await tab.press("training_start")
    while not has_number(tab):
        if time.perf_counter() - began > PATIENCE:
            raise RuntimeError("The page shows no number of the run.")
        part, every = next(iter(tab.ticks.items()), ("", 0.5))
        await asyncio.sleep(every)
        await (tab.tick(part) if part in tab.ticks else tab.rerun())
    return time.perf_counter() - began


async def press_start(app: App, warm: bool) -> tuple[float, float]:
    """Seconds from the press of Start until (the records, the page) have the first number."""
    async with Person(app.url) as person:
        tab = await person.open("training")
        if warm:
            await until_warm(app)
        found = await asyncio.gather(until_recorded(app.home), until_shown(tab))
        store = RunStore(app.home)
        for run in store.list(person.word):
            store.stop(run.id, person.word)
        store.close()
        return found


async def until_warm(app: App) -> None:
    """Wait until the server's worker is idle; where the system does not say, long enough."""
    still, last, end = 0.0, -1.0, time.perf_counter() + PATIENCE
    while still < WARM_S and time.perf_counter() < end:
        await asyncio.sleep(0.1)
        now = app.workers_cpu()
        if now is None:
            await asyncio.sleep(10.0)
            return
        still = still + 0.1 if now == last and now > 0.5 else 0.0
        last = now


def importing() -> float:
    """Seconds to import the peer."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", PEER], check=True)
    return time.perf_counter() - began


def measure(options: Options) -> Row:
    """P13."""
    found: Times = {}
    seen = not options.toy and chromium_path() is not None

    def add(name: str, seconds: float) -> None:
        found.setdefault(name, []).append(seconds)

    for _ in range(1 if options.toy else options.rounds):
        if seen:
            with sync_playwright() as playwright:
                add("command to first page", first_page(new_page(playwright)))
        else:
            add("command to first page", first_answer())
        for warm in (True,) if options.toy else (True, False):
            with running() as app:
                records, shown = asyncio.run(press_start(app, warm))
            kind = "warm" if warm else "cold"
            add(f"Start to first number, {kind} worker: on the page", shown)
            add(f"Start to first number, {kind} worker: in the records", records)
        if not options.toy:
            add("importing transformers' GPT-2", importing())
    figures = {name: Spread.of(times) for name, times in found.items()}
    start = figures["Start to first number, warm worker: on the page"]
    return Row(
        id="P13",
        what="the first page, and the first number of a run",
        unit="s",
        figures=figures,
        goals=[
            Goal("s to the first page", figures["command to first page"], PAGE_S, at_least=False),
            Goal("s to the first number", start, METRIC_S, at_least=False),
        ],
        notes="" if seen else "No browser took part: the first page is what the server sends.",
    )


MEASURES: dict[str, Measure] = {"P13": measure}
