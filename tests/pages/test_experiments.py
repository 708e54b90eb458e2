"""The Experiments page without a browser: prediction first, runs that wait, results from made records."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine import experiments
from engine.experiments import LARGER, STUDIES, larger_spec, size_of_spec, study_specs
from engine.findings import find
from engine.outcomes import Outcome, Shipped
from engine.parameter_parts import parameter_count
from engine.predictions import Predictions
from engine.run_queue import RunQueue
from engine.runs import RunSpec, RunStore
from engine.study_laws import split_larger
from tests.pages.conftest import OpenPage, component, plotly
from tests.pages.made_runs import MINE, said, set_status, write_records
from ui import experiment_view
from ui.experiment_words import words_of

FLOOR = 0.25
STATE = {"_owner_proposal": MINE}


@pytest.fixture(autouse=True)
def nothing_is_trained(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(RunQueue, "pump", lambda self: None)  # every run waits in the queue
    yield
    st.cache_resource.clear()


@pytest.fixture(autouse=True)
def a_fifth_of_the_text(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Less to cut into tokens; everything else is as in the app."""
    cached, whole = (experiments.study_specs, experiments.larger_spec), experiments.stories
    for function in cached:
        function.cache_clear()
    monkeypatch.setattr(experiments, "stories", lambda n, first=0: whole(n // 5, first // 5))
    yield
    for function in cached:
        function.cache_clear()


@pytest.fixture(autouse=True)
def shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results that came with the app, made by hand."""

    def read(study: str) -> Shipped:
        return Shipped(study, "2026-01-02", "a test", 61.0, 0, tuple(made_outcomes(study)))

    monkeypatch.setattr(experiment_view, "read_shipped", read)


def last_loss(spec: RunSpec, index: int) -> float:
    """Losses that fall along a law for the scaling studies, and by the run's place for the others."""
    study = spec.name.split(":")[0]
    if study in ("model-size", "text-size"):
        return FLOOR + 900 * size_of_spec(study, spec) ** -0.7 * (1 + 0.01 * (-1) ** index)
    return 1.4 if study == "contamination" else 3.0 - 0.3 * index


def made_records(spec: RunSpec, index: int) -> list[dict[str, Any]]:
    start, last = math.log(spec.model.vocab_size), last_loss(spec, index)
    half = spec.train.steps // 2
    evals = [
        {"kind": "eval", "step": step, "train_loss": loss, "val_loss": loss, "bits_per_byte": loss / 3}
        for step, loss in ((0, start), (half, (start + last) / 2), (spec.train.steps, last))
    ]
    if spec.also_scored:
        evals[-1]["also"] = {"leaked": 1.4 - 0.3 * index}
    return [*evals, {"kind": "floor", "step": half, "value": FLOOR, "bits_per_byte": FLOOR / 3}]


def all_specs(study: str) -> list[RunSpec]:
    larger = larger_spec(study)
    return [*study_specs(study), *([larger] if larger else [])]


def made_outcomes(study: str) -> list[Outcome]:
    return [
        Outcome(
            spec.label, "finished", spec.train.steps, "", False, spec.model, spec.train,
            int(size_of_spec("text-size", spec)), "t", made_records(spec, i),
        )
        for i, spec in enumerate(all_specs(study))
    ]  # fmt: skip


def predict(home: Path, study: str) -> None:
    words = words_of(study)
    Predictions(home, MINE).commit(study, next(iter(words.choices), 40.0))


def own_runs(home: Path, study: str, *, state: str = "finished", larger: bool = False) -> list[str]:
    """Runs of this person as they lie in their folders."""
    store, found = RunStore(home), []
    for i, spec in enumerate(all_specs(study) if larger else study_specs(study)):
        run_id = store.create(spec, MINE)
        write_records(home, run_id, made_records(spec, i))
        set_status(home, run_id, state=state, step=spec.train.steps)
        found.append(run_id)
    return found


def opened(open_page: OpenPage, study: str, **state: Any) -> AppTest:
    at = open_page("experiments", query={"study": study}, **{**STATE, **state})
    assert not at.exception, at.exception[0].value
    return at


# ---- the prediction comes first


@pytest.mark.parametrize("study", STUDIES)
def test_nothing_of_the_result_is_shown_before_the_prediction(open_page: OpenPage, study: str) -> None:
    at = opened(open_page, study)
    assert words_of(study).question in said(at) or at.subheader[0].value == words_of(study).question
    assert not at.get("plotly_chart") and "came with the app" not in said(at)
    assert at.button(key="experiments_start").disabled
    commit = at.button(key=f"experiments_commit_{study}")
    a_choice = bool(words_of(study).choices)
    assert commit.disabled == a_choice  # nothing is chosen yet; a number may be half typed


def test_a_choice_is_kept_and_uncovers_the_result(open_page: OpenPage, loupe_home: Path) -> None:
    at = opened(open_page, "shape")
    at.radio(key="experiments_guess_shape").set_value("1 layer of 80").run()
    at.button(key="experiments_commit_shape").click().run()
    assert not at.exception
    assert Predictions(loupe_home, MINE).get("shape") == "1 layer of 80"
    words = said(at)
    assert "Result that came with the app: made on 2026-01-02, 4 runs" in words
    assert "not as predicted" in words and "8 layers, 32 wide" in words  # the last of the made losses
    assert not at.button(key="experiments_start").disabled
    again = opened(open_page, "shape")  # another session of the same browser
    assert "1 layer, 80 wide" in said(again) and again.get("plotly_chart")


def test_a_number_is_kept_and_compared(open_page: OpenPage, loupe_home: Path) -> None:
    at = opened(open_page, "model-size")
    at.number_input(key="experiments_guess_model-size").set_value(25.0).run()
    at.button(key="experiments_commit_model-size").click().run()
    answer = float(find("model-size", split_larger(made_outcomes("model-size"))[0]).answer)
    assert "25 %" in said(at) and f"{answer:.0f} %" in said(at)
    assert f"{abs(answer - 25):.0f} points from the prediction" in said(at)


def test_without_a_number_nothing_is_kept_or_shown(open_page: OpenPage, loupe_home: Path) -> None:
    at = opened(open_page, "text-size")
    at.button(key="experiments_commit_text-size").click().run()
    assert [e.value for e in at.error] == ["Say first what you expect\\."]
    assert Predictions(loupe_home, MINE).get("text-size") is None and not at.get("plotly_chart")


def test_a_prediction_can_be_made_anew_and_covers_the_result(open_page: OpenPage, loupe_home: Path) -> None:
    predict(loupe_home, "context")
    at = opened(open_page, "context")
    at.button(key="experiments_again_context").click().run()
    assert Predictions(loupe_home, MINE).get("context") is None
    assert not at.get("plotly_chart") and at.button(key="experiments_start").disabled


def test_curves_that_are_just_drawn_are_covered_with_the_result(
    open_page: OpenPage, loupe_home: Path
) -> None:
    predict(loupe_home, "shape")
    own_runs(loupe_home, "shape", state="queued")
    at = opened(open_page, "shape")
    assert component(at, "experiments_live_shape")
    at.button(key="experiments_again_shape").click().run()
    assert not at.exception and len(at.get("progress")) == 4  # they go on
    assert not [e for e in at.get("bidi_component") if "experiments_live" in e.proto.id]


# ---- the results


@pytest.mark.parametrize("study", STUDIES)
def test_every_study_shows_a_picture_a_conclusion_and_its_numbers(
    open_page: OpenPage, loupe_home: Path, study: str
) -> None:
    predict(loupe_home, study)
    at = opened(open_page, study)
    finding = find(study, split_larger(made_outcomes(study))[0])
    first = finding.words.split(",")[0].split(".")[0].split("(")[0].split("=")[0].split("'")[0].strip()
    assert first.replace("\\", "") in said(at).replace("\\", "")
    assert at.get("plotly_chart") and len(at.dataframe) == 1
    assert not at.warning and not at.error


def test_the_picture_holds_the_last_losses(open_page: OpenPage, loupe_home: Path) -> None:
    predict(loupe_home, "context")
    at = opened(open_page, "context")
    figures = [json.loads(e.proto.spec) for e in at.get("plotly_chart")]
    (figure,) = [f for f in figures if f["layout"]["xaxis"]["title"]["text"] == "context length"]
    assert figure["layout"]["xaxis"]["ticktext"] == [f"{n}<br>tokens" for n in (8, 16, 32, 64, 128)]
    assert figure["data"][0]["text"] == ["3.00", "2.70", "2.40", "2.10", "1.80"]
    losses = at.dataframe[0].value["loss on fresh stories (nats)"].tolist()
    assert losses == pytest.approx([3.0, 2.7, 2.4, 2.1, 1.8])


def test_the_two_objectives_share_no_column_and_no_chart(open_page: OpenPage, loupe_home: Path) -> None:
    predict(loupe_home, "objectives")
    at = opened(open_page, "objectives")
    columns = " ".join(at.dataframe[0].value.columns)
    assert "loss" not in columns and "perplexity" not in columns and "way to its floor" in columns
    clm, mlm = (plotly(at, f"experiments_shipped_objectives_{name}") for name in ("clm", "mlm"))
    assert clm["layout"]["yaxis"]["title"]["text"] == "loss (nats per token)"
    assert mlm["layout"]["yaxis"]["title"]["text"] == "loss (nats per hidden token)"
    assert "masked-token perplexity" in mlm["layout"]["yaxis2"]["title"]["text"]


def test_the_larger_run_stays_covered_until_it_is_asked_for(open_page: OpenPage, loupe_home: Path) -> None:
    predict(loupe_home, "text-size")
    at = opened(open_page, "text-size")
    assert "The law foretells" in said(at) and "the run reached" not in said(at)
    assert LARGER not in at.dataframe[0].value["run"].tolist()
    at.toggle(key="experiments_reveal_text-size").set_value(True).run()
    assert "the run reached" in said(at) and "inside" in said(at)
    assert LARGER in at.dataframe[0].value["run"].tolist()


def test_without_a_result_it_says_what_to_do(
    open_page: OpenPage, loupe_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment_view, "read_shipped", lambda study: None)
    predict(loupe_home, "shape")
    assert "No result came with the app" in said(opened(open_page, "shape"))


def test_a_damaged_result_is_a_sentence(
    open_page: OpenPage, loupe_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(study: str) -> None:
        raise ValueError("The results in shape.json can't be read: $x$.")

    monkeypatch.setattr(experiment_view, "read_shipped", damaged)
    predict(loupe_home, "shape")
    at = opened(open_page, "shape")
    assert "can't be read" in at.warning[0].value.replace("\\", "")


# ---- one's own runs


def test_start_queues_the_whole_study_once(open_page: OpenPage, loupe_home: Path) -> None:
    predict(loupe_home, "learning-rate")
    at = opened(open_page, "learning-rate")
    assert "4 runs, about" in said(at)
    at.button(key="experiments_start").click().run()
    assert not at.exception and not at.error
    infos = RunStore(loupe_home).list(MINE)
    assert sorted(i.label for i in infos) == sorted(s.label for s in study_specs("learning-rate"))
    assert {i.group for i in infos} == {study_specs("learning-rate")[0].group}
    words = [p.proto.text for p in at.get("progress")]
    assert len(words) == 4 and "place 1 in the queue" in words[0] and "0.00003" in words[0].replace("\\", "")
    assert "4 wait for their turn" in said(at)
    assert (
        component(at, "experiments_live_learning-rate")["yTitle"] == "loss on fresh stories (nats per token)"
    )
    assert not at.get("plotly_chart")  # the result that came with the app would give the answer away


def test_a_study_that_runs_is_found_again_and_can_be_stopped(open_page: OpenPage, loupe_home: Path) -> None:
    predict(loupe_home, "held-out")
    RunStore(loupe_home).start_many(list(study_specs("held-out")), MINE)
    at = opened(open_page, "held-out")
    assert len(at.get("progress")) == 2
    at.button(key="experiments_stop").click().run()
    assert {i.state for i in RunStore(loupe_home).list(MINE)} == {"stopped"}
    assert at.button(key="experiments_go_on").label == "Go on"


def test_after_a_killed_worker_it_goes_on(open_page: OpenPage, loupe_home: Path) -> None:
    predict(loupe_home, "held-out")
    first, second = own_runs(loupe_home, "held-out")
    set_status(loupe_home, second, state="failed", step=100, message="The training process was killed.")
    at = opened(open_page, "held-out")
    assert "1 of 2 runs done" in said(at)
    at.button(key="experiments_go_on").click().run()
    assert RunStore(loupe_home).info(second).state == "queued"
    assert RunStore(loupe_home).info(first).state == "finished"


def test_a_killed_run_is_not_counted_as_done_while_the_others_go_on(
    open_page: OpenPage, loupe_home: Path
) -> None:
    predict(loupe_home, "held-out")
    first, second = own_runs(loupe_home, "held-out", state="queued")
    set_status(loupe_home, second, state="failed", step=100, message="The training process was killed.")
    assert "0 of 2 runs done, 1 broke off" in said(opened(open_page, "held-out"))
    set_status(loupe_home, second, state="finished", step=500)
    assert "1 of 2 runs done, 1 wait" in said(opened(open_page, "held-out"))


def test_runs_out_of_a_file_are_no_result_of_ones_own(open_page: OpenPage, loupe_home: Path) -> None:
    predict(loupe_home, "shape")
    for run_id in own_runs(loupe_home, "shape"):
        path = loupe_home / "runs" / run_id / "run.json"
        path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "imported": True}), "utf-8")
    at = opened(open_page, "shape")
    assert "Result that came with the app" in said(at)
    assert at.button(key="experiments_start").label == "Run it here"


