"""What goes wrong outside the program: full disks, closed folders, dead workers, power cuts, clocks."""

import builtins
import errno
import os
import time

import pytest

from engine import dead_runs, folders, processes, retention, run_bin, run_session
from engine.checkpoint_list import list_checkpoints, newest_checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.folders import NotKept, read_json, room_problem, told, why_not
from engine.progress import ProgressStore
from engine.records import Metrics, read_records
from engine.run_info import update_status
from engine.runs import RunStore
from tests.engine.small_runs import losses, same_weights, spec, train_here

FULL = OSError(errno.ENOSPC, "No space left on device")
DEAD = {"pid": 99_999_999, "mark": "1"}


@pytest.fixture
def full_disk(monkeypatch):
    """Fill it: nothing more can be written."""

    def refuse(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    def fill():
        for module in ("run_info", "runs", "run_folder"):
            monkeypatch.setattr(f"engine.{module}.write_json", refuse)

    return fill


def half_done(store, steps=10):
    """A run with a checkpoint, whose worker is said to be at work and is not there."""
    run_id = store.create(spec(steps=steps), "me")
    train_here(store, run_id)
    update_status(store.root / run_id, state="running", message="", step=steps, **DEAD)
    return run_id


# ---- words


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "is full"),
        (errno.EROFS, "can’t be written to"),
        (errno.EACCES, "can’t be written to"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_what_a_folder_refuses_becomes_a_sentence_with_a_way_out(number, words):
    with pytest.raises(NotKept, match=words) as caught, told():
        raise OSError(number, os.strerror(number), "/some/path")
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, OSError)
    assert "/some/path" not in str(caught.value) and "Errno" not in str(caught.value)
    assert str(caught.value) == why_not(OSError(number, os.strerror(number)))


def test_a_sentence_stays_as_it_is():
    with pytest.raises(PermissionError, match="^somebody else's$"), told():
        raise PermissionError("somebody else's")


