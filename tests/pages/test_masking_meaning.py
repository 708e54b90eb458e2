"""The view Meaning: vectors of a word in two texts, its uses, and the nearest sentences, as computed."""

from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import contexts
from engine.checkpoints import Checkpoint, save_checkpoint
from engine.tokenizers import byte_tokenizer, char_tokenizer
from tests.pages.conftest import OpenPage, Pair, plotly
from tests.pages.tiny import array, save_tiny
from ui import masking_meaning, meaning_data
from ui.words import literal

VIEW = {"hide": "meaning"}


def words(at: AppTest) -> str:
    found = [*at.caption, *at.markdown, *at.info, *at.warning, *at.error, *at.metric, *at.text]
    return "\n".join(str(e.value) for e in found)


def put(at: AppTest, **state: object) -> AppTest:
    for key, value in state.items():
        at.session_state[f"masking_meaning_{key}"] = value
    return at.run()


def two(checkpoint: Checkpoint, a: str, b: str, word: str) -> contexts.TwoContexts:
    rows = [checkpoint.tokenizer.tokens(text) for text in (a, b)]
    places = [contexts.places_of_word(row, text, word) for row, text in zip(rows, (a, b), strict=True)]
    ids = [[token.id for token in row] for row in rows]
    return contexts.two_contexts(checkpoint.model, ids[0], ids[1], places[0], places[1])


def test_what_comes_after_changes_only_the_masked_model_s_vector(open_page: OpenPage, models: Pair) -> None:
    at = open_page("masking", query=VIEW)
    assert not at.exception
    lines = plotly(at, "masking_meaning_lines")["data"]
    for line, checkpoint in zip(lines, models, strict=True):
        np.testing.assert_allclose(
            array(line["y"]), two(checkpoint, *masking_meaning.COLD).cosines, atol=1e-6
        )
    np.testing.assert_allclose(array(lines[0]["y"]), 1.0, atol=1e-6)
    assert (array(lines[1]["y"])[1:] < 0.9999).all()
    assert at.metric[0].value == "exactly 1" and "not a single number differs" in words(at)
    assert at.metric[1].value != "exactly 1"


def test_another_left_side_is_said(open_page: OpenPage, models: Pair) -> None:
    at = open_page("masking", query=VIEW)
    next(b for b in at.button if b.label == "Compare “well”").click().run()
    assert "Up to the word the texts differ" in words(at) and not at.exception
    assert at.metric[0].value != "exactly 1"
    assert at.selectbox(key="masking_meaning_word").value == "well"


def test_the_layer_is_the_one_chosen_and_its_cosine_is_worked_out(open_page: OpenPage, models: Pair) -> None:
    at = put(open_page("masking", query=VIEW), layer=1)
    found = two(models[1], *masking_meaning.COLD).cosines[1]
    assert float(at.metric[1].value) == pytest.approx(found, abs=1e-3)
    assert "after block 1" in at.metric[1].label
    assert len(at.latex) == 2 and r"\cos" in at.latex[1].value
    assert put(at, layer=0).metric[1].value == "exactly 1", "the embedding knows no context"


@pytest.mark.parametrize(
    ("a", "b"), [("", ""), ("", "cold"), ("dog", "cat"), ("$x$ <b> *a*", "a `b`"), ("🙂", "🙂"), ("1 2", "2")]
)
def test_any_two_texts(a: str, b: str, open_page: OpenPage, models: Pair) -> None:
    at = put(open_page("masking", query=VIEW), a=a, b=b)
    assert not at.exception
    common = [w for w in contexts.words_in(a) if w in contexts.words_in(b)]
    assert ("no word in common" in words(at)) == (not common)


def test_a_word_that_fills_the_text_and_one_that_is_out_of_reach(open_page: OpenPage, models: Pair) -> None:
    at = put(open_page("masking", query=VIEW), a="cold", b="cold")
    assert not at.exception and at.metric[1].value == "exactly 1"
    at = put(at, a="cold " + "and the sea " * 60, b="cold", word="cold")
    assert "does not reach back to the word" in words(at).replace("\\", "") and not at.exception


def test_words_of_several_tokens_are_said(open_page: OpenPage, shelf: Path) -> None:
    save_tiny(shelf, "tiny-clm", tokenizer=byte_tokenizer(), context_length=128)
    save_tiny(shelf, "tiny-mlm", objective="mlm", tokenizer=byte_tokenizer(), context_length=128)
    at = open_page("masking", query=VIEW)
    assert "cut into 4 tokens: its vector is their mean" in words(at) and not at.exception


