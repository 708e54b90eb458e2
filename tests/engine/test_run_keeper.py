"""What can be asked of a run that is there, by whom: its owner, the teacher, and nobody else."""

import json
import os
import shutil
import time

import pytest

from engine import new_runs, plain_log, run_bin
from engine.run_info import update_status
from engine.run_sizes import data_bytes, folder_bytes
from engine.runs import RunStore
from engine.tuning_size import NoRoomError
from tests.engine.small_runs import spec, train_here, wait_for, wait_for_step
from wording import words

ASKED = {
    "stop": lambda store, run_id: store.stop(run_id, "you"),
    "pause": lambda store, run_id: store.pause(run_id, "you"),
    "step": lambda store, run_id: store.step(run_id, "you"),
    "resume": lambda store, run_id: store.resume(run_id, "you"),
    "train longer": lambda store, run_id: store.resume(run_id, "you", steps=99),
    "delete": lambda store, run_id: store.delete(run_id, "you"),
    "rename": lambda store, run_id: store.rename(run_id, "you", "mine now"),
    "keep": lambda store, run_id: store.keep(run_id, "you", True),
}


def files(store, run_id):
    return {p: p.read_bytes() for p in (store.root / run_id).rglob("*") if p.is_file()}


@pytest.fixture
def waiting(store, monkeypatch):
    """A store in which nothing begins."""
    new_runs.let_begin(store.home, False)
    return store


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("owner", ["me", ""])
def test_who_guesses_the_id_of_a_run_changes_nothing(waiting, name, owner):
    run_id = waiting.start(spec(), owner)
    before = files(waiting, run_id)
    with pytest.raises(PermissionError, match="somebody else"):
        ASKED[name](waiting, run_id)
    assert files(waiting, run_id) == before


@pytest.mark.parametrize("owner", [None, 7, "", ["x"]])
def test_a_run_without_a_proper_owner_is_nobodys(waiting, owner):
    run_id = waiting.create(spec(), "me")
    path = waiting.root / run_id / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "owner": owner}))
    for word in ("", "None", "me"):
        with pytest.raises(PermissionError):
            waiting.delete(run_id, word)


@pytest.mark.parametrize("bad", ["../runs", ".", "", "a/b", "x" * 200, "runs\x00"])
def test_a_name_that_leads_elsewhere_is_refused(store, bad):
    for ask in (
        lambda: store.delete_for_teacher(bad),
        lambda: store.restore_for_teacher(bad),
        lambda: store.restore(bad, "me"),
        lambda: store.size(bad),
    ):
        with pytest.raises(ValueError):
            ask()


# ---- deleted, and brought back


def test_a_deleted_run_comes_back_whole_and_then_is_gone_for_good(store, monkeypatch):
    run_id = store.create(spec(), "me")
    train_here(store, run_id)
    before = files(store, run_id)
    store.delete(run_id, "me")
    assert store.list() == [] and not (store.root / run_id).exists()
    with pytest.raises(PermissionError):
        store.restore(run_id, "you")
    store.restore(run_id, "me")
    assert files(store, run_id) == before and store.list()[0].id == run_id
    store.delete(run_id, "me")
    later = time.time() + run_bin.UNDO_SECONDS + 1
    monkeypatch.setattr(time, "time", lambda: later)
    RunStore(store.home)  # whoever starts next
    assert not list(store.root.iterdir())
    with pytest.raises(ValueError, match="gone for good.*10 minutes"):
        store.restore(run_id, "me")


def test_what_was_deleted_makes_way_when_the_disk_is_full_the_oldest_first(store, monkeypatch):
    ids = [store.create(spec(), "me") for _ in range(3)]
    for place, run_id in enumerate(ids):
        store.delete(run_id, "me")
        hidden, before = run_bin.aside(store.root, run_id), time.time() - 100 * (3 - place)
        (hidden / "large").write_bytes(b"x" * 10_000)
        os.utime(hidden, (before, before))
    missing = [15_000]  # the two oldest have that

    def check(root, model, train):
        if len(list(root.glob(".*.deleted"))) > 1:
            raise NoRoomError("no room", missing[0])

    monkeypatch.setattr("engine.runs.check_disk", check)
    missing[0] = 10**6  # not even all of them
    with pytest.raises(NoRoomError):
        store.create(spec(), "me")
    assert len(list(store.root.glob(".*.deleted"))) == 3, "nobody's undo is lost for nothing"
    missing[0] = 15_000
    store.create(spec(), "me")
    store.restore(ids[2], "me")
    for gone in ids[:2]:
        with pytest.raises(ValueError, match="gone for good"):
            store.restore(gone, "me")


