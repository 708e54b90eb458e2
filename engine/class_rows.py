"""The board of a class: one line for each person, with what they did and their best run on a text."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from engine.board import Board
from engine.progress import Progress
from engine.run_info import RunInfo


@dataclass(frozen=True)
class Row:
    """One person of a class.

    Attributes:
        person: hash of their word, as in `Progress.person`.
        number: theirs in the class, from 1.
        name: what they want to be called, or None; may hold any printable characters.
        lessons, right, tried: lessons passed, exercises answered rightly at least once, exercises tried.
        active: seconds since 1970 of what they did last; None if nothing yet.
        best: best held-out bits per byte of their runs on the text; None without one.
        run: name of that run, or "".
    """

    person: str
    number: int
    name: str | None
    lessons: int
    right: int
    tried: int
    active: float | None
    best: float | None
    run: str


def rows(
    people: Sequence[Progress],
    numbers: Mapping[str, int],
    runs: Sequence[RunInfo],
    board: Board | None,
    *,
    exercises: Collection[str],
    lessons: Collection[str] | None = None,
) -> list[Row]:
    """The lines of a board, in the order of the people's numbers.

    Args:
        people: who is in the class.
        numbers: their numbers by `Progress.person`.
        runs: all runs of the server.
        board: the standings of one text, for the best of each person; None for none. Causal runs only, as
            masked ones have no bits per byte.
        exercises: names that there are; records of others are not counted.
        lessons: the same for lessons; None takes all.
    """
    owners = {info.id: info.owner_hash for info in runs}
    best: dict[str, tuple[float, str]] = {}
    for standing in board.rows if board and board.objective == "clm" else ():
        if not standing.imported:  # somebody else may have trained it
            best.setdefault(owners.get(standing.run_id, ""), (standing.score, standing.name))
    updated: dict[str, float] = {}
    for info in runs:
        updated[info.owner_hash] = max(info.created, updated.get(info.owner_hash, 0.0))
    made = [
        _row(each, numbers.get(each.person, 0), best.get(each.person), updated, exercises, lessons)
        for each in people
    ]
    return sorted(made, key=lambda row: row.number)


def _row(
    progress: Progress,
    number: int,
    best: tuple[float, str] | None,
    updated: Mapping[str, float],
    exercises: Collection[str],
    lessons: Collection[str] | None,
) -> Row:
    done = {name: each for name, each in progress.exercises.items() if name in exercises}
    times = [*progress.lessons.values(), *(each.time for each in progress.exercises.values())]
    times += [updated[progress.person]] if progress.person in updated else []
    return Row(
        person=progress.person,
        number=number,
        name=progress.name,
        lessons=sum(lessons is None or name in lessons for name in progress.lessons),
        right=sum(each.right for each in done.values()),
        tried=len(done),
        active=max(times, default=None),
        best=best[0] if best else None,
        run=best[1] if best else "",
    )
