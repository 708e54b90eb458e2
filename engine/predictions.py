"""What a person expected of a study, kept in the home folder: a reload or another day finds it again."""

import time
from pathlib import Path
from typing import Any

from filelock import FileLock

from engine.folders import read_json, told, write_json
from engine.owners import owner_hash

Answer = str | float


class Predictions:
    """One person's predictions: the first for each study stays until it is taken back."""

    def __init__(self, home: Path, owner: str) -> None:
        """Of the person with this token; only its fingerprint is stored."""
        folder = home / "predictions"
        self._file = folder / f"{owner_hash(owner)[:32]}.json"
        self._lock = FileLock(folder / "predictions.lock")

    def get(self, study: str) -> Answer | None:
        """What was expected of a study, or None."""
        entry: Any = read_json(self._file).get(study)
        value = entry.get("answer") if isinstance(entry, dict) else None
        return value if isinstance(value, str | float | int) else None

    @told()
    def commit(self, study: str, answer: Answer) -> Answer:
        """Keep a prediction; gives the one that is kept, which is an earlier one if there is any."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._lock:
            kept = self.get(study)
            if kept is None:
                kept = answer
                entry = {"answer": answer, "made": time.time()}
                write_json(self._file, {**read_json(self._file), study: entry})
        return kept

    @told()
    def take_back(self, study: str) -> None:
        """Forget a prediction."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._lock:
            rest = {name: entry for name, entry in read_json(self._file).items() if name != study}
            write_json(self._file, rest)