def test_a_deleted_run_that_somebody_else_removes_meanwhile_makes_no_error(store, monkeypatch):
    kept, gone = (store.create(spec(), "me") for _ in range(2))
    for run_id in (kept, gone):
        store.delete(run_id, "me")
    here = run_bin.folder_bytes

    def removed_meanwhile(folder):
        shutil.rmtree(run_bin.aside(store.root, gone), ignore_errors=True)
        return here(folder)

    monkeypatch.setattr(run_bin, "folder_bytes", removed_meanwhile)
    assert run_bin.make_room(store.root, 1)


def test_a_server_that_sweeps_while_a_run_is_brought_back_is_told_as_gone_for_good(store, monkeypatch):
    run_id = store.create(spec(), "me")
    store.delete(run_id, "me")

    def swept(*_):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("engine.run_keeper.put_back", swept)
    for bring_back in (lambda: store.restore(run_id, "me"), lambda: store.restore_for_teacher(run_id)):
        with pytest.raises(ValueError, match="gone for good"):
            bring_back()


def test_the_teacher_can_delete_a_damaged_run(store):
    run_id = store.create(spec(), "me")
    (store.root / run_id / "run.json").write_text("{}")
    store.delete_for_teacher(run_id)
    assert store.unreadable() == []


def test_two_who_delete_a_run_at_once_are_told_in_a_sentence(store, monkeypatch):
    run_id = store.create(spec(), "me")
    folder = store.root / run_id
    monkeypatch.setattr(store, "_own", lambda *_: run_bin.put_aside(folder) or folder)
    with pytest.raises(ValueError, match="There is no run"):
        store.delete(run_id, "me")


def test_what_is_half_removed_cant_be_brought_back(store, monkeypatch):
    run_id = store.create(spec(), "me")
    store.delete(run_id, "me")
    monkeypatch.setattr(run_bin.shutil, "rmtree", lambda *_, **__: None)  # who removes it dies right here
    run_bin.sweep(store.root, undo_seconds=0)
    with pytest.raises(ValueError, match="gone for good"):
        store.restore(run_id, "me")
    monkeypatch.undo()
    run_bin.sweep(store.root)
    assert not list(store.root.iterdir())


def test_a_file_servers_clock_that_is_ahead_removes_nothing(store):
    run_id = store.create(spec(), "me")
    store.delete(run_id, "me")
    half_made = store.root / ".20300101-000000-abcdef.new"
    half_made.mkdir()
    ahead = time.time() + 30
    for folder in (half_made, run_bin.aside(store.root, run_id)):
        os.utime(folder, (ahead, ahead))
    run_bin.sweep(store.root)
    store.restore(run_id, "me")
    assert half_made.is_dir()


def test_runs_in_a_folder_that_cant_be_written_are_still_listed(store, monkeypatch):
    run_id = store.create(spec(), "me")
    other = RunStore(store.home)

    def read_only():
        raise PermissionError("read-only")

    monkeypatch.setattr(other.queue, "lock", read_only)
    monkeypatch.setattr(other.queue.workers, "_spawn", read_only)  # its log lies there as well
    other.warm()
    assert [info.id for info in other.list()] == [run_id]
    assert other.info(run_id).state == "stopped"


def test_an_active_run_is_not_deleted_even_by_the_teacher(waiting):
    run_id = waiting.start(spec(), "me")
    with pytest.raises(ValueError, match="Stop it first"):
        waiting.delete_for_teacher(run_id)
    waiting.stop_for_teacher(run_id)
    waiting.delete_for_teacher(run_id)
    waiting.restore_for_teacher(run_id)
    assert waiting.info(run_id).stopped_by_teacher
    assert f"run deleted  run={run_id} by=teacher" in plain_log.path(waiting.home).read_text()


# ---- the teacher stops


def test_the_teacher_stops_what_waits_and_its_owner_goes_on(waiting):
    first, second = waiting.start(spec(), "me"), waiting.start(spec(seed=1), "you")
    waiting.stop_for_teacher(first, second, "20200101-000000-gone00")
    for run_id in (first, second):
        info = waiting.info(run_id)
        assert (info.state, info.stopped_by_teacher, info.can_resume) == ("stopped", True, True)
    waiting.resume(first, "me")
    assert waiting.info(first).state == "queued" and not waiting.info(first).stopped_by_teacher
    waiting.stop(first, "me")
    assert not waiting.info(first).stopped_by_teacher, "this time its owner did"


