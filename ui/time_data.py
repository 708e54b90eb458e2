"""What a text looks like at every kept moment of a model's training: computed once, shared by all people."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine.metrics import softmax
from engine.model import Transformer
from engine.moments import Look, around, fill_in, leaders, look, look_everywhere, write_on
from engine.sampling import TextStream
from engine.tokenizers import Tokenizer
from ui import hiding, lesson, model_refs, passes, resources
from ui.model_refs import ModelRef
from wording import words

say = words("ui.time_data")

DRAWN = 48  # tokens in the map of a head: more can't be read
WRITTEN = 40  # tokens of a sample
SEED = 1  # of every sample, so that only the weights differ
EVERY = 3  # a masked model fills in every third token
LINES, BARS = 6, 8
KEPT_LOGITS = 2_500_000  # numbers of one text at all moments: 10 MB

Piece = tuple[str, str]  # text, and what it is: "given", "own", "right", "wrong"


@dataclass(frozen=True, eq=False)
class Past:
    """A text at S moments, seen from one position; its arrays can't be changed.

    Attributes:
        moments: oldest first.
        probs: (S,V) float64 for the position.
        log_probs: (S,T) of each token; NaN where it was not asked for.
        weights: (S,L,H,n,n) uint8, 0 to 255: attention among the positions of `part`.
        part: positions that the maps show.
    """

    moments: tuple[ModelRef, ...]
    probs: NDArray[np.float64]
    log_probs: NDArray[np.float64]
    weights: NDArray[np.uint8]
    part: range

    @property
    def steps(self) -> list[int]:
        """(S,) optimizer steps done."""
        return [moment.step for moment in self.moments]

    def leaders(self, came: int | None) -> list[int]:
        """Ids of the tokens that get a line."""
        ids: list[int] = leaders(self.probs, min(LINES, self.probs.shape[1]), also=came).tolist()
        return ids


def moments_of(ref: ModelRef) -> tuple[ModelRef, ...]:
    """The kept moments of a model, one for each step, oldest first."""
    return tuple({moment.step: moment for moment in model_refs.history(ref)}.values())


def past(moments: tuple[ModelRef, ...], text: str, position: int) -> Past:
    """Read the text at every moment.

    Raises:
        ValueError: one sentence, if a checkpoint is damaged, or a model's output is not finite.
    """
    return _past(tuple((m.folder, m.identity) for m in moments), text, position, moments)


@st.cache_resource(max_entries=24, show_spinner=say.later("opening"))
def _past(key: tuple[tuple[str, str], ...], text: str, position: int, _moments: tuple[ModelRef, ...]) -> Past:
    n_tokens = len(passes.window(_moments[-1], text).tokens)
    part = around(n_tokens, position, DRAWN)
    probs, log_probs, weights = [], [], []
    for seen in _looks(key, text, position, n_tokens, _moments):
        drawn = seen.attentions[:, :, part.start : part.stop, part.start : part.stop]
        probs.append(softmax(seen.logits if seen.logits.ndim == 1 else seen.logits[position]))
        log_probs.append(seen.log_probs)
        weights.append(np.rint(drawn * 255).astype(np.uint8))
    found = Past(_moments, np.stack(probs), np.stack(log_probs), np.stack(weights), part)
    for array in (found.probs, found.log_probs, found.weights):
        array.setflags(write=False)
    return found


def _looks(
    key: tuple[tuple[str, str], ...], text: str, position: int, n_tokens: int, moments: tuple[ModelRef, ...]
) -> Iterable[Look]:
    """What each moment says; of a causal model for all positions at once, if that is not too much to keep."""
    ref = moments[-1]
    vocab_size = resources.load(ref).model.config.vocab_size
    if ref.objective == "clm" and len(moments) * n_tokens * vocab_size <= KEPT_LOGITS:
        return _everywhere(key, text, moments)
    return (_finite(m, look(*_model(m), text, position)) for m in moments)


@st.cache_resource(max_entries=8, show_spinner=False)
def _everywhere(key: tuple[tuple[str, str], ...], text: str, _moments: tuple[ModelRef, ...]) -> list[Look]:
    """Kept, so that another position of the same text needs no model."""
    return [_finite(m, look_everywhere(*_model(m), text)) for m in _moments]


def _model(moment: ModelRef) -> tuple[Transformer, Tokenizer]:
    saved = resources.load_moment(moment)
    return saved.model, saved.tokenizer


def _finite(moment: ModelRef, seen: Look) -> Look:
    if not np.isfinite(seen.logits).all():
        raise ValueError(say("not_finite", step=moment.step))
    return seen


def truth(ref: ModelRef, text: str, position: int, vocab_size: int) -> NDArray[np.float64] | None:
    """What is true (V,): for a causal model after the position, for a masked one in it; None if unknown."""
    if ref.objective == "clm":
        known = lesson.truth_of(ref, text)
        return known.after(position) if known else None  # (V,)
    ids = tuple(token.id for token in passes.window(ref, text).tokens)
    if passes.window(ref, text).unused:
        return None  # the exact answer would need the whole text, which the model has not read
    try:
        row: NDArray[np.float64] = hiding.true_in_gap(ref, ids, (position,), position)
    except ValueError:
        return None
    if not np.isfinite(row).all():
        return None
    return np.pad(row, (0, vocab_size - len(row)))  # the mask never stands in a text


class Samples:
    """What each moment wrote: filled bit by bit, nearest to the chosen moment first."""

    def __init__(self, moments: Sequence[ModelRef], text: str) -> None:
        """See `samples`."""
        self._moments, self._text = list(moments), text
        self._done: dict[int, list[Piece]] = {}

    def got(self) -> list[list[Piece] | None]:
        """(S,) what is ready."""
        return [self._done.get(i) for i in range(len(self._moments))]

    @property
    def missing(self) -> int:
        """How many are not ready."""
        return len(self._moments) - len(self._done)

    def work(self, at: int, seconds: float) -> None:
        """Write for about so long: the moment `at`, then its neighbours, and so on outwards."""
        end = time.monotonic() + seconds
        for i in sorted(range(len(self._moments)), key=lambda i: abs(i - at)):
            if i not in self._done:
                self._done[i] = _sample(self._moments[i], self._text)
                if time.monotonic() > end:
                    return


def samples(moments: tuple[ModelRef, ...], text: str) -> Samples:
    """The samples after a text, shared by all who look at it."""
    return _samples(tuple((m.folder, m.identity) for m in moments), text, moments)


@st.cache_resource(max_entries=48, show_spinner=False)
def _samples(key: tuple[tuple[str, str], ...], text: str, _moments: tuple[ModelRef, ...]) -> Samples:
    return Samples(_moments, text)


def _sample(moment: ModelRef, text: str) -> list[Piece]:
    saved = resources.load_moment(moment)
    ids = [token.id for token in passes.window(moment, text).tokens]
    if moment.objective == "clm":
        written = write_on(saved.model, saved.tokenizer, ids, n_tokens=WRITTEN, seed=SEED)
        return [(_ending(text), "given"), (written, "own")]
    return _filled(saved.model, saved.tokenizer, ids)


def _ending(text: str, most: int = 60) -> str:
    return text if len(text) <= most else "… " + text[-most:].lstrip()


def _filled(model: Transformer, tokenizer: Tokenizer, ids: list[int]) -> list[Piece]:
    """The text with every third token hidden and filled in: which were right, which not."""
    inner = tokenizer.inner(len(ids))
    hidden = list(inner[min(1, len(inner) - 1) :: EVERY])
    best = dict(zip(hidden, fill_in(model, ids, hidden, tokenizer.mask_id), strict=True))
    kinds = ["given" if i not in best else "right" if best[i] == ids[i] else "wrong" for i in range(len(ids))]
    pieces: list[Piece] = []
    for kind, group in groupby(inner, key=kinds.__getitem__):  # a character may be several tokens
        stream = TextStream()
        shown = "".join(stream.push(tokenizer.token_bytes(best.get(i, ids[i]))) for i in group) + stream.end()
        pieces.append((shown, kind))
    return pieces
