"""One step taken apart, without a browser."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine.checkpoints import load_checkpoint, save_checkpoint
from engine.config import TrainConfig
from engine.runs import RunStore
from engine.tuning_start import describe
from tests.engine.small_runs import train_here
from tests.engine.test_one_step import CONFIG, run_with_checkpoints
from tests.engine.test_tuning_runs import tuned
from tests.hub_folders import write_bert
from tests.pages.conftest import OpenPage, component, plotly
from tests.pages.tiny import array, save_tiny
from ui import model_refs

VIEW = {"watch": "one-step"}
STAGES = ("batch", "loss", "gradients", "update", "before-and-after")


@pytest.fixture(autouse=True)
def small(loupe_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small models in place of the shipped ones, which would take half a second a step."""
    monkeypatch.setattr("engine.one_step.STORIES", 60)
    for objective in ("clm", "mlm"):
        saved = save_tiny(tmp_path, f"tiny-{objective}", objective=objective)
        config = TrainConfig(steps=400, batch_size=4, learning_rate=1e-2, warmup_steps=9, grad_clip=1.0)
        save_checkpoint(tmp_path / f"tiny-{objective}", replace(saved, step=132, train_config=config))
    monkeypatch.setattr(model_refs, "PRETRAINED", tmp_path)
    yield
    st.cache_resource.clear()


def said(at: AppTest) -> str:
    kinds = ("info", "warning", "markdown", "caption", "latex")
    return "\n".join(str(e.value) for kind in kinds for e in at.get(kind))


@pytest.mark.parametrize("model", ["tiny-clm", "tiny-mlm"])
def test_every_stage_of_a_shipped_model(open_page: OpenPage, model: str) -> None:
    at = open_page("training", query={**VIEW, "model": model})
    for stage in STAGES:
        at.session_state["step_stage"] = stage
        at.run()
        assert not at.exception, (stage, at.exception[0].value)
    assert "optimizer starts fresh" in said(at) and "stories made anew" in said(at)


def test_a_shipped_model_of_another_text_is_not_said_to_know_the_grammar(
    open_page: OpenPage, tmp_path: Path
) -> None:
    saved = load_checkpoint(tmp_path / "tiny-clm")
    save_checkpoint(tmp_path / "tiny-clm", replace(saved, info={**saved.info, "corpus": "tiny-stories"}))
    at = open_page("training", query={**VIEW, "model": "tiny-clm"})
    assert not at.exception and "which are new to it" in said(at)
    assert "grammar that the model learned from" not in said(at)


def test_where_only_the_end_was_kept_nothing_offers_the_first_step(open_page: OpenPage) -> None:
    at = open_page("training", query={**VIEW, "model": "tiny-clm"})
    labels = {button.label for button in at.button}
    assert "From the end" in labels and "From the start" not in labels


def test_the_targets_are_the_inputs_shifted_by_one(open_page: OpenPage) -> None:
    at = open_page("training", query=VIEW)
    chips = [chip for group in component(at, "step_batch_0")["groups"] for chip in group["chips"]]
    read = ["".join(piece for piece, _ in chip["parts"]) for chip in chips]
    assert [chip["value"] for chip in chips][:-1] == read[1:]


def test_next_step_goes_on_and_back_returns(open_page: OpenPage) -> None:
    at = open_page("training", query=VIEW)

    def step() -> tuple[str, str]:
        found = re.search(r"\*\*Step ([\d,]+)\*\* · loss of the batch \*\*([\d.]+)\*\*", said(at))
        assert found
        return found[1], found[2]

    first = step()
    assert first[0] == "133"
    at.button(key="step_next").click().run()
    second = step()
    assert second[0] == "134" and second[1] != first[1]
    at.button(key="step_back").click().run()
    assert step() == first


def test_a_run_takes_its_own_step_and_its_record_agrees(open_page: OpenPage, loupe_home: Path) -> None:
    folder, events = run_with_checkpoints(loupe_home, CONFIG)
    steps = [e for e in events if type(e).__name__ == "StepEvent"]
    (folder / "metrics.jsonl").write_text(
        "".join(
            json.dumps({"kind": "step", "step": e.step, "loss": e.loss, "grad_norm": e.grad_norm}) + "\n"
            for e in steps
        )
    )
    at = open_page("training", query=VIEW, model=f"run:{folder.name}", _owner_proposal="a" * 32)
    assert not at.exception
    (choice,) = [box for box in at.selectbox if box.label == "From the weights of"]
    assert choice.value == 5  # the run has ended at step 9: from there it took a next one
    assert f"record of step 6: loss {steps[5].loss:.4f}" in said(at) and "to the last bit" in said(at)
    at.button(key="step_next").click().run()
    assert f"record of step 7: loss {steps[6].loss:.4f}" in said(at) and "to the last bit" in said(at)
    choice.set_value(9).run()
    assert "training ended here" in said(at)


def test_of_a_published_masked_model_only_the_text_is_hidden(open_page: OpenPage, loupe_home: Path) -> None:
    store, start = RunStore(loupe_home), describe(write_bert(loupe_home / "models" / "bert"), "hub", "bert")
    run_id = store.create(tuned(start, row_length=24), "a" * 32)
    train_here(store, run_id)
    at = open_page(
        "training",
        query=VIEW,
        text="the cat",
        model=f"run:{run_id}",
        step_stage=STAGES[4],
        _owner_proposal="a" * 32,
    )
    assert not at.exception, at.exception[0].value
    at.button(key="step_next").click().run()
    assert not at.exception, at.exception[0].value
    (strip,) = (component(at, key) for key in ["step_place"])
    n = sum(len(group["chips"]) for group in strip["groups"])
    assert strip["selected"] == n - 2  # not [SEP]
    assert plotly(at, "step_probs")["data"]


def test_squares_of_the_bars_are_the_square_of_the_norm(open_page: OpenPage) -> None:
    at = open_page("training", query=VIEW, step_stage=STAGES[2])
    assert not at.exception
    (bars,) = plotly(at, "step_gradients")["data"]
    total = float((array(bars["x"]) ** 2).sum()) ** 0.5
    found = re.search(r"length of the gradient \*\*([\d.]+)\*\*", said(at))
    assert found and float(found[1]) == pytest.approx(total, rel=1e-3)


def test_an_empty_text_still_shows_the_batch(open_page: OpenPage) -> None:
    at = open_page("training", query=VIEW, text="", step_stage=STAGES[4])
    assert not at.exception and "text in the sidebar is empty" in said(at)


def test_rounded_weights_are_told(open_page: OpenPage, tmp_path: Path) -> None:
    folder = tmp_path / "tiny-clm"
    assert "8 bits" not in said(open_page("training", query=VIEW))
    save_checkpoint(folder, load_checkpoint(folder), dtype="int8")
    assert "kept in 8 bits" in said(open_page("training", query=VIEW))


def test_a_text_that_is_cut_says_so(open_page: OpenPage) -> None:
    short = open_page("training", query=VIEW, text="Once upon a time", step_stage=STAGES[4])
    assert "the model can’t see more" not in said(short)
    at = open_page("training", query=VIEW, text="Once upon a time " * 99, step_stage=STAGES[4])
    assert not at.exception
    found = re.search(r"Only the last ([\d,]+) of ([\d,]+) tokens", said(at))
    assert found is not None
    read, every = (int(number.replace(",", "")) for number in found.groups())
    assert read < every and f"After token {read - 1}, " in said(at)
