"""Pause, one step, and what becomes of the process that waits meanwhile."""

import os
import signal
import threading

import pytest

from engine import run_session, worker
from engine.checkpoints import load_checkpoint
from engine.folders import read_json
from engine.run_info import PAUSE, pause_step
from engine.runs import RunStore
from tests.engine.small_runs import (
    losses,
    of_kind,
    same_weights,
    spec,
    train_here,
    wait_for,
    wait_for_step,
)


def state_is(store, run_id, state, step=None):
    def reached():
        info = store.info(run_id)
        return info.state == state and (step is None or info.step == step) and info

    return wait_for(reached)


def pid_of(store, run_id):
    return read_json(store.root / run_id / "status.json").get("pid")


# ---- in this process: a thread trains, as a worker does


@pytest.fixture
def begin(store):
    """Train a run in a thread of this process; gives the thread."""
    threads = []

    def start(run_id, pause=None):
        folder = store.claim(run_id)
        if pause is not None:
            (folder / PAUSE).write_text(str(pause))
        thread = threading.Thread(target=worker.run_folder, args=(folder, lambda text: None))
        thread.start()
        threads.append(thread)
        return thread

    yield start
    for info in store.list():
        (info.folder / "stop").touch()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_five_single_steps_are_a_run_of_five_steps_bit_for_bit(store, begin):
    changes = {"steps": 5, "eval_every": 2, "schedule": "constant"}
    whole, parts = store.create(spec(**changes), "me"), store.create(spec(**changes), "me")
    train_here(store, whole)
    thread = begin(parts, pause=0)
    state_is(store, parts, "paused", 0)
    for step in range(1, 5):
        store.step(parts, "me")
        info = state_is(store, parts, "paused", step)
        assert info.active and info.can_step and info.can_resume and info.eta_s is None
        assert info.message == f"Paused at step {step}."
        evals = [r["step"] for r in of_kind(store.history(parts), "eval")]
        assert evals == list(range(0, step + 1, 2))  # the evaluation of a step comes before the pause
    store.step(parts, "me")
    thread.join(60)
    assert store.info(parts).state == "finished"
    assert losses(store, parts) == losses(store, whole)
    assert same_weights(store, parts, whole)


def test_pause_and_go_on(store, begin):
    run_id = store.create(spec(steps=100_000, checkpoint_every=100_000), "me")
    begin(run_id)
    wait_for_step(store, run_id, 60)
    with pytest.raises(ValueError, match="is running. Pause it first"):
        store.step(run_id, "me")
    store.pause(run_id, "me")
    step = state_is(store, run_id, "paused").step
    store.pause(run_id, "me")  # once more changes nothing
    assert step >= 60 and store.info(run_id).step == step
    wait_for(lambda: store.checkpoints(run_id))  # a pause of half a second is a moment that is kept
    assert load_checkpoint(store.latest_checkpoint(run_id)).step == step
    assert of_kind(store.history(run_id), "step")[-1]["step"] <= step
    store.resume(run_id, "me")
    wait_for_step(store, run_id, step + 5)
    assert store.info(run_id).state == "running"
    store.stop(run_id, "me")
    state_is(store, run_id, "stopped")
    assert pause_step(store.root / run_id) is None


def test_clicks_on_one_step_add_up(store, begin):
    run_id = store.create(spec(), "me")
    begin(run_id, pause=0)
    state_is(store, run_id, "paused", 0)
    for _ in range(3):
        store.step(run_id, "me")
    store.step(run_id, "me", n=4)
    state_is(store, run_id, "paused", 7)
    with pytest.raises(ValueError, match="1 step or more, not 0"):
        store.step(run_id, "me", n=0)


def test_it_leaves_when_nothing_comes(store, begin, monkeypatch):
    monkeypatch.setattr(run_session, "LINGER_SECONDS", 0.2)
    run_id = store.create(spec(), "me")
    begin(run_id, pause=3).join(60)
    info = store.info(run_id)
    assert (info.state, info.step) == ("stopped", 3)
    assert info.message == "Stopped at step 3. It can go on from there."
    assert [step for step, _ in store.checkpoints(run_id)] == [3]
    assert pid_of(store, run_id) is None


def test_it_leaves_when_another_run_waits_for_its_place(store, begin, monkeypatch):
    monkeypatch.setattr(store.queue, "slots", 1)
    monkeypatch.setattr(store.queue, "_launch", lambda folder: pytest.fail("there was no place for it"))
    run_id = store.create(spec(), "me")
    thread = begin(run_id, pause=3)
    state_is(store, run_id, "paused", 3)
    other = store.start(spec(name="Waits", seed=9), "you")
    assert store.info(other).queue_place == 1
    thread.join(60)
    assert not thread.is_alive()
    assert store.info(run_id).state == "stopped"
    store.stop(other, "you")


def test_a_click_at_the_last_moment_keeps_it(store, begin, monkeypatch):
    """The worker has made up its mind to leave, and a step is asked for before it says so."""
    monkeypatch.setattr(run_session, "LINGER_SECONDS", 0.0)
    run_id = store.create(spec(), "me")
    keep = run_session.Run._keep
    asked = []

    def late(self):
        if not asked:
            asked.append(store.step(run_id, "me"))
        keep(self)

    monkeypatch.setattr(run_session.Run, "_keep", late)
    begin(run_id, pause=3).join(60)
    assert (store.info(run_id).state, store.info(run_id).step) == ("stopped", 4)
    assert [step for step, _ in store.checkpoints(run_id)] == [3, 4]


