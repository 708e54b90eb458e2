"""Words in context: what a causal model can’t know, neighbours by brute force, words of several tokens."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

from engine import contexts
from engine.config import ModelConfig
from engine.model import Transformer
from engine.tokenizers import byte_tokenizer
from engine.trace import trace
from tests.pages.tiny import story_tokenizer

LEFT = "Once upon a time, there was an owl who had a cold"
A, B = LEFT + ". She was sad.", LEFT + " house near the sea."
POSITIONS = ["learned", "sinusoidal", "rotary"]


def tiny(objective: str, positions: str = "rotary") -> Transformer:
    tokenizer = story_tokenizer()
    config = ModelConfig(
        vocab_size=tokenizer.model_vocab_size(objective), context_length=64, n_layer=2, n_head=2, d_model=16,
        objective=objective, positions=positions,  # type: ignore[arg-type]
    )  # fmt: skip
    model = Transformer(config, torch.Generator().manual_seed(4))
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(5)
    return model.eval().requires_grad_(False)


def compared(model: Transformer, a: str, b: str, word: str = "cold") -> contexts.TwoContexts:
    tokenizer = story_tokenizer()
    tokens = [tokenizer.tokens(text) for text in (a, b)]
    places = [contexts.places_of_word(t, text, word) for t, text in zip(tokens, (a, b), strict=True)]
    ids = [[token.id for token in row] for row in tokens]
    return contexts.two_contexts(model, ids[0], ids[1], places[0], places[1])


@pytest.mark.parametrize("positions", POSITIONS)
def test_a_causal_model_gives_a_word_the_same_vector_whatever_follows(positions: str) -> None:
    found = compared(tiny("clm", positions), A, B)
    assert found.same_left
    np.testing.assert_allclose(found.largest, 0.0, atol=1e-5)
    np.testing.assert_allclose(found.cosines, 1.0, atol=1e-6)


@pytest.mark.parametrize("positions", POSITIONS)
def test_a_masked_model_gives_it_another_one(positions: str) -> None:
    found = compared(tiny("mlm", positions), A, B)
    assert found.largest[0] == 0.0, "at the embedding nothing has been looked at yet"
    assert (found.largest[1:] > 1e-3).all()
    assert (found.cosines[1:] < 1 - 1e-6).all()


def test_another_left_side_changes_both() -> None:
    other = "Tom met an owl who had a cold. She was sad."
    for objective in ("clm", "mlm"):
        found = compared(tiny(objective), A, other)
        assert not found.same_left
        assert (found.largest[1:] > 1e-3).all()


def test_a_cosine_is_made_of_the_vectors_of_a_trace() -> None:
    model, tokenizer = tiny("mlm"), story_tokenizer()
    found = compared(model, A, B)
    rows = []
    for text in (A, B):
        passed = trace(model, tokenizer, text)
        places = contexts.places_of_word(passed.tokens, text, "cold")
        rows.append(passed.residual[:, places].astype(np.float64).mean(axis=1))
    for layer in range(3):
        a, b = rows[0][layer], rows[1][layer]
        assert found.cosines[layer] == pytest.approx(a @ b / math.sqrt((a @ a) * (b @ b)), abs=1e-6)
        assert found.dots[layer] == pytest.approx(float(a @ b), rel=1e-5)


def test_a_word_of_several_tokens_is_their_mean() -> None:
    tokenizer = byte_tokenizer()
    text = "an owl, cold"
    tokens = tokenizer.tokens(text)
    places = contexts.places_of_word(tokens, text, "owl")
    assert places == [3, 4, 5]
    residual = np.arange(2 * len(tokens) * 3, dtype=np.float32).reshape(2, len(tokens), 3)
    expected = (residual[:, 3] + residual[:, 4] + residual[:, 5]) / 3
    np.testing.assert_allclose(contexts.word_vectors(residual, places), expected)


def test_words_are_found_whole_and_by_number() -> None:
    tokenizer = byte_tokenizer()
    text = "Maxi saw Max. “Max!” ärger"
    tokens = tokenizer.tokens(text)
    first, second = (contexts.places_of_word(tokens, text, "Max", n) for n in (0, 1))
    assert b"".join(tokens[i].data for i in first) == b"Max" and first[0] == 9
    assert second[0] == len("Maxi saw Max. “".encode())
    assert (
        b"".join(tokens[i].data for i in contexts.places_of_word(tokens, text, "ärger")) == "ärger".encode()
    )
    with pytest.raises(ValueError, match="2 times"):
        contexts.places_of_word(tokens, text, "Max", 2)
    with pytest.raises(ValueError, match="does not reach back to the word 'saw'"):
        contexts.places_of_word(tokens[9:], text, "saw")
    assert contexts.words_in("Don’t go, go! x2 é") == ["Don’t", "go", "x", "é"]


def test_sentences_have_a_mean_or_a_last_vector() -> None:
    residual = np.random.default_rng(1).normal(size=(3, 5, 4)).astype(np.float32)
    np.testing.assert_allclose(
        contexts.sentence_vector(residual, 1, "mean"), residual[1].mean(axis=0), atol=1e-6
    )
    np.testing.assert_allclose(contexts.sentence_vector(residual, 2, "last"), residual[2, -1])
    with pytest.raises(ValueError, match="not 'sum'"):
        contexts.sentence_vector(residual, 1, "sum")


def test_the_nearest_are_those_of_brute_force() -> None:
    rng = np.random.default_rng(2)
    rows, query = rng.normal(size=(40, 6)) + 3, rng.normal(size=6) + 3
    middle = [sum(row[j] for row in rows) / 40 for j in range(6)]

    def cosine(a: np.ndarray, b: np.ndarray) -> float:
        x = [p - m for p, m in zip(a, middle, strict=True)]
        y = [p - m for p, m in zip(b, middle, strict=True)]
        dot = sum(p * q for p, q in zip(x, y, strict=True))
        return dot / math.sqrt(sum(p * p for p in x) * sum(q * q for q in y))

    expected = sorted(range(40), key=lambda i: -cosine(rows[i], query))
    found = contexts.nearest(rows, query, 7)
    assert [each.index for each in found] == expected[:7]
    assert [each.cosine for each in found] == pytest.approx([cosine(rows[i], query) for i in expected[:7]])
    assert contexts.nearest(rows, rows[5], 1)[0].index == 5
    assert contexts.nearest(rows, rows[5], 3, leave_out=5)[0].index != 5


def test_equal_vectors_have_no_direction_and_no_error() -> None:
    found = contexts.nearest(np.ones((3, 2)), np.ones(2), 3)
    assert [each.index for each in found] == [0, 1, 2]


def test_agreement_counts_neighbours_with_the_same_label() -> None:
    rows = [[1, 0.01], [1, 0.02], [-1, 0.03], [-1, 0.01]]
    assert contexts.agreement(rows, ["a", "a", "b", "b"]).n_same == 4
    assert contexts.agreement(rows, ["a", "b", "a", "b"]).n_same == 0
    found = contexts.agreement(rows, ["a", "a", "a", "b"])
    assert found.n == 4 and found.chance == pytest.approx(3 / 6)  # of 6 pairs, 3 are both a
    with pytest.raises(ValueError, match="at least 2 uses"):
        contexts.agreement(rows[:1], ["a"])


def test_story_sentences_are_different_and_repeat_with_their_seed() -> None:
    found = contexts.story_sentences(70, 1)
    assert len(found) == len(set(found)) == 70
    assert found == contexts.story_sentences(70, 1) and found != contexts.story_sentences(70, 2)
    assert all(sentence[-1] in ".!?”" and sentence[0] in "“" + sentence[0].upper() for sentence in found)


def test_uses_of_a_word_are_whole_words_with_what_follows() -> None:
    tokenizer = story_tokenizer()
    found = contexts.uses_of(tokenizer, "cold", 12, 1, context_length=400)
    assert len(found) == 12
    for use in found:
        text = tokenizer.decode(use.ids)
        word = b"".join(tokenizer.token_bytes(use.ids[i]) for i in use.places).decode()
        assert word.strip() == "cold"
        rest = b"".join(tokenizer.token_bytes(i) for i in use.ids[use.places[-1] + 1 :]).decode().lstrip()
        assert use.after and rest.startswith(use.after)
        assert "cold" in use.sentence and use.sentence in text
    assert len(Counter(use.after for use in found)) > 2
    assert contexts.uses_of(tokenizer, "zebra", 12, 1, context_length=400) == []
    assert contexts.uses_of(tokenizer, "", 12, 1, context_length=400) == []
    near = contexts.uses_of(tokenizer, "cold", 12, 1, context_length=30)
    assert all(len(use.ids) <= 30 and use.places[-1] < 29 for use in near)


def test_a_model_that_diverged_or_no_tokens_are_refused() -> None:
    model = tiny("mlm")
    with pytest.raises(ValueError, match="no tokens to read"):
        contexts.stream(model, [])
    model.embedding.weight.fill_(math.inf)
    with pytest.raises(ValueError, match="not finite"):
        contexts.stream(model, [1, 2])
