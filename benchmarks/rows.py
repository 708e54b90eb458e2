"""What a benchmark gives: rows of a table, each with its figures, its goals, and what was seen of them."""

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Options:
    """How to measure.

    Attributes:
        toy: the smallest size that still runs all of it: for correctness, its times mean nothing.
        rounds: how often each program is measured, in turn with the others.
        seeds: of rows about learning.
        nanogpt: a checkout of nanoGPT, or None: its columns are left out.
        text: a file with tinyshakespeare, or None: a made text takes its place.
        models: folder of published models; None is Loupe's own.
    """

    toy: bool = False
    rounds: int = 5
    seeds: tuple[int, ...] = (1, 2, 3)
    nanogpt: Path | None = None
    text: Path | None = None
    models: Path | None = None


@dataclass(frozen=True)
class Spread:
    """Median, least and most of some values."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of at least one value.

        >>> Spread.of([3.0, 1.0, 2.0])
        Spread(median=2.0, low=1.0, high=3.0)
        """
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True)
class Goal:
    """One thing that a row promises.

    Attributes:
        what: such as "x nanoGPT".
        seen: what was measured; ratios are taken within a round, then their median.
        goal: the promise.
        at_least: whether more is better.
    """

    what: str
    seen: Spread
    goal: float
    at_least: bool = True

    @property
    def reached(self) -> bool:
        """Whether the median keeps the promise."""
        return self.seen.median >= self.goal if self.at_least else self.seen.median <= self.goal


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        id: "P1" …
        what: what was measured.
        unit: of the figures.
        figures: of each program.
        goals: what is promised, and what was seen.
        notes: a sentence that a reader needs, such as what was left out.
    """

    id: str
    what: str
    unit: str
    figures: dict[str, Spread]
    goals: list[Goal]
    notes: str = ""
    more: dict[str, Any] = field(default_factory=dict)  # seeds, recipes, breakdowns: for the file of results

    def to_json(self) -> dict[str, Any]:
        """The same as JSON."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "Row":
        """What `to_json` gave."""
        figures = {name: Spread(**value) for name, value in saved["figures"].items()}
        goals = [Goal(**{**goal, "seen": Spread(**goal["seen"])}) for goal in saved["goals"]]
        return cls(**{**saved, "figures": figures, "goals": goals})


Measure = Callable[[Options], Row]
