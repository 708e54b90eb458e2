"""Training and Experiments in Spanish, with runs of one's own: all is said, and what was chosen stays."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from engine.experiments import STUDIES
from engine.predictions import Predictions
from engine.run_queue import RunQueue
from tests.pages import made_runs
from tests.pages.conftest import OpenPage
from tests.pages.made_runs import EVALS, MINE, YOURS, make_run, set_status
from tests.pages.test_spanish import left_in_english
from ui.experiment_words import words_of

FLOOR = {"kind": "floor", "step": 10, "value": 0.5, "bits_per_byte": 0.7}
BASELINE = {"kind": "baseline", "step": 10, "uniform": 5.5, "unigram": 3.1, "bigram": 1.9, "trigram": 1.5}
SAMPLE = {"kind": "sample", "step": 10, "prompt": "zo", "text": "rro"}
STATES = ("finished", "running", "paused", "stopped", "queued")


@pytest.fixture(autouse=True)
def nothing_is_trained(monkeypatch: pytest.MonkeyPatch, loupe_home: Path) -> Iterator[None]:
    monkeypatch.setattr(RunQueue, "pump", lambda self: None)
    monkeypatch.setattr(RunQueue, "refresh", lambda self, *ids: False)
    monkeypatch.setattr(RunQueue, "notice_dead", lambda self: 0)
    monkeypatch.setenv("LOUPE_LANGUAGE", "es")  # the driver sends choices in words, as a browser does
    monkeypatch.setattr(made_runs, "STORY", "El zorro tiene un gorro y el gorro tiene un roto. ")
    yield
    st.cache_resource.clear()


def some_runs(home: Path) -> dict[str, str]:
    """A run in each state, a masked one, and one of somebody else's."""
    records = [*EVALS, FLOOR, BASELINE, SAMPLE]
    made = {state: make_run(home, name=f"zorro {state}", records=records) for state in STATES}
    made["failed"] = make_run(home, name="zorro roto", records=records)
    made["mlm"] = make_run(home, name="zorro oculto", objective="mlm", records=records)
    made["theirs"] = make_run(home, YOURS, name="zorro ajeno", records=records)
    for state, run_id in made.items():
        done = {"state": state if state in (*STATES, "failed") else "finished"}
        set_status(home, run_id, **done, step=10, message="", eta_s=30.0, tokens_per_second=99.0, joules=9.0)
    return made


@pytest.mark.parametrize("state", [*STATES, "failed", "mlm", "theirs"])
def test_a_run_in_each_state(open_page: OpenPage, loupe_home: Path, state: str) -> None:
    run_id = some_runs(loupe_home)[state]
    at = open_page("training", query={"lang": "es", "run": run_id}, _owner_proposal=MINE)
    assert not left_in_english(at)


@pytest.mark.parametrize("view", ["runs", "class", "time-machine", "one-step"])
def test_each_view_beside_runs(open_page: OpenPage, loupe_home: Path, view: str) -> None:
    some_runs(loupe_home)
    at = open_page("training", query={"lang": "es", "watch": view}, _owner_proposal=MINE)
    assert not left_in_english(at)


@pytest.mark.parametrize("stage", ["loss", "gradients", "update", "before-and-after"])
def test_each_stage_of_a_step(open_page: OpenPage, stage: str) -> None:
    at = open_page("training", query={"lang": "es", "watch": "one-step"}, step_stage=stage)
    assert not left_in_english(at)
    at.session_state["lang"] = "en"
    at.run()
    assert not at.exception and at.session_state["step_stage"] == stage
    assert at.session_state["watch"] == "one-step" and at.title[0].value == "Training"


@pytest.mark.parametrize("quantity", ["bits_per_byte", "grad_norm", "learning_rate", "tokens_per_second"])
def test_each_quantity_of_a_curve(open_page: OpenPage, loupe_home: Path, quantity: str) -> None:
    run_id = some_runs(loupe_home)["finished"]
    query, state = {"lang": "es", "run": run_id}, {"training_quantity": quantity, "training_smoothing": 2}
    at = open_page("training", query=query, _owner_proposal=MINE, **state)
    assert not left_in_english(at)


@pytest.mark.parametrize("study", STUDIES)
def test_the_result_of_each_study(open_page: OpenPage, loupe_home: Path, study: str) -> None:
    query: dict[str, Any] = {"lang": "es", "study": study}
    at = open_page("experiments", query=query, _owner_proposal=MINE)
    assert not left_in_english(at)
    Predictions(loupe_home, MINE).commit(study, next(iter(words_of(study).choices), 40.0))
    at = open_page("experiments", query=query, _owner_proposal=MINE, **{f"experiments_reveal_{study}": True})
    assert not left_in_english(at)
    at.session_state["lang"] = "en"
    at.run()
    assert not at.exception and at.session_state["study"] == study
