"""A kind of input, the cases of it that are made up, and what becomes of one case.

A case either works or is refused in a sentence of Loupe's own. Anything else is a fault: another error, an
error of another package's, Python's words in the sentence, too much time or memory, a file written or a
connection opened where none belongs.
"""

import re
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis.strategies import SearchStrategy

from trials.inputs_watch import Memory, Watch

ROOT = Path(__file__).parent.parent
OURS = tuple(str(ROOT / room) for room in ("engine", "ui", "wording"))
# What Python says of its own mistakes; whoever reads it on the screen has learned nothing.
PYTHONS = re.compile(
    r"\b(Key|Index|Type|Attribute|Value|Overflow|Recursion|Memory|Unicode\w*)Error\b|Traceback|NoneType"
    r"|object (at 0x|is not|has no)|unhashable|not (subscriptable|iterable|callable)|takes \d+ positional"
    r"|must be (str|bytes|int|a string|real number)|unsupported operand|not supported between|codec can't"
    r"|int too large|cannot convert|could not convert|list ind(ex|ices)|missing \d+ required|'\w+' object"
)


class TooLong(BaseException):
    """A case that took more processor time than it may."""


class Broken(AssertionError):
    """What was taken in is not what it should be."""


@dataclass(frozen=True)
class Kind:
    """A kind of input.

    Attributes:
        name: in the report.
        cases: made up by hypothesis; their `repr` makes them again.
        attempt: takes one in, as the app would. Gets the case and an empty data folder; raises `ValueError`
            where the app refuses it, `Broken` if what it gives is wrong.
        known: cases that are always tried, first.
        heavy: further such cases, which take a while each: not at toy size.
        seconds: of processor time that a case may take.
        megabytes: that a case may take beyond what the process had.
        ready: makes what cases are made of, before anything is watched.
    """

    name: str
    cases: SearchStrategy[Any]
    attempt: Callable[[Any, Path], None]
    known: tuple[Any, ...] = ()
    heavy: tuple[Any, ...] = ()
    seconds: float = 10.0
    megabytes: float = 600.0
    ready: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        state: "taken", "refused" or "fault".
        what: the sentence, or what went wrong and where.
        seconds: of processor time.
        megabytes: beyond what the process had before.
    """

    state: str
    what: str
    seconds: float
    megabytes: float

    @property
    def sort(self) -> str:
        """Faults of one sort have one cause: its kind and place, without the numbers of the case."""
        return re.sub(r"\d+(\.\d+)?", "#", self.what.split("\n")[0][:120])


def tried(kind: Kind, case: Any, watch: Watch) -> Outcome:
    """Try one case in a fresh data folder."""
    with watch.place() as place, Memory() as memory:
        began = time.process_time()
        try:
            with at_most(kind.seconds):
                kind.attempt(case, place)
            state, what = "taken", ""
        except BaseException as error:  # a panic of a package in Rust is no Exception
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            what = fault_of(error)
            state, what = ("fault", what) if what else ("refused", str(error))
        seconds = time.process_time() - began
    if state != "fault" and watch.seen:
        state, what = "fault", f"touched: {watch.seen[0]}"
    if state != "fault" and memory.megabytes > kind.megabytes:
        state, what = "fault", f"memory: {memory.megabytes:.0f} MB of at most {kind.megabytes:.0f}"
    return Outcome(state, what, seconds, memory.megabytes)


def fault_of(error: BaseException) -> str:
    """Why an error is no refusal of Loupe's own; "" if it is one."""
    frames = traceback.extract_tb(error.__traceback__)
    last, ours = frames[-1], [f for f in frames if f.filename.startswith(str(ROOT))][-1]
    where = f"{Path(ours.filename).relative_to(ROOT)}:{ours.lineno}"
    own = type(error) is ValueError or (
        isinstance(error, ValueError) and type(error).__module__.startswith(("engine.", "ui."))
    )
    told = str(error)
    if not own or not last.filename.startswith(OURS):
        return f"{type(error).__name__} in {where}: {told[:300]}"
    if len(told.split()) < 3 or len(told) > 3000:
        return f"no sentence in {where}: {told[:300]!r}"
    if found := PYTHONS.search(told):
        return f"Python's words ({found[0]}) in {where}: {told[:300]}"
    return ""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Let the block take so much processor time: a process that is stopped meanwhile loses none."""

    def end(*_: object) -> None:
        raise TooLong(f"more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def again(kind: Kind, case: Any) -> Outcome:
    """Try one case in this process, such as one that a report names."""
    with tempfile.TemporaryDirectory() as folder:
        kind.ready()
        return tried(kind, case, Watch(Path(folder)))
