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
        message: one sentence on what went wrong.
    """

    source: Source
    state: str = "running"
    n_bytes: int = 0
    message: str = ""


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
        download.message = "Another program is fetching this file at the moment."
    except ValueError as error:
        download.message = str(error)
    except OSError as error:
        download.message = f"{folder} can’t be written to ({error.strerror or error})."
    download.state = "failed" if download.message else "done"


def _fetch(download: Download, patience: float, longest: float) -> bytes:
    """The content of the file; a ValueError that says why there is none."""
    host = download.source.host
    silent = f"{host} did not answer within {patience:g} seconds."
    try:
        content = _read(download, patience, longest)
    except urllib.error.HTTPError as error:
        raise ValueError(f"{host} answered {error.code} ({error.reason}).") from error
    except TimeoutError as error:
        raise ValueError(silent) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        said = silent if isinstance(reason, TimeoutError) else f"{host} can’t be reached ({reason})."
        raise ValueError(said) from error
    if len(content) < download.source.size:
        raise ValueError(f"{host} broke off after {len(content):,} of {download.source.size:,} bytes.")
    if hashlib.sha256(content).hexdigest() != download.source.sha256:
        raise ValueError(f"{host} sent another file: its sha256 is not {download.source.sha256[:12]}….")
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
                raise ValueError(f"{source.host} sent more than the {source.size:,} bytes of this file.")
            if time.monotonic() > deadline:
                raise ValueError(f"{source.host} is too slow: {len(content):,} bytes in {longest:g} seconds.")
    return bytes(content)
