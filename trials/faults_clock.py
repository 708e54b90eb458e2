"""A clock that is set back or ahead while a run is trained, while one waits, and while old ones are kept.

The clock of a child process is shifted by a file: `sitecustomize` puts another `time.time` before everything
else. Nothing of the machine's own clock is touched.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from engine import retention
from engine.runs import RunStore
from trials.faults_kit import ME, Tally, at_work, ended, spec, wait_until, whole_run, wrong_at_end
from trials.outcomes import Options

HOUR, DAY = 3600.0, 86_400.0
SHIFTS = {"an hour back": -HOUR, "two years back": -730 * DAY, "five years ahead": 1826 * DAY}
CLOCK = """
import time
from pathlib import Path

_time, _file = time.time, Path("{file}")

def shifted():
    try:
        return _time() + float(_file.read_text())
    except (OSError, ValueError):
        return _time()

time.time = shifted
"""


def trial(options: Options) -> Tally:
    """Set the clock in the middle of runs, and before and after the server looks for old ones."""
    tally = Tally("clock set back or ahead")
    shifts = dict(list(SHIFTS.items())[: 1 if options.toy else None])
    with at_work() as store:
        _while_it_trains(store, tally, shifts)
    with at_work() as store, kept_for(30):
        _while_it_is_kept(store, tally)
    with at_work() as store:
        _while_it_can_be_undone(store, tally)
    return tally.promise(
        "A clock that jumps ends no run, deletes none and changes no loss; a deleted one can be brought back"
    )


@contextmanager
def kept_for(days: int) -> Iterator[None]:
    """Old runs are deleted after so many days."""
    before = os.environ.get(retention.VARIABLE)
    os.environ[retention.VARIABLE] = str(days)
    try:
        yield
    finally:
        os.environ.pop(retention.VARIABLE)
        os.environ |= {} if before is None else {retention.VARIABLE: before}


@contextmanager
def clock() -> Iterator[Callable[[float], None]]:
    """Gives what sets the clock of this process, to so many seconds from the true one."""
    true, shift = time.time, [0.0]
    time.time = lambda: true() + shift[0]
    try:
        yield lambda seconds: shift.__setitem__(0, seconds)
    finally:
        time.time = true


def _while_it_trains(store: RunStore, tally: Tally, shifts: dict[str, float]) -> None:
    """The clocks of the server and of the worker jump together, as that of one machine does."""
    steps = {"steps": 48, "d_model": 32, "batch_size": 16}
    whole = whole_run(store, **steps)
    for name, seconds in shifts.items():
        with tempfile.TemporaryDirectory() as folder, clock() as set_to:
            file = Path(folder) / "shift"
            (Path(folder) / "sitecustomize.py").write_text(CLOCK.format(file=file), "utf-8")
            path = os.environ.get("PYTHONPATH")
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, path)))
            try:
                run_id, next_id = _start_two(store, steps)
                wait_until(partial(_has_begun, store, run_id))
                file.write_text(str(seconds))
                set_to(seconds)
                wrong = _not_alive(store, run_id)
                for one in (run_id, next_id):
                    ended(store, one)
                    wrong = wrong or wrong_at_end(store, one, whole) or _not_set(store, one)
            finally:
                store.close()
                os.environ.pop("PYTHONPATH") if path is None else os.environ.update(PYTHONPATH=path)
        tally.count(wrong and f"set {name}: {wrong}")


def _start_two(store: RunStore, steps: dict[str, int]) -> tuple[str, str]:
    """The same run twice, for two people: one of them may have to wait."""
    return store.start(spec(**steps), ME), store.start(spec(**steps), "f" * 32)


def _has_begun(store: RunStore, run_id: str) -> bool:
    return store.info(run_id).step >= 3


def _not_alive(store: RunStore, run_id: str) -> str:
    info = store.info(run_id)
    return "" if info.active or info.state == "finished" else f"it is said to be {info.state}: {info.message}"


def _not_set(store: RunStore, run_id: str) -> str:
    """Whether the worker's clock jumped as well, which its last words tell: else there was no fault."""
    apart = abs(store.queue.status(run_id)["updated"] - time.time())
    return "" if apart < HOUR / 2 else f"the worker's clock was {apart:,.0f} s from that of the server"


def _while_it_is_kept(store: RunStore, tally: Tally) -> None:
    """A day of warning has to pass, and no leap of the clock is a day; see `engine.retention`."""
    run_id = whole_run(store)
    file = store.root / run_id / "run.json"
    with clock() as set_to:
        for days in (0, 400, -4000, 400, 401.2, 5000, 5001.1, 0.2):
            set_to(days * DAY)
            RunStore(store.home).list()
            retention.tidy(store.home)
            tally.count(
                "" if file.is_file() else f"retention deleted a run when the clock went to day {days}"
            )


def _while_it_can_be_undone(store: RunStore, tally: Tally) -> None:
    """Deleted, then the clock is set back: nothing is gone before its time."""
    for days in (-0.02, -400):
        run_id = whole_run(store)
        with clock() as set_to:
            store.delete(run_id, ME)
            set_to(days * DAY)
            RunStore(store.home)  # a server that starts sweeps
            try:
                store.restore(run_id, ME)
            except (ValueError, OSError) as error:
                tally.count(f"clock set {days} days on: a deleted run can't be brought back: {error}")
                continue
        tally.count("" if store.info(run_id).state == "finished" else "it came back as another")
