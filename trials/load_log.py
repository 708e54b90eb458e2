"""What the class at work has seen: how long each act took, what went wrong, how much came."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.client import Ran


@dataclass
class Log:
    """All acts of all people.

    Attributes:
        times: ms of each act, from the press to the last message, by kind.
        clicks: ms of the acts of those who neither generate nor train, with what they did.
        errors: what went wrong on a page or on the way to it.
        sessions: how many were opened.
        messages, size: how many came, and their bytes.
        left: how many tabs were closed in the middle of an answer.
        places: of waiting runs that their owners saw on their pages.
        wrong_places: those that were not the place that the run had.
        started: word of its owner and the round, for each run that somebody started.
    """

    times: dict[str, list[float]] = field(default_factory=dict)
    clicks: list[tuple[float, str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    sessions: int = 0
    messages: int = 0
    size: int = 0
    left: int = 0
    places: Counter[int] = field(default_factory=Counter)
    wrong_places: list[str] = field(default_factory=list)
    started: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, ran: Ran, what: str = "", *, idle: bool) -> None:
        """Note an act.

        Args:
            kind: of which the report has a line.
            ran: what it took.
            what: page and control.
            idle: whether it is one of a person who neither generates nor trains.
        """
        ms = 1000 * ran.seconds
        self.times.setdefault(kind, []).append(ms)
        self.messages += ran.messages
        self.size += ran.size
        if idle:
            self.clicks.append((ms, what or kind))

    @property
    def requests(self) -> int:
        """How many acts there were."""
        return sum(map(len, self.times.values()))

    def slowest(self, n: int) -> list[str]:
        """The acts of idle people that took longest in the middle, with their number."""
        by_name: dict[str, list[float]] = {}
        for ms, what in self.clicks:
            by_name.setdefault(what, []).append(ms)
        ordered = sorted(by_name.items(), key=lambda one: -statistics.median(one[1]))
        return [f"{what} {statistics.median(ms):,.0f} ms (of {len(ms)})" for what, ms in ordered[:n]]


def percentile(values: Sequence[float], share: float) -> float:
    """The value that so large a share does not exceed; NaN without any.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 0.75)
    3.0
    """
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else float("nan")


def line(values: Sequence[float]) -> dict[str, float | int | str]:
    """One line of the report's table."""
    shares = {"p50 ms": 0.5, "p95 ms": 0.95, "p99 ms": 0.99}
    told: dict[str, float | int | str] = {"number": len(values)}
    told |= {name: round(percentile(values, share)) for name, share in shares.items()}
    return {**told, "worst ms": round(max(values))}
