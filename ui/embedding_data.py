"""What the Embeddings page is about now, and what its views compute once and share: read-only, cached."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine import embeddings
from engine.config import ModelConfig
from engine.corpus import stories
from engine.embeddings import Basis
from engine.trace import Trace
from ui import model_refs, resources
from ui.again import Again
from ui.model_refs import ModelRef
from viz import format_count, visible
from wording import words

say = words("ui.embedding_data")

SAMPLE = 2000  # stories that are counted, about a million characters
LONGEST = 1_000_000  # characters of a run's own text that are counted
MOST_POINTS = 3000  # more can't be told apart, and slow the browser down


@dataclass(frozen=True, eq=False)
class Chosen:
    """The token that a view is about.

    Attributes:
        ref: the model.
        text: of all pages.
        passed: one pass over it.
        position: of the chip chosen in the text; counted from the first token that is read.
        token_id: the chip's id, or that of another token of the vocabulary.
    """

    ref: ModelRef
    text: str
    passed: Again[Trace]
    position: int
    token_id: int

    @property
    def trace(self) -> Trace:
        """The pass over the text."""
        return self.passed.get()

    @property
    def config(self) -> ModelConfig:
        """Shape of the model."""
        return resources.load(self.ref).model.config

    @property
    def matrix(self) -> NDArray[np.float32]:
        """(V,C) the model's embedding matrix."""
        return matrix(self.ref)

    @property
    def name(self) -> str:
        """How the token is written."""
        return names(self.ref)[self.token_id]

    @property
    def text_ids(self) -> list[int]:
        """Ids in the text that is read, each once, the latest 30."""
        latest = dict.fromkeys(reversed(self.trace.ids.tolist()))
        return list(latest)[:30]


def matrix(ref: ModelRef) -> NDArray[np.float32]:
    """(V,C) the embedding matrix of a model; on a CPU the model's own memory. It can't be changed."""
    model = resources.load(ref).model
    return embeddings.token_vectors(model) if model.device.type == "cpu" else _fetched(ref)


@st.cache_resource(max_entries=2, show_spinner=False)
def _fetched(ref: ModelRef) -> NDArray[np.float32]:
    """A copy of what lies on a GPU."""
    return embeddings.token_vectors(resources.load(ref).model)


@st.cache_resource(max_entries=8, show_spinner=False)
def lengths(ref: ModelRef) -> NDArray[np.float64]:
    """(V,) length of every row of the matrix."""
    found = embeddings.norms(matrix(ref))
    found.setflags(write=False)
    return found


@st.cache_resource(max_entries=8, show_spinner=False)
def names(ref: ModelRef) -> tuple[str, ...]:
    """(V,) how each token is written; an id that the vocabulary leaves out by its number."""
    tokenizer = resources.tokenizer(ref)

    def name_of(token_id: int) -> str:
        try:
            return visible(tokenizer.token_bytes(token_id))
        except ValueError:
            return f"id {token_id}"

    return tuple(name_of(i) for i in range(resources.load(ref).model.config.vocab_size))


@dataclass(frozen=True, eq=False)
class Frequency:
    """How often each token occurs.

    Attributes:
        counts: (V,).
        n_tokens: how many tokens were counted.
        kind: of the text that was counted: "sidebar", "run", "run-start" or "stories".
    """

    counts: NDArray[np.int64]
    n_tokens: int
    kind: str

    @property
    def source(self) -> str:
        """In which text, in words."""
        return say(f"source.{self.kind}", longest=format_count(LONGEST), sample=format_count(SAMPLE))


def frequency(chosen: Chosen) -> Frequency:
    """Counts in what the model learned from, where that is at hand; else in the text on the page."""
    found = _in_corpus(chosen.ref)
    if found is not None:
        return found
    return _count(chosen.ref, chosen.text, "sidebar")


@st.cache_resource(max_entries=8, show_spinner=say.later("counting"))
def _in_corpus(ref: ModelRef) -> Frequency | None:
    own = Path(ref.folder).parents[1] / "corpus.txt"
    if ref.kind == "run" and own.is_file():
        with own.open(encoding="utf-8", newline="") as file:
            text = file.read(LONGEST)
            whole = not file.read(1)
        return _count(ref, text, "run" if whole else "run-start")
    if ref.corpus != "stories":
        return None
    try:
        return _count(ref, stories(SAMPLE, seed=1).text, "stories")
    except ValueError:
        return None  # a vocabulary of characters that the stories have more of


def _count(ref: ModelRef, text: str, kind: str) -> Frequency:
    ids = resources.tokenizer(ref).encode(text)
    counts = embeddings.token_counts(ids, resources.load(ref).model.config.vocab_size)
    counts.setflags(write=False)
    return Frequency(counts, len(ids), kind)


@dataclass(frozen=True, eq=False)
class Movie:
    """All tokens at every checkpoint, in one fixed basis.

    Attributes:
        steps: of the S checkpoints, oldest first.
        points: (S,V,3) float32 coordinates.
        basis: fitted at the last checkpoint.
    """

    steps: tuple[int, ...]
    points: NDArray[np.float32]
    basis: Basis


@st.cache_resource(max_entries=8, show_spinner=say.later("drawing"))
def movie(ref: ModelRef, ids: tuple[int, ...]) -> Movie:
    """The map whose directions are those in which the tokens `ids` differ most at the last checkpoint."""
    basis = embeddings.fit_basis(matrix(ref)[list(ids)])
    past = [*(old for old in model_refs.history(ref) if old.step < ref.step), ref]
    points = [
        basis.project(matrix(ref) if old is ref else resources.embedding_of(old)).astype(np.float32)
        for old in past
    ]
    shown = np.stack(points)
    shown.setflags(write=False)
    return Movie(tuple(old.step for old in past), shown, basis)


@st.cache_resource(max_entries=32, show_spinner=False)
def neighbours(ref: ModelRef, token_id: int) -> embeddings.Neighbours:
    """The most and the least alike tokens, over the whole vocabulary.

    Raises:
        ValueError: if the token's vector is zero.
    """
    return embeddings.neighbours(matrix(ref), token_id)


def untold(ref: ModelRef) -> bool:
    """Whether what the model learned from is not at hand."""
    return _in_corpus(ref) is None


def unseen(chosen: Chosen) -> NDArray[np.int64]:
    """Ids of the tokens that never occur in what the model learned from; none if that is not at hand."""
    found = _in_corpus(chosen.ref)
    return np.zeros(0, np.int64) if found is None else np.flatnonzero(found.counts == 0)


def fate_of_unseen(chosen: Chosen) -> str:
    """What training does to the rows of tokens that never occur, in words."""
    return say("unseen_tied" if chosen.config.tie_head else "unseen")


def vector_csv(values: NDArray[Any]) -> str:
    """A vector as CSV: dimension, value."""
    return "dimension,value\n" + "".join(f"{j},{value:.9g}\n" for j, value in enumerate(values))
