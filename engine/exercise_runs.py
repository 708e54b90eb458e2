"""Exercises that are answered by training a run: they are looked for among the person's own runs."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random
from typing import TYPE_CHECKING, Any

from engine.exercise import Made, RunTask

if TYPE_CHECKING:
    from engine.run_info import RunInfo

APART = 0.02  # nats by which a run must end below the other: less may be chance
RISE = 0.1  # nats by which the loss of unseen text must rise again
History = Callable[[str], Sequence[Mapping[str, Any]]]


def run_unigram(rng: Random) -> Made:
    """A causal run that beats the unigram baseline."""
    return Made(RunTask("unigram"))


def run_masked(rng: Random) -> Made:
    """A masked run that beats the unigram baseline."""
    return Made(RunTask("masked"))


def run_stories(rng: Random) -> Made:
    """A run on the stories below so many bits per byte."""
    target = rng.choice((0.4, 0.45, 0.5, 0.55, 0.6))
    return Made(RunTask("stories", target), {"target": target})


def run_rates(rng: Random) -> Made:
    """Two runs that differ in nothing but the learning rate."""
    return Made(RunTask("rates"), {"apart": APART})


def run_overfit(rng: Random) -> Made:
    """A run whose loss of unseen text rises again."""
    return Made(RunTask("overfit", RISE), {"rise": RISE})


@dataclass(frozen=True)
class Found:
    """What was found among the runs.

    Attributes:
        done: whether one of them does what is asked.
        note: "done", "near" or "none": no run could be compared.
        run_id, name: the run that does it, or that comes nearest.
        other: the name of the run that it is compared with, if any.
        value: what was measured of it.
        target: what it is to be below, or, of the rise of an overfitted run, above.
    """

    done: bool = False
    note: str = "none"
    run_id: str = ""
    name: str = ""
    other: str = ""
    value: float = math.nan
    target: float = math.nan

    @property
    def missing(self) -> float:
        """How far the value is from the target."""
        return abs(self.value - self.target)


def look(task: RunTask, runs: Iterable["RunInfo"], history: History) -> Found:
    """Look for a run that does what is asked; of several the clearest, otherwise the nearest.

    Args:
        task: what is asked.
        runs: the person's own; those that came out of a file or began with a trained model don't count.
        history: run id -> records, see `engine.runs`.
    """
    mine = [run for run in runs if not run.imported and not run.start]
    kinds = {
        "unigram": lambda: _below_unigram(mine, history, "clm"),
        "masked": lambda: _below_unigram(mine, history, "mlm"),
        "stories": lambda: _below_bits(mine, history, task.target),
        "rates": lambda: _two_rates(mine, history),
        "overfit": lambda: _overfitted(mine, history, task.target),
    }
    found = list(kinds[task.name]())
    sign = 1 if task.name == "overfit" else -1
    best = max(found, key=lambda one: sign * (one.value - one.target), default=Found())
    if best.note == "none":
        return best
    done = sign * (best.value - best.target) > (APART if task.name == "rates" else 0)
    return replace(best, done=done, note="done" if done else "near")


def _evaluations(records: Iterable[Mapping[str, Any]], *names: str) -> list[tuple[float, ...]]:
    """The evaluations in which all these numbers are finite, in order."""
    kept = (record for record in records if record.get("kind") == "eval")
    rows = (tuple(_number(record.get(name)) for name in names) for record in kept)
    return [row for row in rows if all(map(math.isfinite, row))]


def _number(x: Any) -> float:
    """A number of a record; NaN if it holds none."""
    return float(x) if isinstance(x, int | float) and not isinstance(x, bool) else math.nan


def _below_unigram(runs: Sequence["RunInfo"], history: History, objective: str) -> Iterator[Found]:
    for run in runs:
        records = history(run.id) if run.model.objective == objective else ()
        found = [_number(record.get("unigram")) for record in records if record.get("kind") == "baseline"]
        counted = [loss for loss in found if math.isfinite(loss)]
        losses = _evaluations(records, "val_loss")
        if counted and losses:
            yield Found(note="near", run_id=run.id, name=run.name, value=min(losses)[0], target=counted[0])


def _below_bits(runs: Sequence["RunInfo"], history: History, target: float) -> Iterator[Found]:
    for run in runs:
        fits = run.model.objective == "clm" and run.corpus.get("kind") == "stories"
        if bits := _evaluations(history(run.id) if fits else (), "bits_per_byte"):
            yield Found(note="near", run_id=run.id, name=run.name, value=min(bits)[0], target=target)


def _two_rates(runs: Sequence["RunInfo"], history: History) -> Iterator[Found]:
    """Each pair of finished runs that differ in nothing but the learning rate: the one that ended lower."""
    ended = []
    for run in runs:
        losses = _evaluations(history(run.id) if run.state == "finished" else (), "val_loss")
        if losses:
            ended.append((losses[-1][0], run))
    for first, second in combinations(ended, 2):
        (low, better), (high, other) = sorted((first, second), key=lambda pair: pair[0])
        if better.train.learning_rate != other.train.learning_rate and _same_otherwise(better, other):
            yield Found(False, "near", better.id, better.name, other.name, low, high)


def _same_otherwise(a: "RunInfo", b: "RunInfo") -> bool:
    def rest(run: "RunInfo") -> tuple[object, ...]:
        text = (run.corpus.get("sha256"), run.corpus.get("val_share"), run.tokenizer)
        return run.model, replace(run.train, learning_rate=1.0), text

    return rest(a) == rest(b)


def _overfitted(runs: Sequence["RunInfo"], history: History, rise: float) -> Iterator[Found]:
    """How far the loss of unseen text rose after its lowest, while that of the training text lies below."""
    for run in runs:
        rows = _evaluations(history(run.id), "train_loss", "val_loss")
        if len(rows) > 1:
            train, last = rows[-1]
            rose = last - min(loss for _, loss in rows) if train < last else 0.0
            yield Found(note="near", run_id=run.id, name=run.name, value=rose, target=rise)
