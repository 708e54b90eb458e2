"""A model at several moments of its training, on one text: what each of them expected, and what it wrote."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from engine.metrics import log_softmax
from engine.model import Transformer
from engine.sampling import TextStream, generate
from engine.tokenizers import Tokenizer
from engine.trace import Trace, trace
from wording import words

say = words("engine.moments")

ASKED_TOKENS = 768  # a masked model reads at most so many to be asked for each token by itself
ROWS = 64  # scored at once: a large vocabulary in float64 would fill the memory


@dataclass(frozen=True, eq=False)
class Look:
    """What a model makes of a text, seen from one position.

    Attributes:
        logits: (V,) float32. Of a causal model for the token after the position, of a masked one for the
            token that is hidden there.
        log_probs: (T,) natural log of the probability that each token of the text got; NaN where it was not
            asked for. A causal model is never asked for the first; a masked one for each with that token
            alone hidden, as far around the position as `ASKED_TOKENS` allows.
        attentions: (L,H,T,T) float32; the masked model's with the position hidden.
    """

    logits: NDArray[np.float32]
    log_probs: NDArray[np.float64]
    attentions: NDArray[np.float32]


def look(model: Transformer, tokenizer: Tokenizer, text: str, position: int) -> Look:
    """Run a text through a model; see `Look`.

    Args:
        model: causal or masked.
        tokenizer: the one that it was trained with.
        text: not empty; of a long one the last `context_length` tokens are read.
        position: counted in the tokens that are read.

    Raises:
        ValueError: for an empty text, or a position that does not exist.
    """
    causal = model.config.objective == "clm"
    found = trace(model, tokenizer, text, hidden=() if causal else (position,))
    n = len(found.tokens)
    if not 0 <= position < n:
        raise ValueError(say("no_such_position", last=n - 1, position=position))
    log_probs = _of_next(found) if causal else _of_hidden(model, found, position, tokenizer.mask_id)
    return Look(found.logits[position], log_probs, found.attentions)


def look_everywhere(model: Transformer, tokenizer: Tokenizer, text: str) -> Look:
    """As `look` with a causal model, for all positions at once: logits are (T,V), a row for each.

    Raises:
        ValueError: for an empty text or a masked model, which would see another text for each position.
    """
    if model.config.objective != "clm":
        raise ValueError(say("one_at_a_time"))
    found = trace(model, tokenizer, text)
    return Look(found.logits, _of_next(found), found.attentions)


def target_log_probs(logits: NDArray[np.float32], targets: Sequence[int]) -> NDArray[np.float64]:
    """(N,) natural log of the probability that each row of logits (N,V) gives its target."""
    parts = [
        log_softmax(logits[at : at + ROWS])[np.arange(len(targets[at : at + ROWS])), targets[at : at + ROWS]]
        for at in range(0, len(targets), ROWS)
    ]
    return np.concatenate([np.zeros(0), *parts])


def _of_next(found: Trace) -> NDArray[np.float64]:
    """(T,) of each token after those before it; NaN for the first."""
    return np.append(np.nan, target_log_probs(found.logits[:-1], found.ids[1:].tolist()))


def around(n: int, position: int, most: int) -> range:
    """The `most` positions of 0 … n-1 that have `position` in their middle, as far as the ends allow.

    >>> around(10, 5, 4), around(10, 0, 4), around(10, 9, 4), around(3, 1, 4)
    (range(3, 7), range(0, 4), range(6, 10), range(0, 3))
    """
    most = min(most, n)
    begin = min(max(position - most // 2, 0), n - most)
    return range(begin, begin + most)


@torch.no_grad()
def _of_hidden(model: Transformer, found: Trace, position: int, mask_id: int) -> NDArray[np.float64]:
    """(T,) of each token with it alone hidden; NaN for the frame's, and those too far from the position."""
    ids, first = torch.tensor([token.id for token in found.tokens]), found.inner.start
    near = around(len(found.inner), position - first, max(1, ASKED_TOKENS // len(ids)))
    asked = range(first + near.start, first + near.stop)
    rows = ids.repeat(len(asked), 1)  # (N,T)
    places = torch.arange(len(asked))
    rows[places, torch.tensor(asked)] = mask_id
    logits = model(rows.to(model.device))[places, torch.tensor(asked)].float().cpu().numpy()  # (N,V)
    log_probs = np.full(len(ids), np.nan)
    log_probs[asked.start : asked.stop] = target_log_probs(logits, ids[asked.start : asked.stop].tolist())
    return log_probs


def leaders(probs: ArrayLike, k: int, *, also: int | None = None) -> NDArray[np.int64]:
    """The k ids that had the highest probability at any one moment; the likeliest at the last moment first.

    Args:
        probs: (S,V) a distribution for each moment.
        k: how many.
        also: an id that takes the last one's place if it is not among them.

    >>> leaders([[0.1, 0.6, 0.2, 0.1], [0.5, 0.1, 0.15, 0.25]], 2).tolist()
    [0, 1]
    >>> leaders([[0.1, 0.6, 0.2, 0.1], [0.5, 0.1, 0.15, 0.25]], 2, also=3).tolist()
    [3, 1]
    """
    p = np.asarray(probs, np.float64)
    ids = np.argsort(-p.max(axis=0), kind="stable")[:k]
    if also is not None and also not in ids:
        ids[-1] = also
    return np.asarray(ids[np.argsort(-p[-1, ids], kind="stable")], np.int64)


def prompt_room(context_length: int, n_tokens: int) -> tuple[int, int]:
    """How many tokens to write, and how many of the text to read before them: both fit the context together.

    >>> prompt_room(192, 40), prompt_room(16, 40)
    ((40, 152), (8, 8))
    """
    n = max(1, min(n_tokens, context_length // 2))
    return n, max(1, context_length - n)


def write_on(
    model: Transformer, tokenizer: Tokenizer, ids: Sequence[int], *, n_tokens: int, seed: int
) -> str:
    r"""Let a causal model go on after some ids: drawn at temperature 1 from the full vocabulary.

    The last ids are read that leave room for what is written, so that each draw costs one token's work.
    Bytes that are no character come as ``\xf0``.
    """
    n, room = prompt_room(model.config.context_length, n_tokens)
    stream = TextStream()
    steps = generate(model, ids[-room:], n_tokens=n, seed=seed)
    return "".join(stream.push(tokenizer.token_bytes(step.id)) for step in steps) + stream.end()


@torch.no_grad()
def fill_in(model: Transformer, ids: Sequence[int], hidden: Sequence[int], mask_id: int) -> list[int]:
    """The masked model's best guess for each hidden position, all hidden at once: their ids in order.

    The mask itself is none, though a model that has learned nothing yet mostly finds it likeliest.
    """
    seen = torch.tensor([list(ids)])
    seen[0, list(hidden)] = mask_id
    logits = model(seen.to(model.device))[0, list(hidden)]  # (N,V)
    logits[:, mask_id] = -math.inf
    best: list[int] = logits.argmax(dim=-1).tolist()
    return best
