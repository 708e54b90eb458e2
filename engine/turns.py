"""Whose run is next: a free place goes to whoever has the fewest runs at work, so that nobody starves.

Each person's runs start in the order in which they were asked for. Between people, the first run of everybody
who has none at work comes before anybody's second one, and so on. Among equals the one comes first who has
waited longest: since that run was asked for, or since the last one of that person left its place.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Turn:
    """One run, as far as it counts for whose turn it is.

    Attributes:
        run_id: which one.
        owner: whose it is.
        state: "waiting", "at work", or "left": it had a place.
        since: when it was asked for, or when it left its place, in seconds since 1970.
    """

    run_id: str
    owner: str
    state: str
    since: float


def in_turn(turns: Iterable[Turn]) -> list[str]:
    """The ids of the runs that wait, the next one first.

    Example: Ann has a run at work and two that wait, and Ben comes last, with two. Ben's first run is next.

        >>> ann = [Turn("a", "ann", "at work", 1), *(Turn(run, "ann", "waiting", 2) for run in "bc")]
        >>> in_turn([*ann, *(Turn(run, "ben", "waiting", 3) for run in "de")])
        ['d', 'b', 'e', 'c']
    """
    before: Counter[str] = Counter()  # runs of a person that come before the one looked at, or are at work
    left: dict[str, float] = {}
    waiting = []
    for turn in turns:
        if turn.state == "waiting":
            waiting.append(turn)
        elif turn.state == "at work":
            before[turn.owner] += 1
        else:
            left[turn.owner] = max(turn.since, left.get(turn.owner, turn.since))
    order = []
    for turn in sorted(waiting, key=lambda turn: (turn.since, turn.run_id)):
        waits_since = max(turn.since, left.get(turn.owner, turn.since))
        order.append((before[turn.owner], waits_since, turn.since, turn.run_id))
        before[turn.owner] += 1
    return [run_id for *_, run_id in sorted(order)]
