"""Runs that an exercise asks for: found among a person's own, and how far the nearest is."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.config import ModelConfig, TrainConfig
from engine.exercise import RunTask
from engine.exercise_runs import look
from tests.pages.made_runs import EVALS, MINE, make_run

MODEL = ModelConfig(vocab_size=256, context_length=16, n_layer=1, n_head=1, d_model=8)


def run(name: str, *, objective: str = "clm", kind: str = "stories", rate: float = 0.003, **more: Any) -> Any:
    return SimpleNamespace(
        **{
            "id": name, "name": name, "state": "finished", "imported": False, "start": "", "tokenizer": "bpe",
            "model": replace(MODEL, objective=objective, vocab_size=256 + (objective == "mlm")),
            "train": TrainConfig(steps=10, learning_rate=rate),
            "corpus": {"kind": kind, "sha256": "a", "val_share": 0.1},
        } | more
    )  # fmt: skip


def losses(*values: float | None, unigram: float | None = None, train: float = 1.0) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = [
        {"kind": "eval", "step": i, "val_loss": x, "train_loss": train, "bits_per_byte": x and x / 4}
        for i, x in enumerate(values)
    ]
    baseline = {"kind": "baseline", "step": 0, "uniform": 6.0, "unigram": unigram}
    return [*records[:1], baseline, {"kind": "step", "step": 1, "loss": 0.1}, *records[1:]]


def found(task: RunTask, runs: list[Any], records: dict[str, Any]) -> Any:
    return look(task, runs, lambda run_id: records[run_id])


@pytest.mark.parametrize(("name", "objective"), [("unigram", "clm"), ("masked", "mlm")])
def test_the_clearest_run_below_the_unigram_is_named_else_the_nearest(name: str, objective: str) -> None:
    runs = [run("a", objective=objective), run("b", objective=objective)]
    other = run("c", objective="mlm" if objective == "clm" else "clm")
    records = {
        "a": losses(6, 5.2, unigram=5.0),
        "b": losses(6, 5.1, unigram=5.0),
        "c": losses(0.1, unigram=5.0),
    }
    near = found(RunTask(name), [*runs, other], records)
    assert (near.done, near.note, near.name) == (False, "near", "b")
    assert near.missing == pytest.approx(0.1)
    records["a"] = losses(6, 4.5, 5.4, unigram=5.0)  # what it reached counts, not where it ended
    done = found(RunTask(name), [*runs, other], records)
    assert (done.done, done.note, done.name, done.value, done.target) == (True, "done", "a", 4.5, 5.0)


def test_without_a_run_that_fits_there_is_none() -> None:
    for name in ("unigram", "masked", "stories", "rates", "overfit"):
        assert found(RunTask(name), [], {}).note == "none"
        assert found(RunTask(name), [run("a")], {"a": []}).note == "none"
        assert not found(RunTask(name), [run("a")], {"a": losses(None, None)}).done


def test_a_run_out_of_a_file_is_not_ones_own_work() -> None:
    records = {"a": losses(3.0, unigram=5.0)}
    assert found(RunTask("unigram"), [run("a")], records).done
    assert found(RunTask("unigram"), [run("a", imported=True)], records).note == "none"
    assert found(RunTask("unigram"), [run("a", start="stories-clm")], records).note == "none"


def test_bits_per_byte_count_on_the_stories_only() -> None:
    records = {"a": losses(2.4), "b": losses(1.0)}  # 0.6 and 0.25 bits per byte
    runs = [run("a"), run("b", kind="pasted")]
    near = found(RunTask("stories", 0.5), runs, records)
    assert (near.done, near.name, near.value) == (False, "a", pytest.approx(0.6))
    assert found(RunTask("stories", 0.61), runs, records).done
    assert not found(RunTask("stories", 0.6), runs, records).done  # below it, not at it


def test_two_runs_must_differ_in_nothing_but_the_learning_rate() -> None:
    records = {"a": losses(6, 2.0), "b": losses(6, 2.5)}
    pair = [run("a", rate=0.01), run("b", rate=0.001)]
    done = found(RunTask("rates"), pair, records)
    assert (done.done, done.name, done.other, done.value, done.target) == (True, "a", "b", 2.0, 2.5)
    others: list[dict[str, Any]] = [
        {"rate": 0.01},
        {"tokenizer": "bytes"},
        {"state": "stopped"},
        {"corpus": {"kind": "stories", "sha256": "b", "val_share": 0.1}},
        {"model": replace(MODEL, n_layer=2)},
        {"train": TrainConfig(steps=20, learning_rate=0.001)},
        {"train": TrainConfig(steps=10, learning_rate=0.001, seed=1)},
    ]
    for change in others:
        assert (
            found(RunTask("rates"), [pair[0], run("b", **{"rate": 0.001, **change})], records).note == "none"
        )
    near = found(RunTask("rates"), pair, {"a": losses(6, 2.0), "b": losses(6, 2.01)})
    assert (near.done, near.note) == (False, "near") and near.missing == pytest.approx(0.01)


def test_overfitting_is_a_rise_after_the_lowest_with_the_training_loss_below() -> None:
    task, runs = RunTask("overfit", 0.1), [run("a")]
    assert found(task, runs, {"a": losses(3.0, 2.0, 2.3)}).value == pytest.approx(0.3)
    assert found(task, runs, {"a": losses(3.0, 2.0, 2.3)}).done
    assert not found(task, runs, {"a": losses(3.0, 2.0, 2.05)}).done
    assert not found(task, runs, {"a": losses(3.0, 2.0, 2.3, train=2.5)}).done
    assert not found(task, runs, {"a": losses(3.0, 2.5, 2.0)}).done


def test_the_records_of_a_real_store_are_read(tmp_path: Path) -> None:
    from engine.runs import RunStore

    baseline = {"kind": "baseline", "step": 0, "uniform": 5.5, "unigram": 3.0}
    run_id = make_run(tmp_path, records=[*EVALS, baseline])
    store = RunStore(tmp_path)
    done = look(RunTask("unigram"), store.list(MINE), store.history)
    assert (done.done, done.run_id, done.value, done.target) == (True, run_id, 2.0, 3.0)
    assert look(RunTask("unigram"), store.list("c" * 32), store.history).note == "none"
