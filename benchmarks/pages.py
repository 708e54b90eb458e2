"""`python -m benchmarks.pages`: what every page costs the server: to open, to run again, and in memory.

For each page: the first opening of all, when models are read and caches are empty; then, as medians, an
opening by somebody else and a run of the page without any change, as every press of a control causes it at
least. Time is from the request to the last message; processor time is that of the server alone. With
`--sessions N` it also opens N sessions on each page, and says what each of them takes, and what is still
there after they have left and been forgotten.
"""

import argparse
import asyncio
import os
import statistics
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from benchmarks.app import App, running
from benchmarks.client import Person, Ran, Tab
from ui.nav import PAGES

# Pages whose views cost most, beside the one that they open with.
VIEWS = {
    "training": ("watch=one-step", "watch=time-machine", "watch=runs"),
    "generation": ("lab=waterfall",),
    "next_token": ("look=best-guesses",),
}
FORGOTTEN = 2.0  # s after which a session that has left is forgotten here; Streamlit's own is 120


def addresses() -> list[str]:
    """Every page, and some of their views."""
    pages = ["" if info.name == PAGES[0].name else info.name for info in PAGES]
    return [one for page in pages for one in (page, *(f"{page}?{view}" for view in VIEWS.get(page, ())))]


class Taken(NamedTuple):
    """What one act took: ms, ms of the server's processor, and what came."""

    time: float
    cpu: float
    ran: Ran


async def taken(app: App, act: Callable[[], Awaitable[Ran]]) -> Taken:
    """Time one act; waits until the server is done with it."""
    before = app.cpu()
    ran = await act()
    await asyncio.sleep(0.05)
    return Taken(1000 * ran.seconds, 1000 * (app.cpu() - before), ran)


async def opened(app: App, where: str) -> tuple[Person, Tab, Ran]:
    """A page opened by somebody new."""
    person = Person(app.url)
    page, _, query = where.partition("?")
    tab, ran = await person.first_run(page, **dict(part.split("=") for part in query.split("&") if part))
    if tab.exceptions():
        raise RuntimeError(f"/{where}: {tab.exceptions()[0]}")
    return person, tab, ran


async def table(app: App, rounds: int, only: list[str]) -> None:
    """Print a line for each page."""
    print(f"{'':28}{'first':>9}{'open':>14}{'again':>15}{'messages':>10}{'kB':>7}")
    print(f"{'page':28}{'ms':>9}{'ms':>8}{'cpu':>6}{'ms':>9}{'cpu':>6}")
    for where in only or addresses():
        opens, reruns = [], []
        person, tab, first = await opened(app, where)
        for _ in range(rounds):
            async with Person(app.url) as other:
                page, _, query = where.partition("?")

                async def act(other: Person = other, page: str = page, query: str = query) -> Ran:
                    asked = dict(part.split("=") for part in query.split("&") if part)
                    return (await other.first_run(page, **asked))[1]

                opens.append(await taken(app, act))
            reruns += [await taken(app, tab.rerun) for _ in range(3)]
        await tab.close()
        ran = reruns[-1].ran
        times = [statistics.median(one.time for one in many) for many in (opens, reruns)]
        cpus = [statistics.mean(one.cpu for one in many) for many in (opens, reruns)]
        print(
            f"/{where:27}{1000 * first.seconds:9.0f}{times[0]:8.0f}{cpus[0]:6.0f}{times[1]:9.0f}"
            f"{cpus[1]:6.0f}{ran.messages:10}{ran.size / 1000:7.0f}",
            flush=True,
        )


async def sessions(app: App, n: int, only: list[str]) -> None:
    """Print, for each page, the memory of n sessions: while they are there and after they have gone."""
    print(f"\n{'page':28}{'MB before':>10}{'MB a session':>14}{'MB after':>10}")
    for where in only or addresses():
        await (await opened(app, where))[1].close()
        await asyncio.sleep(2 * FORGOTTEN)
        before = app.memory()
        tabs = [(await opened(app, where))[1] for _ in range(n)]
        each = (app.memory() - before) / n
        for tab in tabs:
            await tab.close()
        await asyncio.sleep(2 * FORGOTTEN)
        print(f"/{where:27}{before:10.0f}{each:14.2f}{app.memory():10.0f}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "pages", nargs="*", help="such as tokens or training?watch=runs; all if none is given"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=0, metavar="N")
    parser.add_argument("--stock", action="store_true", help="with Streamlit's settings as they come")
    asked = parser.parse_args()
    os.environ["STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL"] = str(int(FORGOTTEN))
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before", flush=True)
    with running(stock=asked.stock) as app:
        if asked.rounds:
            asyncio.run(table(app, asked.rounds, asked.pages))
        if asked.sessions:
            asyncio.run(sessions(app, asked.sessions, asked.pages))
    print(f"Load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
