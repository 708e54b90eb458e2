"""Old runs: which are deleted by themselves and when, what is said before, and what dead writers left."""

import json
import os
import time
from pathlib import Path

import pytest

from engine import plain_log, retention, run_bin
from engine.retention import DAY
from engine.runs import RunStore
from tests.engine.small_runs import spec

NOW = time.time()


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch):
    """at(n): it is n days later."""

    def move(days: float) -> None:
        monkeypatch.setattr(time, "time", lambda: NOW + days * DAY)

    return move


@pytest.fixture(autouse=True)
def days_that_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine is on while the clock goes on."""
    monkeypatch.setattr(retention, "_uptime", lambda: {"boot": "b", "uptime": time.time()})


@pytest.fixture(autouse=True)
def thirty_days(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "NOW", time.time())  # when this file was read may be long ago
    monkeypatch.setenv(retention.VARIABLE, "30")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def run_of(home: Path, state: str = "finished", owner: str = "me") -> str:
    run_id = RunStore(home).create(spec(), owner)
    set_status(home, run_id, state=state, pid=os.getpid(), queued_at=1.0)
    return run_id


def set_status(home: Path, run_id: str, **changes: object) -> None:
    path = home / "runs" / run_id / "status.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def there(home: Path, run_id: str) -> bool:
    return (home / "runs" / run_id / "run.json").exists()


def look(home: Path) -> list[str]:
    return retention.tidy(home)


def test_without_the_setting_nothing_is_ever_deleted(home, at, monkeypatch) -> None:
    for value in (None, "", "0", "never", "-3", "nan", "1e9"):
        monkeypatch.delenv(retention.VARIABLE) if value is None else monkeypatch.setenv(
            retention.VARIABLE, value
        )
        assert retention.keep_days() is None
        run_id = run_of(home)
        for days in (40, 41, 4000):
            at(days)
            assert look(home) == []
        assert there(home, run_id) and RunStore(home).info(run_id).due is None
        at(0)


def test_an_ended_run_that_nobody_opened_is_deleted_a_day_after_it_was_found_due(home, at) -> None:
    run_id = run_of(home)
    assert RunStore(home).info(run_id).due == pytest.approx(NOW + 30 * DAY, abs=60)
    at(29.9)
    assert look(home) == []
    at(30.1)
    assert look(home) == [] and there(home, run_id), "the first look only finds it"
    at(30.5)
    assert look(home) == []
    at(31.1)
    assert look(home) == [run_id] and not there(home, run_id)
    assert "by=retention" in plain_log.path(home).read_text() and run_id in plain_log.path(home).read_text()


@pytest.mark.parametrize("state", ["queued", "starting", "running", "paused", "something new"])
def test_a_run_that_has_not_ended_stays(home, at, state: str) -> None:
    run_id = run_of(home, state)
    for days in (40, 41.5, 43):
        at(days)
        assert look(home) == []
    assert there(home, run_id)


@pytest.mark.parametrize("state", ["stopped", "finished", "failed"])
def test_a_kept_run_stays_until_that_is_taken_back(home, at, state: str) -> None:
    run_id = run_of(home, state)
    store = RunStore(home)
    with pytest.raises(PermissionError):
        store.keep(run_id, "somebody else", True)
    store.keep(run_id, "me", True)
    assert store.info(run_id).kept and store.info(run_id).due is None
    for days in (40, 41.5):
        at(days)
        assert look(home) == []
    store.keep(run_id, "me", False)
    os.utime(home / "runs" / run_id / "run.json", (NOW, NOW))
    at(43)
    assert look(home) == []
    at(44.1)
    assert look(home) == [run_id]


def test_who_opens_a_run_lets_it_live_on(home, at) -> None:
    run_id = run_of(home)
    at(30.5)
    assert look(home) == []
    os.utime(home / "runs" / run_id, (NOW, NOW))
    RunStore(home).opened(run_id)
    os.utime(home / "runs" / run_id / retention.OPENED, (NOW + 30.5 * DAY,) * 2)
    at(31.6)
    assert look(home) == []
    assert RunStore(home).info(run_id).due == pytest.approx(NOW + 60.5 * DAY, abs=60)
    at(61)
    assert look(home) == []
    at(62)
    assert look(home) == [run_id]


def test_opening_is_noted_once_an_hour_and_never_fails(home) -> None:
    store = RunStore(home)
    run_id = run_of(home)
    mark = home / "runs" / run_id / retention.OPENED
    store.opened(run_id)
    os.utime(mark, (NOW - 60, NOW - 60))
    store.opened(run_id)
    assert mark.stat().st_mtime == pytest.approx(NOW - 60)
    os.utime(mark, (NOW - 7200, NOW - 7200))
    store.opened(run_id)
    assert mark.stat().st_mtime > NOW - 60
    store.opened("20200101-000000-abcdef")  # gone: nothing is made
    assert not (home / "runs" / "20200101-000000-abcdef").exists()
    with pytest.raises(ValueError):
        store.opened("../x")


def test_a_clock_that_was_wrong_for_a_moment_deletes_nothing(home, at) -> None:
    run_id = run_of(home)
    at(5000)
    assert look(home) == []
    at(1)
    assert retention.is_due(home), "a look in the future counts for nothing"
    assert look(home) == []
    at(31)
    assert look(home) == [] and there(home, run_id)
    at(32.1)
    assert look(home) == [run_id]


def test_a_clock_that_is_set_ahead_twice_deletes_nothing(home, at, monkeypatch) -> None:
    """Not a day has passed, whatever the clock says: the machine knows how long it was on."""
    run_id, on = run_of(home), time.time()
    monkeypatch.setattr(retention, "_uptime", lambda: {"boot": "b", "uptime": on})
    for days in (0, 400, 401.5, 900, 901, 902, 0.1, 400):
        at(days)
        assert look(home) == [], f"clock set to day {days}"
    assert there(home, run_id)


def test_after_a_summer_without_a_look_the_day_of_warning_begins_anew(home, at, monkeypatch) -> None:
    monkeypatch.setattr(retention, "_uptime", dict)  # a system that does not say
    run_id = run_of(home)
    at(30.1)
    assert look(home) == []
    at(120)
    assert look(home) == [] and there(home, run_id)
    at(121)
    assert look(home) == [run_id]


def test_a_server_that_a_class_visits_once_a_week_deletes_as_well(home, at, monkeypatch) -> None:
    """It was on all the time, and knows that the days have passed."""
    monkeypatch.setattr(retention, "_uptime", lambda: {"boot": "b", "uptime": time.time() - NOW + 5})
    run_id = run_of(home)
    at(31)
    assert look(home) == [] and there(home, run_id)
    at(38)
    assert look(home) == [run_id]


def test_a_day_passes_between_two_looks(home, at) -> None:
    run_of(home)
    assert retention.is_due(home)
    look(home)
    assert not retention.is_due(home)
    at(0.9)
    assert not retention.is_due(home)
    at(1.01)
    assert retention.is_due(home)


def test_any_page_that_lists_runs_deletes_what_is_due(home, at) -> None:
    run_id = run_of(home)
    for days in (30.1, 31.2):
        at(days)
        found = RunStore(home).list()
    assert found == [] and not there(home, run_id)


def test_a_damaged_folder_and_one_of_a_newer_version_are_left_alone(home, at) -> None:
    damaged, newer = run_of(home), run_of(home)
    (home / "runs" / damaged / "run.json").write_text("{")
    path = home / "runs" / newer / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    for days in (40, 42, 44):
        at(days)
        assert look(home) == []
    assert there(home, damaged) and there(home, newer)


def test_a_link_among_the_runs_is_not_followed(home, at, tmp_path) -> None:
    run_id = run_of(home)
    away = tmp_path / "away"
    os.replace(home / "runs" / run_id, away)
    (home / "runs" / run_id).symlink_to(away)
    for days in (40, 42):
        at(days)
        assert look(home) == []
    assert (away / "run.json").exists()


def test_who_dies_between_the_two_steps_of_deleting_leaves_no_half_run(home, at, monkeypatch) -> None:
    run_id = run_of(home)
    at(30.1)
    look(home)
    at(31.2)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_bin.os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        look(home)
    monkeypatch.undo()
    assert there(home, run_id), "not renamed: whole"
    monkeypatch.setenv(retention.VARIABLE, "30")
    monkeypatch.setattr(time, "time", lambda: NOW + 31.3 * DAY)
    store = RunStore(home)
    os.utime(home / "runs" / run_id, (NOW, NOW))
    run_bin.put_aside(home / "runs" / run_id)  # renamed, then killed
    assert store.list() == []
    monkeypatch.setattr(time, "time", lambda: NOW + 31.4 * DAY)
    RunStore(home)
    assert not list((home / "runs").glob(".*deleted"))


def test_what_dead_writers_left_is_removed_and_nothing_else(home) -> None:
    run_id = run_of(home)
    folder = home / "runs" / run_id
    (home / "people").mkdir()
    old = [
        folder / ".status.json.4711-123456",
        home / "people" / ".abc.json.1-2",
        home / ".new-runs.json.9-9",
    ]
    fresh = [folder / ".run.json.4711-99", folder / ".hidden", folder / "keep.txt", home / "people" / ".x"]
    for path in (*old, *fresh):
        path.write_text("half")
    for path in (*old, folder / ".hidden", folder / "keep.txt", home / "people" / ".x"):
        os.utime(path, (NOW - 2 * DAY, NOW - 2 * DAY))
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / ".0000010.new-999999999-5").mkdir()
    look(home)
    assert not any(path.exists() for path in old) and all(path.exists() for path in fresh)
    assert not list((folder / "checkpoints").iterdir())
