"""How much room runs and the data folder take on the disk."""

import os
import stat
from pathlib import Path

PARTS = ("runs", "models", "vocab", "corpora")  # folders of the data folder that are counted apart


def folder_bytes(folder: str | Path) -> int:
    """Bytes of all files in a folder and below; no link is followed, and what vanishes meanwhile is none."""
    total, left = 0, [str(folder)]
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
    return total


def data_bytes(home: Path) -> dict[str, int]:
    """Bytes of each of `PARTS` in a data folder, of the "rest" of it, and "all"."""
    found = {name: folder_bytes(home / name) for name in PARTS}
    everything = folder_bytes(home)
    return {**found, "rest": max(0, everything - sum(found.values())), "all": everything}


class RunSizes:
    """Sizes of run folders, counted anew only when a run has changed."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[int, ...], int]] = {}

    def of(self, folder: Path) -> int:
        """Bytes of a run's folder."""
        mark = tuple(_changed(folder / name) for name in ("", "status.json", "metrics.jsonl", "checkpoints"))
        kept = self._kept.get(folder.name)
        if kept is None or kept[0] != mark:
            kept = self._kept[folder.name] = (mark, folder_bytes(folder))
        return kept[1]

    def keep_only(self, ids: set[str]) -> None:
        """Forget the sizes of all other runs."""
        for gone in self._kept.keys() - ids:
            self._kept.pop(gone, None)


def _changed(path: Path) -> int:
    try:
        found = path.stat()
    except OSError:
        return 0
    return found.st_mtime_ns + (found.st_size if stat.S_ISREG(found.st_mode) else 0)
