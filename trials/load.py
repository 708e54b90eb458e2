"""A class at work on a small server: people tokenise, look, let models write and train, in three rounds.

They are clients that speak Streamlit's protocol (`benchmarks.client`), and two with a Chromium where there is
one. At the end of each round everybody leaves, is forgotten, and comes back as somebody new. The clients run
on the same machine as the server and its workers, which makes all times longer than in a real class.
"""

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.app import App, chromium_path, running
from benchmarks.client import Person, address
from engine.run_queue import RunQueue
from trials.load_browsers import Screens, browse
from trials.load_log import Log, line, percentile
from trials.load_people import Looker, Maker, Student, Tokeniser, Trainer, Writer
from trials.load_queue import Watch, active, damage
from trials.load_server import Standing, end_all, processes, settled
from trials.outcomes import Check, Options, Part
from ui.nav import PAGES

ROUNDS = 3
AT_WORK = 2  # runs at once; the others wait
THINKING = 4.0  # s on average between two acts of one person
TTL = 2  # s after which a session that has left is forgotten; Streamlit's own is 120
IDLE_MS = 1000.0  # at the 95th percentile
GROWTH_MB = 40.0  # the settled memory of the third round above that of the second
POOLS = 8  # threads that may have been added to the pools that serve files
GRACE = 30.0  # s after the end of a round for the last answers
END_SECONDS = 90.0  # for the last runs to stop


@dataclass
class Seen:
    """All that a trial saw.

    Attributes:
        log: of the people.
        watch: of the runs.
        screens: of the browsers.
        warm: how the server stood before the first round.
        full: MB at the end of each round, with everybody there.
        after: how it stood after each round, with everybody gone.
        cores: of the processor that the server and the clients took in each round.
        end: how it stood when all runs had ended.
        active: runs at work or waiting when the class was over.
        still_active: those of them that did not stop when their owner asked for it.
        damaged: what is not whole, by run.
        orphans: processes that were left when the server had ended.
    """

    log: Log = field(default_factory=Log)
    watch: Watch = field(default_factory=Watch)
    screens: Screens = field(default_factory=Screens)
    warm: Standing = Standing(0.0, 0, [])
    full: list[float] = field(default_factory=list)
    after: list[Standing] = field(default_factory=list)
    cores: list[tuple[float, float]] = field(default_factory=list)
    end: Standing = Standing(0.0, 0, [])
    active: list[str] = field(default_factory=list)
    still_active: list[str] = field(default_factory=list)
    damaged: dict[str, list[str]] = field(default_factory=dict)
    orphans: list[str] = field(default_factory=list)


