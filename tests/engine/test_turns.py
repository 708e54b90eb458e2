"""Whose run is next: fair turns between people, and a queue that many runs don't make slow."""

import json
import os
import random
from collections import Counter
from pathlib import Path

import pytest

from engine.folders import read_json
from engine.owners import owner_hash
from engine.run_info import update_status
from engine.runs import RunStore
from engine.turns import Turn, in_turn
from tests.engine.small_runs import spec


def waiting(*runs: str, since: float = 1.0) -> list[Turn]:
    """Runs such as "ann1", asked for one second after the other."""
    return [Turn(run, run.rstrip("0123456789"), "waiting", since + n) for n, run in enumerate(runs)]


def test_alone_ones_runs_start_as_they_were_asked_for() -> None:
    assert in_turn(reversed(waiting("ann1", "ann2", "ann3"))) == ["ann1", "ann2", "ann3"]


def test_everybodys_first_run_comes_before_anybodys_second() -> None:
    turns = waiting("ann1", "ann2", "ann3", "ben1", "ben2", "cleo1")
    assert in_turn(turns) == ["ann1", "ben1", "cleo1", "ann2", "ben2", "ann3"]


def test_a_run_at_work_counts_as_ones_first() -> None:
    turns = [Turn("ann0", "ann", "at work", 0.0), *waiting("ann1", "ann2", "ben1", "ben2")]
    assert in_turn(turns) == ["ben1", "ann1", "ben2", "ann2"]


