"""A person's own list of runs: sizes, ages, keeping, deleting and taking that back; nobody else's."""

import json
import time
from pathlib import Path

import pytest

from engine import retention
from engine.run_queue import RunQueue
from engine.runs import RunStore
from tests.pages.conftest import OpenPage
from tests.pages.made_runs import EVALS, MINE, YOURS, make_run, said, set_status
from ui.words import day, size


@pytest.fixture(autouse=True)
def nothing_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunQueue, "pump", lambda self: None)


@pytest.fixture
def mine(loupe_home: Path) -> str:
    run_id = make_run(loupe_home, MINE, name="Foxes *a*", records=EVALS)
    run = loupe_home / "runs" / run_id / "run.json"
    content = json.loads(run.read_text())
    run.write_text(json.dumps({**content, "created": time.time() - 12.5 * 86_400}))
    set_status(loupe_home, run_id, state="finished", step=20)
    return run_id


def test_each_run_says_its_size_and_age_and_all_are_added_up(
    open_page: OpenPage, loupe_home: Path, mine: str
) -> None:
    (loupe_home / "runs" / mine / "checkpoints").mkdir()
    (loupe_home / "runs" / mine / "checkpoints" / "weights").write_bytes(b"x" * 3_000_000)
    other = make_run(loupe_home, MINE, name="Hats")
    make_run(loupe_home, YOURS, name="Not mine")
    at = open_page("training", _owner_proposal=MINE)
    store = RunStore(loupe_home)
    total = store.size(mine) + store.size(other)
    assert total > 3_000_000
    assert f"In all: 2 runs, {size(total)}." in said(at)
    assert "12 days ago" in said(at) and "3.0 MB" in said(at) and "Not mine" not in said(at)


def test_a_deleted_run_can_be_brought_back(open_page: OpenPage, loupe_home: Path, mine: str) -> None:
    at = open_page("training", query={"run": mine}, _owner_proposal=MINE)
    at.button(key=f"training_delete_yes_{mine}").click().run()
    assert not at.exception and RunStore(loupe_home).list() == []
    assert "is deleted" in said(at) and "10 minutes" in said(at)
    at.button(key="training_undo").click().run()
    assert not at.exception and [info.id for info in RunStore(loupe_home).list(MINE)] == [mine]
    assert "training_undo" not in {b.key for b in at.button}


def test_a_run_that_will_be_deleted_says_when_and_can_be_kept(
    open_page: OpenPage, loupe_home: Path, mine: str, monkeypatch
) -> None:
    monkeypatch.setenv(retention.VARIABLE, "30")
    at = open_page("training", query={"run": mine}, _owner_proposal=MINE)
    when = day(time.time() + 30 * 86_400)
    assert f"will be deleted on {when} unless you keep it" in said(at)
    assert f"this one on {when}, if nobody opens it for 30 days" in said(at)
    at.button(key=f"training_keep_{mine}").click().run()
    assert RunStore(loupe_home).info(mine).kept
    assert "will be deleted" not in said(at) and "Old runs are deleted here" not in said(at)
    at.button(key=f"training_keep_{mine}").click().run()
    assert "will be deleted on" in said(at)


def test_to_look_at_a_run_is_to_open_it(open_page: OpenPage, loupe_home: Path, mine: str) -> None:
    mark = loupe_home / "runs" / mine / retention.OPENED
    open_page("home")
    assert not mark.exists()
    open_page("training", query={"run": mine}, _owner_proposal=YOURS)
    assert mark.exists()


def test_without_the_setting_nothing_is_said_of_deleting(open_page: OpenPage, mine: str) -> None:
    at = open_page("training", query={"run": mine}, _owner_proposal=MINE)
    assert "will be deleted" not in said(at) and "Old runs are deleted here" not in said(at)


def test_who_opens_somebody_elses_run_can_do_nothing_with_it(
    open_page: OpenPage, loupe_home: Path, mine: str
) -> None:
    set_status(loupe_home, mine, state="queued", queued_at=1.0)
    before = {p: p.read_bytes() for p in (loupe_home / "runs" / mine).rglob("*.json")}
    for query in ({"run": mine}, {"run": mine, "watch": "runs"}, {"run": mine, "watch": "class"}):
        at = open_page("training", query=query, _owner_proposal=YOURS)
        assert not at.exception
        does = {str(b.key) for b in at.button} | {str(b.key) for b in at.get("download_button")}
        named = ("training_stop", "training_pause", "training_resume", "training_one_step", "runs_rename")
        assert not does & set(named)
        assert not [key for key in does if "delete" in key or "keep" in key or "export" in key]
    assert before == {p: p.read_bytes() for p in (loupe_home / "runs" / mine).rglob("*.json")}


def test_a_newer_run_in_a_link_is_a_sentence(open_page: OpenPage, loupe_home: Path, mine: str) -> None:
    path = loupe_home / "runs" / mine / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 4}))
    at = open_page("training", query={"run": mine}, _owner_proposal=MINE)
    assert not at.exception and "format 4" in said(at) and "formats up to 1" in said(at)


def test_a_full_or_forbidden_folder_is_a_sentence(
    open_page: OpenPage, loupe_home: Path, mine: str, monkeypatch
) -> None:
    at = open_page("training", query={"run": mine}, _owner_proposal=MINE)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunStore, "keep", full)
    at.button(key=f"training_keep_{mine}").click().run()
    assert not at.exception and "disk of Loupe’s data folder is full" in said(at)
