"""A hub of models on this machine, that behaves well, badly, or not at all."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SHA = "0123456789abcdef0123456789abcdef01234567"


class FakeHub:
    """What it serves, how it behaves, and what it was asked.

    Attributes:
        models: "owner/name" to the folder that is served under it.
        gated: names that ask for a registration.
        secret: names that answer 403 to every file.
        silent: parts of paths that are never answered.
        breaks: file names to the number of bytes after which the connection breaks, once each.
        extra: file names to bytes that are sent beyond their stated size.
        swapped: file names whose bytes are sent in reverse.
        slow: file names that come only after `release`, but for their first 1000 bytes.
        asked: (path, headers) of every request.
        release: set at the end: whoever waits goes on.
    """

    def __init__(self) -> None:
        self.models: dict[str, Path] = {}
        self.gated: set[str] = set()
        self.secret: set[str] = set()
        self.silent: set[str] = set()
        self.breaks: dict[str, int] = {}
        self.extra: dict[str, int] = {}
        self.swapped: set[str] = set()
        self.slow: set[str] = set()
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.release = threading.Event()
        self.url = ""

    def files(self, name: str) -> list[str]:
        """Names of files that were asked for, in order."""
        return [path.rsplit("/", 1)[1] for path, _ in self.asked if f"/{name}/resolve/" in path]


def _large(path: Path) -> bool:
    return path.suffix == ".safetensors"


def _siblings(folder: Path) -> list[dict[str, Any]]:
    found = []
    for path in sorted(folder.iterdir()):
        entry: dict[str, Any] = {"rfilename": path.name, "size": path.stat().st_size, "blobId": "0" * 40}
        if _large(path):
            sha = hashlib.sha256(path.read_bytes()).hexdigest()
            entry["lfs"] = {"sha256": sha, "size": path.stat().st_size, "pointerSize": 130}
        found.append(entry)
    return found


def _handler(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            hub.asked.append((self.path, dict(self.headers)))
            if any(part in self.path for part in hub.silent):
                hub.release.wait(20)
                return
            path = self.path.split("?")[0]
            api = re.fullmatch(r"/api/models/([^/]+/[^/]+)", path)
            file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([0-9a-f]{40})/([^/]+)", path)
            if api and api[1] in hub.models:
                self.about(api[1])
            elif file and file[1] in hub.secret:
                self.refuse(403, "GatedRepo")
            elif file and file[1] in hub.models and (hub.models[file[1]] / file[3]).is_file():
                self.file(hub.models[file[1]] / file[3])
            else:
                self.refuse(404, "EntryNotFound" if file and file[1] in hub.models else "RepoNotFound")

        def about(self, name: str) -> None:
            content = {
                "id": name, "sha": SHA, "private": False, "tags": ["license:mit"],
                "gated": "auto" if name in hub.gated else False,
                "siblings": _siblings(hub.models[name]), "cardData": {"license": "apache-2.0"},
            }  # fmt: skip
            body = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def refuse(self, code: int, kind: str) -> None:
            self.send_response(code)
            self.send_header("X-Error-Code", kind)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def file(self, path: Path) -> None:
            body = path.read_bytes()
            sha = hashlib.sha256(body).hexdigest()
            start = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            first = int(start[1]) if start else 0
            more = hub.extra.get(path.name, 0)
            sent = (body[::-1] if path.name in hub.swapped else body)[first:] + b"x" * more
            self.send_response(206 if start else 200)
            self.send_header("X-Repo-Commit", SHA)
            self.send_header("ETag", f'"{sha}"')
            self.send_header("Content-Length", str(len(sent)))
            if start:
                self.send_header("Content-Range", f"bytes {first}-{len(body) - 1}/{len(body)}")
            self.end_headers()
            if self.command == "HEAD":
                return
            if path.name in hub.slow:
                self.wfile.write(sent[:1000])
                self.wfile.flush()
                hub.release.wait(20)
                sent = sent[1000:]
            after = hub.breaks.pop(path.name, None)
            self.wfile.write(sent if after is None else sent[:after])
            if after is not None:
                self.close_connection = True

        def handle(self) -> None:
            with suppress(OSError):
                super().handle()

        def log_message(self, *args: object) -> None:
            pass

    return Handler


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    """A hub that runs; set $HF_ENDPOINT to its `url`."""
    hub = FakeHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield hub
    finally:
        hub.release.set()
        server.shutdown()
        server.server_close()
        thread.join()
