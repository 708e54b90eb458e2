"""The Attention page: rows look, columns are looked at, and every weight can be worked out."""

import csv
import io
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from engine.checkpoints import Checkpoint
from engine.heads import attention_cell, best_example, head_measures
from engine.trace import Trace, trace
from tests.pages import tiny
from tests.pages.conftest import OpenPage, component, plotly, unpacked
from ui import head_find, head_habits, lesson, model_refs, worked
from viz import format_number, format_prob

MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"
REPEATED = "the cat sat on the mat the"


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Checkpoint]:
    folder = tmp_path_factory.mktemp("models")
    found = {
        "stories-clm": tiny.save_tiny(folder, "stories-clm"),
        "stories-mlm": tiny.save_tiny(folder, "stories-mlm", objective="mlm"),
        "long": tiny.save_tiny(folder, "long", context_length=200),
        "longest": tiny.save_tiny(folder, "longest", context_length=512),
        "longest-mlm": tiny.save_tiny(folder, "longest-mlm", context_length=512, objective="mlm"),
    }
    found["stories-clm"].info["folder"] = str(folder)
    return found


@pytest.fixture(autouse=True)
def models(checkpoints: dict[str, Checkpoint], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_refs, "PRETRAINED", Path(checkpoints["stories-clm"].info["folder"]))


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
    assert layout["yaxis"]["range"] == [len(weights) - 0.5, -0.5], "row 0 on top"
    assert "query" in layout["yaxis"]["title"]["text"] and "key" in layout["xaxis"]["title"]["text"]
    assert any("Layer 2, head 1" in element.value for element in at.markdown)


def significant(x: float) -> int:
    """Significant digits of a number that is written in full."""
    return len(re.sub(r"e.*|[-.]", "", repr(float(x))).strip("0"))


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
    np.testing.assert_allclose(unpacked(grid) / 255, traced.attentions, atol=0.5 / 255 + 1e-6)


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
    products, formula = at.dataframe[0].value, at.latex[0].value
    digits = max(significant(x) for x in products["q · k"])
    for q, k, product in zip(products["q"], products["k"], products["q · k"], strict=True):
        assert abs(q * k - product) <= 0.5000001 * 10 ** (math.floor(math.log10(abs(product))) + 1 - digits)
    dot = re.search(r"q_i k_i = (-?[\d.]+)\\\\", formula)[1]  # type: ignore[index]
    assert abs(products["q · k"].sum() - float(dot)) <= 0.5000001 * 10 ** -len(dot.partition(".")[2])
    assert abs(products["q · k"].sum() / math.sqrt(len(products)) - cell.score) < 1e-3
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
    begin = window.start
    labels = plotly(at, "attention_map")["layout"]["yaxis"]["ticktext"]
    assert labels[0].startswith(f"{begin} ") and component(at, "attention_heads")["first"] == begin
    assert f"drawn: {begin} to {begin + 127}, counted from 0" in said(at)
    assert any("adds up to 1 over the whole text" in element.value for element in at.markdown)


@pytest.mark.parametrize("model", ["stories-clm", "stories-mlm"])
@pytest.mark.parametrize(
    ("button", "rule"), [("try_0", "previous"), ("try_1", "induction"), ("try_2", "first")]
)
def test_what_is_found_is_in_sight(
    open_page: OpenPage, checkpoints: dict[str, Checkpoint], model: str, button: str, rule: str
) -> None:
    at = opened(open_page, REPEATED, model)
    at.button(key=button).click().run()
    assert not at.exception
    text = str(at.session_state["text"])
    assert text in (REPEATED, head_find.REPEATED) and (rule != "induction" or text == head_find.REPEATED)
    found = best_example(looked(checkpoints, text, model), rule)
    assert found is not None
    assert at.query_params["pos"] == str(found.query)
    assert any(f"Layer {found.layer + 1}, head {found.head + 1}" in m.value for m in at.markdown)
    assert any(f"on token {found.key}, " in m.value for m in at.markdown)
    told = next(c.value for c in at.caption if "mean over all rows" in c.value)
    assert format_number(found.mean) in told and format_prob(found.weight) in told
    assert told.startswith("No head") == (found.weight < 0.5), "an untrained head is not praised"
    at.button(key=button).click().run()
    assert at.query_params["pos"] == str(found.query), "the same again"


