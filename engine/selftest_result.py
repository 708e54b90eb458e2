"""What a self-test found, as values that every reader is told of in their own language.

A result travels between processes as JSON. It holds numbers and short names, never a path or a name of a
person, so that a report of it can be passed on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wording import words

say = words("engine.selftest_result")

OK, WARNING, FAILED = "ok", "warning", "failed"
STATES = (FAILED, WARNING, OK)  # the worst first
SIGNS = {OK: "✓", WARNING: "!", FAILED: "✗"}
GROUPS = ("numbers", "machine", "folder", "runs")


@dataclass(frozen=True)
class Fact:
    """Something measured or expected: a sentence's name, the values in it, and further facts that follow."""

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple["Fact", ...] = ()

    @property
    def text(self) -> str:
        """In the language of whoever reads it.

        >>> Fact("difference", {"x": 0.00012}).text
        'largest difference 0.00012'
        """
        own = say(f"fact.{self.name}", **self.values)
        return ": ".join([own, "; ".join(part.text for part in self.parts)]) if self.parts else own

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "name": self.name,
            "values": dict(self.values),
            "parts": [part.to_json() for part in self.parts],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Fact":
        """What `to_json` gave."""
        parts = tuple(cls.from_json(part) for part in content["parts"])
        return cls(str(content["name"]), dict(content["values"]), parts)


@dataclass(frozen=True)
class Outcome:
    """What one check gives: "ok", "warning" or "failed", what it measured, and what it should have been."""

    state: str
    measured: Fact
    expected: Fact


@dataclass(frozen=True)
class Result:
    """One check, done.

    Attributes:
        slug: its name.
        group: one of `GROUPS`.
        state: one of `STATES`.
        measured, expected: numbers beside what they should be.
        seconds: it took.
    """

    slug: str
    group: str
    state: str
    measured: Fact
    expected: Fact
    seconds: float

    @property
    def what(self) -> str:
        """What was checked, in the language of whoever reads it."""
        return what(self.slug)

    @property
    def verdict(self) -> str:
        """A sign and a word for its state."""
        return f"{SIGNS[self.state]} {say(f'state.{self.state}')}"

    @property
    def way_out(self) -> str:
        """What to do if it is not fine."""
        return say(f"way_out.{self.slug}")

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        facts = {"measured": self.measured.to_json(), "expected": self.expected.to_json()}
        return {"slug": self.slug, "group": self.group, "state": self.state, "seconds": self.seconds} | facts

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Result":
        """What `to_json` gave."""
        measured, expected = (Fact.from_json(content[name]) for name in ("measured", "expected"))
        slug, group, state = (str(content[name]) for name in ("slug", "group", "state"))
        return cls(slug, group, state, measured, expected, float(content["seconds"]))


def what(slug: str) -> str:
    """What the check of a name checks, in the language of whoever reads it."""
    return say(f"what.{slug}")


def at_most(x: float, limit: float, name: str = "difference") -> Outcome:
    """The outcome of a number that must not pass a limit; one that is no number fails, too."""
    return Outcome(OK if x <= limit else FAILED, Fact(name, {"x": x}), Fact("at_most", {"limit": limit}))


def worst(results: Sequence[Result]) -> str:
    """The state of all of them together."""
    return next((state for state in STATES if any(r.state == state for r in results)), OK)


def worst_first(results: Sequence[Result]) -> list[Result]:
    """The failed ones first, then the warnings; else in the order in which they were done."""
    return sorted(results, key=lambda result: STATES.index(result.state))


def summary(results: Sequence[Result]) -> str:
    """One line: everything is fine, or how much is not."""
    n_failed, n_warned = (sum(r.state == state for r in results) for state in (FAILED, WARNING))
    if n_failed:
        return say("some_failed", n=n_failed)
    return say("some_warned", n=n_warned) if n_warned else say("all_fine")


def table(results: Sequence[Result]) -> str:
    """All results as plain text, the worst first, in columns as wide as what stands in them."""
    rows = [list(say.table("column").values())]
    for r in worst_first(results):
        rows.append([r.verdict, r.what, r.measured.text, r.expected.text, f"{r.seconds:.2f}"])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rows.insert(1, ["-" * width for width in widths])
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    ways = [f"{SIGNS[r.state]} {r.what}: {r.way_out}" for r in worst_first(results) if r.state != OK]
    return "\n".join([*lines, "", *ways, summary(results)])
