"""How good a model is: loss, perplexity, bits per byte, entropy, rank, and the score of a whole text.

Logarithms are natural; the unit is the nat unless a name says bits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn  # torch before its parts: another thread may be loading it

from engine.windows import context_sizes, cut, score_parts
from wording import words

if TYPE_CHECKING:
    from engine.model import Transformer

say = words("engine.metrics")

IGNORED = -100  # a target that the loss leaves out
ROWS_AT_ONCE = 500_000  # numbers of the rows of logits that are worked on at once


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean surprisal in nats of the targets, over the scored ones only.

    Args:
        logits: (…,V).
        targets: (…) int64; -100 is left out.

    Raises:
        ValueError: if no target is scored.

    >>> import torch
    >>> C = torch.tensor([[3.2, 1.1, 0.4, 2.4, -1.0]])
    >>> [round(cross_entropy(C, torch.tensor([target])).item(), 4) for target in (0, 4)]
    [0.4993, 4.6993]
    """
    if not bool((targets != IGNORED).any()):
        raise ValueError(say("no_target_scored_there"))
    rows = logits.reshape(-1, logits.shape[-1]).float()  # half precision would round the sum
    return nn.functional.cross_entropy(rows, targets.reshape(-1), ignore_index=IGNORED)


def perplexity(loss: float) -> float:
    """exp(mean loss): how many equally likely choices would surprise as much. Infinite above 709.78 nats."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf


def bits_per_byte(total_nats: float, n_bytes: int) -> float:
    """Surprisal of a text divided by its UTF-8 length: comparable across tokenizers."""
    if n_bytes < 1:
        raise ValueError(say("bits_per_byte_needs"))
    return total_nats / math.log(2) / n_bytes


def entropy(probs: ArrayLike) -> float:
    """-Σ p log p in nats, with 0 log 0 = 0 (Shannon 1948)."""
    p = np.asarray(probs, dtype=np.float64)
    p = p[p > 0]
    return float(0.0 - (p * np.log(p)).sum())  # 0 - 0 is 0, while -(0) would print as -0


def kl_divergence(p: NDArray, q: NDArray) -> NDArray:
    """Σ p log(p/q) in nats along the last axis: what it costs to believe q when p is true."""
    p, q = np.asarray(p, np.float64), np.asarray(q, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Not of a quotient: p / q is infinite where q is tiny, as after a division by a low temperature.
        return np.where(p > 0, p * (np.log(p) - np.log(q)), 0.0).sum(axis=-1)


def log_softmax(logits: NDArray) -> NDArray:
    """Log-probabilities in float64 along the last axis; the maximum comes off first, so nothing overflows."""
    z = np.array(logits, np.float64)  # a copy, which the rest changes in place: of many rows it is large
    z -= z.max(axis=-1, keepdims=True)
    z -= np.log(np.exp(z).sum(axis=-1, keepdims=True))
    return z


def softmax(logits: NDArray) -> NDArray:
    """Probabilities in float64 along the last axis."""
    log_probs = log_softmax(logits)
    return np.asarray(np.exp(log_probs, out=log_probs))


class SoftmaxParts(NamedTuple):
    """One probability of a softmax, worked out: prob = exp(logit - log_sum)."""

    logit: float
    log_sum: float  # log Σ exp(logits)
    prob: float


def softmax_parts(logits: ArrayLike, token_id: int) -> SoftmaxParts:
    """The numbers behind one entry of a softmax over logits (V,), in float64.

    >>> z, log_sum, p = softmax_parts([2.0, 1.0, 0.0], 0)
    >>> z, round(log_sum, 4), round(p, 4)
    (2.0, 2.4076, 0.6652)
    """
    z = np.asarray(logits, np.float64)
    log_prob = float(log_softmax(z)[token_id])
    return SoftmaxParts(float(z[token_id]), float(z[token_id]) - log_prob, math.exp(log_prob))


def rank(probs: ArrayLike, token_id: int) -> int:
    """Place of a token by probability: 1 is the likeliest; equal ones share the better place."""
    p = np.asarray(probs)
    return int((p > p[token_id]).sum()) + 1


@dataclass(frozen=True, eq=False)
class MostLikely:
    """The top of a distribution and what it leaves out; `probs` and `tail` add up to 1.

    Attributes:
        ids: (K,) the likeliest first; equal ones in the order of their ids.
        probs: (K,) over the full vocabulary.
        tail: probability of all the others together.
        n_tail: how many these are.
    """

    ids: NDArray
    probs: NDArray
    tail: float
    n_tail: int


def most_likely(probs: ArrayLike, k: int, *, also: int | None = None) -> MostLikely:
    """Cut a distribution (V,) into its k likeliest ids and the rest; the id `also` follows if not there.

    >>> top = most_likely([0.1, 0.5, 0.15, 0.25], 2)
    >>> top.ids.tolist(), top.probs.tolist(), top.tail, top.n_tail
    ([1, 3], [0.5, 0.25], 0.25, 2)
    >>> most_likely([0.1, 0.5, 0.15, 0.25], 2, also=0).ids.tolist()
    [1, 3, 0]
    """
    p = np.asarray(probs, np.float64)
    ids = _first(p, k)
    if also is not None and also not in ids:
        ids = np.append(ids, also)
    return MostLikely(ids, p[ids], tail_of(p, ids), len(p) - len(ids))


def _first(p: NDArray, k: int) -> NDArray:
    """The k largest of (V,), the largest first, equal ones in order; sorts no more of them than it must."""
    if 0 < k < len(p):
        least = p[np.argpartition(p, len(p) - k)[len(p) - k]]
        found = np.flatnonzero(p >= least)
    else:
        found = np.arange(len(p))
    return found[np.argsort(-p[found], kind="stable")][:k]


def tail_of(probs: ArrayLike, ids: ArrayLike) -> float:
    """Probability of all ids but these, summed and not subtracted from 1, so that nothing stays exactly 0."""
    return float(np.delete(np.asarray(probs, np.float64), np.asarray(ids, np.int64)).sum())


def surprisal(log_probs: ArrayLike, unit: str = "nats") -> NDArray:
    """-log p in "nats" or in "bits" (1 bit is ln 2 nats).

    >>> surprisal(np.log([0.25]), "bits").tolist()
    [2.0]
    """
    return np.asarray(-np.asarray(log_probs, np.float64) / {"nats": 1.0, "bits": math.log(2)}[unit] + 0.0)


@dataclass(frozen=True, eq=False)
class NextTokenScores:
    """How well each position predicted the token that came next: N - 1 rows for N tokens.

    Attributes:
        log_probs: natural log of the probability that the true next token got.
        ranks: its place, 1 is the likeliest.
        entropies: of the whole distribution at that position, nats.
        running_perplexity: exp of the mean surprisal so far.
    """

    log_probs: NDArray
    ranks: NDArray
    entropies: NDArray
    running_perplexity: NDArray

    @property
    def probs(self) -> NDArray:
        """Probability that each true next token got."""
        return np.exp(self.log_probs)

    @property
    def total(self) -> float:
        """Natural log of the probability of all scored tokens together: by the chain rule, a sum."""
        return float(self.log_probs.sum())

    @property
    def loss(self) -> float:
        """Mean surprisal in nats per token."""
        return float(0.0 - self.log_probs.mean())


def _need_two(n: int) -> None:
    if n < 2:
        raise ValueError(say("scoring_needs_least_2", n=n))


def next_token_scores(logits: NDArray, ids: Sequence[int]) -> NextTokenScores:
    """Score logits (N,V) of a causal model against the tokens (N,) themselves: row t against token t + 1.

    Raises:
        ValueError: with fewer than 2 tokens, as the first has nothing before it to be predicted from.
    """
    _need_two(len(ids))
    targets = np.asarray(ids[1:])
    at_once = max(1, ROWS_AT_ONCE // logits.shape[1])  # the float64 rows of a long text would be 75 MB each
    parts = [
        _scored_rows(logits[begin : min(begin + at_once, len(targets))], targets[begin : begin + at_once])
        for begin in range(0, len(targets), at_once)
    ]
    true, ranks, entropies = (np.concatenate(part) for part in zip(*parts, strict=True))
    mean_so_far = -np.cumsum(true) / np.arange(1, len(ids))
    return NextTokenScores(true, ranks, entropies, np.array([perplexity(x) for x in mean_so_far]))


def _scored_rows(logits: NDArray, targets: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Of every row of (n,V): log-probability of its target, its rank, and the row's entropy."""
    log_probs = log_softmax(logits)
    true = log_probs[np.arange(len(targets)), targets]
    probs = np.exp(log_probs)
    each = np.multiply(probs, log_probs, where=probs > 0, out=np.zeros_like(probs))
    return true, (log_probs > true[:, None]).sum(axis=-1) + 1, 0.0 - each.sum(axis=-1)


