"""Inside, Embeddings and Worked examples on published models: the engine's numbers, no word of stories."""

import re
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import positions
from engine.ablation import each_alone
from engine.config import Rotary
from engine.contributions import contributions
from engine.heads import attention_cell
from engine.hub import load_folder
from engine.inside import lens
from engine.trace import Trace, trace
from tests.hub_folders import write_bert, write_llama
from tests.pages import tiny
from tests.pages.conftest import OpenPage, component, plotly
from ui import inside_alone, inside_off, model_refs, resources
from ui.example_list import EXAMPLES

TEXT = "One day a fox called Lily met another fox, and Lily"
VIEWS = ["logit-lens", "contributions", "stream", "switch-off"]
TEXTS = [("llama", "a"), ("llama", "😀 👩‍👩‍👧 é"), ("roberta", TEXT), ("roberta", "x" * 3000)]
VECTORS = ["look-up", "position", "neighbours", "map", "length"]


@pytest.fixture
def deep(loupe_home: Path) -> Path:
    """A causal model of more blocks than a map draws."""
    return write_llama(loupe_home / "models" / "deep", n_layer=20)


def opened(open_page: OpenPage, page: str, model: str, text: str = TEXT, **state: object) -> AppTest:
    at = open_page(page, text=text, model=f"hub:{model}", **state)
    assert not at.exception, at.exception[0].value
    return at


def said(at: AppTest) -> str:
    return " ".join(e.value for e in [*at.markdown, *at.info, *at.warning, *at.caption, *at.subheader])


def looked(folder: Path, text: str = TEXT, hidden: tuple[int, ...] = ()) -> Trace:
    read = load_folder(folder)
    return trace(read.model, read.tokenizer, text, hidden=hidden)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("model", "text"), TEXTS)
def test_every_view_opens(open_page: OpenPage, published: Path, view: str, model: str, text: str) -> None:
    at = opened(open_page, "inside", model, text, inside=view)
    assert "stories" not in said(at) and not at.error
    if view == "switch-off":
        at.session_state["inside_off_1"] = ["H2"]
        at.run()
        assert not at.exception


@pytest.mark.parametrize("view", VECTORS)
@pytest.mark.parametrize(("model", "text"), TEXTS)
def test_every_view_of_vectors_opens(
    open_page: OpenPage, published: Path, view: str, model: str, text: str
) -> None:
    at = opened(open_page, "embeddings", model, text, vectors=view)
    assert "stories" not in said(at) and not at.error


@pytest.mark.parametrize("slug", EXAMPLES)
@pytest.mark.parametrize("model", ["llama", "roberta"])
def test_every_example_has_an_answer_with_a_published_model(
    open_page: OpenPage, published: Path, slug: str, model: str
) -> None:
    at = opened(open_page, "examples", model, query={"example": slug, "real": "true"})
    assert not at.error, at.error[0].value


def test_the_lens_of_many_layers_draws_some_of_them(open_page: OpenPage, deep: Path) -> None:
    at = opened(open_page, "inside", "deep", inside="logit-lens", inside_layer=7)
    fig, found = plotly(at, "inside_lens"), lens(load_folder(deep).model, looked(deep))
    names = fig["layout"]["xaxis"]["ticktext"]
    layers = [0 if name == "embed" else int(name) for name in names[:-1]]
    assert {0, 7, 20} <= set(layers) and len(layers) <= 13 and names[-1] == "truth"
    assert f"{len(layers) - 1} of the 20 blocks drawn" in said(at)
    shown = tiny.array(fig["data"][0]["z"])
    first = int(re.match(r"\d+", fig["layout"]["yaxis"]["ticktext"][0])[0])  # type: ignore[index]
    expected = found.probs[layers, first : first + len(shown), 0].T
    np.testing.assert_allclose(shown, expected, atol=1e-5)


def test_the_bars_of_many_blocks_add_up(open_page: OpenPage, deep: Path) -> None:
    at = opened(open_page, "inside", "deep", inside="contributions", query={"pos": "4"})
    bars = plotly(at, "inside_parts")["data"][0]
    values = tiny.array(bars["x"])
    assert len(values) == 18  # the 16 strongest, the others, the sum
    traced = looked(deep)
    assert values[:-1].sum() == pytest.approx(values[-1], abs=1e-4)
    target = int(traced.targets[4])
    assert values[-1] == pytest.approx(float(traced.logits[4, target]), abs=1e-3)
    heads = tiny.array(plotly(at, "inside_by_head")["data"][0]["z"])
    found = contributions(load_folder(deep).model, traced, 4, target)
    assert heads[19, 3] == pytest.approx(
        next(v for p, v in zip(found.parts, found.values, strict=True) if (p.layer, p.head) == (19, 3)),
        abs=1e-5,
    )


def test_a_head_with_a_transform_says_what_is_held(open_page: OpenPage, published: Path) -> None:
    at = opened(open_page, "inside", "roberta", inside="contributions")
    assert r"h \cdot \Phi(h)" in at.latex[1].value and "factors Φ(h) are held" in said(at)
    values = tiny.array(plotly(at, "inside_parts")["data"][0]["x"])
    assert values[:-1].sum() == pytest.approx(values[-1], abs=1e-4)


def test_the_frame_of_a_masked_model_is_not_hidden(open_page: OpenPage, published: Path) -> None:
    for asked in ("0", "99"):
        at = opened(open_page, "inside", "roberta", inside="logit-lens", query={"pos": asked})
        n = len(looked(published / "roberta").ids)
        assert f"position {1 if asked == '0' else n - 2}" in said(at)
    assert component(at, "inside_pos")["groups"]


