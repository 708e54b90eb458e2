"""The Next token page: every number on it is the engine's, over the whole vocabulary."""

import math
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import metrics
from engine.checkpoints import Checkpoint
from engine.grammar import default_grammar
from engine.oracle import Oracle
from engine.tokenizers import char_tokenizer
from engine.trace import Trace, trace
from tests.pages import tiny
from tests.pages.conftest import OpenPage, component, plotly
from ui import lesson, resources, worked
from viz import format_number, visible

MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"
STORY = "Once upon a time, there was a"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    folder = tmp_path_factory.mktemp("models")
    tiny.save_tiny(folder, "stories-mlm", objective="mlm")
    tiny.save_tiny(folder, "one-letter", tokenizer=char_tokenizer("a"))
    tiny.save_tiny(folder, "three-letters", tokenizer=char_tokenizer("abc"))
    found = tiny.save_tiny(folder, "stories-clm")
    found.info["folder"] = str(folder)
    return found


@pytest.fixture(autouse=True)
def models(checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "PRETRAINED", Path(checkpoint.info["folder"]))


def opened(open_page: OpenPage, text: str, model: str = "stories-clm", **state: object) -> AppTest:
    at = open_page("next_token", text=text, model=model, **state)
    assert not at.exception, at.exception[0].value
    return at


def looked(checkpoint: Checkpoint, text: str) -> Trace:
    return trace(checkpoint.model, checkpoint.tokenizer, text)


def chips(at: AppTest) -> list[dict[str, object]]:
    return [chip for group in component(at, "next_token_strip")["groups"] for chip in group["chips"]]


def said(at: AppTest) -> str:
    return " ".join(element.value for element in [*at.info, *at.warning])