def test_it_is_said_beforehand_that_nothing_can_be_kept(tmp_path, monkeypatch):
    assert room_problem(tmp_path) == "" == room_problem(tmp_path / "not" / "made" / "yet")
    monkeypatch.setattr(folders, "LEAST_FREE", 2**62)
    assert "is full" in room_problem(tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "can’t be written to" in room_problem(tmp_path)


def test_progress_that_cant_be_kept_is_a_sentence(tmp_path, monkeypatch):
    store = ProgressStore(tmp_path)
    store.pass_lesson("me", "tokens")

    def refuse(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("engine.progress.write_json", refuse)
    with pytest.raises(NotKept, match="is full"):
        store.pass_lesson("me", "vectors")
    assert list(store.read("me").lessons) == ["tokens"]


# ---- a dead worker on a full disk


def test_a_dead_run_on_a_full_disk_is_seen_and_goes_on_once_there_is_room(store, full_disk, monkeypatch):
    run_id = half_done(store)
    full_disk()
    info = store.info(run_id)
    assert (info.state, info.can_resume) == ("failed", True)
    assert "was killed" in info.message and "step 10" in info.message
    assert store.list()[0].state == "failed"
    assert read_json(store.root / run_id / "status.json")["state"] == "running", (
        "it could not be written down"
    )
    with pytest.raises(ValueError, match="is full"):
        store.resume(run_id, "me", steps=12)
    with pytest.raises(ValueError, match="is full"):
        store.start(spec(seed=7), "me")
    assert [p.name for p in store.root.iterdir()] == [run_id], "no half of a run is left"
    monkeypatch.undo()  # room is made
    store.claim(run_id)
    assert read_json(store.root / run_id / "status.json")["state"] == "starting"


def test_a_dead_run_on_a_full_disk_can_be_deleted_to_make_room(store, full_disk):
    run_id = half_done(store)
    full_disk()
    store.delete(run_id, "me")
    assert store.list() == []


def test_a_folder_that_cant_be_made_has_no_runs(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    store = RunStore(tmp_path / "home")
    assert store.list() == [] == store.unreadable()
    with pytest.raises(ValueError, match="can’t be written to"):
        store.start(spec(), "me")


def test_a_worker_that_has_just_ended_was_not_killed(store, monkeypatch):
    """It writes its last words and is gone, between a page's look at its status and at its process."""
    run_id = half_done(store)
    folder = store.root / run_id
    old = read_json(folder / "status.json")

    def ends(status):
        update_status(folder, state="finished", pid=None)
        return False

    monkeypatch.setattr(dead_runs, "worker_lives", ends)
    assert dead_runs.dead_status(folder, old) is None
    assert store.info(run_id).state == "finished"


@pytest.mark.parametrize("content", [b"", b"\0" * 300, b'{"state": "runn'])
def test_after_a_power_cut_a_run_without_a_status_is_listed_and_goes_on(store, content):
    changes = {"steps": 20, "checkpoint_every": 5}
    run_id, whole = store.create(spec(**changes), "me"), store.create(spec(**changes), "me")
    for one in (run_id, whole):
        train_here(store, one)
    (store.root / run_id / "status.json").write_bytes(content)
    info = RunStore(store.home).info(run_id)
    assert (info.state, info.step, info.can_resume) == ("failed", 20, True)
    assert "was lost" in info.message and "It can go on from step 20." in info.message
    assert store.unreadable() == []
    train_here(store, run_id)
    assert losses(store, run_id) == losses(store, whole) and same_weights(store, run_id, whole)


# ---- the worker itself


def test_a_full_disk_is_told_as_such_not_as_a_number():
    config, model = TrainConfig(), ModelConfig(vocab_size=8)
    said = run_session.describe(FULL, config, model)
    assert said.startswith("Training had to stop. The disk") and "Errno" not in said


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("can't start new thread"),
    ],
)
def test_too_little_memory_is_told_with_a_smaller_size(error):
    said = run_session.describe(error, TrainConfig(batch_size=64), ModelConfig(vocab_size=8))
    assert "not enough memory" in said and "Try batch_size 16" in said


def test_the_last_words_of_a_run_fit_on_a_full_disk(store, monkeypatch):
    """A little room was kept, and is given back before they are written."""
    run_id = store.create(spec(), "me")
    folder = store.claim(run_id)
    run = run_session.Run(folder, lambda text: None)
    assert (folder / run_session.SPARE).stat().st_size == run_session.SPARE_BYTES
    close, seen = run.status.close, []
    monkeypatch.setattr(
        run.status,
        "close",
        lambda **said: (seen.append((folder / run_session.SPARE).exists()), close(**said)),
    )
    run.fail(FULL)
    run.release()
    assert seen == [False]
    assert "is full" in read_json(folder / "status.json")["message"]


def test_a_metrics_file_on_a_full_disk_closes_and_goes_on(tmp_path, monkeypatch):
    metrics = Metrics(tmp_path / "metrics.jsonl")
    metrics.write("resume", 1)
    metrics.keep()

    def refuse():
        raise OSError(errno.ENOSPC, "No space left on device")

    class Full:
        close = staticmethod(refuse)

    file = metrics._file
    monkeypatch.setattr(metrics, "_file", Full())
    metrics.close()
    file.write('{"kind": "resume", "st')  # as much as went in
    file.close()
    after = Metrics(tmp_path / "metrics.jsonl")
    after.write("resume", 2)
    after.close()
    assert [r["step"] for r in read_records(tmp_path / "metrics.jsonl")[0]] == [1, 2]


def test_a_curve_is_on_the_disk_before_its_checkpoint(store, monkeypatch):
    """After a power cut a run must not go on from a step to which no curve leads."""
    order = []
    monkeypatch.setattr(Metrics, "keep", lambda self: order.append("curve"))
    save = run_session.save_checkpoint
    monkeypatch.setattr(run_session, "save_checkpoint", lambda *a: (order.append("checkpoint"), save(*a)))
    run_id = store.create(spec(steps=10), "me")
    train_here(store, run_id)
    assert order == ["curve", "checkpoint"]


def test_the_newest_checkpoint_is_found_where_its_writer_died_while_it_was_replaced(store):
    run_id = store.create(spec(steps=10, checkpoint_every=5), "me")
    train_here(store, run_id)
    newest = newest_checkpoint(store.root / run_id)[1]
    os.replace(newest, newest.with_name(f".{newest.name}.old"))
    assert newest_checkpoint(store.root / run_id) == (10, newest)


def test_a_reader_who_puts_an_old_checkpoint_back_does_not_stop_its_writer(tmp_path, monkeypatch):
    """The writer is between its two steps: the reader believes that it died there."""
    parent, replace = tmp_path / "checkpoints", os.replace
    folder = parent / "0000010"
    folders.write_folder(folder, {"a": b"old"})

    def watched(old, new):
        if new == folder and old.name.startswith(".0000010.new"):
            list_checkpoints(tmp_path)
            monkeypatch.undo()
        replace(old, new)

    monkeypatch.setattr(os, "replace", watched)
    folders.write_folder(folder, {"a": b"new"})
    assert (folder / "a").read_bytes() == b"new"
    assert [path.name for path in parent.iterdir()] == ["0000010"]


def test_a_folder_that_cant_take_its_place_raises_and_the_old_one_stays(tmp_path, monkeypatch):
    folder, replace = tmp_path / "a", os.replace
    folders.write_folder(folder, {"a": b"old"})

    def refuse(old, new):
        if ".new-" in str(old):
            raise OSError(errno.EIO, "Input/output error")
        replace(old, new)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="Input/output"):
        folders.write_folder(folder, {"a": b"new"})
    folders.recover(folder)
    assert (folder / "a").read_bytes() == b"old"


