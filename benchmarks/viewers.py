"""P11: thirty people watch a curve that still grows, each page asking for the newest numbers each second.

They are clients that speak Streamlit's protocol (`benchmarks.client`), each with the Training page of one run
open; the run trains on this machine meanwhile. Each asks at its own moment of the second, as browsers that
were opened one after the other do, and every few seconds for what changes less often than the curve. A
request whose answer is not there when the next one is due counts as unanswered, and the next one waits for
it. The peer is the same app with Streamlit's settings as they come, see `app.STOCK`.
"""

import asyncio
import random
import statistics
import time
from typing import NamedTuple

from benchmarks.app import App, running, training
from benchmarks.client import Person, Tab
from benchmarks.rows import Goal, Measure, Options, Row, Spread

N_VIEWERS = 30
SECONDS = 8.0  # that each round watches
GOAL_MS, GOAL_SERVED = 50.0, 100.0


class Watched(NamedTuple):
    """What one round saw.

    Attributes:
        times: of the answers about the curve, ms.
        answered, asked: how many answers came, of how many that were due.
        core: share of one core that the server took, percent.
        size: of an answer, kB.
    """

    times: list[float]
    answered: int
    asked: int
    core: float
    size: float


Rounds = dict[str, list[Watched]]


async def look(tab: Tab, seconds: float, delay: float) -> tuple[list[float], int, int, list[int]]:
    """One viewer, whose page asks for each of its parts that are drawn anew as often as that part is due.

    Returns:
        ms of each answer about the curve, which is the part that is due most often; how many answers came;
        how many were due; bytes of each answer about the curve.
    """
    curve = min(tab.ticks, key=lambda part: tab.ticks[part])
    at = {part: delay * every for part, every in tab.ticks.items()}  # when each part is due next
    times, sizes, began = [], [], time.perf_counter()
    answers = due = 0
    while min(at.values()) < seconds:
        part = min(at, key=lambda part: at[part])
        every = tab.ticks[part]
        await asyncio.sleep(max(0.0, at[part] - (time.perf_counter() - began)))
        ran = await tab.tick(part)
        if part == curve:
            times.append(1000 * ran.seconds)
            sizes.append(ran.size)
        late = max(0, int((time.perf_counter() - began - at[part]) / every))  # that came due meanwhile
        answers, due = answers + 1, due + 1 + late
        at[part] += (late + 1) * every
    return times, answers, due, sizes


async def open_page(person: Person, run_id: str) -> Tab:
    """The Training page of somebody else's run."""
    tab = await person.open("training", run=run_id)
    if tab.exceptions() or not tab.ticks:
        raise RuntimeError(f"The page of the run does not move: {tab.exceptions()}")
    return tab


async def crowds(urls: list[str], run_id: str, n: int) -> list[list[Tab]]:
    """So many people at each server, all with the page of a run open."""
    return [[await open_page(Person(url), run_id) for _ in range(n)] for url in urls]


async def watch(app: App, tabs: list[Tab], seconds: float) -> Watched:
    """Let people watch for so long."""
    moments = random.Random(1)
    before, began = app.cpu(), time.perf_counter()
    seen = await asyncio.gather(*(look(tab, seconds, moments.random()) for tab in tabs))
    core = 100 * (app.cpu() - before) / (time.perf_counter() - began)
    curves = [one for tab in tabs for one in tab.all("bidi_component") if "live_curve" in one.component_name]
    if len(curves) != len(tabs):
        raise RuntimeError(f"{len(tabs)} people watch and {len(curves)} of them see a curve.")
    times = [ms for one, *_ in seen for ms in one]
    sizes = [size for *_, one in seen for size in one]
    answered, asked = sum(one for _, one, *_ in seen), sum(one for _, _, one, _ in seen)
    return Watched(times, answered, asked, core, statistics.mean(sizes) / 1000)


async def in_turns(apps: dict[str, App], run_id: str, n: int, seconds: float, rounds: int) -> Rounds:
    """Let the people of one server watch, then those of the other, and so on."""
    found: Rounds = {name: [] for name in apps}
    everybody = await crowds([app.url for app in apps.values()], run_id, n)
    for _ in range(rounds):
        for (name, app), tabs in zip(apps.items(), everybody, strict=True):
            found[name].append(await watch(app, tabs, seconds))
    for tab in (tab for tabs in everybody for tab in tabs):
        await tab.close()
    return found


def measure(options: Options) -> Row:
    """P11."""
    n, seconds, rounds = (3, 2.0, 1) if options.toy else (N_VIEWERS, SECONDS, options.rounds)
    with running() as tuned, running(tuned.home, stock=True) as stock, training(tuned.home, 1) as (_, ids):
        apps = {"Loupe": tuned, "Streamlit as it comes": stock}
        found = asyncio.run(in_turns(apps, ids[0], n, seconds, rounds))
    middles = {name: Spread.of([statistics.median(x.times) for x in seen]) for name, seen in found.items()}
    served = Spread.of([100 * one.answered / one.asked for one in found["Loupe"]])
    return Row(
        id="P11",
        what=f"{n} viewers of a live curve, one run training: time to an answer (p50)",
        unit="ms",
        figures=middles,
        goals=[
            Goal("ms", middles["Loupe"], GOAL_MS, at_least=False),
            Goal("% of the requests answered in time", served, GOAL_SERVED),
        ],
        notes=f"Each viewer's page asks for the curve once a second; {seconds:g} s a round.",
        more={name: details(seen) for name, seen in found.items()},
    )


def details(rounds: list[Watched]) -> dict[str, object]:
    """For the file of results."""
    times = sorted(ms for one in rounds for ms in one.times)
    return {
        "p95_ms": times[int(0.95 * (len(times) - 1))],
        "most_ms": times[-1],
        "served": [f"{one.answered} of {one.asked}" for one in rounds],
        "server_percent_of_a_core": [round(one.core, 1) for one in rounds],
        "kB_an_answer": [round(one.size, 1) for one in rounds],
    }


MEASURES: dict[str, Measure] = {"P11": measure}
