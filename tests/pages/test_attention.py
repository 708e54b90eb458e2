"""The Attention page: rows look, columns are looked at, and every weight can be worked out."""

import csv
import io
import math
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.checkpoints import Checkpoint
from engine.trace import Trace, attention_cell, best_head, head_patterns, trace
from tests.pages import tiny
from tests.pages.conftest import OpenPage, component, plotly
from ui import lesson, resources

MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"
REPEATED = "the cat sat on the mat the"


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Checkpoint]:
    folder = tmp_path_factory.mktemp("models")
    found = {
        "stories-clm": tiny.save_tiny(folder, "stories-clm"),
        "stories-mlm": tiny.save_tiny(folder, "stories-mlm", objective="mlm"),
        "long": tiny.save_tiny(folder, "long", context_length=200),
    }
    found["stories-clm"].info["folder"] = str(folder)
    return found


@pytest.fixture(autouse=True)
def models(checkpoints: dict[str, Checkpoint], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "PRETRAINED", Path(checkpoints["stories-clm"].info["folder"]))


def opened(open_page: OpenPage, text: str, model: str = "stories-clm", **state: object) -> AppTest:
    at = open_page("attention", text=text, model=model, **state)
    assert not at.exception, at.exception[0].value
    return at


def looked(checkpoints: dict[str, Checkpoint], text: str, model: str = "stories-clm") -> Trace:
    return trace(checkpoints[model].model, checkpoints[model].tokenizer, text)


def chips(at: AppTest, key: str) -> list[dict[str, object]]:
    return [chip for group in component(at, key)["groups"] for chip in group["chips"]]


def said(at: AppTest) -> str:
    return " ".join(element.value for element in [*at.info, *at.warning])


def drawn(at: AppTest) -> np.ndarray:
    return tiny.array(plotly(at, "attention_map")["data"][0]["z"])


@pytest.mark.parametrize("model", ["stories-clm", "stories-mlm"])
def test_the_map_is_the_engine_s_with_queries_as_rows(
    open_page: OpenPage, checkpoints: dict[str, Checkpoint], model: str
) -> None:
    at = opened(open_page, REPEATED, model, query={"layer": "2", "head": "1"})
    weights = looked(checkpoints, REPEATED, model).attentions[1, 0]
    z = drawn(at)
    hidden = np.triu_indices(len(weights), 1) if model == "stories-clm" else ([], [])
    assert np.isnan(z[hidden]).all() and (weights[hidden] == 0).all()
    np.testing.assert_allclose(np.nan_to_num(z), weights, atol=1e-6)
    np.testing.assert_allclose(np.nansum(z, axis=1), 1, atol=1e-5)
    layout = plotly(at, "attention_map")["layout"]
    assert layout["yaxis"]["autorange"] == "reversed", "row 0 on top"
    assert "query" in layout["yaxis"]["title"]["text"] and "key" in layout["xaxis"]["title"]["text"]
    assert any("Layer 2, head 1" in element.value for element in at.markdown)


def test_repeated_tokens_keep_their_rows_and_columns(open_page: OpenPage) -> None:
    at = opened(open_page, REPEATED)
    n = len(tiny.story_tokenizer().encode(REPEATED))
    layout = plotly(at, "attention_map")["layout"]
    assert drawn(at).shape == (n, n)
    assert layout["xaxis"]["tickvals"] == layout["yaxis"]["tickvals"] == list(range(n))
    assert len(chips(at, "attention_query")) == n


def test_the_overview_holds_every_head(open_page: OpenPage, checkpoints: dict[str, Checkpoint]) -> None:
    at = opened(open_page, REPEATED)
    grid = component(at, "attention_heads")
    traced = looked(checkpoints, REPEATED)
    n = len(traced.ids)
    assert grid["shape"] == [2, 2, n] and grid["causal"]
    packed = tiny.array({"bdata": grid["weights"], "dtype": "u1"}).reshape(2, 2, -1)
    np.testing.assert_allclose(
        packed / 255, traced.attentions[:, :, *np.tril_indices(n)], atol=0.5 / 255 + 1e-6
    )


def test_the_chosen_row_is_listed_and_framed(open_page: OpenPage, checkpoints: dict[str, Checkpoint]) -> None:
    at = opened(open_page, REPEATED, query={"pos": "4", "layer": "1", "head": "2"})
    row = looked(checkpoints, REPEATED).attentions[0, 1, 4]
    assert [chip["value"] for chip in chips(at, "attention_key")] == [
        lesson.brief(x) for x in row[:5].tolist()
    ]
    frame = plotly(at, "attention_map")["layout"]["shapes"][0]
    assert (frame["y0"], frame["y1"]) == (3.5, 4.5)
    assert at.query_params["pos"] == "4" and at.query_params["head"] == "2"