def test_a_head_is_looked_for_in_a_text_that_shows_it(open_page: OpenPage) -> None:
    at = opened(open_page, "a")
    at.button(key="try_0").click().run()
    assert not at.exception and at.session_state["text"] == head_find.REPEATED
    at = opened(open_page, "the cat sat on a mat " * 30, "long")
    at.button(key="try_2").click().run()
    assert not at.exception and at.session_state["text"] == head_find.REPEATED
    assert any("mean over all rows" in c.value for c in at.caption)


def test_the_download_holds_every_weight_that_can_be(checkpoints: dict[str, Checkpoint]) -> None:
    traced = looked(checkpoints, REPEATED)
    n, names = len(traced.ids), [token.text for token in traced.tokens]
    rows = list(csv.DictReader(io.StringIO(head_habits.weights_csv(traced, names, 1, n, range(2)))))
    assert len(rows) == 2 * 2 * (n - 1) * n / 2
    for row in rows:
        query, key = int(row["query"]), int(row["key"])
        weight = traced.attentions[int(row["layer"]) - 1, int(row["head"]) - 1, query, key]
        assert abs(float(row["weight"]) - weight) < 1e-6
        assert row["query token"].lstrip("'") == names[query] and 1 <= key <= query


def test_no_model_says_what_to_do(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setattr(model_refs, "PRETRAINED", tmp_path_factory.mktemp("none"))
    at = open_page("attention", text=REPEATED)
    assert not at.exception and "no model" in said(at).lower()


def test_choices_survive_a_page_change(open_page: OpenPage) -> None:
    at = opened(open_page, REPEATED, query={"pos": "3", "layer": "2", "head": "2"})
    at.switch_page("pages/tokens.py").run()
    at.switch_page("pages/attention.py").run()
    assert any("Layer 2, head 2" in element.value for element in at.markdown)
    assert any("Token 3" in element.value for element in at.subheader)


def table(at: AppTest, column: str) -> pd.DataFrame:
    return next(frame.value for frame in at.dataframe if column in frame.value.columns)


@pytest.mark.parametrize("model", ["stories-clm", "stories-mlm"])
def test_the_whole_row_with_its_mask(
    open_page: OpenPage, checkpoints: dict[str, Checkpoint], model: str
) -> None:
    at = opened(
        open_page, REPEATED, model, query={"pos": "3", "layer": "1", "head": "2"},
        attention_arithmetic="row",
    )  # fmt: skip
    traced = looked(checkpoints, REPEATED, model)
    row, n = table(at, "mask"), len(traced.ids)
    assert len(row) == n
    np.testing.assert_allclose(row["weight"], traced.attentions[0, 1, 3], rtol=6e-4, atol=1e-6)
    np.testing.assert_allclose(row["q · k"], traced.k[0, 1] @ traced.q[0, 1, 3], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(row["÷ √d"] * math.sqrt(8), row["q · k"], rtol=1e-4)
    hidden = [key > 3 if model == "stories-clm" else False for key in range(n)]
    assert [mask == "− ∞" for mask in row["mask"]] == hidden
    assert (row["weight"][hidden] == 0).all() and (row["e^s"][hidden] == 0).all()
    digits = max(significant(x) for column in ("q · k", "÷ √d", "e^s") for x in row[column])
    written = re.search(r"underbrace\{([\d.]+)\}", at.latex[0].value)[1]  # type: ignore[index]
    assert abs(row["e^s"].sum() - float(written)) <= 0.5000001 * 10 ** -len(written.partition(".")[2])
    for _, line in row[row["mask"] == "+ 0"].iterrows():  # from the numbers that the table shows
        assert worked.tex(line["q · k"] / math.sqrt(8), digits) == worked.tex(line["÷ √d"], digits)
        assert worked.tex(math.exp(line["÷ √d"]), digits) == worked.tex(line["e^s"], digits)
        assert worked.tex(line["e^s"] / float(written), 4) == worked.tex(line["weight"], 4)


@pytest.mark.parametrize("model", ["stories-clm", "stories-mlm"])
def test_weights_times_values_is_the_output(
    open_page: OpenPage, checkpoints: dict[str, Checkpoint], model: str
) -> None:
    at = opened(
        open_page, REPEATED, model, query={"pos": "5", "layer": "2", "head": "1"},
        attention_arithmetic="output", attention_dim=6,
    )  # fmt: skip
    traced = looked(checkpoints, REPEATED, model)
    parts = table(at, "weight × value")
    np.testing.assert_allclose(parts["weight"], traced.attentions[1, 0, 5, : len(parts)], rtol=6e-4)
    np.testing.assert_allclose(parts["value, number 6"], traced.v[1, 0, : len(parts), 5], rtol=6e-4)
    digits = max(significant(x) for x in parts.iloc[:, 2:].to_numpy().ravel())
    for _, line in parts.iterrows():
        product = worked.tex(line["weight"] * line["value, number 6"], digits)
        assert product == worked.tex(line["weight × value"], digits)
    total = parts["weight × value"].sum()
    assert worked.tex(total, 4) == worked.tex(float(traced.heads[1, 0, 5, 5]), 4)
    assert worked.tex(total, 4) in at.latex[0].value
    at.number_input(key="attention_dim").set_value(1).run()
    assert abs(table(at, "weight × value")["weight × value"].sum() - traced.heads[1, 0, 5, 0]) < 1e-3


@pytest.mark.parametrize("model", ["stories-clm", "stories-mlm"])
def test_the_habits_of_all_heads(open_page: OpenPage, checkpoints: dict[str, Checkpoint], model: str) -> None:
    at = opened(open_page, REPEATED, model, query={"layer": "2", "head": "1"})
    found, shown = head_measures(looked(checkpoints, REPEATED, model)), table(at, "entropy (nats)")
    names = {"entropy": "entropy (nats)", "distance": "distance (tokens)", "previous": "previous",
             "first": "first", "same": "duplicate", "induction": "induction"}  # fmt: skip
    for measure, column in names.items():
        np.testing.assert_allclose(shown[column], found[measure].ravel(), atol=1e-6)
    np.testing.assert_allclose(shown["effective tokens"], np.exp(shown["entropy (nats)"]))
    assert ("next" in shown.columns) == (model == "stories-mlm")
    assert at.session_state["attention_habits"]["selection"]["rows"] == [2]


def test_habits_that_a_text_cannot_show_are_named(open_page: OpenPage) -> None:
    at = opened(open_page, "a")
    assert "one token" in said(at) and not any("entropy (nats)" in f.value.columns for f in at.dataframe)
    at = opened(open_page, "cat")
    assert "Left out: duplicate and induction" in " ".join(c.value for c in at.caption)
    assert not table(at, "entropy (nats)").isna().any(axis=None)


def test_a_pressed_cell_chooses_both_tokens(open_page: OpenPage) -> None:
    at = opened(open_page, REPEATED, _attention_pressed=(5, 2), query={"pos": "5"})
    assert any("on token 2," in element.value for element in at.markdown)
    inner = plotly(at, "attention_map")["layout"]["shapes"][1]
    assert (inner["x0"], inner["x1"], inner["y0"]) == (1.5, 2.5, 4.5)


@pytest.mark.parametrize("model", ["longest", "longest-mlm"])
def test_a08_512_tokens_are_sent_in_little(open_page: OpenPage, model: str) -> None:
    at = opened(open_page, "the cat sat on a mat " * 150, model)
    assert "128 of 512 tokens are drawn" in said(at)
    charts = sum(len(e.proto.spec) for e in at.get("plotly_chart"))
    assert charts + sum(len(e.proto.json) for e in at.get("bidi_component")) < 5_000_000
