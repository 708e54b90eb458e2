"""Pages with a model that mixes the previous token in: what is added up is whole, and others stay."""

import json
from pathlib import Path

import numpy as np
import pytest
import streamlit as st
import torch
from streamlit.testing.v1 import AppTest

from engine.checkpoints import Checkpoint, save_checkpoint
from engine.contributions import contributions, entering_parts
from engine.metrics import softmax
from engine.run_queue import RunQueue
from engine.trace import trace
from tests.pages import tiny
from tests.pages.conftest import OpenPage, plotly
from tests.pages.made_runs import STORY, said
from ui import model_refs

TEXT = "the cat sat on a mat the"
SHAPES = {
    "rotary": {"positions": "rotary"},
    "learned": {"positions": "learned"},
    "sinusoidal": {"positions": "sinusoidal"},
    "masked": {"positions": "learned", "objective": "mlm"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("models")
    dice = torch.Generator().manual_seed(2)
    for name, shape in SHAPES.items():
        made = tiny.save_tiny(found, name, mix_previous=True, **shape)  # type: ignore[arg-type]
        with torch.no_grad():  # it begins at 0
            made.model.previous.weight.normal_(0.0, 0.5, generator=dice)
        save_checkpoint(found / name, made)
    tiny.save_tiny(found, "textbook", positions="rotary")
    return found


@pytest.fixture(autouse=True)
def models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_refs, "PRETRAINED", folder)


def saved(folder: Path, name: str) -> Checkpoint:
    from engine.checkpoints import load_checkpoint

    return load_checkpoint(folder / name)


def opened(open_page: OpenPage, page: str, model: str, **state: object) -> AppTest:
    at = open_page(page, text=TEXT, model=model, **state)  # type: ignore[arg-type]
    assert not at.exception, at.exception[0].value
    return at


@pytest.mark.parametrize("name", SHAPES)
def test_a_logit_has_the_previous_token_as_a_part_of_its_own(
    open_page: OpenPage, folder: Path, name: str
) -> None:
    at = opened(open_page, "inside", name, inside="contributions", query={"pos": "2"})
    checkpoint = saved(folder, name)
    hidden = (2,) if name == "masked" else ()
    traced = trace(checkpoint.model, checkpoint.tokenizer, TEXT, hidden=hidden)
    found = contributions(checkpoint.model, traced, 2, int(traced.targets[2]))
    bars = plotly(at, "inside_parts")
    labels = bars["layout"]["yaxis"]["ticktext"]
    *parts, total = tiny.array(bars["data"][0]["x"]).tolist()
    assert labels[:2] == ["embedding", "previous token"]
    assert parts[1] == pytest.approx(found.of("previous"), abs=1e-5) and abs(parts[1]) > 1e-4
    assert sum(parts) == pytest.approx(total, abs=1e-4)
    assert total == pytest.approx(float(traced.logits[2, traced.targets[2]]), abs=1e-3)
    assert any(r"\text{previous token}" in formula.value for formula in at.latex)


def test_the_first_token_has_none_before_it(open_page: OpenPage) -> None:
    at = opened(open_page, "inside", "rotary", inside="contributions", query={"pos": "0"})
    assert "previous token" not in plotly(at, "inside_parts")["layout"]["yaxis"]["ticktext"]


def test_other_models_show_nothing_of_it(open_page: OpenPage) -> None:
    at = opened(open_page, "inside", "textbook", inside="contributions", query={"pos": "2"})
    assert "previous token" not in plotly(at, "inside_parts")["layout"]["yaxis"]["ticktext"]
    at = opened(open_page, "embeddings", "textbook", vectors="position", query={"pos": "2"})
    assert "Nothing is added." in said(at) and "token before" not in said(at)
    assert not [chart for chart in at.get("plotly_chart") if "embeddings_sum" in chart.proto.id]
    assert "token before" not in said(opened(open_page, "embeddings", "textbook", vectors="look-up"))


@pytest.mark.parametrize("view", ["logit-lens", "contributions", "stream", "switch-off"])
@pytest.mark.parametrize("name", ["rotary", "masked"])
def test_every_view_of_the_inside_opens(open_page: OpenPage, view: str, name: str) -> None:
    at = opened(open_page, "inside", name, inside=view, inside_layer=0, query={"pos": "3"})
    assert ("mixes in of the token before" in said(at)) == (view == "stream")


def test_the_next_token_is_the_engines(open_page: OpenPage, folder: Path) -> None:
    at = opened(open_page, "next_token", "learned", query={"pos": "5"})
    checkpoint = saved(folder, "learned")
    probs = softmax(trace(checkpoint.model, checkpoint.tokenizer, TEXT).logits[5])
    shown = tiny.array(plotly(at, "next_token_bars")["data"][0]["x"])
    assert shown[0] == pytest.approx(probs.max(), abs=1e-6)


def test_it_writes(open_page: OpenPage, folder: Path) -> None:
    at = opened(open_page, "generation", "rotary")
    for _ in range(3):
        at.button(key="generation_draw").click().run()
        assert not at.exception and not at.error
    text, model = at.session_state["_writing"], saved(folder, "rotary").model
    seen = torch.tensor([saved(folder, "rotary").tokenizer.encode(TEXT) + list(text.ids[:-1])])
    assert len(text.ids) == 3
    with torch.no_grad():
        expected = model(seen)[0, -1].double().softmax(-1)
    assert text.draws[-1].model_prob == pytest.approx(float(expected[text.ids[-1]]), rel=1e-4)


@pytest.mark.parametrize("name", ["rotary", "learned", "sinusoidal"])
@pytest.mark.parametrize("position", [0, 4])
def test_what_enters_adds_up(open_page: OpenPage, folder: Path, name: str, position: int) -> None:
    at = opened(open_page, "embeddings", name, vectors="position", query={"pos": str(position)})
    checkpoint = saved(folder, name)
    ids = np.array(checkpoint.tokenizer.encode(TEXT))
    parts = list(entering_parts(checkpoint.model, ids, position).values())
    rows = tiny.array(plotly(at, "embeddings_sum")["data"][0]["z"])
    np.testing.assert_allclose(rows[:-1], parts, atol=1e-6)
    np.testing.assert_allclose(rows[-1], np.sum(parts, axis=0), atol=1e-6)
    entered = checkpoint.model.embed(torch.tensor(ids[None]))[0, position].detach().numpy()
    np.testing.assert_allclose(rows[-1], entered, atol=1e-6)
    assert ("learned factors" in said(at)) == (position > 0)
    assert ("nothing stands before it" in said(at)) == (position == 0)


def test_a_row_says_that_more_enters(open_page: OpenPage) -> None:
    assert "also adds the row of the token before" in said(
        opened(open_page, "embeddings", "rotary", vectors="look-up")
    )


@pytest.mark.parametrize("page", ["attention", "compare", "masking", "tokens", "home"])
def test_other_pages_open(open_page: OpenPage, page: str) -> None:
    opened(open_page, page, "rotary")


def test_the_models_page_counts_its_factors(open_page: OpenPage) -> None:
    at = open_page("models", {"look_at": "rotary"})
    assert not at.exception
    chart = plotly(at, "models_parts")
    where = chart["layout"]["yaxis"]["ticktext"].index("Previous token")
    assert tiny.array(chart["data"][0]["x"])[where] == 16
    other = plotly(open_page("models", {"look_at": "textbook"}), "models_parts")
    assert "Previous token" not in other["layout"]["yaxis"]["ticktext"]


def test_a_run_with_it_is_described(
    open_page: OpenPage, loupe_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunQueue, "pump", lambda self: None)  # it waits in the queue
    pasted = {"training_text": "pasted", "training_paste": STORY * 20}
    at = open_page("training", **pasted)  # type: ignore[arg-type]
    assert at.toggle(key="training_mix_previous").value is False
    for on in (False, True):
        at.toggle(key="training_mix_previous").set_value(on).run()
        before = set((loupe_home / "runs").glob("2*"))
        at.button(key="training_start").click().run()
        assert not at.exception and not at.error
        (made,) = set((loupe_home / "runs").glob("2*")) - before
        model = json.loads((made / "run.json").read_text("utf-8"))["model"]
        assert model.get("mix_previous", False) is on and ("mix_previous" in model) is on
    st.cache_resource.clear()