def test_deleted_while_it_waits(store, begin):
    run_id = store.create(spec(), "me")
    thread = begin(run_id, pause=3)
    state_is(store, run_id, "paused", 3)
    with pytest.raises(PermissionError):
        store.delete(run_id, "you")
    store.delete(run_id, "me")
    thread.join(60)
    assert not thread.is_alive()
    assert [p.name for p in store.root.iterdir()] == [f".{run_id}.deleted"] and store.list() == []


def test_a_paused_run_that_was_deleted_comes_back_at_the_step_it_had(store, begin, monkeypatch):
    monkeypatch.setattr(run_session, "KEEP_SECONDS", 60.0)
    run_id = store.create(spec(), "me")
    begin(run_id, pause=3)
    state_is(store, run_id, "paused", 3)
    store.delete(run_id, "me")
    store.restore(run_id, "me")
    assert [step for step, _ in store.checkpoints(run_id)][-1] == store.info(run_id).step == 3


def test_more_steps_for_a_paused_run_change_its_schedule(store, begin):
    """The learning rate falls towards the new end, so the process that knew the old one must go."""
    run_id, whole = store.create(spec(), "me"), store.create(spec(steps=40), "me")
    thread = begin(run_id, pause=10)
    state_is(store, run_id, "paused", 10)
    store.queue.slots = 0  # nobody else may take it
    store.resume(run_id, "me", steps=40)
    thread.join(60)
    assert (store.info(run_id).state, store.info(run_id).steps) == ("queued", 40)
    assert train_here(store, run_id).state == "finished"
    train_here(store, whole)
    longer, at_once = (
        [r["learning_rate"] for r in of_kind(store.history(i), "step") if r["step"] > 10]
        for i in (run_id, whole)
    )
    assert longer == at_once and len(longer) == 30


def test_starting_the_same_again_goes_on_with_it(store, begin):
    run_id = store.create(spec(steps=100_000), "me")
    begin(run_id, pause=5)
    state_is(store, run_id, "paused", 5)
    assert store.start(spec(steps=100_000), "me") == run_id
    wait_for_step(store, run_id, 6)


def test_one_in_the_queue_leaves_it(store, monkeypatch):
    monkeypatch.setattr(store.queue, "slots", 0)
    run_id = store.start(spec(), "me")
    store.pause(run_id, "me")
    assert store.info(run_id).state == "stopped"
    store.pause(run_id, "me")  # not active: left alone
    assert store.info(run_id).state == "stopped" and pause_step(store.root / run_id) is None


def test_only_the_owner_may(store):
    run_id = store.create(spec(), "mine")
    for change in (store.pause, store.step):
        with pytest.raises(PermissionError, match="belongs to somebody else"):
            change(run_id, "yours")
        with pytest.raises(ValueError, match="no run"):
            change("no-such-run", "mine")


def test_a_finished_run_has_no_step_left(store):
    run_id = store.create(spec(steps=10), "me")
    train_here(store, run_id)
    with pytest.raises(ValueError, match="has done 10 of 10 steps"):
        store.step(run_id, "me")
    assert not store.info(run_id).can_step


# ---- with real workers


def test_a_step_from_a_stopped_run_and_a_worker_killed_while_it_waits(store):
    """From nothing, one step; two servers on one home; kill -9 in the pause; on to the very same losses."""
    changes = {"steps": 12, "eval_every": 4, "checkpoint_every": 50}
    run_id, whole = store.create(spec(**changes), "me"), store.create(spec(**changes), "me")
    train_here(store, whole)
    other = RunStore(store.home)
    store.step(run_id, "me")
    state_is(store, run_id, "paused", 1)
    pid = pid_of(store, run_id)
    other.step(run_id, "me", n=2)
    state_is(store, run_id, "paused", 3)
    assert pid_of(store, run_id) == pid  # the same process, its model still in memory
    wait_for(lambda: store.checkpoints(run_id)[-1:] and store.checkpoints(run_id)[-1][0] == 3)
    os.kill(pid, signal.SIGKILL)
    info = wait_for(lambda: (i := other.info(run_id)).state == "failed" and i)
    assert "was killed" in info.message and info.message.endswith("It can go on from step 3.")
    other.step(run_id, "me")
    state_is(other, run_id, "paused", 4)
    assert pid_of(store, run_id) != pid
    store.resume(run_id, "me")
    state_is(store, run_id, "finished", 12)
    assert losses(store, run_id) == losses(store, whole)
    assert same_weights(store, run_id, whole)
    other.close()


def test_ten_clicks_from_two_servers_never_make_two_workers(store, monkeypatch):
    run_id = store.create(spec(steps=1000), "me")
    stores, launched = [store, RunStore(store.home)], []
    for one in stores:
        launch = one.queue._launch
        monkeypatch.setattr(
            one.queue, "_launch", lambda folder, launch=launch: (launched.append(folder), launch(folder))
        )
    threads = [threading.Thread(target=s.step, args=(run_id, "me")) for s in stores * 5]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    state_is(store, run_id, "paused", 10)
    assert len(launched) == 1
    store.stop(run_id, "me")
    state_is(store, run_id, "stopped", 10)
    stores[1].close()
