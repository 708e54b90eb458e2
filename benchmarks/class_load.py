"""`python -m benchmarks.class_load`: how long pages take to open while three runs train on this machine.

Starts the app on a fresh home and drives Chromium as a student does who only looks: a click in the menu,
until the page's title is there, its script has run and nothing on it is grey any more. Three runs are at
work; in every other round they are frozen, so that both columns see the same machine. Each page is opened
once before, so that models are loaded. The promise: under one second (median). The machine's load is printed
too, since beside other work no time means much. For Linux and macOS.
"""

import argparse
import os
import signal
import statistics
import time
from collections.abc import Sequence

from playwright.sync_api import Page, sync_playwright

os.environ.setdefault("LOUPE_MAX_RUNS", "3")  # for the app too: a machine of two cores would queue the third

from benchmarks.app import new_page, running, training
from engine.folders import read_json
from engine.runs import RunStore
from ui.nav import PAGES

LIMIT = 1.0  # s, median
N_RUNS = 3
WAIT = 120_000  # ms
THERE = """heading => {
  const app = document.querySelector("[data-testid=stApp]")
  const title = document.querySelector("h1")
  return title && title.innerText === heading && app.dataset.testScriptState === "notRunning"
    && !document.querySelector("[data-stale=true]")
}"""
Times = dict[str, list[float]]


def headings(page: Page, url: str) -> dict[str, str]:
    """Open every page once; gives the title that each of them shows."""
    found = {}
    for info in PAGES:
        page.goto(f"{url}/{'' if info.name == 'home' else info.name}")
        title = page.get_by_role("heading", level=1)
        title.wait_for(timeout=WAIT)
        found[info.name] = title.inner_text()
        page.wait_for_function(THERE, arg=found[info.name], timeout=WAIT, polling="raf")
    return found


def click_through(page: Page, titles: dict[str, str], times: Times) -> None:
    """Add the seconds from the click in the menu to the finished page, for each page once."""
    links = page.get_by_test_id("stSidebarNavLink")
    for place, info in enumerate(PAGES):
        if page.locator("h1").first.inner_text() == titles[info.name]:
            links.nth(place - 1).click()  # it is open: leave it first
            other = titles[PAGES[place - 1].name]
            page.wait_for_function(THERE, arg=other, timeout=WAIT, polling="raf")
        began = time.perf_counter()
        links.nth(place).click()
        page.wait_for_function(THERE, arg=titles[info.name], timeout=WAIT, polling="raf")
        times.setdefault(info.name, []).append(time.perf_counter() - began)
        page.wait_for_timeout(300)  # a look at it


def tell_workers(store: RunStore, ids: Sequence[str], number: signal.Signals) -> None:
    """Freeze the processes that train, or let them go on."""
    for run_id in ids:
        os.kill(read_json(store.root / run_id / "status.json")["pid"], number)


def show(idle: Times, busy: Times) -> None:
    """Print the table, and whether the promise is kept."""
    print(
        f"{'page':12} {'without runs: median':>21} {'worst':>7} {f'{N_RUNS} runs: median':>16} {'worst':>7}"
    )
    rows = [(name, idle[name], busy[name]) for name in idle]
    everything = (
        "all",
        [t for times in idle.values() for t in times],
        [t for ts in busy.values() for t in ts],
    )
    for name, without, beside in [*rows, everything]:
        (a, b), (c, d) = ((statistics.median(times), max(times)) for times in (without, beside))
        print(f"{name:12} {a:19.2f} s {b:5.2f} s {c:14.2f} s {d:5.2f} s")
    kept = all(statistics.median(times) < LIMIT for times in busy.values())
    print(f"Every page's median with {N_RUNS} runs is under {LIMIT:g} s: {'yes' if kept else 'no'}")


def measure(page: Page, titles: dict[str, str], store: RunStore, ids: Sequence[str], rounds: int) -> str:
    """Measure in turns without and with the runs, and print the table; gives what the runs did meanwhile."""
    idle: Times = {}
    busy: Times = {}
    steps, seconds = 0, 0.0
    for _ in range(rounds):
        tell_workers(store, ids, signal.SIGSTOP)
        try:
            click_through(page, titles, idle)
        finally:
            tell_workers(store, ids, signal.SIGCONT)
        began, before = time.monotonic(), sum(store.info(run_id).step for run_id in ids)
        click_through(page, titles, busy)
        steps += sum(store.info(run_id).step for run_id in ids) - before
        seconds += time.monotonic() - began
    show(idle, busy)
    at_work = sum(store.info(run_id).state == "running" for run_id in ids)
    return f"{at_work} runs at work, together {steps / seconds:.1f} steps/s beside the pages"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before", flush=True)
    with running() as app, sync_playwright() as playwright:
        page = new_page(playwright)
        titles = headings(page, app.url)
        with training(app.home, N_RUNS) as (store, ids):
            print(measure(page, titles, store, ids, rounds))
        page.close()
    print(f"Load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