def bars(at: AppTest) -> list[dict[str, object]]:
    return plotly(at, "next_token_bars")["data"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("k", [5, 20])
def test_bars_are_the_engine_s_and_add_up_to_one(open_page: OpenPage, checkpoint: Checkpoint, k: int) -> None:
    at = opened(open_page, STORY, next_token_k=k)
    probs = metrics.softmax(looked(checkpoint, STORY).logits[-1])
    drawn = tiny.array(bars(at)[0]["x"])
    assert len(drawn) == k + 1
    np.testing.assert_allclose(drawn[:-1], np.sort(probs)[::-1][:k], atol=1e-6)
    assert abs(drawn.sum() - 1) < 1e-6
    ticks = plotly(at, "next_token_bars")["layout"]["yaxis"]["ticktext"]
    assert ticks[0] == visible(checkpoint.tokenizer.token_bytes(int(probs.argmax())))
    assert ticks[-1] == f"all other<br>{len(probs) - k} tokens"


def test_a_position_from_the_address_marks_what_came(open_page: OpenPage, checkpoint: Checkpoint) -> None:
    at = opened(open_page, STORY, query={"pos": "2"})
    traced = looked(checkpoint, STORY)
    probs, came = metrics.softmax(traced.logits[2]), int(traced.ids[3])
    marked = [text for text in bars(at)[0]["text"] if "came" in text]  # type: ignore[attr-defined]
    assert len(marked) == 1 and f"rank {metrics.rank(probs, came)}" in marked[0]
    assert format_number(probs[came]) in marked[0]
    assert "After token 2" in " ".join(element.value for element in at.subheader)
    assert at.query_params["pos"] == "2"
    formulas = " ".join(element.value for element in at.latex)
    assert rf"{-math.log(probs[came]):.4g}\ \text{{nats}}" in formulas


def test_the_true_distribution_stands_beside_it(open_page: OpenPage, checkpoint: Checkpoint) -> None:
    at = opened(open_page, STORY)
    oracle = Oracle(default_grammar(), checkpoint.tokenizer)
    true = oracle.distributions(checkpoint.tokenizer.encode(STORY))[-1]
    probs = metrics.softmax(looked(checkpoint, STORY).logits[-1])
    order = np.argsort(-probs, kind="stable")[:8]
    drawn = tiny.array(bars(at)[1]["x"])
    np.testing.assert_allclose(drawn, [*true[order], 1 - true[order].sum()], atol=1e-6)
    kl = float(metrics.kl_divergence(true, probs))
    assert any(
        rf"= {kl:.4g}\ \text{{nats}}" in element.value for element in at.latex if "KL" in element.value
    )


def test_where_no_story_goes_on_nothing_true_is_shown(open_page: OpenPage) -> None:
    at = opened(open_page, "The price of oil fell")
    assert len(bars(at)) == 1
    assert not [element for element in at.latex if "KL" in element.value]
    assert any("No story goes like this" in caption.value for caption in at.caption)


@pytest.mark.parametrize("unit", ["nats", "bits"])
def test_strip_and_table_show_each_token_s_surprise(
    open_page: OpenPage, checkpoint: Checkpoint, unit: str
) -> None:
    at = opened(open_page, STORY, next_token_unit=unit)
    traced = looked(checkpoint, STORY)
    scores = metrics.next_token_scores(traced.logits, traced.ids.tolist())
    surprise = -scores.log_probs / (1 if unit == "nats" else math.log(2))
    assert [chip["value"] for chip in chips(at)] == ["given", *(lesson.brief(x) for x in surprise)]
    table = at.dataframe[0].value
    np.testing.assert_allclose(table[f"surprise ({unit})"], surprise, rtol=1e-12)
    np.testing.assert_allclose(table["probability"], np.exp(scores.log_probs), rtol=1e-12)
    np.testing.assert_allclose(
        table["running perplexity"], np.exp(np.cumsum(-scores.log_probs) / (table["position"]))
    )
    assert list(table["rank"]) == [
        metrics.rank(metrics.softmax(traced.logits[t]), int(traced.ids[t + 1])) for t in range(len(surprise))
    ]


def test_chain_rule_ties_out(open_page: OpenPage, checkpoint: Checkpoint) -> None:
    at = opened(open_page, STORY)
    probabilities = at.dataframe[0].value["probability"]
    loss = -math.log(math.prod(probabilities)) / len(probabilities)
    formula = next(element.value for element in at.latex if "perplexity" in element.value)
    assert f"= {worked.tex(math.exp(loss))}" in formula
    first = len(checkpoint.tokenizer.tokens(STORY)[0].data)
    bits = loss * len(probabilities) / math.log(2) / (len(STORY) - first)
    assert f"= {bits:.4g}" in formula


@pytest.mark.parametrize("view", ["Surprise", "Best guesses"])
def test_the_other_views_show_the_same_numbers(
    open_page: OpenPage, checkpoint: Checkpoint, view: str
) -> None:
    at = opened(open_page, STORY, next_token_view=view)
    traced = looked(checkpoint, STORY)
    if view == "Surprise":
        drawn = tiny.array(plotly(at, "next_token_surprise")["data"][0]["y"])
        scores = metrics.next_token_scores(traced.logits, traced.ids.tolist())
        assert np.isnan(drawn[0])
        np.testing.assert_allclose(drawn[1:], -scores.log_probs, rtol=1e-6)
    else:
        drawn = tiny.array(plotly(at, "next_token_guesses")["data"][0]["z"])
        np.testing.assert_allclose(drawn, -np.sort(-traced.probs())[:, :6], atol=1e-6)


def test_one_token_has_a_next_but_no_surprise(open_page: OpenPage, checkpoint: Checkpoint) -> None:
    at = opened(open_page, "a")
    assert "at least 2 tokens" in said(at)
    np.testing.assert_allclose(
        tiny.array(bars(at)[0]["x"])[0], metrics.softmax(looked(checkpoint, "a").logits[0]).max(), atol=1e-6
    )
    assert [chip["value"] for chip in chips(at)] == ["given"]


def test_empty_text_has_nothing_to_show(open_page: OpenPage) -> None:
    assert "nothing to show" in said(opened(open_page, ""))


@pytest.mark.parametrize("n_chars", [500, 100_000])
def test_a_long_text_says_what_is_read_and_greys_the_rest(
    open_page: OpenPage, checkpoint: Checkpoint, n_chars: int
) -> None:
    text = (STORY + " ") * (n_chars // len(STORY))
    n = len(checkpoint.tokenizer.encode(text))
    at = opened(open_page, text)
    assert f"Using the last 32 of {n:,} tokens" in said(at)
    grey = [bool(chip.get("greyed")) for chip in chips(at)]
    assert grey == [True] * 24 + [False] * 32
    assert [chip["id"] for chip in chips(at)] == checkpoint.tokenizer.encode(text)[-56:]
    probs = metrics.softmax(looked(checkpoint, text).logits[-1])
    np.testing.assert_allclose(tiny.array(bars(at)[0]["x"])[0], probs.max(), atol=1e-6)
    assert at.query_params["pos"] == "31"


@pytest.mark.parametrize("text", [MARKUP, "a😀b 👩‍👩‍👧", "שלום", "a\x00b\r\n\t"])
def test_any_text_is_shown_literally(open_page: OpenPage, text: str) -> None:
    at = opened(open_page, text)
    ids = [chip["id"] for chip in chips(at)]
    assert ids == tiny.story_tokenizer().encode(text)[-len(ids) :]
    written = [element.value for element in [*at.markdown, *at.subheader, *at.caption]]
    assert not [value for value in written if "onerror" in value or "<b>" in value.replace("\\<", "")]


def test_a_space_at_the_end_is_pointed_at(open_page: OpenPage) -> None:
    assert "ends in a space" in said(opened(open_page, STORY + " "))


def test_a_vocabulary_of_one_token(open_page: OpenPage) -> None:
    at = opened(open_page, "aaaa", model="one-letter")
    np.testing.assert_allclose(tiny.array(bars(at)[0]["x"]), [1.0])
    assert [chip["value"] for chip in chips(at)] == ["given", "0", "0", "0"]


def test_fewer_tokens_than_bars(open_page: OpenPage) -> None:
    at = opened(open_page, "abc", model="three-letters", next_token_k=20)
    drawn = tiny.array(bars(at)[0]["x"])
    assert len(drawn) == 3 and abs(drawn.sum() - 1) < 1e-6


def test_unknown_characters_are_named(open_page: OpenPage) -> None:
    at = opened(open_page, "abd?", model="three-letters")
    assert "'d'" in said(at).replace("\\", "") and "'?'" in said(at).replace("\\", "")


def test_a_masked_model_offers_the_other_kind(open_page: OpenPage) -> None:
    at = opened(open_page, STORY, model="stories-mlm")
    assert "causal model" in said(at)
    at.button(key="use_stories-clm").click().run()
    assert not at.exception and bars(at)


def test_no_model_says_what_to_do(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setattr(resources, "PRETRAINED", tmp_path_factory.mktemp("none"))
    at = open_page("next_token", text=STORY)
    assert not at.exception and "no model" in said(at).lower()


def test_a_new_text_is_looked_at_from_its_end(open_page: OpenPage) -> None:
    at = opened(open_page, STORY, query={"pos": "2"})
    at.session_state["text"] = STORY + " fox"
    at.run()
    last = len(tiny.story_tokenizer().encode(STORY + " fox")) - 1
    assert at.query_params["pos"] == str(last)


def test_choices_survive_a_page_change(open_page: OpenPage) -> None:
    at = opened(open_page, STORY, query={"pos": "2"})
    at.segmented_control(key="next_token_k").set_value(12).run()
    at.segmented_control(key="next_token_unit").set_value("bits").run()
    at.switch_page("pages/tokens.py").run()
    at.switch_page("pages/next_token.py").run()
    assert at.segmented_control(key="next_token_k").value == 12
    assert at.segmented_control(key="next_token_unit").value == "bits"
    assert "After token 2" in " ".join(element.value for element in at.subheader)


def test_try_this_does_it(open_page: OpenPage) -> None:
    at = opened(open_page, "a")
    for i in range(3):
        at.button(key=f"try_{i}").click().run()
        assert not at.exception and len(chips(at)) > 3


def test_small_numbers_under_a_token_stay_short() -> None:
    assert [lesson.brief(x) for x in (0.0, 1e-9, 0.00123, 2.55, 10.8123)] == [
        "0",
        "<0.001",
        "0.00123",
        "2.55",
        "10.8",
    ]
