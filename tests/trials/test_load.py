"""The class at work, at toy size; and that a broken promise is seen."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.client import Ran
from engine.folders import read_json, write_json
from engine.run_queue import RunQueue
from engine.runs import RunStore
from tests.engine.small_runs import spec, train_here
from trials import load
from trials.load import Seen
from trials.load_log import Log, line, percentile
from trials.load_people import Trainer
from trials.load_queue import Watch, damage
from trials.load_server import Standing, named
from trials.outcomes import Options


def test_toy() -> None:
    part = load.trial(Options(toy=True, people=3))
    assert part.kept, [check for check in part.checks if not check.kept]
    assert len(part.checks) == 9 and {"let a model write", "start a run"} <= set(part.figures)
    json.dumps(part.to_json())


def seen() -> Seen:
    """A class in which all went well."""
    log = Log(started={"a": "word"}, places=Counter({1: 3}))
    for _ in range(100):
        log.add("type a text", Ran(0.1, 1, 1, True), idle=True)
    watch = Watch(looks=Counter({2: 9, 1: 1}), turns=3, first_waits=[1.0])
    standing = Standing(500.0, 10, ["engine.worker"])
    return Seen(log=log, watch=watch, warm=standing, full=[600.0] * 3, after=[standing] * 3, end=standing,
                cores=[(0.5, 0.1)])  # fmt: skip


def broken(one: Seen) -> list[str]:
    return [check.what for check in load.checks(Options(), one) if not check.kept]


def test_all_is_well() -> None:
    assert broken(seen()) == []


def slow(one: Seen) -> None:
    for _ in range(6):
        one.log.add("type a text", Ran(1.5, 1, 1, True), idle=True)


def grown(one: Seen) -> None:
    one.after = [Standing(mb, 10, []) for mb in (500.0, 540.0, 590.0)]


FAULTS = {
    "is answered within 1 s": slow,
    "No page shows an error": lambda one: one.log.errors.append("ValueError: no"),
    "never more": lambda one: one.watch.looks.update({3: 1}),
    "the right one": lambda one: one.log.wrong_places.append("shown 2, was 1"),
    "Turns are fair": lambda one: one.watch.unfair.append("b"),
    "Every run": lambda one: one.damaged.update(a=["half a line"]),
    "or can be stopped": lambda one: one.still_active.append("a"),
    "Memory does not grow": grown,
    "No thread is left": lambda one: setattr(one, "end", Standing(500.0, 30, [])),
    "No process is left": lambda one: one.orphans.append("engine.worker"),
    "In a real browser": lambda one: one.screens.problems.append("/tokens: an error box"),
}


@pytest.mark.parametrize("promise", FAULTS)
def test_a_broken_promise_is_seen(promise: str) -> None:
    one = seen()
    FAULTS[promise](one)
    (what,) = broken(one)
    assert promise in what


def test_a_slow_writer_is_no_slow_click() -> None:
    one = seen()
    for _ in range(50):
        one.log.add("let a model write", Ran(9.0, 1, 1, True), idle=False)
    assert broken(one) == []


def test_percentiles() -> None:
    assert [percentile(range(1, 101), share) for share in (0.5, 0.95, 0.99, 1.0)] == [50, 95, 99, 100]
    assert percentile([7.0], 0.5) == 7.0
    assert line([1.0, 3.0])["worst ms"] == 3


# ---- runs


def test_an_unfair_turn_is_seen(tmp_path: Path) -> None:
    """Ann gets a second place while Ben, who has none, waits."""
    store = RunStore(tmp_path / "home")
    store.queue.slots = 0
    ann = store.start_many([spec(seed=seed) for seed in range(3)], "ann")
    ben = store.start(spec(seed=9), "ben")
    watch = Watch()
    watch.look(store.queue)

    def begin(run_id: str) -> None:
        file = store.root / run_id / "status.json"
        write_json(file, {**read_json(file), "state": "running", "queued_at": None})
        watch.look(store.queue)

    begin(ann[0])
    assert (watch.turns, watch.unfair) == (1, [])
    begin(ann[1])
    assert watch.turns == 2 and len(watch.unfair) == 1 and ann[1] in watch.unfair[0]
    begin(ben)
    assert watch.turns == 3 and len(watch.unfair) == 1
    assert watch.looks == {0: 1, 1: 1, 2: 1, 3: 1} and watch.longest_queue == 4


def test_damage_is_found(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "home")
    run_id = store.create(spec(), "me")
    train_here(store, run_id)
    folder = store.root / run_id
    assert damage(folder) == []
    whole = (folder / "metrics.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    without = [one for one in lines if not (b'"kind": "step"' in one and b'"step": 7,' in one)]
    assert len(without) == len(lines) - 1
    (folder / "metrics.jsonl").write_bytes(b"".join(without))
    assert "missing" in damage(folder)[0]
    (folder / "metrics.jsonl").write_bytes(whole)
    weights = next((folder / "checkpoints" / "0000030").glob("model*"))
    weights.write_bytes(weights.read_bytes()[:-1])
    assert damage(folder)


class Page:
    """A page that shows some words."""

    def __init__(self, *words: str) -> None:
        self._words = list(words)

    def words(self) -> list[str]:
        return self._words


@pytest.mark.parametrize(
    ("words", "places", "wrong"),
    [
        ("It is number 2 in the queue.", {2, 1}, False),
        ("It is number 2 in the queue.", {1}, True),
        ("It is number 1 in the queue.", {1, None}, False),
        ("running", {1, None}, False),
        ("running", {1}, True),
        ("running", {None}, False),
        ("It is number 1 in the queue.", {None}, True),
    ],
)
def test_a_wrong_place_is_seen(tmp_path: Path, words: str, places: set[int | None], wrong: bool) -> None:
    log = Log()
    trainer = Trainer("http://x", log, random.Random(1), 0.0, 1.0, queue=RunQueue(tmp_path))
    trainer.compare_place(Page("Stories", words), places)  # type: ignore[arg-type]
    assert bool(log.wrong_places) is wrong


def test_no_folder_of_this_machine_stands_in_the_report() -> None:
    assert named(b"/home/me/venv/bin/python\0-m\0engine.worker\0") == "python -m engine.worker"
    assert named(b"") == ""
    report = Path(__file__).parents[2] / "docs" / "trials.md"
    assert "/bin/python" not in report.read_text("utf-8")
    assert "/bin/python" not in report.with_suffix(".json").read_text("utf-8")
