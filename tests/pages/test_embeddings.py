"""The Embeddings page: every number on it is the model's, for any text, kind of position and history."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from streamlit.testing.v1 import AppTest

from engine import embeddings, positions
from engine.checkpoints import Checkpoint, save_checkpoint
from engine.config import ModelConfig
from engine.corpus import stories
from engine.model import Transformer
from engine.tokenizers import Tokenizer, char_tokenizer
from engine.trace import trace
from tests.pages.conftest import OpenPage, component, plotly
from tests.pages.tiny import array, story_tokenizer
from ui import embedding_data, embedding_map, model_refs, nav, resources, session
from ui.model_refs import ModelRef
from viz import visible

VIEWS = ("look-up", "position", "neighbours", "map", "length")
STORY = "Once upon a time, there was a"
MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"
STEPS = (0, 10, 40)
MODELS: dict[str, dict[str, Any]] = {
    "stories-clm": {"positions": "rotary"},
    "stories-mlm": {"positions": "rotary", "objective": "mlm", "tie_head": False},
    "learned": {"positions": "learned"},
    "sinusoidal": {"positions": "sinusoidal"},
}


def save(folder: Path, name: str, tokenizer: Tokenizer, step: int = 40, **more: Any) -> Checkpoint:
    config = ModelConfig(
        vocab_size=tokenizer.model_vocab_size(more.get("objective", "clm")),
        context_length=32,
        n_layer=2,
        n_head=2,
        d_model=16,
        **more,
    )
    model = Transformer(config, torch.Generator().manual_seed(5 + step))
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(6)
    checkpoint = Checkpoint(model.eval(), tokenizer, step=step)
    save_checkpoint(folder / name, checkpoint)
    return checkpoint


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("models")
    for name, more in MODELS.items():
        save(found, name, story_tokenizer(), **more)
    save(found, "one-letter", char_tokenizer("a"))
    for step in STEPS[:-1]:
        save(found / "moments", f"{step:07d}", story_tokenizer(), step=step, positions="rotary")
    return found


@pytest.fixture(autouse=True)
def models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The causal model has a history of three moments, the others have none."""
    monkeypatch.setattr(model_refs, "PRETRAINED", folder)

    def history(ref: ModelRef) -> list[ModelRef]:
        if ref.id != "stories-clm":
            return [ref]
        past = [folder / "moments" / f"{step:07d}" for step in STEPS[:-1]]
        return [
            *(replace(ref, folder=str(path), identity=path.name, step=int(path.name)) for path in past),
            ref,
        ]

    monkeypatch.setattr(model_refs, "history", history)


def opened(
    open_page: OpenPage, view: str, text: str = STORY, model: str = "stories-clm", **state: Any
) -> AppTest:
    at = open_page("embeddings", text=text, model=model, vectors=view, **state)
    assert not at.exception, at.exception[0].value
    return at


def matrix_of(folder: Path, name: str) -> NDArray[Any]:
    from engine.checkpoints import load_checkpoint

    return np.asarray(load_checkpoint(folder / name).model.embedding.weight.detach().numpy())


def token_key(model: str = "stories-clm") -> str:
    return f"embeddings_token_{story_tokenizer().hash}_{'mlm' if model == 'stories-mlm' else 'clm'}"


def said(at: AppTest) -> str:
    return " ".join(element.value for element in [*at.info, *at.warning, *at.caption, *at.markdown])


def formulas(at: AppTest) -> str:
    return " ".join(element.value for element in at.latex)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", [STORY, "a", "a😀b 👩‍👩‍👧", MARKUP, STORY * 300])
def test_every_view_opens(open_page: OpenPage, view: str, model: str, text: str) -> None:
    at = opened(open_page, view, text, model)
    written = [element.value for element in [*at.markdown, *at.subheader, *at.caption]]
    assert not [value for value in written if "onerror" in value or "<b>" in value.replace("\\<", "")]
    assert at.subheader[-1].value == "Try this"


@pytest.mark.parametrize("view", VIEWS)
def test_a_vocabulary_of_one_token(open_page: OpenPage, view: str) -> None:
    opened(open_page, view, "aaa", "one-letter")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("model", ["stories-clm", "stories-mlm"])
