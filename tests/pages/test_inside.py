"""The Inside page: what is shown is what the engine computes, for any model and text."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.ablation import effect, loss, most_lost
from engine.checkpoints import Checkpoint
from engine.contributions import contributions
from engine.inside import lens, stream
from engine.metrics import softmax
from engine.trace import Trace, trace
from tests.pages import tiny
from tests.pages.conftest import OpenPage, component, plotly
from ui import inside_off, model_refs
from viz import TRUE, visible

MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"
TEXT = "the cat sat on the mat the"
VIEWS = ["logit-lens", "contributions", "stream", "switch-off"]
MODELS = {
    "stories-clm": {},
    "stories-mlm": {"objective": "mlm"},
    "long": {"context_length": 512},
    "post": {"norm_place": "post"},
}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Checkpoint]:
    folder = tmp_path_factory.mktemp("models")
    found = {name: tiny.save_tiny(folder, name, **shape) for name, shape in MODELS.items()}  # type: ignore[arg-type]
    found["stories-clm"].info["folder"] = str(folder)
    return found


@pytest.fixture(autouse=True)
def models(checkpoints: dict[str, Checkpoint], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_refs, "PRETRAINED", Path(checkpoints["stories-clm"].info["folder"]))


def opened(
    open_page: OpenPage, view: str, text: str = TEXT, model: str = "stories-clm", **state: Any
) -> AppTest:
    at = open_page("inside", text=text, model=model, inside=view, **state)
    assert not at.exception, at.exception[0].value
    return at


def looked(checkpoint: Checkpoint, text: str = TEXT, hidden: tuple[int, ...] = ()) -> Trace:
    return trace(checkpoint.model, checkpoint.tokenizer, text, hidden=hidden)


def said(at: AppTest) -> str:
    return " ".join(e.value for e in [*at.markdown, *at.info, *at.warning, *at.caption, *at.subheader])


def drawn(at: AppTest, key: str, which: str = "z") -> np.ndarray:
    return tiny.array(plotly(at, key)["data"][0][which])


@pytest.mark.parametrize("model", ["stories-clm", "stories-mlm"])
def test_the_lens_shows_the_engines_numbers(
    open_page: OpenPage, checkpoints: dict[str, Checkpoint], model: str
) -> None:
    checkpoint, hidden = checkpoints[model], (3,) if model == "stories-mlm" else ()
    at = opened(open_page, "logit-lens", model=model, query={"pos": "3"})
    traced = looked(checkpoint, hidden=hidden)
    found = lens(checkpoint.model, traced)
    n = len(traced.ids)
    np.testing.assert_allclose(drawn(at, "inside_lens"), found.probs[:, :n, 0].T, atol=1e-6)
    words = plotly(at, "inside_lens")["data"][1]["text"]
    best = [visible(checkpoint.tokenizer.token_bytes(int(i)))[:4] for i in found.ids[:, :, 0].T.ravel()]
    assert all(word.replace("&lt;", "<").startswith(b[:3]) for word, b in zip(words, best, strict=True))
    at.segmented_control(key="inside_cells").set_value("rank").run()
    known = n if model == "stories-mlm" else n - 1
    np.testing.assert_allclose(drawn(at, "inside_lens")[:known], found.true_probs.T[:known], atol=1e-6)
    ranks = [word.replace(",", "") for word in plotly(at, "inside_lens")["data"][1]["text"]]
    assert ranks == [str(r) for r in found.ranks.T[:known].ravel()]


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_the_chosen_cell_is_a_whole_distribution(
    open_page: OpenPage, checkpoints: dict[str, Checkpoint], layer: int
) -> None:
    at = opened(open_page, "logit-lens", inside_layer=layer, query={"pos": "4"})
    bars = drawn(at, "inside_cell", "x")
    assert abs(bars.sum() - 1) < 1e-6
    checkpoint = checkpoints["stories-clm"]
    traced = looked(checkpoint)
    if layer == 2:  # the model's own output
        probs = np.sort(softmax(traced.logits[4]))[::-1]
        np.testing.assert_allclose(bars[:5], probs[:5], atol=1e-6)
    true = float(lens(checkpoint.model, traced).true_probs[layer, 4])
    assert abs(bars[:-1] - true).min() < 1e-6
    assert ("What block" in said(at)) == (layer > 0)


@pytest.mark.parametrize("model", ["stories-clm", "stories-mlm"])
def test_contributions_sum_to_the_logit(
    open_page: OpenPage, checkpoints: dict[str, Checkpoint], model: str
) -> None:
    checkpoint, hidden = checkpoints[model], (2,) if model == "stories-mlm" else ()
    at = opened(open_page, "contributions", model=model, query={"pos": "2"})
    traced = looked(checkpoint, hidden=hidden)
    target = int(traced.targets[2])
    found = contributions(checkpoint.model, traced, 2, target)
    *parts, total = drawn(at, "inside_parts", "x").tolist()
    assert plotly(at, "inside_parts")["layout"]["yaxis"]["ticktext"] == [
        "embedding", "position", "attention 1", "MLP 1", "attention 2", "MLP 2", "norm’s bias", "sum"
    ]  # fmt: skip
    assert abs(sum(parts) - total) < 1e-5 and abs(total - float(traced.logits[2, target])) < 1e-4
    words = re.findall(r"&&.text.([a-zA-Z’ ]+)", at.latex[0].value)
    assert words == ["embedding", "position", "attention", "MLPs", "norm’s bias"], "the words of the chart"
    assert parts[3] == pytest.approx(found.of("mlp", 0), abs=1e-6)
    heads = drawn(at, "inside_by_head")
    assert heads.shape == (2, 3)
    assert heads[1].sum() == pytest.approx(found.of("attention", 1), abs=1e-5)


def test_a_post_norm_model_says_what_is_held(open_page: OpenPage, checkpoints: dict[str, Checkpoint]) -> None:
    at = opened(open_page, "contributions", model="post", query={"pos": "2"})
    traced = looked(checkpoints["post"])
    *parts, total = drawn(at, "inside_parts", "x").tolist()
    assert abs(sum(parts) - total) < 1e-5
    assert total == pytest.approx(float(traced.logits[2, int(traced.targets[2])]), abs=1e-4)
    assert "4 norms in the stream itself" in said(at)
    at.session_state["inside"] = "logit-lens"
    at.run()
    assert "no final norm" in said(at)


def test_the_difference_of_two_logits(open_page: OpenPage, checkpoints: dict[str, Checkpoint]) -> None:
    at = opened(open_page, "contributions", query={"pos": "2"})
    traced = looked(checkpoints["stories-clm"])
    order = np.argsort(-traced.logits[2]).tolist()
    token, other = order[0], order[3]
    at.selectbox(key="inside_token").set_value(token)
    at.selectbox(key="inside_against").set_value(other).run()
    assert not at.exception
    total = drawn(at, "inside_parts", "x")[-1]
    assert total == pytest.approx(float(traced.logits[2, token] - traced.logits[2, other]), abs=1e-4)
    assert r"\Delta z" in at.latex[0].value


@pytest.mark.parametrize("shown", ["length", "mlp", "attention-direction", "mlp-share"])
def test_the_stream_shows_the_engines_numbers(
    open_page: OpenPage, checkpoints: dict[str, Checkpoint], shown: str
) -> None:
    at = opened(open_page, "stream", inside_stream_shown=shown)
    found = stream(looked(checkpoints["stories-clm"]))
    field = {"length": found.lengths, "mlp": found.mlp, "attention-direction": found.attention_cosine}
    expected = field.get(shown, found.mlp_share)
    np.testing.assert_allclose(drawn(at, "inside_stream_map"), expected.T[:14], rtol=1e-6)
    assert ("cosine" in plotly(at, "inside_stream_map")["data"][0]["colorbar"]["title"]["text"]) == (
        "direction" in shown
    )


@pytest.mark.parametrize("model", ["stories-clm", "stories-mlm"])
def test_switching_off_shows_the_change(
    open_page: OpenPage, checkpoints: dict[str, Checkpoint], model: str
) -> None:
    checkpoint, hidden = checkpoints[model], (3,) if model == "stories-mlm" else ()
    at = opened(open_page, "switch-off", model=model, query={"pos": "3"})
    assert len(at.latex) == 0 and "Nothing is switched off" in said(at)
    at.session_state["inside_off_0"] = ["H2", "MLP"]
    at.run()
    assert not at.exception
    whole = looked(checkpoint, hidden=hidden)
    cut = trace(
        checkpoint.model,
        checkpoint.tokenizer,
        TEXT,
        ablate=[(0, 1)],
        ablate_parts=[("mlp", 0)],
        hidden=hidden,
    )
    found = effect(whole, cut)
    assert rf"= {found.change:.4g}\ \text{{nats}}" in at.latex[0].value.replace("- -", "-")
    assert f"{found.divergence[3]:.4g}"[:5] in at.latex[1].value
    before, after = plotly(at, "inside_off_guess")["data"]
    for bars, logits in ((before, whole.logits[3]), (after, cut.logits[3])):
        values = tiny.array(bars["x"])
        assert abs(values.sum() - 1) < 1e-6
        assert abs(values[:-1] - softmax(logits)[whole.targets[3]]).min() < 1e-6
    at.button(key="inside_all_on").click().run()
    assert not at.exception and "Nothing is switched off" in said(at)


def test_every_part_alone(open_page: OpenPage, checkpoints: dict[str, Checkpoint]) -> None:
    at = opened(open_page, "switch-off")
    at.button(key="inside_rank").click().run()
    assert not at.exception
    table = at.dataframe[0].value
    assert len(table) == 2 * 2 + 2 * 2
    checkpoint = checkpoints["stories-clm"]
    whole = loss(looked(checkpoint))
    cut = loss(trace(checkpoint.model, checkpoint.tokenizer, TEXT, ablate=[(1, 0)]))
    row = table[(table["block"] == 2) & (table["part"] == "H1")]
    assert float(row["change of loss (nats)"].iloc[0]) == pytest.approx(cut - whole, abs=1e-4)
    assert drawn(at, "inside_rank_map")[1, 0] == pytest.approx(cut - whole, abs=1e-4)
    assert table["change of loss (nats)"].is_monotonic_decreasing


@pytest.mark.parametrize("model", ["stories-clm", "stories-mlm"])
@pytest.mark.parametrize("text", ["a", MARKUP, "a😀b 👩‍👩‍👧", "שלום", "1 22 333\r\n\t\x00"])
def test_any_text(open_page: OpenPage, model: str, text: str) -> None:
    at = opened(open_page, VIEWS[0], text, model)
    for view in VIEWS:
        at.session_state["inside"] = view
        at.run()
        assert not at.exception, (view, at.exception[0].value)
        written = [element.value for element in [*at.markdown, *at.subheader, *at.caption]]
        assert not [v for v in written if "onerror" in v or "<b>" in v.replace("\\<", "")]
        assert not [v for v in (e.value for e in at.latex) if "onerror" in v]


def test_empty_text_has_nothing_to_show(open_page: OpenPage) -> None:
    assert "nothing to show" in said(opened(open_page, "logit-lens", ""))


def test_one_token_has_no_loss(open_page: OpenPage) -> None:
    at = opened(open_page, "switch-off", "a", inside_off_0=["MLP"])
    assert "no loss" in said(at)
    at.button(key="inside_rank").click().run()
    assert not at.exception and "at least 2 tokens" in said(at)


def test_a_text_of_512_tokens_is_small_and_draws_a_window(
    open_page: OpenPage, checkpoints: dict[str, Checkpoint]
) -> None:
    text = "the cat sat on a mat " * 150
    at = opened(open_page, VIEWS[0], text, "long", query={"pos": "300"})
    for view in VIEWS:
        at.session_state["inside"] = view
        at.run()
        assert not at.exception
        charts = sum(len(e.proto.spec) for e in at.get("plotly_chart"))
        components = sum(len(e.proto.json) for e in at.get("bidi_component"))
        assert charts + components < 2_000_000, view
        if view in ("logit-lens", "stream"):
            key = "inside_lens" if view == "logit-lens" else "inside_stream_map"
            rows = plotly(at, key)["layout"]["yaxis"]["ticktext"]
            assert len(rows) == 14 and any(row.startswith("300 ") for row in rows)
            assert "Positions 290 to 303 of 0 to 511" in said(at)
    assert np.isfinite(drawn(at, "inside_off_guess", "x")).all()


def test_a_masked_model_does_not_see_the_chosen_token(open_page: OpenPage) -> None:
    at = opened(open_page, "logit-lens", model="stories-mlm", query={"pos": "2"})
    chips = [chip for group in component(at, "inside_pos")["groups"] for chip in group["chips"]]
    assert [bool(chip.get("hidden")) for chip in chips][:4] == [False, False, True, False]
    assert "is hidden" in said(at) and "Only the token at position 2 is hidden" in said(at)
    at.segmented_control(key="inside_cells").set_value("rank").run()
    figure = plotly(at, "inside_lens")
    framed = [s for s in figure["layout"]["shapes"] if s["line"]["color"] == TRUE]
    assert {s["y0"] for s in framed} <= {1.5}, "what the model sees and repeats is no right guess"
    ranks = figure["data"][1]["text"]
    assert len(framed) == sum(rank == "1" for rank in ranks[2 * 3 : 3 * 3])


def test_a_model_of_another_shape_keeps_no_wrong_choice(open_page: OpenPage) -> None:
    at = opened(open_page, "switch-off", inside_off_0=["H9", "MLP"], inside_layer=77)
    assert at.session_state["inside_off_0"] == ["MLP"]
    at.session_state["inside"] = "stream"
    at.run()
    assert not at.exception and at.session_state["inside_layer"] == 2


def test_a_junk_view_in_the_address_is_the_first(open_page: OpenPage) -> None:
    at = open_page("inside", text=TEXT, query={"inside": "junk"})
    assert not at.exception and at.session_state["inside"] == "logit-lens"


def test_try_this_does_something(open_page: OpenPage) -> None:
    at = opened(open_page, "stream")
    at.button(key="try_0").click().run()
    assert (
        not at.exception and at.session_state["inside"] == "logit-lens" and "fox" in at.session_state["text"]
    )
    at.button(key="try_1").click().run()
    assert not at.exception and at.session_state["inside"] == "contributions"
    at.button(key="try_2").click().run()
    assert not at.exception and at.session_state["inside"] == "switch-off"
    off = [at.session_state[inside_off.key_of(layer)] for layer in range(2)]
    assert sum(len(names) for names in off) == 1 and not math.isnan(len(off))


@pytest.mark.parametrize("model", ["stories-clm", "stories-mlm"])
def test_the_head_that_is_missed_most_is_switched_off(
    open_page: OpenPage, checkpoints: dict[str, Checkpoint], model: str
) -> None:
    at = opened(open_page, "stream", model=model, query={"pos": "1"})
    at.button(key="try_2").click().run()
    assert not at.exception
    checkpoint, text = checkpoints[model], str(at.session_state["text"])
    n = len(looked(checkpoint, text).ids)
    hidden = (n - 1,) if model == "stories-mlm" else ()
    whole = looked(checkpoint, text, hidden)
    lost = {}
    for layer in range(2):
        for head in range(2):
            cut = trace(checkpoint.model, checkpoint.tokenizer, text, ablate=[(layer, head)], hidden=hidden)
            lost[layer, head] = loss(cut) - loss(whole)
    layer, head = max(lost, key=lambda part: lost[part])
    assert at.session_state[inside_off.key_of(layer)] == [f"H{head + 1}"]
    assert at.session_state[inside_off.key_of(1 - layer)] == []
    cut = trace(checkpoint.model, checkpoint.tokenizer, text, ablate=[(layer, head)], hidden=hidden)
    assert at.query_params["pos"] == str(n - 1 if hidden else most_lost(whole, cut))
    assert len(plotly(at, "inside_rank_map")["data"]) > 0, "what the others cost stands below"


@pytest.mark.parametrize("view", [None, "stream"])
def test_the_view_outlives_an_empty_text(open_page: OpenPage, view: str | None) -> None:
    at = open_page("inside", text=TEXT, **({"inside": view} if view else {}))
    for text in ("", "a", "", TEXT):
        at.session_state["text"] = text
        at.run()
        assert not at.exception, at.exception[0].value
    select = at.segmented_control(key="inside")
    assert select.value == (view or "logit-lens")
    at.session_state["text"] = TEXT + " cat"
    at.run()
    assert not at.exception and at.segmented_control(key="inside").value == (view or "logit-lens")


def test_choices_survive_a_page_change(open_page: OpenPage) -> None:
    at = opened(open_page, "switch-off", inside_off_1=["H1"], inside_layer=1, query={"pos": "3"})
    at.switch_page("pages/tokens.py").run()
    at.switch_page("pages/inside.py").run()
    assert not at.exception and at.session_state["inside_off_1"] == ["H1"]
    assert "position 3" in said(at)
