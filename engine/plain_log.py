"""One plain text log for whoever runs the server: what began, ended, failed or was refused, and when.

It is `loupe.log` in the data folder, an event a line: the time in UTC, a level, what happened, details.

    2026-11-30T10:51:49.123Z info    run started  run=20261130-105149-a1b2c3 worker=4711

No text, prompt, name of a file or name of a person ever stands in it: a run has its id, an error its kind and
its places in the code. What an error says is left out, since it may quote what somebody typed.

The server and its workers write it at the same time. Each event is one write to the end of the file, which
systems keep in one piece; who finds the file full renames it, under a lock. So it takes at most
`FILES * MOST_BYTES` and a little, and nothing in here ever raises: a full disk must not stop a run.
"""

import os
import re
import time
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock

from engine.folders import data_folder

NAME = "loupe.log"
MOST_BYTES = 1_000_000  # of one file
FILES = 3  # loupe.log, and the older loupe.log.1 and loupe.log.2
LONGEST_DETAIL, LONGEST_EVENT = 200, 8_000  # characters
_REPO = Path(__file__).resolve().parent.parent
_ODD = re.compile(r"[^\w.:/+%@,()-]|\s")  # a detail with one of these stands between quotes
_BROKEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")  # would break a line, or the encoding


def path(home: str | Path | None = None) -> Path:
    """Where the log of a data folder is; None is this server's."""
    return data_folder(home) / NAME


def info(what: str, *, home: str | Path | None = None, **details: object) -> None:
    """Note that something happened. `what` is written in the code, never made of what a person gave."""
    _note("info", what, home, details)


def warning(what: str, *, home: str | Path | None = None, **details: object) -> None:
    """Note that something was refused, or is not as it should be."""
    _note("warning", what, home, details)


def failure(
    what: str, error: BaseException, *, home: str | Path | None = None, **details: object
) -> None:  # fmt: skip
    """Note an error that nobody expected, with all its places in the code."""
    with suppress(Exception):  # whatever is wrong with the error
        _note("error", what, home, {**details, "kind": kind_of(error)}, places(error))


def refusal(
    what: str, error: BaseException, *, home: str | Path | None = None, **details: object
) -> None:  # fmt: skip
    """Note that something a person brought was refused: the kind of error, and where in the code it arose."""
    with suppress(Exception):
        _note("warning", what, home, {**details, "kind": kind_of(error), "at": (places(error) or ["?"])[-1]})


def kind_of(error: BaseException) -> str:
    """An error's class, and of the system's errors also which one it was."""
    name = type(error).__name__
    if isinstance(error, OSError) and error.errno is not None:
        return f"{name}({os.strerror(error.errno).replace(' ', '-')})"
    return name


def places(error: BaseException) -> list[str]:
    """Where an error passed through, the innermost place last; of what caused it, before.

    >>> try:
    ...     open("/no/such/file")
    ... except OSError as error:
    ...     print(kind_of(error), len(places(error)))
    FileNotFoundError(No-such-file-or-directory) 1
    """
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    found = [] if before is None else [*places(before), f"-> {kind_of(error)}"]
    frames = traceback.extract_tb(error.__traceback__)
    return [*found, *(f"{_short(f.filename)}:{f.lineno}({f.name.strip('<>')})" for f in frames)]


def _short(file: str) -> str:
    """A file of this program or of a package; of any other only its name: its folder may name a person."""
    found = Path(file)
    if found.is_relative_to(_REPO) and "site-packages" not in found.parts:
        return found.relative_to(_REPO).as_posix()
    _, package, rest = found.as_posix().rpartition("/site-packages/")
    return rest if package else found.name


def last_lines(n: int, home: str | Path | None = None) -> list[str]:
    """The newest lines, the oldest of them first; [] if there is no log yet, or it can't be read."""
    lines: list[str] = []
    for i in range(FILES):
        file = path(home) if i == 0 else path(home).with_name(f"{NAME}.{i}")
        try:
            with open(file, "rb") as log:
                log.seek(max(0, file.stat().st_size - n * (LONGEST_DETAIL + 100)))
                found = log.read().decode("utf-8", "replace").splitlines()
        except OSError:
            break
        lines = found + lines
        if len(lines) >= n:
            break
    return lines[-n:]


def _note(
    level: str, what: str, home: str | Path | None, details: dict[str, object], below: list[str] | None = None
) -> None:  # fmt: skip
    with suppress(Exception):  # no fault of a log may become a fault of what it tells of
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        told = "".join(f" {name}={_plain(value)}" for name, value in details.items() if value is not None)
        lines = [f"{now} {level:<7} {what} {told}".rstrip(), *(f"    {_whole(line)}" for line in below or ())]
        _append(path(home), ("\n".join(lines)[:LONGEST_EVENT] + "\n").encode())


def _whole(value: object) -> str:
    return _BROKEN.sub("?", str(value))[:LONGEST_DETAIL]


def _plain(value: object) -> str:
    """A detail on one line."""
    text = f"{value:.4g}" if isinstance(value, float) else _whole(value)
    return '"' + text.replace('"', "'") + '"' if not text or _ODD.search(text) else text


def _append(file: Path, event: bytes) -> None:
    try:
        handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except FileNotFoundError:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(handle).st_size
        if size < 2 * MOST_BYTES:  # else it could not be renamed for long: rather lose events than the disk
            os.write(handle, event)
    finally:
        os.close(handle)
    if size + len(event) > MOST_BYTES:
        _turn(file)


def _turn(file: Path) -> None:
    """Begin a new file and let the oldest go, unless another process is doing so or has just done it."""
    with FileLock(file.with_name(f".{NAME}.lock"), timeout=0):
        if file.stat().st_size <= MOST_BYTES:
            return
        for i in range(FILES - 1, 0, -1):
            older = file if i == 1 else file.with_name(f"{NAME}.{i - 1}")
            with suppress(FileNotFoundError):
                os.replace(older, file.with_name(f"{NAME}.{i}"))


def since(seconds: float) -> str:
    """A moment in seconds since 1970, as the log writes it, to the second."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