def test_the_shipped_models(
    open_page: OpenPage, view: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    if model not in {ref.id for ref in model_refs.shipped_models()}:
        pytest.skip(f"pretrained/{model} is not there")
    opened(open_page, view, session.DEFAULT_TEXT, model)


def test_empty_text_has_nothing_to_show(open_page: OpenPage) -> None:
    assert "nothing to show" in said(opened(open_page, "map", ""))


def test_an_unknown_view_in_the_address_opens_the_first(open_page: OpenPage) -> None:
    at = open_page("embeddings", query={"vectors": "nonsense"}, text=STORY)
    assert not at.exception and plotly(at, "embeddings_lookup")


def test_the_page_comes_after_tokens() -> None:
    order = [info.name for info in nav.PAGES]
    assert order[order.index("tokens") + 1] == "embeddings"


def test_the_row_of_the_chosen_token(open_page: OpenPage, folder: Path) -> None:
    at = opened(open_page, "look-up", query={"pos": "3"}, embeddings_dim_16=5)
    matrix, ids = matrix_of(folder, "stories-clm"), story_tokenizer().encode(STORY)
    fig = plotly(at, "embeddings_lookup")["data"]
    np.testing.assert_allclose(array(fig[3]["y"]), matrix[ids[3]], atol=1e-7)
    hot = array(fig[0]["z"])
    assert hot.shape == (1, len(matrix)) and hot[0, ids[3]] == 1 and hot.sum() == 1
    assert list(at.dataframe[0].value["value"]) == pytest.approx(matrix[ids[3]].tolist())
    assert rf"E_{{{ids[3]},5}} = {float(matrix[ids[3], 5]):.4g}"[:14] in formulas(at)


def test_the_row_can_be_taken_away() -> None:
    values = np.array([0.1, -2.5e-5], dtype=np.float32)
    lines = embedding_data.vector_csv(values).splitlines()
    assert lines[0] == "dimension,value"
    assert [np.float32(line.split(",")[1]) for line in lines[1:]] == values.tolist()


def test_any_token_of_the_vocabulary(open_page: OpenPage, folder: Path) -> None:
    at = opened(open_page, "look-up", **{token_key(): 200})
    fig = plotly(at, "embeddings_lookup")["data"]
    np.testing.assert_allclose(array(fig[3]["y"]), matrix_of(folder, "stories-clm")[200], atol=1e-7)
    # a token chosen in the text ends it
    at.session_state["embeddings_strip"] = {"selected": 0}
    at.run()
    assert array(plotly(at, "embeddings_lookup")["data"][0]["z"])[0, story_tokenizer().encode(STORY)[0]] == 1


def test_a_token_from_another_vocabulary_is_not_asked_for(open_page: OpenPage) -> None:
    at = opened(open_page, "look-up", **{token_key(): 200})
    at.session_state["text"] = "aa"
    at.session_state["model"] = "one-letter"
    at.run()
    assert not at.exception
    assert array(plotly(at, "embeddings_lookup")["data"][0]["z"]).shape == (1, 1)


def test_the_turn_is_that_of_the_model(open_page: OpenPage, folder: Path) -> None:
    from engine.checkpoints import load_checkpoint

    at = opened(
        open_page, "position", query={"pos": "4"}, embeddings_layer_2=2, embeddings_head_2=1,
        embeddings_pair_3=1,
    )  # fmt: skip
    checkpoint = load_checkpoint(folder / "stories-clm")
    traced = trace(checkpoint.model, checkpoint.tokenizer, STORY)
    q = traced.q[1, 0, 4].astype(float)
    arc, old, new = plotly(at, "embeddings_turn")["data"]
    np.testing.assert_allclose([array(new["x"])[1], array(new["y"])[1]], q[2:4], atol=1e-6)
    angle = 4 * 10000 ** (-2 / 8)
    before = complex(*q[2:4]) * np.exp(-1j * angle)
    np.testing.assert_allclose(
        [array(old["x"])[1], array(old["y"])[1]], [before.real, before.imag], atol=1e-6
    )
    table = at.dataframe[0].value
    own = float(q @ traced.k[1, 0, 3].astype(float))
    np.testing.assert_allclose(table["together"], own, rtol=1e-6)
    assert abs(table["alone"][3] - own) > 1e-3
    assert list(table["both"])[1] == "5, 4"
    np.testing.assert_allclose(
        array(plotly(at, "embeddings_speeds")["data"][0]["y"]),
        2 * np.pi * 10000 ** (np.arange(4) / 4),
        rtol=1e-6,
    )


@pytest.mark.parametrize("model", ["learned", "sinusoidal"])
def test_what_is_added_adds_up_to_what_enters(open_page: OpenPage, folder: Path, model: str) -> None:
    from engine.checkpoints import load_checkpoint

    at = opened(open_page, "position", model=model, query={"pos": "4"})
    checkpoint = load_checkpoint(folder / model)
    ids = torch.tensor([checkpoint.tokenizer.encode(STORY)])
    entered = checkpoint.model.embed(ids)[0, 4].detach().numpy()
    z = array(plotly(at, "embeddings_sum")["data"][0]["z"])
    np.testing.assert_allclose(z[2], entered, atol=1e-6)
    np.testing.assert_allclose(z[0] + z[1], z[2], atol=1e-6)
    table = array(plotly(at, "embeddings_table")["data"][0]["z"])
    np.testing.assert_allclose(table[4], z[1], atol=1e-7)
    assert len(table) == 32


def test_other_kinds_are_explained_and_offered(open_page: OpenPage, folder: Path) -> None:
    at = opened(open_page, "position", embeddings_kind_rotary="sinusoidal")
    table = array(plotly(at, "embeddings_table")["data"][0]["z"])
    np.testing.assert_allclose(table, positions.sinusoid(32, 16), atol=1e-7)
    assert "nothing in it is learned" in said(at)
    at = opened(open_page, "position", embeddings_kind_rotary="learned")
    assert "no such matrix" in said(at)
    assert [button.key for button in at.button if "embeddings_use" in str(button.key)] == [
        "embeddings_use_learned", "embeddings_use_one-letter",
    ]  # fmt: skip
    at.button(key="embeddings_use_learned").click().run()
    assert not at.exception and plotly(at, "embeddings_sum")


def test_without_a_learned_model_it_says_so(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_refs, "available_models", lambda owner: model_refs.shipped_models()[:0])
    monkeypatch.setattr(
        model_refs, "available_models",
        lambda owner: [ref for ref in model_refs.shipped_models() if ref.id == "stories-clm"],
    )  # fmt: skip
    at = opened(open_page, "position", embeddings_kind_rotary="learned")
    assert "No other model at hand has one" in said(at)


@pytest.mark.parametrize("model", ["stories-clm", "stories-mlm"])
def test_neighbours_are_those_of_brute_force(open_page: OpenPage, folder: Path, model: str) -> None:
    at = opened(open_page, "neighbours", model=model, **{token_key(model): 300})
    matrix = matrix_of(folder, model).astype(float)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    values = unit @ unit[300]
    order = [i for i in np.argsort(-values, kind="stable") if i != 300]
    shown = [*order[:12], *order[-4:]]
    bar = plotly(at, "embeddings_neighbours")["data"][0]
    np.testing.assert_allclose(array(bar["x"]), values[shown], atol=1e-6)
    names = [row[0] for row in bar["customdata"]]
    assert names[0].replace("&lt;", "<") == visible(story_tokenizer().token_bytes(int(order[0])))
    at.selectbox(key=f"embeddings_pair_{model}_300").select(int(order[-1])).run()
    assert f"{abs(values[order[-1]]):.4f}" in formulas(at)


def test_a_token_of_zeros_has_no_neighbours(
    open_page: OpenPage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zeroed = matrix_of(folder, "stories-clm").copy()
    zeroed[300] = 0
    monkeypatch.setattr(embedding_data, "matrix", lambda ref: zeroed)
    embedding_data.neighbours.clear()
    at = opened(open_page, "neighbours", **{token_key(): 300})
    assert "points nowhere" in said(at)
    embedding_data.neighbours.clear()


def slider(at: AppTest) -> Any:
    return at.select_slider(key="embeddings_step_stories-clm")


@pytest.mark.parametrize("which", ["frequent", "seen", "all"])
def test_the_map_keeps_its_axes_while_tokens_move(open_page: OpenPage, folder: Path, which: str) -> None:
    counts = embeddings.token_counts(
        story_tokenizer().encode(stories(embedding_data.SAMPLE, seed=1).text), story_tokenizer().vocab_size
    )
    order = embeddings.most_frequent(counts, 400)
    n_seen = int((counts > 0).sum())
    ids = order[: {"frequent": min(300, n_seen), "seen": n_seen, "all": 400}[which]]
    last = matrix_of(folder, "stories-clm").astype(float)
    mean = last[ids].mean(axis=0)
    covariance = (last[ids] - mean).T @ (last[ids] - mean)
    values, vectors = np.linalg.eigh(covariance)
    at = opened(open_page, "map", embeddings_which=which)
    assert slider(at).value == STEPS[-1] and list(slider(at).options) == [f"{step}" for step in STEPS]
    ranges = []
    for step in STEPS:
        slider(at).set_value(step).run()
        assert not at.exception
        name = "stories-clm" if step == STEPS[-1] else f"moments/{step:07d}"
        matrix = matrix_of(folder, name).astype(float)
        fig = plotly(at, "embeddings_map")
        chosen = next(part for part in fig["data"] if part["name"] == "chosen")
        token_id = story_tokenizer().encode(STORY)[-1]
        for k, axis in enumerate("xy"):
            expected = (matrix[token_id] - mean) @ vectors[:, -1 - k]
            assert abs(array(chosen[axis])[0]) == pytest.approx(abs(expected), abs=1e-5)
        ranges.append([fig["layout"][axis]["range"] for axis in ("xaxis", "yaxis")])
        title = fig["layout"]["xaxis"]["title"]["text"]
        assert title == f"PC 1, {100 * values[-1] / values.sum():.2g} % of the variance at step 40"
        trail = [part for part in fig["data"] if part["name"].startswith("way")]
        assert [len(array(part["x"])) for part in trail] == [
            STEPS.index(step) + 1, len(STEPS) - STEPS.index(step),
        ]  # fmt: skip
    assert ranges[0] == ranges[1] == ranges[2]


def test_all_points_are_inside_the_axes(open_page: OpenPage) -> None:
    at = opened(open_page, "map", embeddings_axes=3)
    fig = plotly(at, "embeddings_map")
    for axis in "xyz":
        low, high = fig["layout"]["scene"][f"{axis}axis"]["range"]
        for part in fig["data"]:
            assert all(low <= x <= high for x in array(part[axis]))


def test_the_first_step_is_seen_closely_and_its_size_is_said(open_page: OpenPage) -> None:
    at = opened(open_page, "map")
    slider(at).set_value(STEPS[0]).run()
    far = plotly(at, "embeddings_map")
    wide = [np.ptp(fig["layout"]["xaxis"]["range"]) for fig in [far]]
    at.toggle(key="embeddings_zoom").set_value(True).run()
    assert not at.exception
    near = plotly(at, "embeddings_map")
    points = np.concatenate([array(p["x"]) for p in near["data"] if not p["name"].startswith("way")])
    low, high = near["layout"]["xaxis"]["range"]
    assert low < points.min() and points.max() < high
    assert high - low == pytest.approx(1.12 * np.ptp(points), rel=1e-4) and high - low <= wide[0]
    assert "the axes hold only this step" in said(at)


def test_a_tiny_cloud_is_explained(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    real = resources.embedding_of
    monkeypatch.setattr(resources, "embedding_of", lambda ref: real(ref) * np.float32(0.01))
    embedding_data.movie.clear()
    at = opened(open_page, "map")
    assert "tiny and random" not in said(at)
    slider(at).set_value(STEPS[0]).run()
    assert "At step 0 the vectors are tiny and random" in said(at) and "zoom to see" in said(at)
    at.button(key="try_1").click().run()
    assert at.toggle(key="embeddings_zoom").value and "zoom to see" not in said(at)
    embedding_data.movie.clear()


@pytest.mark.parametrize(("model", "words"), [("stories-clm", "pushed"), ("stories-mlm", "weight decay")])
@pytest.mark.parametrize("view", ["look-up", "length", "map"])
def test_rows_that_nothing_taught_are_not_called_learned(
    open_page: OpenPage, view: str, model: str, words: str
) -> None:
    ids = story_tokenizer().encode(stories(embedding_data.SAMPLE, seed=1).text)
    counts = np.bincount(ids, minlength=400)
    never = int(np.flatnonzero(counts == 0)[0])
    at = opened(open_page, view, model=model, embeddings_which="all", **{token_key(model): never})
    assert words in said(at) and "All of them were learned" not in said(at)
    if view == "look-up":
        busiest = int(np.argmax([counts[max(i - 4, 0) : i + 5].min() for i in range(396)]))
        at = opened(open_page, view, model=model, **{token_key(model): busiest})
        shown = [
            int(t.split()[0].removeprefix("<b>"))
            for t in plotly(at, "embeddings_lookup")["layout"]["yaxis2"]["ticktext"]
        ]
        assert ("All of them were learned" in said(at)) == bool(counts[shown].all())


def test_a_model_without_a_history_stands_still(open_page: OpenPage) -> None:
    at = opened(open_page, "map", model="stories-mlm")
    assert not at.select_slider
    assert "can’t move" in said(at)
    fig = plotly(at, "embeddings_map")
    assert not [part for part in fig["data"] if part["name"].startswith("way")]
    assert "at step" not in fig["layout"]["xaxis"]["title"]["text"]


def test_all_moments_are_projected_once(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened(open_page, "map")
    monkeypatch.setattr(resources, "embedding_of", lambda ref: pytest.fail("read again"))
    slider(at).set_value(STEPS[0]).run()
    assert not at.exception


def test_lengths_by_how_often_tokens_occur(open_page: OpenPage, folder: Path) -> None:
    at = opened(open_page, "length", model="stories-mlm")
    matrix = matrix_of(folder, "stories-mlm").astype(float)
    ids = story_tokenizer().encode(stories(embedding_data.SAMPLE, seed=1).text)
    counts = np.bincount(ids, minlength=len(matrix))
    fig = plotly(at, "embeddings_norms")
    seen = [part for part in fig["data"] if part.get("xaxis") == "x2"]
    drawn = sorted(pair for part in seen for pair in zip(array(part["x"]), array(part["y"]), strict=True))
    lengths = np.linalg.norm(matrix, axis=1)
    np.testing.assert_allclose(
        drawn, sorted((counts[i], lengths[i]) for i in np.flatnonzero(counts)), rtol=1e-6
    )
    never = [part for part in fig["data"] if part.get("xaxis") != "x2"]
    assert sum(len(array(part["y"])) for part in never) == int((counts == 0).sum())
    r = np.corrcoef(np.log10(counts[counts > 0]), lengths[counts > 0])[0, 1]
    assert f"{abs(r):.3g}"[:4] in said(at)
    assert f"{len(ids):,} tokens" in said(at)


def test_a_run_is_counted_in_its_own_text(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    save(run / "checkpoints", "0000040", story_tokenizer())
    (run / "corpus.txt").write_text("the the cat\n", "utf-8")
    ref = replace(model_refs.shipped_models()[0], id="run:x", kind="run", identity="x",
                  folder=str(run / "checkpoints" / "0000040"), corpus="pasted")  # fmt: skip
    found = embedding_data._in_corpus(ref)
    assert found is not None and found.source == "the text that this run learned from"
    assert (
        found.counts.tolist()
        == np.bincount(story_tokenizer().encode("the the cat\n"), minlength=len(found.counts)).tolist()
    )


def test_without_a_corpus_nothing_is_said_of_how_often_tokens_occur(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_data, "_in_corpus", lambda ref: None)
    at = opened(open_page, "length", "a b")
    assert "is not here to count" in said(at) and "correlation" not in said(at)
    bars = plotly(at, "embeddings_norms")["data"][0]
    assert bars["type"] == "bar" and "never" not in said(at)
    at = opened(open_page, "look-up", "a b")
    assert "can’t be told" in said(at) and "All of them were learned" not in said(at)
    at = opened(open_page, "map", "a b")
    assert at.session_state["embeddings_which"] == "all"


def test_the_things_to_try(open_page: OpenPage) -> None:
    at = opened(open_page, "look-up")
    at.button(key="try_1").click().run()
    assert slider(at).value == STEPS[0] and plotly(at, "embeddings_map")
    at.button(key="try_0").click().run()
    assert at.session_state["text"].endswith("called Lily") and plotly(at, "embeddings_neighbours")
    last = [chip for group in component(at, "embeddings_strip")["groups"] for chip in group["chips"]][-1]
    assert component(at, "embeddings_strip")["selected"] == last["i"]
    at.button(key="try_2").click().run()
    assert not at.exception and plotly(at, "embeddings_norms")
    counts = embeddings.token_counts(
        story_tokenizer().encode(stories(embedding_data.SAMPLE, seed=1).text), 400
    )
    rarest = at.session_state[token_key()]
    assert counts[rarest] == counts[counts > 0].min()


def test_without_a_history_the_map_is_turned(open_page: OpenPage) -> None:
    at = opened(open_page, "look-up", model="stories-mlm")
    at.button(key="try_1").click().run()
    assert not at.exception and "scene" in plotly(at, "embeddings_map")["layout"]


def test_choices_survive_a_page_change(open_page: OpenPage) -> None:
    at = opened(open_page, "map", embeddings_which="all", embeddings_axes=3)
    slider(at).set_value(STEPS[1]).run()
    at.switch_page("pages/tokens.py").run()
    at.switch_page("pages/embeddings.py").run()
    assert slider(at).value == STEPS[1] and "scene" in plotly(at, "embeddings_map")["layout"]


def test_the_slider_s_first_place_is_the_oldest_moment() -> None:
    ref = model_refs.shipped_models()[0]
    assert embedding_map.step_key(ref) == f"embeddings_step_{ref.id}"
