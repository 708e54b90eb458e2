"""What a person has seen of an exercise, so that a reload or a second tab neither loses it nor hides it.

A solution that was shown, a wrong choice and an opened hint count for those numbers wherever they come up
again. It lies beside the person's progress, in $LOUPE_HOME/people, and goes when that is deleted.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from engine.folders import JsonReader, read_json, write_json
from engine.owners import owner_hash

MOST_KEPT = 2000  # questions of one person; the oldest are forgotten


@dataclass(frozen=True)
class Seen:
    """Of one exercise with the numbers of one seed.

    Attributes:
        hints: opened.
        spent: whether its answer was given away: the solution was shown, or a choice was wrong.
        right: whether it was answered right.
    """

    hints: int = 0
    spent: bool = False
    right: bool = False


class SeenStore:
    """The files of all people on this server; safe for several servers on one folder.

    Args:
        home: the data folder.
    """

    def __init__(self, home: Path) -> None:
        self.folder = home / "people"
        self._reader = JsonReader()

    def seen(self, owner: str, exercise: str, seed: int) -> Seen:
        """What a person has seen of it; nothing if they are not known, or the file is damaged."""
        return _seen(_part(self._reader.read(self._path(owner)), "seen").get(f"{exercise}:{seed}"))

    def turn(self, owner: str, exercise: str, first: int) -> int | None:
        """How often a person went on from the numbers of the first seed; None if they never did."""
        turn = _part(self._reader.read(self._path(owner)), "turns").get(f"{exercise}:{first}")
        return turn if isinstance(turn, int) else None

    def keep(self, owner: str, exercise: str, seed: int, seen: Seen) -> None:
        """Note what a person has seen; what they saw before stays seen."""
        self._change(owner, "seen", f"{exercise}:{seed}", lambda old: asdict(_both(_seen(old), seen)))

    def go_to(self, owner: str, exercise: str, first: int, turn: int) -> None:
        """Note at which numbers a person is."""
        self._change(owner, "turns", f"{exercise}:{first}", lambda old: turn)

    def _change(self, owner: str, part: str, name: str, change: Callable[[object], object]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(owner)
        with FileLock(self.folder / "people.lock"):
            content = read_json(path)
            kept = _part(content, part)
            after = change(kept.pop(name, None))
            kept = dict(list(kept.items())[1 - MOST_KEPT :])
            write_json(path, {**content, part: {**kept, name: after}}, durable=False)

    def _path(self, owner: str) -> Path:
        # the dot keeps it from being taken for a person's progress; deleting that finds it by the hash
        return self.folder / f".exercises-{owner_hash(owner)}.json"


def _seen(kept: object) -> Seen:
    if not isinstance(kept, dict):
        return Seen()
    hints = kept.get("hints")
    return Seen(hints if isinstance(hints, int) else 0, bool(kept.get("spent")), bool(kept.get("right")))


def _both(a: Seen, b: Seen) -> Seen:
    return Seen(max(a.hints, b.hints), a.spent or b.spent, a.right or b.right)


def _part(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    part = content.get(name, {})
    return part if isinstance(part, dict) else {}