def test_a_run_that_was_deleted_is_made_again(open_page: OpenPage, loupe_home: Path) -> None:
    predict(loupe_home, "held-out")
    first, _ = own_runs(loupe_home, "held-out")
    RunStore(loupe_home).delete(first, MINE)
    at = opened(open_page, "held-out")
    at.button(key="experiments_go_on").click().run()
    states = {i.label: i.state for i in RunStore(loupe_home).list(MINE)}
    assert states == {"20 stories": "queued", "4,000 stories": "finished"}


def test_ones_own_result_comes_first_and_the_other_is_a_press_away(
    open_page: OpenPage, loupe_home: Path
) -> None:
    predict(loupe_home, "shape")
    own_runs(loupe_home, "shape")
    at = opened(open_page, "shape")
    assert "Result that came with the app" not in said(at)
    assert at.button(key="experiments_start").label == "Run it here again, other seed"
    at.get("button_group")[0].set_value("shipped").run()
    assert "Result that came with the app" in said(at)


def test_another_seed_is_another_set_of_runs(open_page: OpenPage, loupe_home: Path) -> None:
    predict(loupe_home, "held-out")
    own_runs(loupe_home, "held-out")
    at = opened(open_page, "held-out")
    at.button(key="experiments_start").click().run()
    assert {i.train.seed for i in RunStore(loupe_home).list(MINE) if i.active} == {1}