def test_a_curve_that_cant_be_read_for_a_moment_has_no_step_twice(store, monkeypatch):
    run_id = store.create(spec(steps=10), "me")
    train_here(store, run_id)
    whole, opened = store.history(run_id), builtins.open

    def too_many(*_, **__):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(builtins, "open", too_many)
    assert store.history(run_id) == whole
    monkeypatch.setattr(builtins, "open", opened)
    assert store.history(run_id) == whole
    file = store.root / run_id / "metrics.jsonl"
    content = file.read_bytes()
    file.unlink()
    assert store.history(run_id) == []
    file.write_bytes(content)
    assert store.history(run_id) == whole


@pytest.mark.parametrize("pid", ["a\0b", "self/status", "self", -1, True, 1.5, [1], {}, 10**400])
def test_a_status_with_an_odd_process_is_that_of_a_dead_run(store, pid):
    run_id = store.create(spec(), "me")
    update_status(store.root / run_id, state="running", pid=pid, mark="1")
    assert [info.state for info in store.list()] == ["failed"]


def test_a_niceness_that_is_no_number_leaves_no_worker_behind(monkeypatch):
    monkeypatch.setenv("LOUPE_NICE", "low")
    assert processes.wanted_niceness() == processes.NICENESS
    processes.yield_to_others(DEAD["pid"])


# ---- clocks


def test_a_clock_that_is_set_back_takes_no_deleted_run_away(store, monkeypatch):
    run_id = store.create(spec(), "me")
    store.delete(run_id, "me")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 2 * run_bin.UNDO_SECONDS)
    RunStore(store.home)
    store.restore(run_id, "me")
    assert store.info(run_id).state == "stopped"


def test_a_heartbeat_is_judged_by_no_clock_that_can_be_set(monkeypatch):
    """Where a system can't tell whether a process lives, such as Windows."""
    monkeypatch.setattr(processes, "process_mark", lambda pid: None)
    ticks = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: ticks[0])
    status = {"pid": 4711, "mark": "", "updated": time.time() - 10 * 365 * 86_400}
    assert processes.worker_lives(status), "seen for the first time"
    ticks[0] += processes.STALE_SECONDS - 1
    assert processes.worker_lives(status)
    ticks[0] += 2
    assert not processes.worker_lives(status)
    assert processes.worker_lives({**status, "updated": 5.0}), "a beat, whatever its time"


def test_half_written_files_of_all_kinds_are_removed_after_a_day(tmp_path):
    left = [tmp_path / "predictions", tmp_path / "vocab" / "own" / "abc", tmp_path / "people"]
    for folder in left:
        folder.mkdir(parents=True)
        (folder / ".x.json.4711-12345").write_bytes(b"{")
        os.utime(folder / ".x.json.4711-12345", (0, 0))
    retention.tidy(tmp_path)
    assert [list(folder.iterdir()) for folder in left] == [[], [], []]


def test_a_run_that_was_killed_is_named_with_a_smaller_size(store):
    run_id = half_done(store)
    message = store.info(run_id).message
    assert "memory" in message and "smaller model" in message
