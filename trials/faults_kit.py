"""What the faults have in common: what is counted, runs of a second, and a page that is read and used."""

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.client import Person, Tab
from engine import retention, worker
from engine.checkpoint_list import newest_checkpoint
from engine.checkpoints import load_checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.corpus import own_text
from engine.folders import read_json
from engine.records import merge_records, read_records
from engine.runs import RunInfo, RunSpec, RunStore
from engine.tokenizers import char_tokenizer
from trials.outcomes import Check

ME = "0123456789abcdef" * 2  # a word as browsers keep it
TEXT = "the cat sat on the mat, the dog sat on the log.\n" * 60
PATIENCE = 300.0  # s, on a busy machine
_TIMED = ("seconds", "tokens_per_second", "joules")


@dataclass
class Tally:
    """How one kind of fault went.

    Attributes:
        kind: its name in the report's table.
        injected, survived: how many there were, and after how many all was as promised.
        looks: how often it was looked besides, at pages and runs, whether all is well.
        checks: the promises.
        faults: what went wrong, a sentence each.
        left_out: why a part of it was not tried; "" if all was.
    """

    kind: str
    injected: int = 0
    survived: int = 0
    looks: int = 0
    checks: list[Check] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    left_out: str = ""

    def count(self, wrong: str = "") -> None:
        """One more fault: survived if nothing is wrong."""
        self.injected += 1
        self.survived += not wrong
        self.faults += [wrong] if wrong else []

    def look(self, wrong: str) -> None:
        """One more look after faults that were counted."""
        self.looks += 1
        self.faults += [wrong] if wrong else []

    def promise(self, what: str, seen: str = "") -> "Tally":
        """Close it with its promise; what went wrong first is part of what was seen."""
        first = f"; first: {self.faults[0]}" if self.faults else ""
        looks = f"; {self.looks:,} looks besides" if self.looks else ""
        told = f"{self.survived:,} of {self.injected:,} survived{looks}{first}"
        told += f"; {seen}" if seen else ""
        self.checks.append(Check(what, told, self.injected > 0 and not self.faults))
        return self


# ---- runs of a second


@contextmanager
def at_work(home: str | Path | None = None) -> Iterator[RunStore]:
    """The runs of a data folder, one of its own if none is given; what is at work at the end is ended."""
    os.environ.setdefault("LOUPE_NICE", "0")  # else whoever is busy here as well makes it wait
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        store = RunStore(home or folder)
        try:
            yield store
        finally:
            for info in store.list():
                if info.active and worker_of(info.folder) != os.getpid():
                    kill(worker_of(info.folder))
            store.close()


def spec(**changes: Any) -> RunSpec:
    """A run that takes about a second; all its steps are written down."""
    tokenizer = char_tokenizer(TEXT)
    shape: dict[str, Any] = {"context_length": 16, "n_layer": 1, "n_head": 2, "d_model": 16, "dropout": 0.1}
    shape |= {name: changes.pop(name) for name in tuple(changes) if name in shape}
    train: dict[str, Any] = {
        "steps": 30,
        "batch_size": 4,
        "eval_every": 10,
        "eval_rows": 4,
        "checkpoint_every": 5,
    }
    train |= {"warmup_steps": 5, **changes}
    model = ModelConfig(vocab_size=tokenizer.model_vocab_size("clm"), **shape)
    return RunSpec("Cats", own_text(TEXT), tokenizer, model, TrainConfig(**train))


def train_here(store: RunStore, run_id: str) -> None:
    """Train a run in this process, to its end."""
    worker.run_folder(store.claim(run_id), report=lambda text: None)


def whole_run(store: RunStore, **changes: Any) -> str:
    """A run that nothing happened to, to compare with."""
    run_id = store.create(spec(**changes), ME)
    train_here(store, run_id)
    return run_id


def wait_until(found: Callable[[], Any], seconds: float = PATIENCE) -> bool:
    """Whether it came true in time."""
    end = time.monotonic() + seconds
    while not found():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def ended(store: RunStore, run_id: str) -> RunInfo:
    """How a run stands once it is not active any more."""
    wait_until(lambda: not store.info(run_id).active)
    return store.info(run_id)


def worker_of(folder: Path) -> int:
    """The process that has a run; 0 if none has."""
    return int(read_json(folder / "status.json").get("pid") or 0)


