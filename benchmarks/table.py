"""The table of results: for a terminal, and for the README between two marks."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.results import Result
from benchmarks.rows import Goal, Row, Spread

README = Path(__file__).parent.parent / "README.md"
BEGIN = "<!-- table of benchmarks: `python -m benchmarks --readme` writes it -->"
END = "<!-- end of the table of benchmarks -->"
HEAD = ("", "what", "figures: median (least–most)", "goal", "measured", "")


def short(value: float, digits: int = 3) -> str:
    """A number with so many significant digits.

    >>> short(21345.6), short(0.81249), short(7.0), short(1.5561, 4)
    ('21,300', '0.812', '7.00', '1.556')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    behind = digits - 1 - math.floor(math.log10(abs(value)))
    value = round(value, behind)
    behind = digits - 1 - math.floor(math.log10(abs(value)))  # 9.999 became 10.0
    return f"{value:,.{max(behind, 0)}f}"


def spread(seen: Spread, digits: int = 3) -> str:
    """A median with the least and the most around it.

    >>> spread(Spread(1.25, 1.2, 1.312)), spread(Spread(2.0, 2.0, 2.0))
    ('1.25 (1.20–1.31)', '2.00')
    """
    if seen.low == seen.median == seen.high:
        return short(seen.median, digits)
    return f"{short(seen.median, digits)} ({short(seen.low, digits)}–{short(seen.high, digits)})"


def promise(goal: Goal) -> str:
    """A goal in few words.

    >>> promise(Goal("x nanoGPT", Spread(1.3, 1.2, 1.4), 1.2))
    '≥ 1.2 × nanoGPT'
    """
    what = "×" + goal.what[1:] if goal.what.startswith("x ") else goal.what
    return f"{'≥' if goal.at_least else '≤'} {goal.goal:g} {what}"


def verdict(goal: Goal) -> str:
    """Whether the promise is kept."""
    return "reached" if goal.reached else "missed"


def digits(row: Row) -> int:
    """Losses differ in a digit that speeds don't have."""
    return 4 if "nats" in row.unit else 3


def lines(row: Row) -> list[str]:
    """One row for a terminal."""
    width = max(map(len, [*row.figures, *map(promise, row.goals)]), default=0)
    told = [f"{row.id}  {row.what} ({row.unit})"]
    told += [f"      {name:{width}}  {spread(seen, digits(row))}" for name, seen in row.figures.items()]
    told += [
        f"    {'+' if goal.reached else '-'} {promise(goal):{width}}  {spread(goal.seen)}  {verdict(goal)}"
        for goal in row.goals
    ]
    return [*told, *([f"      {row.notes}"] if row.notes else [])]


def _cells(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _row(row: Row) -> list[str]:
    figures = "; ".join(f"{name} {spread(seen, digits(row))}" for name, seen in row.figures.items())
    first = (row.id, f"{row.what}, {row.unit}", figures)
    goals = [(promise(goal), spread(goal.seen), verdict(goal)) for goal in row.goals] or [("", "", "")]
    return [_cells(*(first if i == 0 else ("", "", "")), *cells) for i, cells in enumerate(goals)]


def _grouped(told: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Rows of which the same is told, together."""
    found: dict[str, list[str]] = {}
    for row, what in told:
        found.setdefault(what, []).append(row)
    return list(found.items())


def _machine(result: Result) -> str:
    c = result.conditions
    with_versions = ", ".join(f"{name} {version}" for name, version in c.versions.items())
    toy = " AT TOY SIZE: these times mean nothing." if c.toy else ""
    return f"measured on {c.date}, {c.cores} cores of {c.processor}; {with_versions}.{toy}"


def _load(result: Result) -> str:
    c = result.conditions
    return "unknown" if c.load_before is None else f"{c.load_before:.1f}, {c.load_after:.1f}"


def markdown(results: Sequence[Result]) -> str:
    """The table, what stands beside it, and what it was measured on."""
    told = [_cells(*HEAD), "| " + " | ".join("---" for _ in HEAD) + " |"]
    for result in results:
        told += _row(result.row)
    notes = [f"{result.row.id}: {result.row.notes}" for result in results if result.row.notes]
    machines = _grouped((result.row.id, _machine(result)) for result in results)
    loads = "; ".join(f"{result.row.id} {_load(result)}" for result in results)
    told += ["", *(f"- {note}" for note in notes)]
    told += [f"- {', '.join(rows)} {what}" for what, rows in machines]
    return "\n".join([*told, f"- Load average before and after each row: {loads}."])


def with_table(readme: str, table: str) -> str:
    """The README with this table between its marks.

    Raises:
        ValueError: if the marks are not there, once each and in this order.
    """
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end) or BEGIN in after or END in before + after:
        raise ValueError(f"The README needs these two lines, once each: {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"
