"""Runs that were deleted: out of every list at once, brought back with a click for a while, then gone.

A deleted run lies under a hidden name beside the others. To rename is one step that happens or doesn't;
removing the files takes longer, and who dies meanwhile leaves a hidden folder to whoever comes next.
"""

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from engine.folders import checked_name
from engine.run_sizes import folder_bytes

UNDO_SECONDS = 600.0  # in which a deleted run can be brought back
CLOCKS_APART = 60.0  # seconds by which the clocks of two machines may differ
LEFTOVER_SECONDS = 3600.0  # a half-made run that is so old belongs to nobody


def aside(root: Path, run_id: str) -> Path:
    """Where a deleted run lies for a while.

    Raises:
        ValueError: if that is no name of a run.
    """
    return root / f".{checked_name(run_id)}.deleted"


def put_aside(folder: Path) -> None:
    """Take a run out of all lists. Under the home's lock."""
    os.utime(folder)  # its time now says when it was deleted
    os.replace(folder, aside(folder.parent, folder.name))


def put_back(root: Path, run_id: str) -> None:
    """Bring a deleted run back. Under the home's lock.

    Raises:
        FileNotFoundError: if it is gone for good.
    """
    os.replace(aside(root, run_id), root / run_id)


def sweep(root: Path, undo_seconds: float = UNDO_SECONDS) -> None:
    """Remove deleted runs for good, and what processes left that died while they made or imported one.

    A deleted run first takes another name: from then on nobody can bring back a half of it.
    """
    for deleted in root.glob(".*.deleted"):
        with suppress(OSError):  # somebody else was quicker, or brought it back
            if _age(deleted) >= undo_seconds:
                os.replace(deleted, deleted.with_suffix(".gone"))
    for pattern, least in ((".*.new", LEFTOVER_SECONDS), (".*.gone", 0.0)):
        for leftover in root.glob(pattern):
            with suppress(OSError):
                if _age(leftover) >= least:
                    shutil.rmtree(leftover, ignore_errors=True)


def make_room(root: Path, missing: int) -> bool:
    """Remove deleted runs for good, the oldest first, until so many bytes more are free.

    Returns:
        Whether that was enough. If all of them together are too small, nothing is removed: nobody's undo is
        lost for nothing.
    """
    found = []
    for folder in root.glob(".*.deleted"):
        with suppress(OSError):  # somebody else was quicker, or brought it back
            found.append((_age(folder), folder, folder_bytes(folder)))
    if sum(size for _, _, size in found) < missing:
        return False
    for _, folder, size in sorted(found, reverse=True):
        if missing <= 0:
            break
        gone = folder.with_suffix(".gone")
        with suppress(OSError):
            os.replace(folder, gone)
            shutil.rmtree(gone, ignore_errors=True)
            missing -= size
    return missing <= 0


def _age(folder: Path) -> float:
    """Seconds between now and a folder's time.

    A file server's clock may be a little ahead. Where it is far ahead, a clock was set back since: then the
    waiting begins anew, so that nothing goes before its time.
    """
    age = time.time() - folder.stat().st_mtime
    if age < -CLOCKS_APART:
        os.utime(folder)
    return max(0.0, age)
