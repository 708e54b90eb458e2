"""The plain log: an event a line from many processes, bounded, without what anybody typed; never raises."""

import errno
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import plain_log
from engine.folders import read_json
from engine.run_info import update_status
from engine.runs import RunStore
from tests.engine.small_runs import REPO, spec, train_here

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (info   |warning|error  ) \S.*")


def lines(home: Path) -> list[str]:
    return plain_log.path(home).read_text("utf-8").splitlines()


@pytest.fixture
def home(loupe_home: Path) -> Path:
    return loupe_home


def test_an_event_is_a_line_with_time_level_and_details(home: Path) -> None:
    plain_log.info("run started", run="20261130-a1", step=3, rate=0.0123456, nothing=None)
    plain_log.warning("odd", home=home, why="two words")
    first, second = lines(home)
    assert LINE.fullmatch(first) and LINE.fullmatch(second)
    assert first.endswith("info    run started  run=20261130-a1 step=3 rate=0.01235")
    assert second.endswith('warning odd  why="two words"')


@pytest.mark.parametrize(
    "odd", ["a\nb 2026 info fake", "a\rb", "x\x00y\x1b[31m", "\u2028", "\ud83d", 'say "no"', "é" * 5000]
)
def test_a_detail_stays_on_its_line_and_is_short(home: Path, odd: str) -> None:
    plain_log.info("run started", run=odd)
    (line,) = lines(home)
    assert LINE.fullmatch(line) and len(line) < 300
    assert line.count('"') in (0, 2)  # around all of it, if at all


def raised(message: str) -> ValueError:
    try:
        try:
            int(message)
        except ValueError as error:
            raise ValueError(message) from error
    except ValueError as error:
        return error


def test_of_an_error_its_kind_and_places_are_kept_but_not_its_words(home: Path) -> None:
    plain_log.failure("page failed", raised("Anna's diary"), run="r1")
    plain_log.refusal("upload refused", raised("/home/anna/diary.txt"), bytes=5)
    text = "\n".join(lines(home))
    assert "nna" not in text and "diary" not in text
    first, *places, last = lines(home)
    assert first.endswith("error   page failed  run=r1 kind=ValueError")
    assert [place.split(":")[0].strip() for place in places] == [
        "tests/engine/test_plain_log.py", "-> ValueError", "tests/engine/test_plain_log.py",
    ]  # fmt: skip
    assert re.search(r"kind=ValueError at=tests/engine/test_plain_log.py:\d+\(raised\)$", last)


def test_a_file_of_another_folder_is_named_without_it() -> None:
    code = compile("def f():\n    raise KeyError('x')", "/home/anna/own.py", "exec")
    space: dict = {}
    exec(code, space)
    with pytest.raises(KeyError) as caught:
        space["f"]()
    assert plain_log.places(caught.value)[-1] == "own.py:2(f)"


def test_an_error_of_the_system_says_which(home: Path) -> None:
    assert plain_log.kind_of(OSError(errno.ENOSPC, "x", "/home/anna")) == "OSError(No-space-left-on-device)"


WRITER = """
import sys
from engine import plain_log
plain_log.MOST_BYTES = int(sys.argv[3])
for i in range(int(sys.argv[2])):
    plain_log.info("event", writer=sys.argv[1], i=i, fill="x" * 60)
"""


def write_together(n_processes: int, n: int, most: int) -> None:
    started = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(k), str(n), str(most)], cwd=REPO)
        for k in range(n_processes)
    ]
    assert [process.wait(120) for process in started] == [0] * n_processes


def test_processes_that_write_at_once_lose_nothing_and_mix_nothing(home: Path) -> None:
    write_together(3, 300, 10**7)
    found = lines(home)
    assert len(found) == 900 and all(LINE.fullmatch(line) for line in found)
    for k in range(3):
        assert [int(re.search(r" i=(\d+)", x)[1]) for x in found if f"writer={k} " in x] == list(range(300))


