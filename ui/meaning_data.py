"""What the view of meanings computes once and keeps: vectors of a word, of its uses, and of sentences."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine import contexts
from engine.contexts import Agreement, TwoContexts, Use
from engine.embeddings import Basis, fit_basis
from engine.tokenizers import Token
from ui import resources
from ui.hiding import Both
from ui.model_refs import ModelRef
from ui.words import duration
from wording import words

say = words("ui.meaning_data")

SENTENCES = 150  # in the small set
USES = 60  # of a word, each in another story
SEED = 1


def name_of(kind: str) -> str:
    """What a heading calls one of the two models, by its objective."""
    return say(f"model.{kind}")


def models(both: Both) -> dict[str, ModelRef]:
    """The page's models by objective, the causal one first."""
    found = {"clm": both.causal, "mlm": both.masked}
    return {kind: ref for kind, ref in found.items() if ref is not None}


@dataclass(frozen=True, eq=False)
class Pair:
    """A word in two texts, by one model.

    Attributes:
        found: cosines and what they are made of.
        unused: tokens at the start of either text that the model did not read.
    """

    found: TwoContexts
    unused: int


@st.cache_resource(max_entries=64, show_spinner=False)
def pair(ref: ModelRef, a: str, b: str, word: str, nth_a: int, nth_b: int) -> Pair:
    """Compare a word of two texts.

    Raises:
        ValueError: if a text does not have the word, or the model does not reach back to it.
    """
    tokenizer = resources.tokenizer(ref)
    (first, unused_a), (second, unused_b) = (tokenizer.ending(text, ref.context_length) for text in (a, b))
    places = [
        contexts.places_of_word(tokens, text, word, nth)
        for tokens, text, nth in ((first, a, nth_a), (second, b, nth_b))
    ]
    model = resources.load(ref).model
    found = contexts.two_contexts(model, _ids(first), _ids(second), places[0], places[1])
    return Pair(found, unused_a + unused_b)


def _ids(tokens: list[Token]) -> list[int]:
    return [token.id for token in tokens]


@st.cache_resource(max_entries=16, show_spinner=say.later("looking"))
def uses(ref: ModelRef, word: str) -> list[Use]:
    """Uses of a word in held-out stories, as this model's tokens."""
    try:
        tokenizer = resources.tokenizer(ref)
        room = ref.context_length - sum(map(len, tokenizer.frame))
        return contexts.uses_of(tokenizer, word, USES, SEED, context_length=room)
    except ValueError:
        return []  # a vocabulary of characters that the stories have more of


@st.cache_resource(max_entries=1000, show_spinner=False)
def _use_vector(ref: ModelRef, ids: tuple[int, ...], places: tuple[int, ...]) -> NDArray[np.float32]:
    """(L+1,C) of a word in one text; a causal model needs to read no further than the word."""
    before, after = resources.tokenizer(ref).frame
    row = [*before, *ids, *after] if ref.objective == "mlm" else [*before, *ids[: places[-1] + 1]]
    stream = contexts.stream(resources.load(ref).model, row)
    return contexts.word_vectors(stream, [len(before) + i for i in places]).astype(np.float32)


def read_uses(ref: ModelRef, word: str) -> None:
    """Read all uses of a word; a large model says how far it is. Before anything that is made of them."""
    rows = uses(ref, word)
    _with_progress(len(rows), lambda i: _use_vector(ref, rows[i].ids, rows[i].places))


def read_sentences(ref: ModelRef, pooling: str) -> None:
    """Read all sentences of the set; a large model says how far it is.

    Raises:
        ValueError: if the vocabulary can't spell a sentence.
    """
    known = sentences()
    _with_progress(len(known), lambda i: _one_sentence(ref, known[i], pooling))


def _with_progress(n: int, one: Callable[[int], object]) -> None:
    bar, began = st.empty(), time.monotonic()
    for i in range(n):
        one(i)
        spent = time.monotonic() - began
        if spent > 0.5:
            left = duration(spent / (i + 1) * (n - i - 1))
            bar.progress((i + 1) / n, say("reading", done=i + 1, n=n, left=left))
    bar.empty()


@st.cache_resource(max_entries=16, show_spinner=say.later("reading_stories"))
def use_vectors(ref: ModelRef, word: str) -> NDArray[np.float32]:
    """(N,L+1,C) of the word in each use, at every layer; read-only."""
    found = np.stack([_use_vector(ref, use.ids, use.places) for use in uses(ref, word)])
    found.setflags(write=False)
    return found


@st.cache_resource(max_entries=32, show_spinner=False)
def use_agreement(ref: ModelRef, word: str, layer: int) -> Agreement:
    """How often the nearest other use goes on with the same token.

    Raises:
        ValueError: for fewer than two uses.
    """
    found = uses(ref, word)
    if len(found) < 2:
        raise ValueError(say("neighbour_needs_least_2"))
    return contexts.agreement(use_vectors(ref, word)[:, layer], [use.after for use in found])


@st.cache_resource(max_entries=32, show_spinner=False)
def use_basis(ref: ModelRef, word: str, layer: int) -> Basis:
    """The two directions in which a word's uses differ most."""
    return fit_basis(use_vectors(ref, word)[:, layer], 2)


@st.cache_resource(max_entries=2, show_spinner=say.later("telling"))
def sentences() -> list[str]:
    """The small set."""
    return contexts.story_sentences(SENTENCES, SEED)


@st.cache_resource(max_entries=8, show_spinner=say.later("reading_sentences"))
def sentence_vectors(ref: ModelRef, pooling: str) -> NDArray[np.float32]:
    """(N,L+1,C) of every sentence of the set, at every layer; read-only.

    Raises:
        ValueError: if the vocabulary can't spell a sentence.
    """
    found = np.stack([_one_sentence(ref, sentence, pooling) for sentence in sentences()])
    found.setflags(write=False)
    return found


@st.cache_resource(max_entries=64, show_spinner=False)
def own_sentence(ref: ModelRef, sentence: str, pooling: str) -> NDArray[np.float32]:
    """(L+1,C) of one sentence.

    Raises:
        ValueError: if there are no tokens, or the vocabulary can't spell it.
    """
    return _sentence(ref, sentence, pooling)


@st.cache_resource(max_entries=1000, show_spinner=False)
def _one_sentence(ref: ModelRef, sentence: str, pooling: str) -> NDArray[np.float32]:
    return _sentence(ref, sentence, pooling)


def _sentence(ref: ModelRef, sentence: str, pooling: str) -> NDArray[np.float32]:
    tokens, _ = resources.tokenizer(ref).ending(f" {sentence}", ref.context_length)
    residual = contexts.stream(resources.load(ref).model, _ids(tokens))
    return np.stack(
        [contexts.sentence_vector(residual, layer, pooling) for layer in range(len(residual))]
    ).astype(np.float32)
