"""The pages that look at a text, on published models: every number theirs, no word of stories."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import metrics, trace_size
from engine.checkpoints import Checkpoint
from engine.hub import load_folder
from engine.trace import Trace, trace
from tests import hub_folders
from tests.pages import tiny
from tests.pages.conftest import OpenPage, component, plotly, unpacked
from ui import long_job, model_refs

TEXT = "Once upon a time there was a cat called Lily. She"
ODD = "a\x06b"  # a byte that the vocabulary of `llama` lacks
STORIES = ("stor", "true distribution", "p*")  # what only the models of the stories can be compared with


@pytest.fixture
def llama(published: Path) -> Checkpoint:
    return load_folder(published / "llama")


@pytest.fixture
def roberta(published: Path) -> Checkpoint:
    return load_folder(published / "roberta")


def opened(open_page: OpenPage, page: str, text: str = TEXT, model: str = "llama", **state: Any) -> AppTest:
    at = open_page(page, text=text, model=f"hub:{model}", **state)
    assert not at.exception, at.exception[0].value
    return at


def said(at: AppTest) -> str:
    every = [*at.caption, *at.info, *at.warning, *at.markdown, *at.subheader]
    return " ".join(str(element.value) for element in every if "try_" not in str(element.key or ""))


def looked(checkpoint: Checkpoint, text: str = TEXT, **more: Any) -> Trace:
    return trace(checkpoint.model, checkpoint.tokenizer, text, **more)


def chips(at: AppTest, key: str) -> list[dict[str, Any]]:
    return [chip for group in component(at, key)["groups"] for chip in group["chips"]]


# -- home ----------------------------------------------------------------------------------------------------


def test_home_reads_with_a_published_model(open_page: OpenPage, llama: Checkpoint) -> None:
    at = opened(open_page, "home")
    drawn = tiny.array(plotly(at, "home_probabilities")["data"][0]["x"])
    top = metrics.most_likely(metrics.softmax(looked(llama).logits[-1]), 8)
    np.testing.assert_allclose(drawn, [*top.probs, top.tail], atol=1e-6)
    assert drawn.sum() == pytest.approx(1, abs=1e-6)


def test_home_hides_the_last_token_of_the_text_and_never_what_stands_around_it(
    open_page: OpenPage, roberta: Checkpoint
) -> None:
    at = opened(open_page, "home", model="roberta")
    tokens = looked(roberta).tokens
    assert [tokens[0].data, tokens[-1].data] == [b"<s>", b"</s>"]
    assert [chip["id"] for chip in chips(at, "home_tokens")] == [token.id for token in tokens]
    last = len(tokens) - 2
    assert component(at, "home_tokens")["selected"] == last
    top = metrics.most_likely(metrics.softmax(looked(roberta, hidden=(last,)).logits[last]), 8)
    drawn = tiny.array(plotly(at, "home_probabilities")["data"][0]["x"])
    np.testing.assert_allclose(drawn, [*top.probs, top.tail], atol=1e-6)
    at.session_state["home_tokens"] = {"selected": 0}
    at.run()
    assert not at.exception and "no part of your text" in said(at) and not at.get("plotly_chart")


@pytest.mark.parametrize("page", ["home", "next_token", "attention", "compare", "tokens"])
def test_a_byte_without_a_token_is_named(open_page: OpenPage, published: Path, page: str) -> None:
    at = opened(open_page, page, ODD)
    assert "has no token for the bytes 06" in said(at)


@pytest.mark.parametrize("page", ["home", "next_token", "attention", "compare", "tokens"])
@pytest.mark.parametrize("text", ["", "H", "👋🏽 👨‍👩‍👧 Zoë", "<|im_start|>user Hi<|im_end|>"])
def test_odd_texts(open_page: OpenPage, published: Path, page: str, text: str) -> None:
    opened(open_page, page, text)


# -- what memory allows --------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["next_token", "attention"])
def test_only_what_memory_allows_is_read_and_said(
    open_page: OpenPage, llama: Checkpoint, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    monkeypatch.setattr(trace_size, "MOST_BYTES", 1)
    text = TEXT * 2
    n = len(llama.tokenizer.encode(text))
    assert 32 < n < llama.config.context_length
    at = opened(open_page, page, text)
    assert f"Using the last 32 of {n} tokens. The model could read 64 at once" in said(at)
    assert "memory" in said(at)
    strip = chips(at, "next_token_strip" if page == "next_token" else "attention_query")
    assert sum(not chip.get("greyed") for chip in strip) == 32
    read = looked(llama, text, most=32)
    assert at.query_params["pos"] == "31"
    assert [chip["id"] for chip in strip[-32:]] == read.ids.tolist()
    if page == "attention":
        np.testing.assert_allclose(
            unpacked(component(at, "attention_heads")) / 255, read.attentions, atol=0.003
        )


# -- next token ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["one-position", "best-guesses", "surprise", "chain-rule", "any-length"])
def test_every_view_without_a_word_of_stories(open_page: OpenPage, llama: Checkpoint, view: str) -> None:
    at = opened(open_page, "next_token", look=view)
    assert not [word for word in STORIES if word in said(at)]
    assert not any("KL" in element.value for element in at.latex)
    scores = metrics.next_token_scores(looked(llama).logits, looked(llama).ids.tolist())
    if view == "surprise":
        np.testing.assert_allclose(at.dataframe[0].value["probability"], scores.probs, atol=1e-6)
    if view == "chain-rule":
        assert np.exp(scores.total) == pytest.approx(float(scores.probs.prod()))
    if view == "best-guesses":
        cells = tiny.array(plotly(at, "next_token_guesses")["data"][0]["z"])
        best = [metrics.most_likely(row, 6).probs for row in metrics.softmax(looked(llama).logits)]
        np.testing.assert_allclose(cells, best, atol=1e-6)


def test_a_large_model_says_how_long_a_long_text_takes(
    open_page: OpenPage, llama: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_refs, "LARGE", 0)
    monkeypatch.setattr(long_job, "SOON", 0.0)
    monkeypatch.setattr(long_job, "seconds_per_token", lambda model: 0.5)
    text = TEXT * 6
    ids = llama.tokenizer.encode(text)
    at = opened(open_page, "next_token", text, look="any-length")
    assert "This will take about" in said(at) and "measured" in said(at)
    assert not at.get("plotly_chart")
    at.button(key="score_all").click().run()
    assert not at.exception
    loss = metrics.score(llama.model, ids, stride=32).loss
    formula = next(element.value for element in at.latex if "perplexity" in element.value)
    assert f"{math.exp(loss):.4g}" in formula


# -- attention -----------------------------------------------------------------------------------------------


def test_grouped_queries_and_turns_are_told(open_page: OpenPage, llama: Checkpoint) -> None:
    at = opened(open_page, "attention", query={"layer": "2", "head": "3", "pos": "9"})
    assert "4 heads of queries but only 2 of keys and values: heads 3 to 4 share number 2" in said(at)
    assert "turned by an angle" in said(at)
    read = looked(llama)
    key = int(read.attentions[1, 2, 9].argmax())
    assert f"here {9 - key}." in said(at)
    np.testing.assert_array_equal(read.k[1, 2], read.k[1, 3])  # as the sentence says
    exact = float(read.q[1, 2, 9].astype(float) @ read.k[1, 2, key].astype(float))
    formula = next(element.value for element in at.latex if r"q \cdot k" in element.value)
    written = re.search(r"q_i k_i = (-?[\d.]+)", formula)
    assert written and float(written[1]) == pytest.approx(exact, rel=1e-3)
    products = at.dataframe[0].value["q · k"]
    assert float(products.sum()) == pytest.approx(exact, rel=1e-3)


def test_a_masked_model_looks_everywhere_and_at_what_stands_around(
    open_page: OpenPage, roberta: Checkpoint
) -> None:
    at = opened(open_page, "attention", model="roberta", query={"layer": "1", "head": "2", "pos": "3"})
    read = looked(roberta)
    assert chips(at, "attention_query")[0]["id"] == read.ids[0] == 0
    np.testing.assert_allclose(
        tiny.array(plotly(at, "attention_map")["data"][0]["z"]), read.attentions[0, 1], atol=1e-6
    )
    grid = component(at, "attention_heads")
    assert not grid["causal"]
    np.testing.assert_allclose(unpacked(grid) / 255, read.attentions, atol=0.003)
    assert len(chips(at, "attention_key")) == len(read.ids)


def test_a_window_is_drawn_as_what_cannot_be_seen(open_page: OpenPage, published: Path) -> None:
    settings = {
        "model_type": "mistral",
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "sliding_window": 5,
        "tie_word_embeddings": True,
    }
    folder = hub_folders.write_hub(
        published / "mistral", settings, hub_folders._tokenizer(hub_folders.CONTROL, hub_folders._DIGITS), 3
    )
    read = looked(load_folder(folder))
    at = opened(open_page, "attention", model="mistral", query={"pos": "9"})
    z = tiny.array(plotly(at, "attention_map")["data"][0]["z"])
    n = len(z)
    seen = np.tril(np.ones((n, n), bool)) & ~np.tril(np.ones((n, n), bool), -5)
    np.testing.assert_array_equal(~np.isnan(z), seen)
    np.testing.assert_allclose(z[seen], read.attentions[0, 0][seen], atol=1e-6)
    assert component(at, "attention_heads")["windows"] == [5, 5]
    keys = chips(at, "attention_key")
    assert [chip["id"] for chip in keys] == read.ids[5:10].tolist()
    best = 5 + int(read.attentions[0, 0, 9, 5:10].argmax())
    assert f"on token {best}, " in said(at)


# -- compare -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["context", "whole"])
def test_two_vocabularies_compare_in_bits_per_byte(
    open_page: OpenPage, shelf: Path, llama: Checkpoint, scope: str
) -> None:
    ours = tiny.save_tiny(shelf, "tiny-clm", context_length=64)
    text = TEXT * 6 if scope == "whole" else TEXT
    at = opened(open_page, "compare", text, other="tiny-clm", compare_scope=scope)
    table = at.dataframe[0].value
    n_bytes = int(table["bytes"].iloc[0])
    assert table["model"].iloc[0] == "A: llama" and "step" in table["model"].iloc[1]
    assert n_bytes == table["bytes"].iloc[1] <= len(text.encode())
    assert "loss (nats per token)" not in table  # of two vocabularies these can't be compared
    if scope == "context":
        start = len(TEXT.encode()) - n_bytes
        for checkpoint, bits in zip((llama, ours), table["bits per byte"], strict=True):
            read = looked(checkpoint)
            logs = metrics.next_token_scores(read.logits, read.ids.tolist()).log_probs
            counted = logs[[token.byte_start >= start for token in read.tokens[1:]]]
            assert bits == pytest.approx(-counted.sum() / math.log(2) / n_bytes, rel=1e-5)


# -- tokens --------------------------------------------------------------------------------------------------


def test_the_vocabularies_of_models_stand_side_by_side(open_page: OpenPage, llama: Checkpoint) -> None:
    at = opened(open_page, "tokens", model="roberta", view="side-by-side")
    table = at.dataframe(key="tokens_costs").value
    row = table[table["vocabulary"] == "llama"].iloc[0]
    assert row["tokens"] == len(llama.tokenizer.encode(TEXT)) and row["size"] == llama.config.vocab_size
    at.session_state["text"] = ODD
    at.run()
    assert not at.exception and "llama" not in list(at.dataframe(key="tokens_costs").value["vocabulary"])
    assert "without a token there: llama" in said(at)


def test_control_words_typed_as_text_are_text_unless_switched(open_page: OpenPage, llama: Checkpoint) -> None:
    text = "Hi<|im_end|>"
    at = opened(open_page, "tokens", text)
    assert [chip["id"] for chip in chips(at, "tokens_strip")] == llama.tokenizer.encode(text)
    at.toggle(key="tokens_special").set_value(True).run()
    assert [chip["id"] for chip in chips(at, "tokens_strip")][-1] == hub_folders.CONTROL.index("<|im_end|>")


def test_a_control_word_that_would_swallow_a_space_leaves_the_plain_reading(
    open_page: OpenPage, published: Path
) -> None:
    at = opened(open_page, "tokens", "a <mask> b", model="roberta", tokens_special=True)
    assert len(chips(at, "tokens_strip")) > 3