def makers(n: int, seconds: float, queue: RunQueue, *, toy: bool) -> list[Maker]:
    """What the n people of a round do: a sixth lets models write, a fifth trains, the others are idle."""
    writers, trainers = max(1, n // 6), max(1, n // 5)
    steps = 3000 if toy else max(100, min(1000, round(8 * seconds)))
    train = partial(Trainer, steps=steps, size="nano" if toy else "small", queue=queue)
    greedy = partial(train, at_once=3)
    idle = [Tokeniser if place % 2 else Looker for place in range(max(1, n - writers - trainers))]
    return [*[Writer] * writers, *([greedy] + [train] * (trainers - 1)), *idle]


def tell(words: str) -> None:
    """Say how far the trial is."""
    print(f"{time.strftime('%H:%M:%S')} load: {words}", file=sys.stderr, flush=True)


async def warm_up(app: App, names: Sequence[str]) -> None:
    """Open pages once, as a teacher does before the class comes."""
    async with Person(app.url) as teacher:
        for name in names:
            tab = await teacher.open(name)
            await tab.close()


async def one_round(
    app: App, options: Options, number: int, seconds: float, queue: RunQueue, seen: Seen
) -> None:
    """Everybody comes, works and leaves."""
    thinking = 0.2 if options.toy else THINKING
    until = time.monotonic() + seconds
    people: list[Student] = []
    for place, make in enumerate(makers(options.people, seconds, queue, toy=options.toy)):
        dice = random.Random(f"{options.seed} {number} {place}")
        people.append(make(app.url, seen.log, dice, until, thinking))
    n_browsers = 0 if options.toy else 2
    screens = browse(app.url, n_browsers, options.seed + number, until, seen.screens)
    stays = {asyncio.create_task(person.stay()): person for person in people}
    _, late = await asyncio.wait([asyncio.create_task(screens), *stays], timeout=seconds + GRACE)
    for task in late:
        seen.log.errors.append(f"no answer {GRACE:g} s after the end: {stays.get(task, 'a browser')}")
        task.cancel()
    for task in stays:
        if not task.cancelled() and task.done() and (error := task.exception()):
            raise error
    await asyncio.gather(*late, return_exceptions=True)
    seen.full.append(app.memory())
    for person in people:
        await person.person.__aexit__()


async def stop_all(app: App, queue: RunQueue, seen: Seen) -> None:
    """The owners of what has not ended come back, open their runs and press Stop: the waiting ones first."""
    seen.active = active(queue)
    waiting = queue.waiting()
    for run_id in [*waiting, *(one for one in seen.active if one not in waiting)]:
        person = Person(app.url)
        person.word = seen.log.started[run_id]
        async with person:
            tab = await person.open("training", run=run_id)
            if address(tab.query).get("run") == run_id and run_id in active(queue):
                await tab.press("training_stop")
            seen.log.errors += tab.exceptions()
    end = time.monotonic() + END_SECONDS
    while (left := active(queue)) and time.monotonic() < end:
        await asyncio.sleep(0.2)
    seen.still_active = left


async def class_at_work(app: App, options: Options, seen: Seen) -> None:
    """All rounds, and the end."""
    queue, over = RunQueue(Path(app.home)), asyncio.Event()
    seconds = 60 * options.minutes / ROUNDS
    names = ["tokens", "generation", "training"] if options.toy else [page.name for page in PAGES]
    await warm_up(app, ["" if name == "home" else name for name in names])
    wait, most = (TTL + 0.5, TTL + 2.0) if options.toy else (3.0 * TTL, 20.0)
    tell("every page was opened once")
    seen.warm = await settled(app, wait, most)
    watching = asyncio.create_task(seen.watch.go_on(queue, over))
    for number in range(ROUNDS):
        tell(f"round {number + 1} of {ROUNDS} begins")
        before = app.cpu(), time.process_time(), time.monotonic()
        await one_round(app, options, number, seconds, queue, seen)
        now = app.cpu(), time.process_time(), time.monotonic()
        spent = [new - old for new, old in zip(now, before, strict=True)]
        seen.cores.append((spent[0] / spent[2], spent[1] / spent[2]))
        tell(f"round {number + 1} is over, {seen.log.requests:,} requests, {len(seen.log.errors)} errors")
        seen.after.append(await settled(app, wait, most))
    tell("the last runs are stopped")
    await stop_all(app, queue, seen)
    over.set()
    await watching
    seen.end = await settled(app, wait, END_SECONDS, n_processes=1)
    tell("curves and checkpoints are read")
    found = {run_id: damage(queue.root / run_id) for run_id in queue.ids()}
    seen.damaged = {run_id: what for run_id, what in found.items() if what}
    missing = set(seen.log.started) - set(found)
    seen.damaged |= {run_id: ["its folder is gone"] for run_id in missing}


def no_orphans(home: str, seconds: float = 30.0) -> list[str]:
    """The processes that are left on a data folder, after a moment in which an idle worker may leave."""
    end = time.monotonic() + seconds
    while (left := processes(home)) and time.monotonic() < end:
        time.sleep(0.2)
    return left


def trial(options: Options) -> Part:
    """The class at work."""
    if options.toy:
        options = Options(toy=True, minutes=0.1, people=min(options.people, 3), seed=options.seed)
    seen = Seen()
    environment = {
        "LOUPE_MAX_RUNS": str(AT_WORK),
        "STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL": str(TTL),
    }
    with tempfile.TemporaryDirectory() as folder:
        home = str(Path(folder) / "home")
        try:
            with running(home, environment=environment) as app:
                asyncio.run(class_at_work(app, options, seen))
            seen.orphans = no_orphans(home)
        finally:
            end_all(home)
    return Part("load", [*checks(options, seen)], figures(options, seen), notes(options, seen))


def few(found: Sequence[object]) -> str:
    """How many there are, and the first of them.

    >>> few([]), few(["a", "b"])
    ('none', '2, such as a')
    """
    return f"{len(found)}, such as {found[0]}" if found else "none"


def checks(options: Options, seen: Seen) -> Iterator[Check]:
    """The promises."""
    log, watch, screens = seen.log, seen.watch, seen.screens
    clicks = [ms for ms, _ in log.clicks]
    p95 = percentile(clicks, 0.95)
    limit = 60_000.0 if options.toy else IDLE_MS
    yield Check(
        "While two runs train and others let models write, a click of somebody else is answered within 1 s "
        "(95 of 100)",
        f"{p95 / 1000:.2f} s at the 95th percentile of {len(clicks):,} clicks",
        p95 < limit,
    )
    yield Check("No page shows an error, no connection breaks", few(log.errors), not log.errors)
    busy = sum(n for at_work, n in watch.looks.items() if at_work == AT_WORK) / max(1, watch.looks.total())
    most = max(watch.looks, default=0)
    yield Check(
        f"As many runs train as the server allows ({AT_WORK}), and never more",
        f"{AT_WORK} during {busy:.0%} of the time, at most {most}; up to {watch.longest_queue} waited",
        most <= AT_WORK and (busy > 0.5 or options.toy),
    )
    shown = sum(log.places.values())
    yield Check(
        "Who waits sees the place of their run in the queue, and it is the right one",
        f"{shown:,} places seen, up to number {max(log.places, default=0)}; wrong: {few(log.wrong_places)}",
        (shown > 0 or options.toy) and not log.wrong_places,  # a toy's runs may be over before anybody looks
    )
    longest = max(watch.first_waits, default=0.0)
    yield Check(
        "Turns are fair: no run begins while somebody waits who has fewer runs at work",
        f"{watch.turns} runs came out of the queue, unfair: {few(watch.unfair)}; who had no run at work "
        f"waited at most {longest:.0f} s",
        (watch.turns > 0 or options.toy) and not watch.unfair,
    )
    damaged = [f"{run_id}: {', '.join(what)}" for run_id, what in seen.damaged.items()]
    yield Check(
        "Every run that was started ends with its whole curve and a checkpoint that opens, or can be stopped",
        f"{len(log.started)} runs started, {len(seen.active)} stopped by their owners at the end; "
        f"not whole: {few(damaged)}; not to be stopped: {few(seen.still_active)}",
        bool(log.started) and not damaged and not seen.still_active,
    )
    yield from server_checks(options, seen)
    if screens.pages or screens.problems:
        yield Check(
            "In a real browser no page shows an error or loses its connection",
            f"{screens.pages} pages; problems: {few(screens.problems)}; with what the server leaves of the "
            f"processor no screen stood still longer than {screens.longest_freeze / 1000:.1f} s",
            not screens.problems,
        )


def server_checks(options: Options, seen: Seen) -> Iterator[Check]:
    """The promises about memory, threads and processes."""
    settled_at = [one.memory for one in seen.after]
    growth = settled_at[-1] - settled_at[1]
    yield Check(
        f"Memory does not grow: once everybody is gone, the third round leaves at most {GROWTH_MB:g} MB more "
        "than the second",
        f"{', '.join(f'{mb:.0f}' for mb in settled_at)} MB after the rounds, {growth:+.0f} MB",
        growth < (200.0 if options.toy else GROWTH_MB),
    )
    first, end = seen.after[0].threads, seen.end.threads
    yield Check(
        "No thread is left of any session; only the pools that serve files may grow a little",
        f"{first} after the first round, {end} at the end, after {seen.log.sessions:,} sessions",
        end <= first + POOLS,
    )
    yield Check(
        "No process is left: only the idle worker beside the server, and nothing when the server has ended",
        f"beside the server {few(seen.end.processes)}; after it {few(seen.orphans)}",
        len(seen.end.processes) <= 1 and not seen.orphans,
    )


def figures(options: Options, seen: Seen) -> dict[str, dict[str, float | int | str]]:
    """Lines of the report's table."""
    found = {"clicks of idle people": line([ms for ms, _ in seen.log.clicks])} if seen.log.clicks else {}
    return found | {kind: line(times) for kind, times in sorted(seen.log.times.items())}


def notes(options: Options, seen: Seen) -> list[str]:
    """What a reader needs beside the table."""
    log, each = seen.log, (seen.full[0] - seen.warm.memory) / max(1, options.people)
    people = f"{options.people} people at once in each of {ROUNDS} rounds"
    browsers = 2 if not options.toy and chromium_path() else 0
    told = [
        f"{people}, {browsers} more with a Chromium; {options.minutes:g} minutes; {log.sessions:,} sessions, "
        f"{log.requests:,} requests, {log.messages:,} messages, {log.size / 1e6:,.0f} MB sent; "
        f"{log.left} tabs closed in the middle of an answer.",
        "Times are from the press to the last message, as the browser sees them, with server, workers and "
        "all clients on the same cores; the browsers give way. Each page was opened once before.",
        f"The server took {max(one for one, _ in seen.cores):.0%} of a core at most, the clients without the "
        f"browsers {max(one for _, one in seen.cores):.0%}.",
        f"Memory of the server: {seen.warm.memory:.0f} MB before; "
        f"{', '.join(f'{mb:.0f}' for mb in seen.full)} MB with everybody there, "
        f"{each:.1f} MB more for each person of the first round than before, with what the caches keep.",
    ]
    if log.clicks and not options.toy:
        told.append(f"Slowest clicks, by their median: {'; '.join(log.slowest(6))}.")
    return told
