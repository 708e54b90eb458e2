"""Self-test of the data folder: writing, renaming, locking, its clock, and how large it has become.

What is tried lies in a hidden folder of its own, which is gone afterwards.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from engine.folders import clean, write_file
from engine.plain_log import kind_of
from engine.selftest_result import FAILED, OK, WARNING, Fact, Outcome

KINDS = ("runs", "models", "vocab", "people", "classes", "predictions")  # of what lies in the data folder
MOST_FILES, MOST_SECONDS = 50_000, 2.0  # that are counted
SLACK = 2.0  # seconds that a file server's clock may be ahead


@contextmanager
def trial_folder(home: Path) -> Iterator[Path | None]:
    """An empty hidden folder in the data folder, gone afterwards; None if there can't be one."""
    place = home / f".selftest.new-{os.getpid()}-{time.monotonic_ns()}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        clean(home)  # what a self-test left that was killed
        place.mkdir()
    except OSError:
        yield None
        return
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def writing(home: Path) -> Outcome:
    """Write a file, replace it in one piece, read it back."""
    expected = Fact("new_content")
    with trial_folder(home) as place:
        if place is None:
            return Outcome(FAILED, Fact("no_folder"), expected)
        try:
            for content in (b"old", b"new"):
                write_file(place / "file", content)
            found, n_left = (place / "file").read_bytes(), len(list(place.iterdir()))
        except OSError as error:
            return Outcome(FAILED, Fact("refused", {"kind": kind_of(error)}), expected)
        good = found == b"new" and n_left == 1
        return Outcome(OK if good else FAILED, Fact("new_content" if good else "other_content"), expected)


def locking(home: Path) -> Outcome:
    """A lock that is held must not be given to anybody else."""
    expected = Fact("lock_held")
    with trial_folder(home) as place:
        if place is None:
            return Outcome(FAILED, Fact("no_folder"), expected)
        try:
            with FileLock(place / "lock", timeout=5):
                try:
                    with FileLock(place / "lock", timeout=0):
                        return Outcome(FAILED, Fact("lock_twice"), expected)
                except Timeout:
                    return Outcome(OK, Fact("lock_held"), expected)
        except (OSError, NotImplementedError) as error:  # a file system without locks
            return Outcome(FAILED, Fact("refused", {"kind": kind_of(error)}), expected)


def clock(home: Path) -> Outcome:
    """Times order runs and checkpoints: the clock must not be behind what was written already."""
    newest = 0.0
    for _, seconds, _ in files_of(home):
        newest = max(newest, seconds)
    behind = newest - time.time()
    state = OK if behind <= SLACK else WARNING
    measured = Fact("behind", {"x": behind}) if behind > SLACK else Fact("not_behind")
    return Outcome(state, measured, Fact("not_behind"))


def sizes(home: Path) -> Outcome:
    """How much lies in the data folder, by kind."""
    counted: dict[str, list[int]] = {}
    n_files = 0
    for kind, _, size in files_of(home):
        entry = counted.setdefault(kind, [0, 0])
        entry[0] += 1
        entry[1] += size
        n_files += 1
    parts = tuple(
        Fact("part", {"kind": kind, "mb": counted[kind][1] / 1e6})
        for kind in (*KINDS, "other")
        if kind in counted
    )
    total = {"mb": sum(size for _, size in counted.values()) / 1e6, "files": n_files}
    return Outcome(OK, Fact("size" if n_files < MOST_FILES else "size_at_least", total, parts), Fact("any"))


def files_of(home: Path) -> Iterator[tuple[str, float, int]]:
    """Kind, time and size of each file in the data folder; of very many only the first ones.

    Links are not followed, and what vanishes meanwhile is left out.
    """
    end, n, waiting = time.monotonic() + MOST_SECONDS, 0, [(home, "")]
    while waiting:
        folder, kind = waiting.pop()
        entries: list[os.DirEntry[str]] = []
        with suppress(OSError), os.scandir(folder) as found:
            entries = list(found)
        for entry in entries:
            own = kind or (entry.name if entry.name in KINDS else "other")
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((Path(entry.path), own))
                    continue
                told = entry.stat(follow_symlinks=False)
                yield own, told.st_mtime, told.st_size
                n += 1
            if n >= MOST_FILES or time.monotonic() > end:
                return
