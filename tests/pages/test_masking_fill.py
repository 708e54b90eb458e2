"""The view Fill blanks: what it shows is what the engine fills, for any text and any blanks."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import fill, fill_scores, infill
from engine.grammar import default_grammar
from engine.oracle import Oracle
from engine.tokenizers import byte_tokenizer
from tests.pages.conftest import OpenPage, Pair, component, plotly
from tests.pages.tiny import array, save_tiny
from ui import fill_data, hiding, worked_fill
from ui.worked import tex
from viz import clip, escape, visible

VIEW = {"hide": "fill-blanks"}
STORY = "Once upon a time, there was a princess called Nora. She"
MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"
TEXTS = ["a", "ab", MARKUP, "🙂👨‍👩‍👧 é", "[MASK]", "the [MASK] sat [MASK]", "x " * 300]


def with_gaps(at: AppTest, *positions: int) -> AppTest:
    at.session_state["_masking_hidden"]["chosen"] = set(positions)
    return at.run()


def words(at: AppTest) -> str:
    return "\n".join(e.value for e in [*at.caption, *at.markdown, *at.info, *at.warning, *at.error])


def cells(at: AppTest) -> dict[tuple[int, int], str]:
    """(blank, way) -> what is written there, over both parts of the grid."""
    found, first = {}, 0
    for kind in ("mlm", "clm"):
        if not any(f"masking_fill_grid_{kind}" in e.proto.id for e in at.get("plotly_chart")):
            continue
        fig = plotly(at, f"masking_fill_grid_{kind}")
        trace = next(t for t in fig["data"] if t.get("name") == "cells")
        for x, y, text in zip(array(trace["x"]), array(trace["y"]), trace["text"], strict=True):
            found[int(y), first + int(x)] = text
        first += len(fig["layout"]["xaxis"]["tickvals"])
    return found


def framed(at: AppTest, kind: str) -> set[tuple[float, float]]:
    shapes = plotly(at, f"masking_fill_grid_{kind}")["layout"].get("shapes", [])
    return {((s["y0"] + s["y1"]) / 2, (s["x0"] + s["x1"]) / 2) for s in shapes}


def ids_of(models: Pair, text: str) -> list[int]:
    return models[1].tokenizer.encode(text)


def in_part(at: AppTest, part: str, **state: Any) -> AppTest:
    at.session_state["masking_fill_part"] = part
    for key, value in state.items():
        at.session_state[key] = value
    return at.run()


def test_every_way_shows_what_the_engine_fills(open_page: OpenPage, models: Pair) -> None:
    at = with_gaps(open_page("masking", query=VIEW, text=STORY), 3, 5, 6)
    assert not at.exception
    clm, mlm = models
    ids, hidden = ids_of(models, STORY), [3, 5, 6]
    guesses = fill.masked_guesses(mlm.model, mlm.tokenizer.mask_id)
    fills = [
        fill.one_pass(guesses, ids, hidden),
        fill.left_to_right(guesses, ids, hidden),
        fill.surest_first(guesses, ids, hidden),
        fill.gibbs(guesses, ids, hidden, n_sweeps=10, seed=1),
        infill.go_on(clm.model, ids, hidden),
        infill.rescore(clm.model, ids, hidden, tried=512, kept=128).fill,
    ]
    z = np.hstack([
        array(next(t for t in plotly(at, f"masking_fill_grid_{k}")["data"] if t["type"] == "heatmap")["z"])
        for k in ("mlm", "clm")
    ])  # fmt: skip
    expected = [[math.exp(each.last[place].log_prob) for each in fills] for place in hidden]
    np.testing.assert_allclose(z, expected, rtol=1e-4)
    for k, place in enumerate(hidden):
        for w, each in enumerate(fills):
            token = each.last[place].id
            assert cells(at)[k, w] == escape(clip(visible(mlm.tokenizer.token_bytes(token)), 7))
    right = {
        (k, w) for k, p in enumerate(hidden) for w, each in enumerate(fills[:4]) if each.ids[p] == ids[p]
    }
    assert framed(at, "mlm") == right
    table = at.dataframe[0].value
    assert list(table["way"]) == [fill_data.WAYS[way].name for way in fill_data.WAYS if way != "exact"]
    assert table["ln p, its own"][1] == f"{fills[1].log_prob:.3f}".replace("-", "−")
    assert table["ln p, its own"][3] == "–"
    assert table["ln p, causal model"][0] == f"{infill.text_log_prob(clm.model, fills[0].ids):.3f}".replace(
        "-", "−"
    )


@pytest.mark.parametrize("way", ["one_pass", "left_to_right", "surest", "gibbs", "causal", "rescored"])
def test_every_way_can_be_looked_at_step_by_step(way: str, open_page: OpenPage, models: Pair) -> None:
    at = with_gaps(open_page("masking", query=VIEW, text=STORY), 3, 5)
    at = in_part(at, "step-by-step", masking_fill_way=way)
    assert not at.exception
    last = 20 if way == "gibbs" else 2
    assert at.slider(key="masking_fill_step").value == last
    steps = next(d for d in at.dataframe if "step" in d.value.columns).value
    assert len(steps) == last
    at.button(key="masking_fill_back").click().run()
    assert at.slider(key="masking_fill_step").value == last - 1
    strip = [chip for group in component(at, "masking_fill_strip")["groups"] for chip in group["chips"]]
    assert sum(bool(chip.get("hidden")) for chip in strip) == (0 if way == "gibbs" else 1)
    assert not at.exception


def test_playing_starts_over_and_a_new_filling_is_shown_whole(open_page: OpenPage, models: Pair) -> None:
    at = in_part(with_gaps(open_page("masking", query=VIEW, text=STORY), 3, 5), "step-by-step")
    at.button(key="masking_fill_play").click().run()
    assert at.slider(key="masking_fill_step").value == 0
    assert at.button(key="masking_fill_play").label == "Pause"
    at = with_gaps(at, 3, 5, 7)
    assert at.slider(key="masking_fill_step").value == 3
    assert at.button(key="masking_fill_play").label == "Play"


def test_one_blank_is_rescored_over_the_whole_vocabulary(open_page: OpenPage, models: Pair) -> None:
    at = with_gaps(open_page("masking", query=VIEW, text=STORY), 5)
    at = in_part(at, "step-by-step", masking_fill_way="rescored")
    clm, mlm = models
    V, ids = mlm.tokenizer.vocab_size, ids_of(models, STORY)
    assert f"All {V:,} fillings were tried" in words(at)
    assert "With one blank the first three ways are the same" in words(in_part(at, "all-ways"))
    at = in_part(at, "step-by-step", masking_fill_way="rescored")
    found = infill.rescore(clm.model, ids, [5], tried=V)
    table = next(d for d in at.dataframe if "share" in d.value.columns).value
    np.testing.assert_allclose(table["share"], found.shares[:6], rtol=1e-5)
    np.testing.assert_allclose(
        table["ln p(v | left)"] + table["ln p(right | left, v)"], table["ln of both together"], rtol=1e-9
    )
    assert any(r"p(v \mid \text{left}, \text{right})" in each.value for each in at.latex)


def test_buttons_hide_five_and_a_row_and_a_word(open_page: OpenPage, models: Pair) -> None:
    at = open_page("masking", query=VIEW, text=STORY)
    for key, n in (("any", 5), ("row", 5)):
        at.button(key=f"masking_fill_{key}").click().run()
        hidden = sorted(at.session_state["_masking_hidden"]["chosen"])
        assert len(hidden) == n and 0 not in hidden
        if key == "row":
            assert hidden == list(range(hidden[0], hidden[0] + n))
    at.button(key="masking_fill_word").click().run()
    hidden = sorted(at.session_state["_masking_hidden"]["chosen"])
    tokens = models[1].tokenizer.tokens(STORY)
    assert (
        b"".join(tokens[i].data for i in hidden).decode().strip()
        in STORY.replace(",", "").replace(".", "").split()
    )
    at.button(key="masking_fill_none").click().run()
    assert "Nothing is hidden" in words(at) and not at.exception


@pytest.mark.parametrize("part", ["all-ways", "step-by-step"])
@pytest.mark.parametrize(
    "text", ["a", "ab", MARKUP, "🙂👨‍👩‍👧 é", "[MASK]", "the [MASK] sat [MASK]", "x " * 300]
)
def test_any_text_with_everything_hidden(text: str, part: str, open_page: OpenPage, models: Pair) -> None:
    at = in_part(open_page("masking", query=VIEW, text=text), part)
    assert not at.exception
    n = len(hiding_chips(at))
    at = with_gaps(at, *range(n))
    assert not at.exception
    if n > fill_data.MOST:
        assert f"{n} tokens are hidden" in words(at)
    else:
        assert "Nothing stands left of the first token" in words(at), "a causal model can't guess the first"


def hiding_chips(at: AppTest) -> list[dict[str, Any]]:
    return [chip for group in component(at, hiding.STRIP)["groups"] for chip in group["chips"]]


def test_typed_masks_have_no_right_answer(open_page: OpenPage, models: Pair) -> None:
    at = open_page("masking", query=VIEW, text="the [MASK] sat")
    assert not framed(at, "mlm") and not framed(at, "clm")
    assert "right" not in at.dataframe[0].value.columns


def test_without_a_causal_model_the_masked_ways_are_shown(open_page: OpenPage, shelf: Path) -> None:
    save_tiny(shelf, "tiny-mlm", objective="mlm", context_length=64)
    at = open_page("masking", query=VIEW, text=STORY)
    assert "There is no causal model" in words(at) and not at.exception
    assert {x for _, x in cells(at)} == {0, 1, 2, 3}


def test_another_vocabulary_or_a_short_context_is_said(open_page: OpenPage, shelf: Path) -> None:
    save_tiny(shelf, "tiny-mlm", objective="mlm", context_length=64)
    save_tiny(shelf, "other", tokenizer=byte_tokenizer(), context_length=64)
    at = open_page("masking", query=VIEW, text=STORY, model="tiny-mlm")
    assert "cuts text into other tokens" in words(at) and not at.exception
    at = open_page("masking", query=VIEW, text=STORY, model="other")
    assert "All 256 tokens of the vocabulary were tried" in words(at), "alone it fills in its own tokens"


def test_a_causal_model_with_a_short_context(open_page: OpenPage, shelf: Path) -> None:
    save_tiny(shelf, "tiny-mlm", objective="mlm", context_length=64)
    save_tiny(shelf, "tiny-clm", context_length=8)
    at = open_page("masking", query=VIEW, text=STORY, model="tiny-mlm")
    assert "reads at most 8 tokens" in words(at) and not at.exception


def test_the_measurement_waits_to_be_asked_and_counts(open_page: OpenPage, shelf: Path) -> None:
    clm = save_tiny(shelf, "tiny-clm", context_length=300)
    mlm = save_tiny(shelf, "tiny-mlm", objective="mlm", context_length=300)
    small = {"masking_right_stories": 10, "masking_right_blanks": 2, "masking_right_seed": 4}
    at = in_part(open_page("masking", query=VIEW, text=STORY), "how-often-right", **small)
    assert not at.exception and not at.dataframe
    at.button(key="masking_right_go").click().run()
    assert not at.exception
    table = next(d for d in at.dataframe if "tokens right" in d.value.columns).value.set_index("way")
    oracle = Oracle(default_grammar(), mlm.tokenizer)
    guesses = fill.masked_guesses(mlm.model, mlm.tokenizer.mask_id)
    rows = fill_scores.held_out_rows(mlm.tokenizer, 10, 4, 300)
    blanks = [fill.some_places(len(ids), 2, 4000 + i, first=1) for i, ids in enumerate(rows)]
    one_pass, left_only, exact = (
        fill_scores.together([score(ids, hidden) for ids, hidden in zip(rows, blanks, strict=True)])
        for score in (
            lambda ids, hidden: fill_scores.score_masked("one_pass", guesses, oracle, ids, hidden, seed=1),
            lambda ids, hidden: fill_scores.score_causal("causal", clm.model, oracle, ids, hidden),
            lambda ids, hidden: fill_scores.score_exact(oracle, ids, hidden),
        )
    )
    names = ("All in one pass", "Causal, left only", "Exact posterior")
    for name, score in zip(names, (one_pass, left_only, exact), strict=True):
        assert table.loc[name, "tokens right"] == f"{score.n_right} of {score.n_places}"
        assert table.loc[name, "possible stories"] == f"{score.n_possible} of 10"
        assert table.loc[name, "−ln p of the truth (nats a token)"] == f"{score.true_nats:.4f}"
    line = plotly(at, "masking_right_shares")["layout"]["shapes"][0]
    assert line["x0"] == pytest.approx(exact.best)
    assert exact.n_right > one_pass.n_right, "untrained weights know nothing"
    assert table.loc["Gibbs resampling", "−ln p of the truth (nats a token)"] == "–"


def test_stories_that_do_not_fit_are_said(open_page: OpenPage, models: Pair) -> None:
    at = in_part(open_page("masking", query=VIEW, text=STORY), "how-often-right")
    at.button(key="masking_right_go").click().run()
    assert "No story fits the context of 64 tokens" in words(at) and not at.exception


@pytest.mark.parametrize(
    "probs", [[0.9766, 0.2974, 0.99812, 0.99999], [0.5], [1e-5, 0.3333333], [0.123456] * 5]
)
def test_the_written_product_follows_from_the_written_factors(probs: list[float]) -> None:
    lines = worked_fill.product(probs).split(r"\\[8pt]")
    at = 0 if len(probs) == 1 else 1  # of one blank the factor is the result
    factors = [number(x) for x in lines[at].split("&=")[1].split(r"\cdot")]
    assert len(factors) == len(probs) and len(lines) == (2 if len(probs) == 1 else 4)
    if len(probs) > 1:
        assert tex(math.prod(factors), 3) == lines[2].removeprefix("&=").strip()
    assert math.prod(factors) == pytest.approx(math.prod(probs), rel=6e-3)
    log = tex(math.fsum(math.log(p) for p in factors), 4)
    assert lines[-1].split("&=")[1].split(r"\ \text")[0].strip() == log


def test_many_factors_are_shortened() -> None:
    assert r"\dots" in worked_fill.product([0.9] * 12)


@pytest.mark.parametrize(
    "logs", [(-1.2345678, -140.98765, -141.5), (-0.0001, -3.0, -2.9), (-9.0, -50.0, -49.0)]
)
def test_the_written_share_follows_from_the_written_logs(logs: tuple[float, float, float]) -> None:
    lines = worked_fill.bayes(*logs, 64).split(r"\\[8pt]")
    a, b, c = re.findall(r"e\^{(\S+) \+ \((\S+)\) - \((\S+)\)}", lines[1])[0]
    written = lines[2].split("&=")[1].split(r"\end")[0].strip()
    assert tex(math.exp(number(a) + number(b) - number(c)), 3) == written
    assert number(written) == pytest.approx(math.exp(logs[0] + logs[1] - logs[2]), rel=6e-3)


def number(written: str) -> float:
    return float(re.sub(r"\\times10\^{(-?\d+)}", r"e\1", written.split(r"\end")[0].strip()))
