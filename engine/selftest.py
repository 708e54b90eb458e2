"""`python -m engine.selftest`: does everything work on this machine? It takes about ten seconds.

It prints a table and leaves with 0 if nothing failed, else 1. It downloads nothing and leaves nothing behind.
With `--json` it prints a line for each check as it begins and as it ends: the self-test page reads those.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

# Before torch is imported: what others compute meanwhile comes first.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from engine import plain_log
from engine.folders import data_folder
from engine.selftest_folder import trial_folder
from engine.selftest_result import FAILED, OK, WARNING, Fact, Outcome, Result, table, worst

TROUBLE = (  # what a broken package, a full disk or a fault of this program may raise
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, MemoryError, NameError,
    OSError, RuntimeError, SyntaxError, SystemError, TypeError, ValueError,
)  # fmt: skip
NICENESS = 5  # the app's clicks come first
TRIAL_BEFORE = "writing"  # the check before which the worker begins: they go on together


class Check(NamedTuple):
    """One check: its name, its group, and where it stands. It is imported only when its turn comes."""

    slug: str
    group: str
    place: str  # module:function


CHECKS = (
    Check("python", "machine", "selftest_machine:python"),
    Check("packages", "machine", "selftest_machine:packages"),
    Check("model-packages", "machine", "selftest_machine:model_packages"),
    Check("memory", "machine", "selftest_machine:free_memory"),
    Check("disk", "machine", "selftest_machine:free_space"),
    Check("writing", "folder", "selftest_folder:writing"),
    Check("locking", "folder", "selftest_folder:locking"),
    Check("clock", "folder", "selftest_folder:clock"),
    Check("sizes", "folder", "selftest_folder:sizes"),
    Check("attention", "numbers", "selftest_engine:attention"),
    Check("cache", "numbers", "selftest_engine:cached"),
    Check("batch", "numbers", "selftest_engine:batched"),
    Check("gradient", "numbers", "selftest_engine:gradient"),
    Check("softmax", "numbers", "selftest_engine:whole_vocabulary"),
    Check("uniform", "numbers", "selftest_engine:uniform"),
    Check("round-trips", "numbers", "selftest_engine:round_trips"),
    Check("true-chances", "numbers", "selftest_engine:true_chances"),
    Check("same-twice", "numbers", "selftest_training:same_twice"),
    Check("resume", "numbers", "selftest_training:same_after_a_break"),
    Check("card", "numbers", "selftest_engine:shipped_loss"),
    Check("devices", "machine", "selftest_engine:other_devices"),
    Check("worker", "runs", ""),  # the trial that began before the numbers
    Check("runs", "runs", "selftest_runs:at_work"),
    Check("orphans", "runs", "selftest_runs:orphans"),
)


def broken(error: BaseException) -> Outcome:
    """The outcome of a check that could not be carried out."""
    at = (plain_log.places(error) or ["?"])[-1]
    return Outcome(FAILED, Fact("broke", {"kind": plain_log.kind_of(error), "at": at}), Fact("no_error"))


def carried_out(check: Check, work: Callable[[], Outcome]) -> Result:
    """A check's result, whatever happens in it."""
    began = time.monotonic()
    try:
        outcome = work()
    except TROUBLE as error:  # the others still have their turn
        outcome = broken(error)
    return Result(
        check.slug, check.group, outcome.state, outcome.measured, outcome.expected, time.monotonic() - began
    )


def run_all(home: Path, begun: Callable[[str], None] = lambda slug: None) -> Iterator[Result]:
    """All checks, one after the other; the worker is at work while the numbers are checked.

    Args:
        home: the data folder.
        begun: is told the name of each check before it is carried out.
    """
    with trial_folder(home) as place:
        trial: Any = None
        try:
            for check in CHECKS:
                begun(check.slug)
                if check.slug == TRIAL_BEFORE:
                    trial = _begin(place)
                work = partial(_end, trial) if check.slug == "worker" else partial(_work, check, home)
                yield carried_out(check, work)
        finally:
            if hasattr(trial, "stop"):
                trial.stop()


def _end(trial: Any) -> Outcome:
    return trial if isinstance(trial, Outcome) else trial.end()


def _begin(place: Path | None) -> Any:
    try:
        return import_module("engine.selftest_runs").begin(place)
    except TROUBLE as error:
        return broken(error)


def _work(check: Check, home: Path) -> Outcome:
    module, _, name = check.place.partition(":")
    return getattr(import_module(f"engine.{module}"), name)(home)


def main(arguments: Sequence[str]) -> int:
    """Carry all checks out; gives the exit status."""
    as_json, home, began = "--json" in arguments, data_folder().absolute(), time.monotonic()
    os.environ["LOUPE_NICE"] = "0"  # of the worker that is tried: no nicer than this process
    results = []

    def tell(**content: object) -> None:
        if as_json:
            print(json.dumps(content), flush=True)

    tell(total=len(CHECKS))
    for result in run_all(home, lambda slug: tell(begun=slug)):
        results.append(result)
        tell(result=result.to_json())
        if not as_json and sys.stderr.isatty():
            print(".", end="\n" if len(results) == len(CHECKS) else "", file=sys.stderr, flush=True)
    if not as_json:
        print(table(results))
    note(results, home, time.monotonic() - began)
    return 1 if worst(results) == FAILED else 0


def note(results: Sequence[Result], home: Path, seconds: float) -> None:
    """Tell the log how it went."""
    bad = {s: ",".join(r.slug for r in results if r.state == s) or None for s in (FAILED, WARNING)}
    fine = sum(r.state == OK for r in results)
    write = plain_log.info if worst(results) == OK else plain_log.warning
    write("self-test", home=home, fine=fine, failed=bad[FAILED], look=bad[WARNING], seconds=seconds)


def leave(*_: object) -> None:
    """What SIGTERM does: end, and leave nothing behind."""
    sys.exit(143)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, leave)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    sys.exit(main(sys.argv[1:]))
