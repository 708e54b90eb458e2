"""The Masking page: what it shows is what the engine computes, for any text and any set of gaps."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.checkpoints import Checkpoint, save_checkpoint
from engine.corpus import own_text
from engine.gaps import fill_gaps, gap_tokens
from engine.grammar import default_grammar
from engine.mask_draws import count_fates, draw_masks
from engine.metrics import next_token_scores, softmax
from engine.model import Transformer
from engine.oracle import Oracle
from engine.plan import SIZES
from engine.pseudo import pseudo_log_probs, totals, two_orders
from engine.run_info import RunInfo
from engine.runs import RunSpec, RunStore
from engine.sampling import next_logits
from engine.tokenizers import Tokenizer, byte_tokenizer, char_tokenizer, train_bpe
from tests.pages.conftest import OpenPage, Pair, component, plotly
from tests.pages.tiny import array, save_tiny
from ui import hiding, masking_pair, masking_sentence, model_refs, passes, resources, worked_masking
from ui.lesson import brief
from ui.masking_pair import NURSERY
from ui.worked import tex
from viz import format_nats, format_number, format_prob
from viz.masking import fate_color

STORY = "Once upon a time, there was a princess called Nora. She"
MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"
needs_shipped = pytest.mark.skipif(
    len(model_refs.shipped_models()) < 2, reason="pretrained/ has no shipped pair"
)


def with_gaps(at: AppTest, *positions: int) -> AppTest:
    """Hide exactly these, as presses on the strip do."""
    at.session_state["_masking_hidden"]["chosen"] = set(positions)
    return at.run()


def chips(at: AppTest, key: str = hiding.STRIP) -> list[dict[str, Any]]:
    return [chip for group in component(at, key)["groups"] for chip in group["chips"]]


def hidden(at: AppTest) -> list[int]:
    return [chip["i"] for chip in chips(at) if chip.get("hidden")]


def captions(at: AppTest) -> str:
    return "\n".join(caption.value for caption in at.caption)


def words(at: AppTest) -> str:
    return captions(at) + "\n".join(e.value for e in [*at.markdown, *at.info])


def sides(at: AppTest, key: str) -> list[np.ndarray[Any, Any]]:
    return [array(trace["x"]) for trace in plotly(at, key)["data"]]


def test_both_pictures_are_the_engines_and_the_truth_is_the_oracles(
    open_page: OpenPage, models: Pair
) -> None:
    clm, mlm = models
    ids = clm.tokenizer.encode(STORY)
    at = open_page("masking", text=STORY)
    (place,) = hidden(at)
    both = softmax(fill_gaps(mlm.model, ids, [place], mlm.tokenizer.mask_id)[place])
    left = softmax(next_logits(clm.model, ids[:place]))
    oracle = Oracle(default_grammar(), clm.tokenizer)
    exact = {
        "masking_both": (both, np.append(oracle.masked(ids, [place])[0], 0)),
        "masking_left": (left, oracle.distributions(ids[:place])[-1]),
    }
    for key, (probs, truth) in exact.items():
        order = np.argsort(-probs, kind="stable")[:6].tolist()
        order += [ids[place]] if ids[place] not in order else []
        model_bars, true_bars = sides(at, key)
        assert np.abs(model_bars[:-1] - probs[order]).max() < 1e-6
        assert np.abs(true_bars[:-1] - truth[order]).max() < 1e-6
        assert model_bars.sum() == pytest.approx(1, abs=1e-5) and true_bars.sum() == pytest.approx(
            1, abs=1e-5
        )
    assert format_nats(float(-np.log(both[ids[place]]))) in captions(at)
    assert format_nats(float(-np.log(left[ids[place]]))) in captions(at)


def test_hiding_one_more_token_changes_the_masked_guess_only(open_page: OpenPage, models: Pair) -> None:
    at = open_page("masking", text=STORY, masking_place=5)
    at = with_gaps(at, 5)
    before = {key: sides(at, key)[0] for key in ("masking_left", "masking_both")}
    at = with_gaps(at, 5, 9)
    assert hidden(at) == [5, 9]
    assert np.array_equal(before["masking_left"], sides(at, "masking_left")[0])
    assert not np.array_equal(before["masking_both"], sides(at, "masking_both")[0])


def test_nothing_everything_and_some_hidden(open_page: OpenPage, models: Pair) -> None:
    at = open_page("masking", text=STORY)
    n = len(chips(at))
    at.button(key="masking_none").click().run()
    assert hidden(at) == [] and "Nothing is hidden" in at.info[0].value
    at.button(key="masking_all").click().run()
    assert hidden(at) == list(range(n))
    assert not at.exception and not at.error
    at.button(key="masking_chance").click().run()
    ids = models[1].tokenizer.encode(STORY)
    expected = draw_masks(
        ids, mask_prob=0.15, mask_id=models[1].tokenizer.mask_id, seed=1, only_mask=True
    ).scored
    assert hidden(at) == expected
    at.number_input(key="masking_seed").set_value(2).run()
    again = draw_masks(
        ids, mask_prob=0.15, mask_id=models[1].tokenizer.mask_id, seed=2, only_mask=True
    ).scored
    assert hidden(at) == again


def test_a_typed_mask_is_one_gap_that_nobody_knows(open_page: OpenPage, models: Pair) -> None:
    at = open_page("masking", text="Once upon a time, there was a [MASK] called Nora. She")
    assert len(hidden(at)) == 1
    (chip,) = [c for c in chips(at) if c.get("hidden")]
    assert chip["id"] == models[1].tokenizer.mask_id
    assert "surprisal" not in captions(at)
    assert plotly(at, "masking_both") and plotly(at, "masking_left")
    assert r"\[MASK\] is one hidden token" in words(at)  # said on the page


def test_a_causal_model_cannot_read_past_a_typed_mask(open_page: OpenPage, models: Pair) -> None:
    at = open_page("masking", text="A [MASK] was called [MASK]. She")
    first, second = hidden(at)
    at.selectbox(key="masking_place").set_value(second).run()
    assert "does not know" in words(at)
    assert not at.exception


def test_the_share_to_hide_is_a_slider(open_page: OpenPage, models: Pair) -> None:
    at = open_page("masking", text=STORY)
    at.slider(key="masking_share").set_value(50).run()
    tokenizer = models[1].tokenizer
    half = draw_masks(
        tokenizer.encode(STORY), mask_prob=0.5, mask_id=tokenizer.mask_id, seed=1, only_mask=True
    ).scored
    assert hidden(at) == half and len(half) > 3
    at.slider(key="masking_share").set_value(100).run()
    assert hidden(at) == list(range(len(tokenizer.encode(STORY))))


def test_the_winner_and_why_follow_from_the_two_probabilities(open_page: OpenPage, models: Pair) -> None:
    clm, mlm = models
    ids = clm.tokenizer.encode(STORY)
    oracle = Oracle(default_grammar(), clm.tokenizer)
    exact = {
        i: (oracle.masked(ids, [i])[0][ids[i]], oracle.distributions(ids[:i])[-1][ids[i]]) for i in (5, 8)
    }
    place = max(exact, key=lambda i: exact[i][0] / exact[i][1])  # the right side tells something there
    t_m, t_c = exact[place]
    assert t_m > 1.01 * t_c
    at = with_gaps(open_page("masking", text=STORY), place)
    p_m = softmax(fill_gaps(mlm.model, ids, [place], mlm.tokenizer.mask_id)[place])[ids[place]]
    p_c = softmax(next_logits(clm.model, ids[:place]))[ids[place]]
    said = words(at)
    winner = "masked" if p_m > p_c else "causal"
    assert f"The {winner} model wins" in said
    assert format_nats(abs(float(np.log(p_m / p_c)))) in said
    assert "That part of the lead is told" in said
    assert f"{format_prob(float(t_c))} (left) to {format_prob(float(t_m))}" in said


def test_both_masks_and_both_inputs_are_drawn_around_the_gap(open_page: OpenPage, models: Pair) -> None:
    ids = models[0].tokenizer.encode(STORY)
    at = open_page("masking", text=STORY)
    (place,) = hidden(at)
    given = [chip["id"] for chip in chips(at, "masking_given_left")]
    assert given == ids[max(0, place - 16) : place][-len(given) :] and given[-1] == ids[place - 1]
    masked = [chip["id"] for chip in chips(at, "masking_given_both")]
    assert masked.count(models[1].tokenizer.mask_id) == 1 and len(masked) == min(16, len(ids))
    for key, n in (("masking_matrix_clm", len(given)), ("masking_matrix_mlm", len(masked))):
        figure = plotly(at, key)
        seen = array(figure["data"][0]["z"])
        upper = np.isnan(seen[np.triu_indices(n, 1)])
        assert seen.shape == (n, n) and upper.all() == (key == "masking_matrix_clm")
        assert not np.isnan(seen[np.tril_indices(n)]).any()
    frame = plotly(at, "masking_matrix_clm")["layout"]["shapes"][-1]
    assert (frame["y0"], frame["y1"]) == (len(given) - 1.5, len(given) - 0.5)  # the row before the gap


def test_a_training_row_shows_every_fate(open_page: OpenPage, models: Pair) -> None:
    at = open_page("masking", text=STORY, hide="masked-batch", masking_batch_seed=4, masking_epoch=3)
    tokenizer = models[1].tokenizer
    how: dict[str, Any] = {"mask_prob": 0.15, "mask_id": tokenizer.mask_id, "seed": 4}
    row = draw_masks(tokenizer.encode(STORY), **how, epoch=3)
    shown = chips(at, "masking_batch")
    assert [chip["id"] for chip in shown] == row.inputs
    for chip, fate in zip(shown, row.fates, strict=True):
        assert chip["value"] == "−100" if fate == "not scored" else chip["value"].startswith(f"{fate} → ")
        assert chip["color"] == fate_color(fate)
    at.button(key="masking_again").click().run()
    assert at.number_input(key="masking_batch_seed").value != 4


def test_epochs_have_other_masks_and_an_evaluation_the_same(open_page: OpenPage, models: Pair) -> None:
    at = open_page("masking", text=STORY, hide="masked-batch")
    first = [chip["value"] for chip in chips(at, "masking_batch")]
    at.slider(key="masking_epoch").set_value(2).run()
    assert [chip["value"] for chip in chips(at, "masking_batch")] != first
    drawn = array(plotly(at, "masking_epochs")["data"][0]["z"])
    assert len({tuple(np.flatnonzero(~np.isnan(row))) for row in drawn}) > 6
    at.segmented_control(key="masking_masks").set_value("evaluation").run()
    drawn = array(plotly(at, "masking_epochs")["data"][0]["z"])
    assert len({tuple(np.flatnonzero(~np.isnan(row))) for row in drawn}) == 1
    assert set(drawn[~np.isnan(drawn)]) == {0}  # only the mask


def test_counts_of_many_draws_stand_beside_their_bounds(open_page: OpenPage, models: Pair) -> None:
    at = open_page("masking", text=STORY, hide="masked-batch")
    tokenizer = models[1].tokenizer
    ids, how = tokenizer.encode(STORY), {"mask_prob": 0.15, "mask_id": tokenizer.mask_id, "seed": 1}
    row = draw_masks(ids, **how, epoch=1)  # type: ignore[arg-type]
    found = count_fates(ids, row, **how)  # type: ignore[arg-type]
    table = at.table[0].value
    assert table["in 1,000 draws"].tolist() == [f"{c.many:,}" for c in found.rows]
    assert table["bounds"].tolist() == [f"{c.low:,} … {c.high:,}" for c in found.rows]
    assert "at most one set in 1,000" in captions(at)
    assert format_number(found.fit.p_value) in captions(at)


def test_a_row_of_four_tokens_says_how_often_nothing_is_chosen(open_page: OpenPage, models: Pair) -> None:
    at = open_page("masking", text=STORY, hide="masked-batch")
    at.button(key="batch_try_1").click().run()
    assert len(chips(at, "masking_batch")) == 4
    assert "0.85^{4} = 0.5220" in at.latex[0].value
    assert "This is the chance that a row of 4 tokens has no target" in words(at)
    assert any(chip["value"] != "−100" for chip in chips(at, "masking_batch"))  # one was picked


def test_what_is_scored_and_what_it_is_called(open_page: OpenPage, models: Pair) -> None:
    at = open_page("masking", text=STORY, hide="what-is-paid")
    (place,) = hidden(at)
    n = len(chips(at))
    scored = [metric.value for metric in at.metric if metric.label.startswith("Positions")]
    assert [value.split(" (")[0] for value in scored] == [f"{n - 1} of {n}", f"1 of {n}"]
    ids = models[0].tokenizer.encode(STORY)
    labels = {metric.label: metric.value for metric in at.metric}
    found = next_token_scores(passes.traced(model_refs.shipped_models()[0], STORY).logits, ids)
    assert labels["Loss, nats per token"] == format_number(found.loss)
    assert "Masked-token loss, nats per hidden token" in labels
    assert not any("perplexity" in label.lower() for label in labels)
    causal = [chip["value"] for chip in chips(at, "masking_paid_clm")]
    assert causal == ["–", *(brief(float(-x)) for x in found.log_probs)]
    masked = [chip["value"] for chip in chips(at, "masking_paid_mlm")]
    assert [i for i, value in enumerate(masked) if value != "–"] == [place]


@needs_shipped
def test_the_shipped_pair_is_of_equal_size_and_each_loss_has_its_own_axis(open_page: OpenPage) -> None:
    at = open_page("masking", text=STORY, hide="what-is-paid")
    assert "differ by 128 parameters" in captions(at)
    rows = at.table[0].value.set_index(at.table[0].value.columns[0])
    assert rows.loc["tokens read"].tolist() == ["18,432,000", "18,432,000"]
    assert rows.loc["targets scored"].tolist() == ["18,432,000", "2,764,800 expected"]
    assert "–" in rows.loc["loss, nats per token"].tolist()
    assert "–" in rows.loc["masked-token loss, nats per hidden token"].tolist()
    clm, mlm = (plotly(at, f"masking_curve_{kind}") for kind in ("clm", "mlm"))
    assert len(clm["data"]) == len(mlm["data"]) == 1  # never two losses on one axis
    assert "masked" not in clm["layout"]["yaxis"]["title"]["text"]
    assert "masked-token" in mlm["layout"]["yaxis"]["title"]["text"]
    assert array(mlm["data"][0]["x"])[-1] == 18_432_000
    at.segmented_control(key="masking_against").set_value("targets-scored").run()
    assert array(plotly(at, "masking_curve_mlm")["data"][0]["x"])[-1] == pytest.approx(2_764_800)
    assert array(plotly(at, "masking_curve_clm")["data"][0]["x"])[-1] == 18_432_000
    assert "vocabulary | 1024 ids" in words(at)  # both cards can be read


@needs_shipped
def test_the_shipped_masked_model_is_all_but_certain_of_a_name_that_comes_back() -> None:
    (ref,) = (ref for ref in model_refs.shipped_models() if ref.objective == "mlm")
    tokenizer = resources.tokenizer(ref)
    ids = [token.id for token in gap_tokens(tokenizer, masking_sentence.TWICE)]
    first, second = (i for i, token in enumerate(ids) if tokenizer.token_bytes(token) == b" Max")
    truth = Oracle(default_grammar(), tokenizer).masked(ids, [first])[0]
    assert truth[ids[first]] == pytest.approx(1)
    model = resources.load(ref).model
    once = softmax(fill_gaps(model, ids, [first], tokenizer.mask_id)[first])[ids[first]]
    twice = softmax(fill_gaps(model, ids, [first, second], tokenizer.mask_id)[first])[ids[first]]
    assert once > 0.99 and twice < 0.5


@needs_shipped
def test_the_shipped_models_take_a_typed_gap_for_a_word(open_page: OpenPage) -> None:
    at = open_page("masking", text=masking_sentence.TYPED)
    for key in ("masking_left", "masking_both"):
        labels = plotly(at, key)["layout"]["yaxis"]["ticktext"]
        assert "·princess" in labels and "·dragon" in labels
    assert len(plotly(at, "masking_both")["data"]) == 2, "the stories know what stands there"


def test_what_cannot_be_compared_is_worked_out(open_page: OpenPage, models: Pair) -> None:
    clm, mlm = models
    ids, mask_id = clm.tokenizer.encode(STORY), mlm.tokenizer.mask_id
    at = open_page("masking", text=STORY, hide="not-comparable", masking_second=2)
    (place,) = hidden(at)
    labels = [metric.label for metric in at.metric]
    assert labels == ["Perplexity (causal model)", "Masked-token perplexity (masked model)"]
    each = pseudo_log_probs(mlm.model, ids, mask_id)
    assert any("PLL}" in f.value and f"{each.sum():.3f}" in f.value for f in at.latex)
    assert [chip["value"] for chip in chips(at, "masking_in_turn")] == [brief(-float(x)) for x in each]
    at.segmented_control(key="masking_limit").set_value("two-orders").run()
    formulas = [formula.value for formula in at.latex]
    found = two_orders(mlm.model, ids, (place, 2), mask_id)
    assert any(tex(found.a_first) in f and tex(found.b_first) in f for f in formulas)
    at.button(key="masking_total").click().run()
    expected = totals(mlm.model, ids, (place, 2), mask_id)
    assert any(f"{expected.pseudo:.4f}" in formula.value for formula in at.latex)
    assert any(r"p(b \mid \text{left}, a) = 1.0000" in formula.value for formula in at.latex)
    at.segmented_control(key="masking_limit").set_value("by-hand").run()
    assert any(r"\tfrac{4}{5} \neq 1" in formula.value for formula in at.latex)
    at.segmented_control(key="masking_table").set_value("joint").run()
    assert any(r"\tfrac{34}{25} \neq 1" in formula.value for formula in at.latex)
    assert not at.exception and not at.error


def test_a_text_that_is_no_story_has_no_truth_and_says_where_it_stops(
    open_page: OpenPage, models: Pair
) -> None:
    at = open_page("masking", text="Once upon a time, there was a wug called Nora. She")
    assert len(sides(at, "masking_both")) == 1
    assert "No story" in captions(at) and "**wug**" in captions(at)


VIEWS = ["one-sentence", "masked-batch", "what-is-paid", "not-comparable"]


@pytest.mark.parametrize("view", VIEWS)
def test_models_of_two_vocabularies_share_no_axis(open_page: OpenPage, shelf: Path, view: str) -> None:
    save_tiny(shelf, "tiny-clm", tokenizer=byte_tokenizer(), context_length=64)
    save_tiny(shelf, "tiny-mlm", objective="mlm", context_length=64)
    at = open_page("masking", text=STORY, hide=view)
    assert not at.exception and not at.error
    if view == "one-sentence":
        assert "no common axis" in captions(at)
        assert captions(at).count("is guess") == 1  # only the masked model has such a token
        name = "".join(bytes_of(chip) for chip in chips(at) if chip.get("hidden"))
        assert f"own vocabulary the hidden word is {len(name) + 1} tokens" in captions(at)  # and its space


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("n", [1, 2, 128])
def test_1_2_and_128_tokens_with_one_and_with_all_hidden(
    open_page: OpenPage, shelf: Path, view: str, n: int
) -> None:
    tokenizer = save_tiny(shelf, "tiny-clm", context_length=128).tokenizer
    save_tiny(shelf, "tiny-mlm", objective="mlm", context_length=128)
    at = open_page("masking", text=of_length(tokenizer, n), hide=view)
    strip = "masking_batch" if view == "masked-batch" else hiding.STRIP
    assert len(chips(at, strip)) == n
    assert not at.exception and not at.error
    at.session_state["_masking_hidden"] = {"about": at.session_state["_masking_hidden"]["about"],
                                           "chosen": set(range(n))}  # fmt: skip
    at.run()
    assert not at.exception and not at.error
    if view != "masked-batch":
        assert hidden(at) == list(range(n))


def of_length(tokenizer: Tokenizer, n: int) -> str:
    """A text of exactly n tokens."""
    text = tokenizer.decode(tokenizer.encode(STORY * 40)[:n])
    assert len(tokenizer.encode(text)) == n
    return text


def test_two_runs_are_a_pair_that_differs_by_its_objective_alone() -> None:
    tokenizer = char_tokenizer(NURSERY)
    causal, masked = masking_pair.specs(own_text(NURSERY), tokenizer, SIZES[0], 100)
    assert (causal.group, causal.label, masked.label) == (masked.group, "causal", "masked")
    assert causal.train == masked.train and causal.corpus == masked.corpus
    assert masked.model == replace(causal.model, objective="mlm", vocab_size=causal.model.vocab_size + 1)
    causal.check()
    masked.check()


def test_the_pair_is_started_with_one_button_and_found_again(
    open_page: OpenPage, models: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    def start_many(self: RunStore, specs: list[RunSpec], owner: str) -> list[str]:
        started.append([spec.model.objective for spec in specs])
        return [self.create(spec, owner) for spec in specs]

    monkeypatch.setattr(RunStore, "start_many", start_many)
    at = open_page("masking", hide="train-a-pair")
    assert at.button(key="pair_start").disabled and "blank" in captions(at)
    at.button(key="pair_try_0").click().run()
    assert "parameters" in captions(at)
    at.button(key="pair_start").click().run()
    assert started == [["clm", "mlm"]]
    assert "The newest pair" in [e.value for e in at.subheader]
    assert at.button(key="pair_use").disabled  # nothing was saved yet
    assert not at.exception and not at.error
    runs = {info.label: info for info in resources.run_store().list()}
    for info in runs.values():
        model = Transformer(info.model, torch.Generator().manual_seed(1)).eval()
        saved = Checkpoint(model, char_tokenizer(NURSERY), step=10)
        save_checkpoint(info.folder / "checkpoints" / "0000010", saved)
    now = {"state": "running"}

    def newest() -> dict[str, RunInfo]:
        return {i.model.objective: replace(i, has_checkpoint=True, **now) for i in runs.values()}

    monkeypatch.setattr(masking_pair, "newest", newest)
    assert at.run().button(key="pair_use").disabled  # both have saved something, but still learn
    now["state"] = "finished"
    at.run()
    at.button(key="pair_use").click().run()
    assert at.session_state["model"] == f"run:{runs['causal'].id}"
    assert at.session_state["partner"] == f"run:{runs['masked'].id}"
    assert at.session_state["text"] and at.session_state["text"] in NURSERY
    assert plotly(at, "masking_left") and plotly(at, "masking_both")
    assert "no common axis" not in captions(at)  # one vocabulary
    at.segmented_control(key="hide").set_value("what-is-paid").run()
    assert "differ by 64 parameters" in captions(at)
    at.segmented_control(key="hide").set_value("meaning").run()  # in words that both can spell
    assert at.text_area(key="masking_meaning_a").value in NURSERY
    assert plotly(at, "masking_meaning_lines") and not at.warning
    assert not at.exception and not at.error


@pytest.mark.parametrize(
    "text",
    ["a", "ab", MARKUP, "👍🏽👩‍👩‍👧", " ", "\n", "[MASK]", "[MASK][MASK]", "<|endoftext|> x", "word " * 400],
)
@pytest.mark.parametrize("model", ["tiny-clm", "tiny-mlm"])
def test_any_text_opens_with_either_model(open_page: OpenPage, models: Pair, text: str, model: str) -> None:
    at = open_page("masking", text=text, model=model)
    assert not at.exception and not at.error
    if len(text) > 1000:
        assert "Using the last 64 of" in captions(at)


def test_empty_text_and_missing_models(open_page: OpenPage, shelf: Path) -> None:
    assert "no model yet" in open_page("masking", text=STORY).info[0].value
    save_tiny(shelf, "tiny-clm", context_length=64)
    assert "no masked model" in open_page("masking", text=STORY).info[0].value
    assert open_page("masking", text=STORY, hide="train-a-pair").button(key="pair_start")
    (shelf / "tiny-clm").rename(shelf.parent / "away")
    save_tiny(shelf, "tiny-mlm", objective="mlm", context_length=64)
    at = open_page("masking", text=STORY)
    assert "no causal model" in at.info[0].value and plotly(at, "masking_both")
    assert "text is empty" in open_page("masking", text="").info[0].value


@pytest.mark.parametrize("which", [0, 1, 2])
def test_experiments(open_page: OpenPage, models: Pair, which: int) -> None:
    at = open_page("masking", text=STORY)
    at.button(key=f"try_{which}").click().run()
    assert not at.exception and not at.error
    names = [bytes_of(chip) for chip in chips(at) if chip.get("hidden")]
    assert names == [["Max"], ["Max", "Max"], ["[MASK]"]][which]


def bytes_of(chip: dict[str, Any]) -> str:
    return "".join(text for text, _ in chip["parts"]).strip("·")


@pytest.mark.parametrize(
    ("text", "place"),
    [("Once", 0), ("Once upon", 1), ("1 2 3 4 5", 4), ("A cat sang", 1), ("🙂🙂🙂🙂", 8)],
)
def test_the_first_gap_has_something_on_both_sides(
    open_page: OpenPage, shelf: Path, text: str, place: int
) -> None:
    words = {"Once upon": char_tokenizer(text), "A cat sang": train_bpe("A cat sang songs " * 9, 264)}
    tokenizer = words.get(text, byte_tokenizer())
    save_tiny(shelf, "tiny-mlm", objective="mlm", context_length=64, tokenizer=tokenizer)
    (found,) = hidden(open_page("masking", text=text, model="tiny-mlm"))
    assert 0 < found < len(tokenizer.encode(text)) - 1 or text == "Once"
    assert found >= place


@pytest.mark.parametrize(
    "four", [(0.41517, 0.32478, 0.3959, 0.3746), (0.5, 0.1, 0.1, 0.5), (1e-9, 0.3, 2e-9, 0.2)]
)
def test_two_orders_tie_out(four: tuple[float, float, float, float]) -> None:
    a, b_after_a, b, a_after_b = four
    first, second = a * b_after_a, b * a_after_b
    written = worked_masking.orders(a, b_after_a, b, a_after_b)
    if first == pytest.approx(second):
        assert "apart" not in written
        return
    number = r"((?:[^{}]|{[^{}]*})+)"  # braces within: a power of ten
    found = re.findall(rf"\\ln\\frac{{{number}}}{{{number}}} = {number}\\ ", written)[0]
    top, bottom, apart = (float(re.sub(r"\\times10\^{(-?\d+)}", r"e\1", x)) for x in found)
    assert tex(float(np.log(top / bottom)), 3) == tex(apart, 3) == tex(float(np.log(second / first)), 3)
    for product in (top, bottom):
        assert f"= {tex(product, 4)[:5]}" in written  # the same products as in the lines above


def test_the_tables_by_hand_are_of_no_text(open_page: OpenPage, models: Pair) -> None:
    at = open_page("masking", text=STORY, hide="not-comparable")
    assert "Both are e to the mean surprise" in words(at)
    at.segmented_control(key="masking_limit").set_value("by-hand").run()
    assert not [e for e in at.slider if e.key == hiding.SHARE]
    at = open_page("masking", text="[MASK] was", hide="not-comparable")
    assert "Both are e to" not in words(at)
