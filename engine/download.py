"""Fetch a published vocabulary when somebody asks for it: one file, from one known host, within bounds.

It runs in a thread of its own, so that the page stays alive, and ends by itself: after `PATIENCE` seconds
without a byte, after `LONGEST` seconds in all, or when more bytes come than the file has.
"""

import hashlib
import http.client
import ssl
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import certifi
from filelock import FileLock, Timeout

from engine.folders import write_file
from engine.vocabularies import Source
from wording import words

say = words("engine.download")

PATIENCE = 10.0  # seconds for each answer
LONGEST = 180.0  # seconds for the whole file
_BLOCK = 65_536


@dataclass(eq=False)
class Download:
    """A file on its way; `state` and `n_bytes` change while it comes.

    Attributes:
        source: what is fetched.
        state: "running", then "done" or "failed".
        n_bytes: how many have come.
        failed: what went wrong, by a short name, and its details; None if nothing did.
    """

    source: Source
    state: str = "running"
    n_bytes: int = 0
    failed: "_Failed | None" = None

    @property
    def message(self) -> str:
        """One sentence on what went wrong, in the language of whoever reads it; "" if nothing did."""
        return say(f"failed.{self.failed.name}", **self.failed.details) if self.failed else ""


class _Failed(Exception):
    """Raised in the thread, which belongs to no reader: the sentence is made later."""

    def __init__(self, name: str, **details: object) -> None:
        super().__init__(name)
        self.name, self.details = name, details


_downloads: dict[tuple[str, Path], Download] = {}
_gate = threading.Lock()


def start(source: Source, folder: Path, *, patience: float = PATIENCE, longest: float = LONGEST) -> Download:
    """Begin to fetch a file into a folder, unless it is on its way already; gives the download.

    Args:
        source: where it is, its size and its sha256.
        folder: where it goes, under its plain name.
        patience: seconds to wait for each answer of the host.
        longest: seconds for all of it.
    """
    with _gate:
        running = _downloads.get((source.url, folder))
        if running and running.state == "running":
            return running
        download = _downloads[source.url, folder] = Download(source)
    work = (download, folder, patience, longest)
    threading.Thread(target=_run, args=work, name="vocabulary download", daemon=True).start()
    return download


def latest(source: Source, folder: Path) -> Download | None:
    """The last download of a file into a folder, running or not."""
    return _downloads.get((source.url, folder))


def _run(download: Download, folder: Path, patience: float, longest: float) -> None:
    name = download.source.file_names[1]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f".{name}.lock", timeout=0):  # two servers may share a data folder
            write_file(folder / name, _fetch(download, patience, longest))
    except Timeout:
        download.failed = _Failed("busy")
    except _Failed as failed:
        download.failed = failed
    except OSError as error:
        download.failed = _Failed("not_written", folder=folder, reason=error.strerror or error)
    download.state = "failed" if download.failed else "done"


def _fetch(download: Download, patience: float, longest: float) -> bytes:
    """The content of the file; `_Failed` says why there is none."""
    host = download.source.host
    silent = _Failed("silent", host=host, patience=patience)
    try:
        content = _read(download, patience, longest)
    except urllib.error.HTTPError as error:
        raise _Failed("refused", host=host, code=error.code, reason=error.reason) from error
    except TimeoutError as error:
        raise silent from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        late = isinstance(reason, TimeoutError)
        raise (silent if late else _Failed("not_reached", host=host, reason=reason)) from error
    if len(content) < download.source.size:
        raise _Failed("broke_off", host=host, n=len(content), size=download.source.size)
    if hashlib.sha256(content).hexdigest() != download.source.sha256:
        raise _Failed("another_file", host=host, sha256=download.source.sha256[:12])
    return content


def _read(download: Download, patience: float, longest: float) -> bytes:
    """What the host sends, up to the size that the file has."""
    source, deadline, content = download.source, time.monotonic() + longest, bytearray()
    trusted = ssl.create_default_context()
    trusted.load_verify_locations(certifi.where())  # some Pythons come without any certificates
    request = urllib.request.Request(source.url, headers={"User-Agent": "Loupe"})
    with urllib.request.urlopen(request, timeout=patience, context=trusted) as answer:
        while block := answer.read1(_BLOCK):  # what one answer brings: read() would wait for a full block
            content += block
            download.n_bytes = len(content)
            if len(content) > source.size:
                raise _Failed("too_much", host=source.host, size=source.size)
            if time.monotonic() > deadline:
                raise _Failed("too_slow", host=source.host, n=len(content), longest=longest)
    return bytes(content)
