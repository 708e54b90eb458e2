"""Several runs that belong together: started at once, stopped at once, listed by their experiment."""

import threading
from dataclasses import replace

import pytest

from engine.folders import read_json
from engine.run_folder import make_folder
from engine.runs import RunStore, update_status
from tests.engine.small_runs import TEXT, spec, train_here


def seeds(n, group="seeds", **changes):
    return [
        replace(spec(seed=s, **changes), group=group, label=f"seed {s}", also_scored={"x": TEXT[:99]})
        for s in range(n)
    ]


@pytest.fixture
def waiting(store, monkeypatch):
    """A store in which every run has to wait."""
    monkeypatch.setattr(store.queue, "slots", 0)
    return store


def test_a_set_is_started_in_its_order(waiting):
    ids = waiting.start_many(seeds(3), "me")
    infos = [waiting.info(i) for i in ids]
    assert [i.queue_place for i in infos] == [1, 2, 3]
    assert [(i.train.seed, i.label, i.group) for i in infos] == [(s, f"seed {s}", "seeds") for s in range(3)]
    assert {i.also_scored for i in infos} == {("x",)}
    assert (waiting.root / ids[0] / "also").is_dir()


def test_all_or_none(waiting):
    with pytest.raises(ValueError, match="a row needs 65"):
        waiting.start_many([*seeds(2), spec(text=TEXT[:40], context=64)], "me")
    assert waiting.list() == []


def test_none_is_left_of_a_set_that_fills_the_disk(waiting, monkeypatch):
    made = []

    def full_in_the_end(*given):
        if len(made) == 2:
            raise OSError(28, "No space left on device")
        made.append(make_folder(*given))
        return made[-1]

    monkeypatch.setattr("engine.runs.make_folder", full_in_the_end)
    with pytest.raises(ValueError, match="is full"):
        waiting.start_many(seeds(3), "me")
    assert len(made) == 2 and waiting.list() == [] and list(waiting.root.iterdir()) == []


def test_the_same_set_again_is_that_set(waiting):
    first = waiting.start_many(seeds(3), "me")
    assert waiting.start_many(seeds(3), "me") == first
    train_here(waiting, first[1])  # one of them has ended meanwhile
    assert waiting.start_many(seeds(3), "me") == first
    assert waiting.start_many(list(reversed(seeds(3))), "me") == first[::-1]
    assert set(waiting.start_many(seeds(3), "you")).isdisjoint(first)
    assert set(waiting.start_many(seeds(3, group="other"), "me")).isdisjoint(first)
    for run_id in (first[0], first[2]):
        waiting.stop(run_id, "me")
    assert set(waiting.start_many(seeds(3), "me")).isdisjoint(first)  # it was over


def test_a_larger_set_keeps_what_is_active(waiting):
    first = waiting.start_many(seeds(2), "me")
    assert waiting.start_many(seeds(4), "me")[:2] == first
    assert len(waiting.list()) == 4


def test_many_clicks_at_once_are_one_set(waiting, monkeypatch):
    stores, found = [waiting, RunStore(waiting.home)], []
    stores[1].queue.slots = 0
    click = [lambda s=s: found.append(tuple(s.start_many(seeds(3), "me"))) for s in stores * 3]
    threads = [threading.Thread(target=c) for c in click]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1 and len(found) == 6
    assert len(waiting.list()) == 3


def test_the_texts_are_counted_once(waiting, monkeypatch):
    specs, counted = seeds(4), []
    encode = type(specs[0].tokenizer).encode
    monkeypatch.setattr(
        type(specs[0].tokenizer), "encode", lambda self, text: counted.append(len(text)) or encode(self, text)
    )
    waiting.start_many(specs, "me")
    assert len(counted) == 3  # training text, validation text, the further text


def test_a_set_is_stopped_and_listed_by_its_name(waiting):
    ids = waiting.start_many(seeds(3), "me")
    alone = waiting.start(spec(), "me")
    theirs = waiting.start_many(seeds(2), "you")
    assert {i.id for i in waiting.list("me", group="seeds")} == set(ids)
    assert {i.id for i in waiting.list(group="seeds")} == {*ids, *theirs}
    assert [i.id for i in waiting.list("me", group="")] == [alone]
    update_status(waiting.root / ids[0], state="running")
    waiting.stop_group("seeds", "me")
    assert (waiting.root / ids[0] / "stop").exists()
    assert [read_json(waiting.root / i / "status.json")["state"] for i in ids[1:]] == ["stopped"] * 2
    assert [i.state for i in waiting.list("you")] == ["queued"] * 2
    assert waiting.info(alone).state == "queued"
    with pytest.raises(ValueError, match="Name the experiment"):
        waiting.stop_group("", "me")


@pytest.mark.parametrize("how", ["owner", "teacher"])
def test_on_a_full_disk_those_at_work_are_stopped_though_one_that_waits_cant_be(waiting, monkeypatch, how):
    ids = waiting.start_many(seeds(3), "me")
    update_status(waiting.root / ids[2], state="running")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("engine.run_keeper.update_status", full)
    with pytest.raises(ValueError, match="is full"):
        waiting.stop_group("seeds", "me") if how == "owner" else waiting.stop_for_teacher(*ids)
    assert (waiting.root / ids[2] / "stop").exists()


def test_a_damaged_run_does_not_stop_the_others(waiting):
    ids = waiting.start_many(seeds(2), "me")
    (waiting.root / ids[0] / "run.json").write_text("{")
    waiting.stop_group("seeds", "me")
    assert waiting.info(ids[1]).state == "stopped"
