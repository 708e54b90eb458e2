"""Files and folders that are written at once or not at all, and names that stay where they belong.

Everything is written under a temporary name and then renamed, so that whoever looks at any moment, also after
a crash, finds the whole old one or the whole new one.
"""

import errno
import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wording import words

say = words("engine.folders")

LEAST_FREE = 64 * 1024  # bytes; with less not even a run's settings can be written
TRIES = 10  # to take the place of a folder that readers put back
CLOCK_TICK = 0.1  # seconds; file systems tell times apart by less
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) if hasattr(errno, "EDQUOT") else (errno.ENOSPC, errno.EFBIG)
_CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)


class NotKept(OSError, ValueError):
    """What could not be written, and why, in a sentence for the page.

    Like `io.UnsupportedOperation` it is both: whoever shows a sentence catches ValueError, whoever goes on
    without what could not be kept catches OSError.
    """


@contextmanager
def told() -> Iterator[None]:
    """Let a folder that can't be written raise a sentence. An error that has a sentence already stays.

    Raises:
        NotKept: in place of any other OSError.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        kept = NotKept(why_not(error))
        raise kept from error


def why_not(error: OSError) -> str:
    """Why something could not be kept in the data folder, and what can be done."""
    if error.errno in _FULL:
        return say("full")
    return say("closed") if error.errno in _CLOSED else say("unusable", why=error.strerror or str(error))


def room_problem(home: Path) -> str:
    """What keeps anything from being kept in the data folder now; "" if nothing does."""
    there = next((folder for folder in (home, *home.parents) if folder.is_dir()), home)
    if not os.access(there, os.W_OK):
        return say("closed")
    try:
        free = shutil.disk_usage(there).free
    except OSError as error:
        return why_not(error)
    return say("full") if free < LEAST_FREE else ""


def data_folder(home: str | Path | None = None) -> Path:
    """Where everything is kept: the folder given, or $LOUPE_HOME, or .loupe beside app.py."""
    return Path(home or os.environ.get("LOUPE_HOME") or Path(__file__).parent.parent / ".loupe")


def checked_name(name: str) -> str:
    """Give back a name that can't lead out of its folder.

    Raises:
        ValueError: unless it is letters, digits, - and _ only, at most 80 of them, and starts with a letter
            or digit.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(say("cant_name_here_use", name=name))
    return name


def write_file(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file under a temporary name, then rename it: readers see the old or the new content."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{time.monotonic_ns()}")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder with these files at once or not at all; one that is there is replaced."""
    with fresh_folder(folder) as temporary:
        for name, data in files.items():
            (temporary / name).write_bytes(data)


@contextmanager
def fresh_folder(folder: Path) -> Iterator[Path]:
    """An empty folder to fill, which takes the place of `folder` when the block ends without an error.

    Its parent is made if need be, but nothing above: a run that was deleted meanwhile does not come back.
    """
    folder.parent.mkdir(exist_ok=True)
    recover(folder)
    clean(folder.parent)
    temporary = folder.with_name(f".{folder.name}.new-{os.getpid()}-{time.monotonic_ns()}")
    temporary.mkdir()
    try:
        yield temporary
        for path in temporary.iterdir():
            with open(path, "rb+") as file:
                os.fsync(file.fileno())
        _take_place(temporary, folder)
        _sync_folder(folder.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _take_place(new: Path, folder: Path) -> None:
    """Rename a folder onto another, which can't be done at once: the old one steps aside first.

    A reader that comes in between puts the old one back, see `recover`; then it steps aside again.
    """
    old = folder.with_name(f".{folder.name}.old")
    for left in reversed(range(TRIES)):
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)
            os.replace(folder, old)
        try:
            os.replace(new, folder)
            break
        except OSError:
            if not left or not folder.exists():
                raise
    shutil.rmtree(old, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":  # elsewhere a folder can't be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def recover(folder: Path) -> None:
    """Put the old folder back if a writer died between stepping it aside and putting the new one there."""
    old = folder.with_name(f".{folder.name}.old")
    if old.exists() and not folder.exists():
        os.replace(old, folder)


def clean(parent: Path) -> None:
    """Remove what writers left behind that died while writing."""
    for leftover in parent.glob(".*.new-*"):
        writer = re.search(r"\.new-(\d+)-", leftover.name)
        if writer and not _alive(int(writer[1])):
            shutil.rmtree(leftover, ignore_errors=True)
    for old in parent.glob(".*.old"):
        if (parent / old.name[1 : -len(".old")]).exists():  # what replaced it is there
            shutil.rmtree(old, ignore_errors=True)


def _alive(pid: int) -> bool:
    if os.name != "posix":  # there, signal 0 would end the process; keep the leftover
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file of a run; {} if it is not there or not readable."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


class JsonReader:
    """Reads JSON files again and again and parses only those that changed; do not change what it gives."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[int, int, int], dict[str, Any]]] = {}

    def read(self, path: str | Path) -> dict[str, Any]:
        """As `read_json`. A text is quicker than a Path where hundreds of files are looked at."""
        name = os.fspath(path)
        try:
            now = os.stat(name)
        except OSError:
            self._kept.pop(name, None)
            return {}
        mark = (now.st_mtime_ns, now.st_size, now.st_ino)
        kept = self._kept.get(name)
        if kept is not None and kept[0] == mark:
            return kept[1]
        content = read_json(Path(name))
        if time.time() - now.st_mtime > CLOCK_TICK:  # within one tick a second change would look like none
            self._kept[name] = (mark, content)
        return content

    def forget_missing(self) -> None:
        """Let go of files that are not there any more."""
        for name in list(self._kept):
            if not os.path.exists(name):
                self._kept.pop(name, None)


def write_json(path: Path, content: dict[str, Any], *, durable: bool = True) -> None:
    """Replace a JSON file in one piece."""
    write_file(path, json.dumps(content, indent=1).encode(), durable=durable)