def test_uses_of_a_word_and_what_both_sides_buy(open_page: OpenPage, models: Pair) -> None:
    at = put(open_page("masking", query=VIEW), part="all-uses")
    assert not at.exception
    uses = contexts.uses_of(models[0].tokenizer, "cold", meaning_data.USES, 1, context_length=64)
    told = words(at)
    for checkpoint in models:
        vectors = [
            contexts.word_vectors(contexts.stream(checkpoint.model, use.ids), use.places)[2] for use in uses
        ]
        found = contexts.agreement(np.array(vectors, np.float32), [use.after for use in uses])
        assert f"**{found.n_same} of {found.n}**" in told
    near = at.table[1].value  # the masked model's neighbours of the first use
    rows = np.array(vectors, np.float32)
    expected = contexts.nearest(rows, rows[0], 5, leave_out=0)
    assert list(near["sentence"]) == [literal(uses[each.index].sentence) for each in expected]
    np.testing.assert_allclose(near["cosine"].astype(float), [each.cosine for each in expected], atol=6e-4)


def test_a_word_that_no_story_has(open_page: OpenPage, models: Pair) -> None:
    at = put(open_page("masking", query=VIEW), part="all-uses", used="zebra*")
    assert "stands in 0 of 1,000 stories" in words(at) and not at.exception


@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_the_nearest_sentences_are_the_engine_s(pooling: str, open_page: OpenPage, models: Pair) -> None:
    at = open_page("masking", query=VIEW)
    at = put(at, part="nearest-sentences", own="She found a blue hat.", pooling=pooling)
    assert not at.exception and "Nearest to: She found a blue hat." in words(at)
    known = contexts.story_sentences(meaning_data.SENTENCES, 1)
    for side, checkpoint in enumerate(models):

        def vector(sentence: str, checkpoint: Checkpoint = checkpoint) -> np.ndarray:
            ids = checkpoint.tokenizer.encode(f" {sentence}")[-64:]
            return contexts.sentence_vector(contexts.stream(checkpoint.model, ids), 2, pooling)

        found = contexts.nearest(np.array([vector(s) for s in known]), vector("She found a blue hat."), 5)
        table = at.table[side].value
        assert list(table["sentence"]) == [literal(known[each.index]) for each in found]
        np.testing.assert_allclose(table["cosine"].astype(float), [each.cosine for each in found], atol=6e-4)


def test_a_sentence_of_the_set_is_not_its_own_neighbour(open_page: OpenPage, models: Pair) -> None:
    at = put(open_page("masking", query=VIEW), part="nearest-sentences", sentence=7)
    known = contexts.story_sentences(meaning_data.SENTENCES, 1)
    assert len(at.table) == 2
    assert all(literal(known[7]) not in list(table.value["sentence"]) for table in at.table)


def test_texts_are_kept_while_another_part_is_looked_at(open_page: OpenPage, models: Pair) -> None:
    at = put(open_page("masking", query=VIEW), a="a fox ran", b="the fox sat")
    assert at.selectbox(key="masking_meaning_word").value == "fox"
    at = put(at, part="nearest-sentences")
    at = put(at, part="two-texts")
    assert at.text_area(key="masking_meaning_a").value == "a fox ran"
    assert at.selectbox(key="masking_meaning_word").value == "fox"


@pytest.mark.parametrize("part", ["two-texts", "all-uses", "nearest-sentences"])
def test_without_a_causal_model_one_side_is_left(part: str, open_page: OpenPage, shelf: Path) -> None:
    save_tiny(shelf, "tiny-mlm", objective="mlm", context_length=64)
    at = put(open_page("masking", query=VIEW), part=part)
    assert "There is no causal model" in words(at) and not at.exception


@pytest.mark.parametrize("part", ["two-texts", "all-uses", "nearest-sentences"])
def test_a_vocabulary_that_can_t_spell_the_stories(part: str, open_page: OpenPage, shelf: Path) -> None:
    few = char_tokenizer("Once upon a time, cold")
    save_tiny(shelf, "tiny-mlm", objective="mlm", tokenizer=few, context_length=64)
    save_tiny(shelf, "tiny-clm", tokenizer=few, context_length=64)
    at = put(open_page("masking", query=VIEW, text="a cold time"), part=part)
    assert not at.exception
    assert at.warning or at.info


@pytest.mark.parametrize("part", ["two-texts", "all-uses", "nearest-sentences"])
def test_a_model_that_diverged_is_said(part: str, open_page: OpenPage, models: Pair, shelf: Path) -> None:
    mlm = models[1]
    mlm.model.blocks[0].mlp.down.weight.data.fill_(1e38)  # finite, but what comes out is not
    save_checkpoint(shelf / "tiny-mlm", mlm)
    at = put(open_page("masking", query=VIEW), part=part)
    assert "not finite" in words(at).replace("\\", "") and not at.exception