def test_the_law_is_tested_by_a_run_of_ones_own(open_page: OpenPage, loupe_home: Path) -> None:
    predict(loupe_home, "model-size")
    own_runs(loupe_home, "model-size")
    at = opened(open_page, "model-size")
    assert "The law foretells" in said(at)
    at.button(key="experiments_larger").click().run()
    (run,) = [i for i in RunStore(loupe_home).list(MINE) if i.active]
    larger = larger_spec("model-size")
    assert larger is not None
    assert run.label == LARGER and parameter_count(run.model) == size_of_spec("model-size", larger)


def test_after_it_the_page_says_whether_it_fell_inside(open_page: OpenPage, loupe_home: Path) -> None:
    predict(loupe_home, "model-size")
    own_runs(loupe_home, "model-size", larger=True)
    at = opened(open_page, "model-size")
    assert "The law foretold" in said(at) and "inside" in said(at)
    assert not [b for b in at.button if b.key == "experiments_larger"]


def test_others_see_neither_ones_runs_nor_ones_prediction(open_page: OpenPage, loupe_home: Path) -> None:
    predict(loupe_home, "shape")
    own_runs(loupe_home, "shape")
    at = opened(open_page, "shape", _owner_proposal="c" * 32)
    assert at.button(key="experiments_start").label == "Run it here"
    assert at.button(key="experiments_commit_shape").disabled


def test_leaving_and_coming_back_keeps_the_study(open_page: OpenPage) -> None:
    at = opened(open_page, "tokenizer")
    at.button(key="experiments_try_0").click().run()
    assert at.selectbox(key="study").value == "model-size"
    assert at.subheader[0].value == words_of("model-size").question