def test_all_parts_alone_can_be_stopped_and_gone_on_with(
    open_page: OpenPage, deep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = opened(open_page, "inside", "deep", inside="switch-off")
    n = 20 * (4 + 2)
    assert f"{n} passes" in said(at)
    begun = []

    def few(*args: object, skip: int = 0, **more: object):  # type: ignore[no-untyped-def]
        begun.append(skip)
        for i, alone in enumerate(each_alone(*args, skip=skip, **more)):  # type: ignore[arg-type]
            if i == 5 and len(begun) == 1:
                raise ValueError("somebody pressed stop")
            yield alone

    monkeypatch.setattr(inside_alone, "each_alone", few)
    at.button(key="inside_rank").click().run()
    assert not at.exception and "pressed stop" in said(at)
    at.run()
    at.button(key="inside_rank").click().run()
    assert not at.exception and begun == [0, 5]
    read = load_folder(deep)
    expected = [alone.change for alone in each_alone(read.model, looked(deep))]
    table = at.dataframe[0].value
    np.testing.assert_allclose(sorted(table.iloc[:, 2]), sorted(expected), atol=2e-4)
    again = opened(open_page, "inside", "deep", inside="switch-off")
    assert begun == [0, 5] and len(again.dataframe[0].value) == n  # another person finds it done


def test_the_most_missed_head_is_switched_off_once_all_were_tried(open_page: OpenPage, deep: Path) -> None:
    at = opened(open_page, "inside", "deep", inside="logit-lens")
    at.button(key="try_2").click().run()
    assert not at.exception
    rows = at.dataframe[0].value
    heads = rows[rows.iloc[:, 1].str.startswith("H")].iloc[0]
    assert at.session_state[inside_off.key_of(heads.iloc[0] - 1)] == [heads.iloc[1]]
    assert sum(len(at.session_state[inside_off.key_of(i)]) for i in range(20)) == 1


def test_a_turn_has_the_models_own_base(open_page: OpenPage, published: Path) -> None:
    at = opened(open_page, "embeddings", "llama", vectors="position", query={"pos": "6"})
    read = load_folder(published / "llama")
    config, traced = read.model.config, looked(published / "llama")
    assert config.rotary == Rotary(100.0)
    width = config.d_head
    at.number_input(key=f"embeddings_pair_{width // 2 - 1}").set_value(1).run()
    assert f"6 \\cdot 100^{{-2/{width}}}" in at.latex[0].value
    q = traced.q[0, 0, 6]
    before = positions.turn(q, -6, config.rotary)[2:4]
    old, new = plotly(at, "embeddings_turn")["data"][1:3]
    assert tiny.array(old["x"])[-1] == pytest.approx(before[0], abs=1e-5)
    assert tiny.array(new["x"])[-1] == pytest.approx(float(q[2]), abs=1e-5)
    column = at.dataframe[0].value.iloc[:, 1]
    np.testing.assert_allclose(column, column[0], atol=1e-4)


def test_neighbours_are_exact_over_the_whole_vocabulary(open_page: OpenPage, published: Path) -> None:
    at = opened(open_page, "embeddings", "llama", vectors="neighbours")
    rows = load_folder(published / "llama").model.embedding.weight.detach().numpy().astype(np.float64)
    ids = looked(published / "llama").ids
    one = rows[ids[-1]]
    cosines = rows @ one / np.linalg.norm(rows, axis=1) / np.linalg.norm(one)
    cosines[ids[-1]] = -2
    shown = tiny.array(plotly(at, "embeddings_neighbours")["data"][0]["x"])
    assert shown.max() == pytest.approx(cosines.max(), abs=1e-6)


def test_a_head_of_a_published_model_ties_out_in_the_example(open_page: OpenPage, published: Path) -> None:
    at = opened(open_page, "examples", "llama", query={"example": "tiny-attention", "real": "true"})
    traced = looked(published / "llama")
    cell = attention_cell(traced, 0, 0, len(traced.ids) - 1, len(traced.ids) - 1)
    shown = " ".join(str(cells) for cells in at.table[0].value.to_numpy().ravel())
    assert f"{cell.row_weights.max():.3g}"[:4] in shown
    assert rf"\sqrt{{{traced.q.shape[-1]}}}" in at.latex[0].value


def test_a_model_without_moments_says_so(open_page: OpenPage, published: Path) -> None:
    at = opened(open_page, "embeddings", "llama", vectors="map")
    assert "Only one moment" in said(at) and len(at.select_slider) == 0


def test_the_matrix_is_the_models_own_memory_and_cant_be_changed(published: Path) -> None:
    from ui import embedding_data

    ref = next(ref for ref in model_refs.hub_models() if ref.name == "llama")
    matrix, weight = embedding_data.matrix(ref), resources.load(ref).model.embedding.weight
    assert matrix.ctypes.data == weight.data_ptr() and not matrix.flags.writeable


def test_bert_is_looked_into_as_well(open_page: OpenPage, loupe_home: Path) -> None:
    pytest.importorskip("tokenizers", reason="WordPiece needs the tokenizers package")
    write_bert(loupe_home / "models" / "bert")
    for view in VIEWS:
        opened(open_page, "inside", "bert", "the cat sat", inside=view)
    for view in VECTORS:
        opened(open_page, "embeddings", "bert", "the cat sat", vectors=view)


@pytest.mark.parametrize(("model", "biased"), [("llama", False), ("roberta", True)])
def test_only_a_model_with_biases_is_said_to_have_them(
    open_page: OpenPage, published: Path, model: str, biased: bool
) -> None:
    at = opened(open_page, "inside", model, inside="switch-off")
    assert ("and their bias" in said(at)) == biased
