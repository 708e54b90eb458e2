"""Downloads against a server on this machine that behaves well, badly, or not at all."""

import hashlib
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engine import download
from engine.download import Download
from engine.vocabularies import Source

CONTENT = bytes(range(256)) * 800
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    release = threading.Event()
    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        kind = self.path.split("/")[1]
        if kind == "missing":
            return self.send_error(404)
        body = {"other": CONTENT[::-1], "long": CONTENT + b"x", "short": CONTENT[:-9]}.get(kind, CONTENT)
        self.send_response(200)
        if kind != "long":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if kind in ("silent", "held"):
            self.release.wait(20)
        if kind == "drip":
            for byte in body[:200]:
                if self.release.wait(0.05):
                    return None
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
            return None
        self.wfile.write(body)
        return None

    def handle(self) -> None:
        with suppress(OSError):  # the other side hung up, as it should
            super().handle()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def host() -> Iterator[str]:
    Handler.release, Handler.asked = threading.Event(), []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    Handler.release.set()
    server.shutdown()
    server.server_close()
    thread.join()


def ended(running: Download) -> Download:
    for _ in range(1000):
        if running.state != "running":
            return running
        time.sleep(0.01)
    raise AssertionError("the download never ended")


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


@pytest.fixture
def fetch(host: str, tmp_path: Path) -> Callable[..., tuple[Download, Path]]:
    def run(kind: str, **bounds: float) -> tuple[Download, Path]:
        source = Source(f"{host}/{kind}/x.tiktoken", SHA256, len(CONTENT))
        return ended(download.start(source, tmp_path / "vocab", **bounds)), tmp_path / "vocab"

    return run


def test_a_file_arrives_whole(fetch):
    came, folder = fetch("good")
    assert (came.state, came.n_bytes, came.message) == ("done", len(CONTENT), "")
    assert (folder / "x.tiktoken").read_bytes() == CONTENT and files(folder) == ["x.tiktoken"]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("missing", r"127\.0\.0\.1:\d+ answered 404 \(Not Found\)\."),
        ("other", "sent another file"),
        ("long", "sent more than the 204,800 bytes"),
        ("short", "broke off after 204,791 of 204,800"),
    ],
)
def test_a_wrong_answer_is_a_sentence_and_leaves_no_file(fetch, kind, said):
    came, folder = fetch(kind)
    assert came.state == "failed" and files(folder) == []
    assert re.search(said, came.message), came.message


def test_a_host_that_says_nothing_is_left(fetch):
    came, folder = fetch("silent", patience=0.2)
    assert came.state == "failed" and "did not answer within 0.2 seconds" in came.message
    assert files(folder) == []


def test_a_host_that_drips_is_left_after_the_time_for_the_whole(fetch):
    came, folder = fetch("drip", longest=0.3)
    assert came.state == "failed" and "is too slow" in came.message and files(folder) == []


def test_a_host_that_refuses_is_a_sentence(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/x.tiktoken"
    came = ended(download.start(Source(url, SHA256, 10), tmp_path))
    assert came.state == "failed" and "can’t be reached" in came.message and "refused" in came.message


def test_a_folder_that_can_not_be_written_to_is_named(host, tmp_path):
    (tmp_path / "vocab").write_text("a file in the way", "utf-8")
    came = ended(download.start(Source(f"{host}/good/x", SHA256, len(CONTENT)), tmp_path / "vocab"))
    assert came.state == "failed" and str(tmp_path / "vocab") in came.message


def test_a_file_is_never_fetched_twice_at_once(host, tmp_path):
    source = Source(f"{host}/held/x.tiktoken", SHA256, len(CONTENT))
    first = download.start(source, tmp_path)
    assert download.start(source, tmp_path) is first is download.latest(source, tmp_path)
    Handler.release.set()
    assert ended(first).state == "done"
    assert Handler.asked == ["/held/x.tiktoken"]
    again = download.start(source, tmp_path)
    assert again is not first and ended(again).state == "done"


def test_what_was_there_stays_when_a_download_fails(fetch, tmp_path):
    (tmp_path / "vocab").mkdir()
    (tmp_path / "vocab" / "x.tiktoken").write_bytes(b"old")
    came, folder = fetch("other")
    assert came.state == "failed" and (folder / "x.tiktoken").read_bytes() == b"old"