def test_a_full_disk_keeps_no_teacher_from_stopping(store, monkeypatch):
    run_id = store.create(spec(), "me")
    folder = store.claim(run_id)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("engine.run_keeper.write_json", full)
    store.stop_for_teacher(run_id)
    assert (folder / "stop").exists()


def test_its_owner_reads_their_own_language_when_a_teacher_stops_it(waiting):
    run_id = waiting.start(spec(), "me")
    file = waiting.root / run_id / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "language": "es"}))
    waiting.stop_for_teacher(run_id)
    assert waiting.info(run_id).message == words("engine.run_keeper").written("taken_out_queue", "es")


def test_who_trains_it_without_a_worker_is_not_told_that_the_teacher_stopped_it(waiting):
    run_id = waiting.start(spec(), "me")
    waiting.stop_for_teacher(run_id)
    waiting.claim(run_id)
    update_status(waiting.root / run_id, state="stopped", pid=None)
    assert not waiting.info(run_id).stopped_by_teacher


def test_a_run_that_trains_is_stopped_with_a_checkpoint_and_resumes_to_its_end(store):
    run_id = store.start(spec(steps=3000, checkpoint_every=1000), "me")
    wait_for_step(store, run_id, 5)
    store.stop_for_teacher(run_id)
    info = wait_for(lambda: not store.info(run_id).active and store.info(run_id))
    assert (info.state, info.stopped_by_teacher) == ("stopped", True)
    assert store.checkpoints(run_id)[-1][0] == info.step > 5
    new_runs.let_begin(store.home, False)
    store.resume(run_id, "me")
    held = store.info(run_id)
    assert (held.state, held.held, held.queue_place, held.stopped_by_teacher) == ("queued", True, 1, False)
    new_runs.let_begin(store.home, True)
    store.pump()
    wait_for_step(store, run_id, info.step)
    store.stop(run_id, "me")
    wait_for(lambda: not store.info(run_id).active)


def test_a_finished_run_is_not_said_to_be_stopped(store):
    run_id = store.create(spec(), "me")
    train_here(store, run_id)
    before = files(store, run_id)
    store.stop_for_teacher(run_id)
    assert files(store, run_id) == before


def test_the_switch_holds_for_every_server_and_a_damaged_one_is_open(waiting):
    other = RunStore(waiting.home)
    run_id = other.start(spec(), "me")
    other.pump()
    info = other.info(run_id)
    assert (info.state, info.held, info.queue_place) == ("queued", True, 1)
    assert other.list()[0].held
    (waiting.home / new_runs.FILE).write_text("{")
    assert new_runs.may_begin(waiting.home)


# ---- sizes


def test_the_size_of_a_run_is_that_of_its_files(store, tmp_path):
    run_id = store.create(spec(), "me")
    folder = store.root / run_id
    assert store.size(run_id) == sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    large = tmp_path / "large"
    large.write_bytes(b"x" * 100_000)
    (folder / "link").symlink_to(large)
    before = store.size(run_id)
    assert before < 50_000, "a link is not what it leads to"
    train_here(store, run_id)
    assert store.size(run_id) > before
    assert store.size(run_id) == folder_bytes(folder)
    store.delete(run_id, "me")
    assert store.size(run_id) == 0


def test_the_data_folder_adds_up(store, tmp_path):
    store.create(spec(), "me")
    (store.home / "models" / "m").mkdir(parents=True)
    (store.home / "models" / "m" / "w").write_bytes(b"x" * 1000)
    (store.home / "extra").write_bytes(b"x" * 10)
    found = data_bytes(store.home)
    assert found["models"] == 1000 and found["runs"] > 0 and found["rest"] >= 10
    assert found["all"] == sum(found[name] for name in ("runs", "models", "vocab", "corpora", "rest"))


def test_what_is_kept_in_memory_of_runs_goes_with_them(store):
    run_id = store.create(spec(), "me")
    store.list(), store.size(run_id)
    assert run_id in store._sizes._kept
    store.delete(run_id, "me")
    store.queue._last_tidy = float("-inf")
    store.list()
    store.queue._last_tidy = float("-inf")
    store.list()
    assert run_id not in store._sizes._kept and run_id not in store._have_checkpoint
    assert os.listdir(store.root) == [f".{run_id}.deleted"]
