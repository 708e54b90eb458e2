"""What a model makes of a text: the window of it that it reads, and all that one pass over it computes.

Cached and shared by all people, like the models themselves: read-only.
"""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import streamlit as st

from engine.shelf import Shelf
from engine.trace_size import MOST_BYTES, trace_bytes
from ui import resources
from ui.model_refs import ModelRef
from wording import words

if TYPE_CHECKING:  # these import torch: 1.5 s that the first picture does not wait for
    from engine.tokenizers import Token
    from engine.trace import Trace

say = words("ui.passes")
MOST = 32  # passes over small models that are kept for all people
KEPT_BYTES = 2 * MOST_BYTES  # of them together: one text of 448 tokens and 12 blocks takes 175 MB


@dataclass(frozen=True, eq=False)
class Window:
    """The tokens of a text that a model reads: the last `window_length`. Position t is row t of a `Trace`.

    Attributes:
        segments: tokens in groups that are whole graphemes, for `token_strip`. Those that a published model
            wants around a text are among them, each alone in a group; see `Tokenizer.frame`.
        n_tokens: how many the whole text has, with those.
        unused: how many at its start are not read.
        inner: positions of the text's own tokens: only these can be hidden or scored.
    """

    segments: list[list["Token"]]
    n_tokens: int
    unused: int
    inner: range

    @property
    def tokens(self) -> list["Token"]:
        """The tokens that are read, in order."""
        return [token for segment in self.segments for token in segment]


@st.cache_resource(max_entries=32, show_spinner=False)
def window(ref: ModelRef, text: str) -> Window:
    """Cut a text into the tokens that the model reads; needs neither weights nor torch."""
    from engine.tokens import whole_graphemes

    tokenizer = resources.tokenizer(ref)
    tokens, unused = tokenizer.ending(text, ref.window_length)
    segments = whole_graphemes(tokens, tokenizer.normal(text))
    return Window(segments, unused + len(tokens), unused, tokenizer.inner(len(tokens)))


class _Asked(NamedTuple):
    """One pass: of which model, over which text, without what."""

    ref: ModelRef
    text: str
    ablate: tuple[tuple[int, int], ...]
    hidden: tuple[int, ...]
    ablate_parts: tuple[tuple[str, int], ...]


def traced(
    ref: ModelRef,
    text: str,
    ablate: tuple[tuple[int, int], ...] = (),
    hidden: tuple[int, ...] = (),
    ablate_parts: tuple[tuple[str, int], ...] = (),
) -> "Trace":
    """Everything that one pass over a text computes, see `engine.trace`. Its arrays can't be changed."""
    return (_traced_large if ref.large else _traced)(_Asked(ref, text, ablate, hidden, ablate_parts))


def _traced(asked: _Asked) -> "Trace":
    n_tokens = len(window(asked.ref, asked.text).tokens)
    need = trace_bytes(resources.load(asked.ref).model.config, n_tokens)
    return _traces().get(asked, lambda: _trace(asked), need=need)


@st.cache_resource(show_spinner=False)
def _traces() -> "Shelf[Trace]":
    return Shelf(MOST, lambda: None, most_bytes=KEPT_BYTES)


@st.cache_resource(max_entries=4, show_spinner=say.later("reading"))
def _traced_large(asked: _Asked) -> "Trace":
    """Each takes up to 200 MB, see `engine.trace_size`."""
    return _trace(asked)


def let_go() -> None:
    """Forget what passes over large models computed, for all people; it is computed again when needed."""
    _traced_large.clear()


def _trace(asked: _Asked) -> "Trace":
    from engine.trace import trace

    checkpoint = resources.load(asked.ref)
    result = trace(
        checkpoint.model,
        checkpoint.tokenizer,
        asked.text,
        ablate=asked.ablate,
        ablate_parts=asked.ablate_parts,
        hidden=asked.hidden,
        most=asked.ref.window_length,
    )
    for field in fields(result):
        value = getattr(result, field.name)
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return result