def test_who_had_a_place_a_moment_ago_waits_behind_who_had_none() -> None:
    """Ann asked for all her runs before Ben, but one of them has just ended."""
    turns = [Turn("ann0", "ann", "left", 9.0), *waiting("ann1", "ann2", "ben1")]
    assert in_turn(turns) == ["ben1", "ann1", "ann2"]
    earlier = [Turn("ann0", "ann", "left", 0.5), *waiting("ann1", "ann2", "ben1")]
    assert in_turn(earlier) == ["ann1", "ben1", "ann2"]


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_nobody_starves(slots: int) -> None:
    """Ann always has five runs in the queue; all others have one now and then, and wait for few turns."""
    dice = random.Random(slots)
    turns, at_work, started, asked_at = list[Turn](), list[Turn](), Counter[str](), dict[str, int]()
    waits = []
    for now in range(400):
        n_ann = sum(turn.owner == "ann" and turn.state == "waiting" for turn in turns)
        news = [("ann", f"ann{now}-{n}") for n in range(5 - n_ann)]
        news += [("ben", f"ben{now}")] if dice.random() < 0.3 else []
        for owner, run in news:
            turns.append(Turn(run, owner, "waiting", float(now)))
            asked_at[run] = now
        if len(at_work) == slots:
            ended = at_work.pop(dice.randrange(slots))
            turns.remove(ended)
            turns.append(Turn(ended.run_id, ended.owner, "left", now + 0.5))
        while len(at_work) < slots and (order := in_turn(turns)):
            chosen = next(turn for turn in turns if turn.run_id == order[0])
            turns.remove(chosen)
            at_work.append(Turn(chosen.run_id, chosen.owner, "at work", 0.0))
            turns.append(at_work[-1])
            started[chosen.owner] += 1
            if chosen.owner == "ben":
                waits.append(now - asked_at[chosen.run_id])
    assert started["ben"] > 80 and started["ann"] > 80
    assert sorted(waits)[len(waits) // 2] <= 2


# ---- with run folders


@pytest.fixture
def full(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    """A store in which every run has to wait."""
    monkeypatch.setattr(store.queue, "slots", 0)
    return store


def test_places_on_the_pages_follow_the_turns(full: RunStore) -> None:
    ann = full.start_many([spec(seed=seed) for seed in range(3)], "ann")
    ben = full.start(spec(seed=9), "ben")
    assert [full.info(run).queue_place for run in (*ann, ben)] == [1, 3, 4, 2]
    assert {i.id: i.queue_place for i in full.list("ann")} == dict(zip(ann, (1, 3, 4), strict=True))
    assert full.queue.waiting() == [ann[0], ben, ann[1], ann[2]]


def test_a_run_that_left_its_place_lets_others_first(full: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `_launch` and a worker leave the status of a run that had a place; a cancelled one had none."""
    ann = full.start_many([spec(seed=seed) for seed in range(3)], "ann")
    ben = full.start(spec(seed=9), "ben")
    update_status(full.root / ann[0], state="running", pid=os.getpid(), queued_at=None)
    monkeypatch.setattr("engine.run_queue.worker_lives", lambda status: True)
    assert full.queue.waiting() == [ben, ann[1], ann[2]]
    update_status(full.root / ann[0], state="finished", pid=None)
    assert full.queue.waiting() == [ben, ann[1], ann[2]]  # it has just ended, after Ben asked
    full.stop(ann[1], "ann")
    cleo = full.start(spec(seed=5), "cleo")
    full.stop(full.start(spec(seed=6), "cleo"), "cleo")
    assert full.queue.waiting() == [ben, ann[2], cleo]


def test_a_launched_run_has_no_time_of_queueing(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    class Worker:
        pid = os.getpid()

    monkeypatch.setattr(store.queue.workers, "take", Worker)
    monkeypatch.setattr(store.queue.workers, "send", lambda worker, folder: None)
    run_id = store.start(spec(), "me")
    status = read_json(store.root / run_id / "status.json")
    assert (status["state"], status["queued_at"]) == ("starting", None)


# ---- many runs


def test_other_peoples_runs_are_not_read_for_ones_own_list(full: RunStore, monkeypatch) -> None:
    for seed in range(4):
        full.start(spec(seed=seed), f"person {seed}")
    full.list("person 1")
    looked: list[str] = []
    read = full.queue.json.read
    monkeypatch.setattr(full.queue.json, "read", lambda path: looked.append(str(path)) or read(path))
    monkeypatch.setattr(full.queue, "places", lambda: {})
    monkeypatch.setattr(full.queue, "refresh", lambda *ids: False)
    (mine,) = full.list("person 1")
    assert {Path(path).parent.name for path in looked} == {mine.id}


def test_lists_see_runs_come_and_go_at_once(full: RunStore) -> None:
    seen = [len(full.list("me"))]
    ids = []
    for seed in range(3):
        ids.append(full.start(spec(seed=seed), "me"))
        seen.append(len(full.list("me")))
    full.stop(ids[0], "me")
    full.delete(ids[0], "me")
    seen.append(len(full.list("me")))
    full.restore(ids[0], "me")
    seen.append(len(full.list("me")))
    assert seen == [0, 1, 2, 3, 2, 3]
    other = RunStore(full.home)  # such as another server on the same folder
    other.queue.slots = 0
    new = other.start(spec(seed=7), "me")
    assert new in {info.id for info in full.list("me")}
    other.close()


def test_a_folder_that_is_still_being_copied_is_listed_once_it_is_whole(full: RunStore) -> None:
    run_id = full.start(spec(), "me")
    settings = (full.root / run_id / "run.json").read_text()
    (full.root / run_id / "run.json").unlink()
    os.utime(full.root, (1_000_000_000, 1_000_000_000))  # nothing has come or gone since long ago
    assert full.queue.ids() == []
    (full.root / run_id / "run.json").write_text(settings)
    assert full.queue.ids() == [run_id]


def test_what_is_known_of_deleted_runs_is_forgotten(full: RunStore) -> None:
    ids = [full.start(spec(seed=seed), "me") for seed in range(2)]
    full.list("me")
    for run_id in ids:
        full.history(run_id)
        full.stop(run_id, "me")
    full.delete(ids[0], "me")
    full.queue._last_tidy = float("-inf")
    full.list("me")
    assert set(full.queue._owners) == set(full._configs) == set(full._histories) == {ids[1]}
    assert not [name for name in full.queue.json._kept if ids[0] in name]


def test_settings_are_checked_once_while_run_json_stays(full: RunStore, monkeypatch) -> None:
    run_id = full.start(spec(), "me")
    file = full.root / run_id / "run.json"
    os.utime(file, (1_000_000_000, 1_000_000_000))
    first = full.info(run_id)
    assert full.info(run_id).train is first.train
    run = json.loads(file.read_text())
    run["train"]["steps"] += 5
    file.write_text(json.dumps(run))
    assert full.info(run_id).train.steps == first.train.steps + 5
    file.write_text(json.dumps({**run, "train": {}, "owner": owner_hash("me")}))
    with pytest.raises(ValueError):
        full.info(run_id)