def kill(pid: int) -> None:
    """With signal 9, as the system does when memory ends."""
    if pid:
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


# ---- what must be whole


def curve(folder: Path) -> list[dict[str, Any]]:
    """Steps and evaluations of a run as pages read them, without the times."""
    records: list[dict[str, Any]] = []
    merge_records(records, read_records(folder / "metrics.jsonl")[0])
    points = (r for r in records if r["kind"] in ("step", "eval"))
    return [{name: value for name, value in r.items() if name not in _TIMED} for r in points]


def broken_curve(folder: Path, whole: Path) -> str:
    """What is wrong with a curve, as far as it goes, beside one without a fault; "" if nothing."""
    points, wanted = curve(folder), curve(whole)
    steps = [r["step"] for r in points if r["kind"] == "step"]
    if steps != list(range(1, len(steps) + 1)):
        return f"the curve has the steps {steps[:3]} … {steps[-3:]}, not each once"
    if points != wanted[: len(points)]:
        at = next((a for a, b in zip(points, wanted, strict=False) if a != b), points[-1])
        return f"the curve differs from the undisturbed one at step {at['step']}"
    return ""


def broken_checkpoint(folder: Path) -> str:
    """Why the newest checkpoint of a run does not load; "" if it does, or there is none yet."""
    newest = newest_checkpoint(folder)
    if newest is None:
        return ""
    try:
        step = load_checkpoint(newest[1]).step
    except ValueError as error:
        return str(error)
    return "" if step == newest[0] else f"the checkpoint {newest[0]} is of step {step}"


def wrong_after(folder: Path, whole: Path) -> str:
    """What is not as promised in a run's folder after a fault; "" if all is."""
    return broken_checkpoint(folder) or broken_curve(folder, whole)


def once_a_day(home: Path) -> None:
    """What a server does once a day; among the rest, half-written files of ended processes go."""
    (home / retention.RECORD).unlink(missing_ok=True)
    retention.tidy(home)


def wrong_at_end(store: RunStore, run_id: str, whole: str) -> str:
    """What is not as promised of a run that went on after faults to its end; "" if all is."""
    info = store.info(run_id)
    if info.state != "finished":
        return f"it did not finish: {info.state}, {info.message}"
    if curve(info.folder) != curve(store.root / whole):
        return broken_curve(info.folder, store.root / whole) or "its curve ends early"
    for path in info.folder.rglob(".*"):
        os.utime(path, (0, 0))  # as if it had lain there for long
    once_a_day(store.home)
    left = [path.name for path in info.folder.rglob(".*")]
    return f"left behind: {left[0]}" if left else broken_checkpoint(info.folder)


# ---- the page


@dataclass(frozen=True)
class Page:
    """A page of a server as one person has it before them; `look` gives it."""

    tab: Tab
    loop: asyncio.AbstractEventLoop

    def press(self, key: str) -> None:
        """Press a button."""
        self.loop.run_until_complete(self.tab.press(key))

    def set(self, **values: Any) -> None:
        """Give widgets other values."""
        self.loop.run_until_complete(self.tab.rerun(**values))

    def again(self) -> None:
        """Let it run once more."""
        self.loop.run_until_complete(self.tab.rerun())

    def words(self) -> str:
        """All that its boxes, captions and texts say."""
        kinds = ("alert", "markdown", "toast")
        return "\n".join(str(one.body) for kind in kinds for one in self.tab.all(kind))

    def wrong(self) -> str:
        """A traceback on the screen, or no page at all; "" if there is none."""
        if found := self.tab.exceptions():
            return f"/{self.tab.page} shows {found[0][:300]}"
        return "" if self.tab.heading() else f"/{self.tab.page} is empty"

    def button(self, key: str) -> Any:
        """A button that can be pressed, or None."""
        return next((b for b in self.tab.all("button") if b.id.endswith(f"-{key}") and not b.disabled), None)


@contextmanager
def browser(url: str, owner: str = ME, *, locale: str = "en-US") -> Iterator[Callable[..., Page]]:
    """Somebody's browser; gives what opens pages in it."""
    loop, person = asyncio.new_event_loop(), Person(url, locale=locale)
    person.word = owner
    try:
        yield lambda page, **query: Page(loop.run_until_complete(person.open(page, **query)), loop)
    finally:
        loop.run_until_complete(person.__aexit__())
        loop.close()
