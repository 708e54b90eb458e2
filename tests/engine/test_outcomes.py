"""Outcomes: their numbers, the file they travel in, and predictions that stay."""

import json
import math
from pathlib import Path

import pytest

import wording
from engine.config import ModelConfig, TrainConfig
from engine.experiments import STUDIES, labels
from engine.outcomes import MOST_STEPS, Outcome, label_name, newest, read_shipped, to_json
from engine.predictions import Predictions

RECORDS = [
    {"kind": "eval", "step": 0, "train_loss": 6.0, "val_loss": 6.1, "bits_per_byte": 2.0},
    *({"kind": "step", "step": s, "loss": 5.0, "grad_norm": 1.0} for s in range(1, 501)),
    {"kind": "sample", "step": 500, "text": "x"},
    {"kind": "floor", "step": 10, "value": 0.25},
    {"kind": "eval", "step": 400, "train_loss": 1.0, "val_loss": 1.123456789, "bits_per_byte": 0.5},
    {"kind": "eval", "step": 500, "train_loss": 0.5, "val_loss": 1.5, "bits_per_byte": 0.7,
     "also": {"clean": 1.25}},
]  # fmt: skip


def outcome(**changes: object) -> Outcome:
    values: dict = {
        "label": "a", "state": "finished", "step": 500, "message": "", "diverged": False,
        "model": ModelConfig(64, n_layer=1, n_head=1, d_model=8), "train": TrainConfig(steps=500),
        "train_tokens": 99, "tokenizer": "t", "records": RECORDS,
    }  # fmt: skip
    return Outcome(**{**values, **changes})


def test_its_numbers_are_those_of_the_records() -> None:
    run = outcome()
    assert (run.last("val_loss"), run.best(), run.floor, run.also("clean")) == (1.5, 1.123456789, 0.25, 1.25)
    assert run.line("val_loss") == ([0, 400, 500], [6.1, 1.123456789, 1.5])
    assert math.isnan(run.also("leaked")) and math.isnan(outcome(records=[]).last("val_loss"))
    assert math.isnan(outcome(diverged=True, state="failed").last("val_loss"))


@pytest.mark.parametrize(
    ("state", "diverged", "done"),
    [("finished", False, True), ("failed", True, True), ("failed", False, False), ("stopped", False, False)],
)
def test_only_an_end_is_an_end(state: str, diverged: bool, done: bool) -> None:
    assert outcome(state=state, diverged=diverged).done is done


def test_a_file_gives_the_same_numbers_back(tmp_path: Path) -> None:
    about = {"study": "held-out", "made": "2026-01-01", "machine": "m", "seconds": 1.0, "seed": 0}
    (tmp_path / "held-out.json").write_text(json.dumps({**about, "runs": [to_json(outcome())]}), "utf-8")
    shipped = read_shipped("held-out", tmp_path)
    assert shipped is not None and shipped.made == "2026-01-01"
    (run,) = shipped.outcomes
    assert run.best() == pytest.approx(1.123456789, rel=1e-6) and run.also("clean") == 1.25
    assert (run.model, run.train, run.parameters) == (outcome().model, outcome().train, outcome().parameters)
    steps = [r for r in run.records if r["kind"] == "step"]
    assert 1 < len(steps) <= MOST_STEPS and steps[-1]["step"] == 500 and "grad_norm" not in steps[0]
    assert not [r for r in run.records if r["kind"] == "sample"]


def test_no_file_is_no_result_and_a_damaged_one_says_so(tmp_path: Path) -> None:
    assert read_shipped("shape", tmp_path) is None
    (tmp_path / "shape.json").write_text('{"study": "shape"', "utf-8")
    with pytest.raises(ValueError, match=r"shape\.json can't be read.*Run the study here"):
        read_shipped("shape", tmp_path)


def test_of_several_runs_with_one_label_the_newest_counts() -> None:
    class Info:
        def __init__(self, label: str, created: float) -> None:
            self.label, self.created, self.id = label, created, f"{created}"

    old, new, other = Info("a", 1.0), Info("a", 3.0), Info("b", 2.0)
    assert newest([new, old, other], ["b", "a", "c"]) == [other, new]  # type: ignore[list-item]


def test_a_prediction_stays_until_it_is_taken_back(tmp_path: Path) -> None:
    mine, yours = Predictions(tmp_path, "me"), Predictions(tmp_path, "you")
    assert mine.get("shape") is None
    assert mine.commit("shape", "1 layer") == "1 layer"
    assert mine.commit("shape", "8 layers") == "1 layer"  # a result may be on the screen by now
    assert mine.commit("model-size", 40.0) == 40.0
    again = Predictions(tmp_path, "me")
    assert (again.get("shape"), again.get("model-size"), yours.get("shape")) == ("1 layer", 40.0, None)
    mine.take_back("shape")
    assert again.get("shape") is None and again.get("model-size") == 40.0
    assert "me" not in {path.stem for path in (tmp_path / "predictions").iterdir()}


def test_to_look_for_a_prediction_writes_nothing(tmp_path: Path) -> None:
    assert Predictions(tmp_path, "me").get("shape") is None
    assert not list(tmp_path.iterdir()), "the data folder may be one that can't be written"


def test_every_run_of_a_study_has_a_name_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    named = {label for study in STUDIES for label in labels(study) if any(c.isalpha() for c in label)}
    assert named == set(wording.find("engine.outcomes", "label", wording.SOURCE))  # the others are numbers
    assert label_name("2 layers of 60") == "2 layers of 60" and label_name("0.004") == "0.004"
    monkeypatch.setenv("LOUPE_LANGUAGE", "es")
    assert label_name("2 layers of 60") == "2 capas de 60" and label_name("0.004") == "0.004"