def test_the_log_turns_over_and_stays_small_while_many_write(home: Path) -> None:
    most = 20_000
    write_together(3, 400, most)  # 170,000 bytes
    files = sorted(path for path in home.iterdir() if path.name.startswith("loupe.log"))
    assert [path.name for path in files] == ["loupe.log", "loupe.log.1", "loupe.log.2"]
    assert all(
        path.stat().st_size <= 2 * most + 200 for path in files
    )  # while the lock is held, others write
    assert all(LINE.fullmatch(line) for path in files for line in path.read_text().splitlines())


def test_nothing_is_lost_when_it_turns_over(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_log, "MOST_BYTES", 2000)
    for i in range(50):
        plain_log.info("event", i=i)
    assert [int(line.rpartition("=")[2]) for line in plain_log.last_lines(50, home)] == list(range(50))
    assert [int(line.rpartition("=")[2]) for line in plain_log.last_lines(7, home)] == list(range(43, 50))


def test_a_log_that_can_not_turn_over_stops_growing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_log, "MOST_BYTES", 1000)

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "replace", refuse)
    for i in range(200):
        plain_log.info("event", i=i)
    assert plain_log.path(home).stat().st_size < 2200


def test_without_a_log_there_are_no_lines(home: Path) -> None:
    assert plain_log.last_lines(10, home) == []


@pytest.fixture(params=["a file in its place", "full disk", "no thread"])
def trouble(request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "full") if request.param == "full disk" else RuntimeError("no thread")

    if request.param == "a file in its place":
        home.write_text("no folder")
    else:
        monkeypatch.setattr(plain_log.os, "open", refuse)
    yield


def test_it_never_raises(trouble: None, home: Path) -> None:
    class Odd:
        def __str__(self) -> str:
            raise ValueError("no words")

    plain_log.info("event", odd=Odd())
    plain_log.failure("event", raised("x"))
    plain_log.refusal("event", raised("x"))
    plain_log.warning("event", home="/dev/null/none")
    assert plain_log.last_lines(3, home) == []


def test_threads_write_whole_lines(home: Path) -> None:
    threads = [
        threading.Thread(target=lambda k=k: [plain_log.info("event", k=k, i=i) for i in range(100)])
        for k in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines(home)) == 400 and all(LINE.fullmatch(line) for line in lines(home))


# ---- what runs tell it


def told(home: Path, run_id: str) -> list[str]:
    """What the log says of a run, in order."""
    return [line[33:].split("  ")[0] for line in lines(home) if f"run={run_id}" in line]


def test_a_run_tells_from_the_queue_to_its_end(home: Path) -> None:
    store = RunStore(home)
    run_id = store.create(spec(name="Anna's run"), "anna")
    assert train_here(store, run_id).state == "finished"
    assert told(home, run_id) == ["run started", "run finished"]
    text = "\n".join(lines(home))
    assert "nna" not in text and "the cat" not in text
    assert re.search(rf"run finished  run={run_id} step=30$", text, re.M)


def test_a_run_that_fails_tells_where(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(home)
    run_id = store.create(spec(), "anna")
    (store.root / run_id / "tokenizer.json").write_text('{"kind": "Anna"}')
    with pytest.raises((ValueError, KeyError)):
        train_here(store, run_id)
    assert told(home, run_id) == ["run started", "run failed"]
    text = "\n".join(lines(home))
    assert "run_session.py" in text and "nna" not in text


def test_a_queued_run_and_a_killed_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(home)
    monkeypatch.setattr(store.queue, "pump", lambda: None)
    run_id = store.start(spec(), "anna")
    update_status(store.root / run_id, state="running", pid=2**22 + 1, mark="1")
    store.queue.notice_dead()
    assert told(home, run_id) == ["run queued", "run killed"]
    assert read_json(store.root / run_id / "status.json")["state"] == "failed"
