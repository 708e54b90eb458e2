"""The results that came with the app: of today's settings, and with the lesson they are there for."""

import math

import pytest

from engine.experiments import STUDIES, larger_spec, study_specs
from engine.findings import find
from engine.outcomes import Shipped, read_shipped
from engine.scaling import floor_interval
from engine.study_laws import law_of, loss_of, split_larger


def shipped(study: str) -> Shipped:
    found = read_shipped(study)
    if found is None:
        pytest.skip(f"no result of {study} came with the app")
    return found


@pytest.mark.parametrize("study", STUDIES)
def test_they_were_made_with_the_settings_of_the_app(study: str) -> None:
    result = shipped(study)
    larger = larger_spec(study, result.seed)
    specs = [*study_specs(study, result.seed), *([larger] if larger else [])]
    assert [run.label for run in result.outcomes] == [spec.label for spec in specs]
    for run, spec in zip(result.outcomes, specs, strict=True):
        assert (run.model, run.train) == (spec.model, spec.train)
        assert run.train_tokens == spec.check()[0]


@pytest.mark.parametrize("study", STUDIES)
def test_they_are_whole_and_answer_the_question(study: str) -> None:
    result = shipped(study)
    for run in result.outcomes:
        assert run.done and run.evals[0]["step"] == 0
        assert run.evals[0]["val_loss"] == pytest.approx(math.log(run.model.vocab_size), abs=0.2)
    finding = find(study, split_larger(result.outcomes)[0])
    assert finding.words and finding.answer != ""


@pytest.mark.parametrize(
    ("study", "answer"),
    [("held-out", "rises"), ("contamination", "leaked"), ("learning-rate", "lost"), ("objectives", "clm")],
)
def test_the_lesson_shows(study: str, answer: str) -> None:
    assert find(study, shipped(study).outcomes).answer == answer


@pytest.mark.parametrize("study", ["model-size", "text-size"])
def test_the_larger_run_is_better_than_all_that_foretold_it(study: str) -> None:
    few, larger = split_larger(shipped(study).outcomes)
    assert larger is not None and len(few) >= 5
    assert loss_of(study, larger) < min(loss_of(study, run) for run in few)
    law = law_of(study, few)
    assert law.floor in floor_interval(law) and 0.05 < law.exponent < 3
