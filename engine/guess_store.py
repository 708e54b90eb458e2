"""The bets of each person, so that a round goes on after a reload, and no bet can be taken back.

They lie beside the person's progress, in $LOUPE_HOME/people, and go when that is deleted.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from engine.folders import JsonReader, read_json, told, write_json
from engine.owners import owner_hash

MOST_ROUNDS = 40  # of one person; the oldest are forgotten

Bets = list[dict[str, Any]]


class BetStore:
    """The bets of all people on this server; safe for several servers on one folder.

    Args:
        home: the data folder.
    """

    def __init__(self, home: Path) -> None:
        self.folder = home / "people"
        self._reader = JsonReader()

    def read(self, owner: str, name: str) -> Bets:
        """A person's bets in a round, in order; none if there are none, or the file is damaged."""
        return _bets(self._reader.read(self._path(owner)), name)

    @told()
    def add(self, owner: str, name: str, place: int, bet: Mapping[str, Any]) -> Bets:
        """Keep a bet on the token at a place, if it is the next one; gives all bets of the round."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(owner)
        with FileLock(self.folder / "people.lock"):
            rounds = read_json(path)
            bets = _bets(rounds, name)
            if len(bets) == place:
                bets = [*bets, dict(bet)]
                rounds = {key: _bets(rounds, key) for key in rounds if key != name}
                kept = list(rounds.items())[1 - MOST_ROUNDS :]
                write_json(path, {**dict(kept), name: bets})
        return bets

    def _path(self, owner: str) -> Path:
        # the dot keeps it from being taken for a person's progress; deleting that finds it by the hash
        return self.folder / f".guess-{owner_hash(owner)}.json"


def _bets(rounds: Mapping[str, Any], name: str) -> Bets:
    found = rounds.get(name, [])
    return [bet for bet in found if isinstance(bet, dict)] if isinstance(found, list) else []


def round_name(*parts: object) -> str:
    """A short name of a round, from all that decides its tokens."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
