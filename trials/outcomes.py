"""What a trial gives: promises, each with what was seen of it, and the figures that the report shows."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Options:
    """How much to try.

    Attributes:
        toy: the smallest amount that still runs all of it: for tests, its times mean nothing.
        minutes: of the class at work.
        people: of the class.
        cases: made up for each kind of input.
        seed: of all that is drawn.
    """

    toy: bool = False
    minutes: float = 10.0
    people: int = 30
    cases: int = 1000
    seed: int = 1


@dataclass(frozen=True)
class Check:
    """One promise.

    Attributes:
        what: the promise, such as "A click is answered within 1 s (95 of 100)".
        seen: what was measured or found, in words: "0.62 s", "4,000 files tried, 0 tracebacks".
        kept: whether the promise is kept.
    """

    what: str
    seen: str
    kept: bool


@dataclass(frozen=True)
class Part:
    """One part of the report.

    Attributes:
        name: "load", "faults", "inputs" or "strangers".
        checks: the promises.
        figures: numbers of which the report makes a table: name of the line -> name of the column -> value.
        notes: sentences that a reader needs.
    """

    name: str
    checks: list[Check]
    figures: Mapping[str, Mapping[str, float | int | str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def kept(self) -> bool:
        """Whether all promises are kept."""
        return all(check.kept for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """The same as JSON."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> "Part":
        """What `to_json` gave."""
        return cls(**{**saved, "checks": [Check(**check) for check in saved["checks"]]})


Trial = Callable[[Options], Part]