@pytest.mark.parametrize("model", ["stories-clm", "stories-mlm"])
def test_a_weight_is_worked_out(open_page: OpenPage, checkpoints: dict[str, Checkpoint], model: str) -> None:
    at = opened(open_page, REPEATED, model, query={"pos": "5", "layer": "2", "head": "2"})
    traced = looked(checkpoints, REPEATED, model)
    key = int(traced.attentions[1, 1, 5].argmax())  # chosen as long as no other is
    cell = attention_cell(traced, 1, 1, 5, key)
    products = at.dataframe[0].value
    np.testing.assert_allclose(products["q"] * products["k"], products["q · k"], atol=1e-9)
    score = products["q · k"].sum() / math.sqrt(len(products))
    assert abs(score - cell.score) < 1e-9
    assert abs(cell.weight - traced.attentions[1, 1, 5, key]) < 1e-6
    assert f"= {float(f'{cell.weight:.4g}'):.4g}" in at.latex[0].value.replace("0\\end", "\\end")


@pytest.mark.parametrize("model", ["stories-clm", "stories-mlm"])
def test_one_token_looks_at_itself(open_page: OpenPage, model: str) -> None:
    at = opened(open_page, "a", model)
    np.testing.assert_allclose(drawn(at), [[1.0]])
    assert [chip["value"] for chip in chips(at, "attention_key")] == ["1.00"]


def test_empty_text_has_nothing_to_show(open_page: OpenPage) -> None:
    assert "nothing to show" in said(opened(open_page, ""))


@pytest.mark.parametrize("text", [MARKUP, "a😀b 👩‍👩‍👧", "שלום", "a\x00b\r\n\t"])
def test_any_text_is_shown_literally(open_page: OpenPage, text: str) -> None:
    at = opened(open_page, text)
    ids = [chip["id"] for chip in chips(at, "attention_query")]
    assert ids == tiny.story_tokenizer().encode(text)[-len(ids) :]
    written = [element.value for element in [*at.markdown, *at.subheader, *at.caption]]
    assert not [value for value in written if "onerror" in value or "<b>" in value.replace("\\<", "")]


def test_a_text_beyond_the_context_greys_what_is_not_read(open_page: OpenPage) -> None:
    text = "the cat sat " * 8_400  # 100,800 characters
    at = opened(open_page, text)
    n = len(tiny.story_tokenizer().encode(text))
    assert f"Using the last 32 of {n:,} tokens" in said(at)
    assert [bool(chip.get("greyed")) for chip in chips(at, "attention_query")] == [True] * 24 + [False] * 32
    assert drawn(at).shape == (32, 32)


@pytest.mark.parametrize("part", ["first", "last"])
def test_more_tokens_than_can_be_drawn(
    open_page: OpenPage, checkpoints: dict[str, Checkpoint], part: str
) -> None:
    text = "the cat sat on a mat " * 30
    at = opened(open_page, text, "long", attention_part=part)
    traced = looked(checkpoints, text, "long")
    n = len(traced.ids)
    assert 128 < n <= 200 and f"128 of {n} tokens are drawn" in said(at)
    window = slice(0, 128) if part == "first" else slice(n - 128, n)
    np.testing.assert_allclose(np.nan_to_num(drawn(at)), traced.attentions[0, 0, window, window], atol=1e-6)
    assert [c["id"] for c in chips(at, "attention_query")][-128:] == traced.ids[window].tolist()
    assert at.query_params["pos"] == str(127 if part == "first" else n - 1)


def test_find_chooses_the_head_that_follows_a_rule(
    open_page: OpenPage, checkpoints: dict[str, Checkpoint]
) -> None:
    at = opened(open_page, REPEATED)
    traced = looked(checkpoints, REPEATED)
    best = best_head(traced, "previous")
    assert best is not None
    by_hand = np.array([[np.mean(np.diag(traced.attentions[i, j], -1)) for j in range(2)] for i in range(2)])
    assert best == np.unravel_index(by_hand.argmax(), by_hand.shape)
    np.testing.assert_allclose(head_patterns(traced)["previous"], by_hand, rtol=1e-6)
    at.button(key="try_0").click().run()
    assert not at.exception
    assert any(f"Layer {best[0] + 1}, head {best[1] + 1}" in element.value for element in at.markdown)
    at.button(key="try_1").click().run()
    assert not at.exception and at.session_state["text"].count("The fox") == 3


def test_the_download_is_the_map(checkpoints: dict[str, Checkpoint]) -> None:
    traced = looked(checkpoints, REPEATED)
    names = [token.text for token in traced.tokens]
    rows = list(csv.reader(io.StringIO(lesson.table_csv(names, traced.attentions[0, 0]))))
    assert rows[0][1] == f"0 {names[0]}" and len(rows) == len(names) + 1
    np.testing.assert_allclose(
        [[float(x) for x in row[1:]] for row in rows[1:]], traced.attentions[0, 0], rtol=1e-6
    )


def test_no_model_says_what_to_do(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setattr(resources, "PRETRAINED", tmp_path_factory.mktemp("none"))
    at = open_page("attention", text=REPEATED)
    assert not at.exception and "no model" in said(at).lower()


def test_choices_survive_a_page_change(open_page: OpenPage) -> None:
    at = opened(open_page, REPEATED, query={"pos": "3", "layer": "2", "head": "2"})
    at.switch_page("pages/tokens.py").run()
    at.switch_page("pages/attention.py").run()
    assert any("Layer 2, head 2" in element.value for element in at.markdown)
    assert any("Token 3" in element.value for element in at.subheader)