@dataclass(frozen=True, eq=False)
class Scores:
    """Score of a text of any length.

    Attributes:
        log_probs: (n,) natural log of each token's probability, each token once.
        positions: (n,) which token of the text it is: 1 … N-1; with ids before the text also 0.
        contexts: (n,) how many tokens before it the model saw.
    """

    log_probs: NDArray
    positions: NDArray
    contexts: NDArray

    @property
    def loss(self) -> float:
        """Mean surprisal in nats per token, over the whole text (not a mean of means)."""
        return float(0.0 - self.log_probs.mean())


def score(
    model: "Transformer",
    ids: Sequence[int] | Tensor,
    *,
    stride: int | None = None,
    before: Sequence[int] = (),
) -> Scores:
    """Score every token but the first by sliding the model's window over the text.

    Args:
        model: a causal one.
        ids: (N,), of any length.
        stride: how far the window moves; after the first window each token sees more than
            `context_length - stride` before it. None is half the context.
        before: what the model wants before any text, `Tokenizer.frame[0]`: it is read first in every window
            and never scored; the first token of the text then is.

    Raises:
        ValueError: for fewer than 2 tokens in all, a stride outside 1…context_length, or a masked model.
    """
    config = model.config
    stride = max(1, config.context_length // 2) if stride is None else stride
    if config.objective != "clm":
        raise ValueError(say("masked_model_gives_no"))
    row = [*before, *(int(i) for i in ids)]
    _need_two(len(row))
    windows = cut(len(row), config.context_length, stride, len(before))
    log_probs = np.concatenate(list(score_parts(model, row, windows)))
    return Scores(log_probs, np.arange(0 if before else 1, len(ids)), context_sizes(windows))
