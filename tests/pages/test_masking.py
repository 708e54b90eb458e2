"""The Masking page: what it shows is what the engine computes, for any text and any set of gaps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.checkpoints import Checkpoint
from engine.gaps import draw_masks, fill_gaps
from engine.grammar import default_grammar
from engine.metrics import next_token_scores, softmax
from engine.oracle import Oracle
from engine.sampling import next_logits
from engine.tokenizers import byte_tokenizer
from tests.pages.conftest import OpenPage, component, plotly
from tests.pages.tiny import array, save_tiny
from ui import hiding, resources
from viz import format_nats, format_number

STORY = "Once upon a time, there was a princess called Nora. She"
MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"
Pair = tuple[Checkpoint, Checkpoint]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "pretrained"
    monkeypatch.setattr(resources, "PRETRAINED", folder)
    return folder


@pytest.fixture
def models(shelf: Path) -> Pair:
    return save_tiny(shelf, "tiny-clm", context_length=64), save_tiny(
        shelf, "tiny-mlm", objective="mlm", context_length=64
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


def test_a_training_row_shows_every_fate(open_page: OpenPage, models: Pair) -> None:
    at = open_page("masking", text=STORY, masking_batch_seed=4)
    tokenizer = models[1].tokenizer
    row = draw_masks(tokenizer.encode(STORY), mask_prob=0.15, mask_id=tokenizer.mask_id, seed=4)
    shown = chips(at, "masking_batch")
    assert [chip["id"] for chip in shown] == row.inputs
    for chip, fate in zip(shown, row.fates, strict=True):
        assert chip["value"] == "–" if fate == "not scored" else chip["value"].startswith(f"{fate} → ")
    at.button(key="masking_again").click().run()
    assert at.number_input(key="masking_batch_seed").value != 4


def test_what_is_scored_and_what_it_is_called(open_page: OpenPage, models: Pair) -> None:
    at = open_page("masking", text=STORY)
    n = len(chips(at))
    assert f"{n - 1} of {n} positions are scored" in words(at)
    assert f"1 of {n} positions are scored" in words(at)
    ids = models[0].tokenizer.encode(STORY)
    labels = {metric.label: metric.value for metric in at.metric}
    loss = next_token_scores(resources.traced(resources.shipped_models()[0], STORY).logits, ids).loss
    assert labels["Loss, nats per token"] == format_number(loss)
    assert "Masked-token loss, nats per hidden token" in labels
    assert not any("perplexity" in label.lower() for label in labels)


def test_a_text_that_is_no_story_has_no_truth_and_says_where_it_stops(
    open_page: OpenPage, models: Pair
) -> None:
    at = open_page("masking", text="Once upon a time, there was a wug called Nora. She")
    assert len(sides(at, "masking_both")) == 1
    assert "No story" in captions(at) and "**wug**" in captions(at)


def test_a_model_of_another_vocabulary_is_compared_without_a_rank(open_page: OpenPage, shelf: Path) -> None:
    save_tiny(shelf, "tiny-clm", tokenizer=byte_tokenizer(), context_length=64)
    save_tiny(shelf, "tiny-mlm", objective="mlm", context_length=64)
    at = open_page("masking", text=STORY)
    assert captions(at).count("surprisal") == 1
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
