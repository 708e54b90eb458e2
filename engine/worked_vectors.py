"""The vectors of the worked examples: a row looked up, an attention small enough to follow, its mask."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engine.metrics import softmax
from wording import words

say = words("engine.worked_vectors")
Floats = NDArray[np.float64]


def matrix(rows: Sequence[Sequence[float]]) -> Floats:
    """Rows of equal length as one matrix.

    Raises:
        ValueError: for none, for unequal rows, or a number that is not finite.
    """
    if not rows or not rows[0]:
        raise ValueError(say("no_numbers"))
    if len({len(row) for row in rows}) > 1:
        raise ValueError(say("uneven_rows"))
    made = np.asarray(rows, np.float64)
    if not np.isfinite(made).all():
        raise ValueError(say("not_finite"))
    return made


def one_hot(index: int, size: int) -> list[int]:
    """All noughts, with a 1 at the index.

    Raises:
        ValueError: for an index outside 0 … size - 1.

    >>> one_hot(1, 3)
    [0, 1, 0]
    """
    if not 0 <= index < size:
        raise ValueError(say("index_outside", index=index, last=size - 1))
    return [int(i == index) for i in range(size)]


def look_up(table: Floats, index: int) -> Floats:
    """One-hot × table (V,d): the row (d,) of that index, by the whole sum.

    >>> look_up(np.array([[1.0, 2.0], [3.0, 4.0]]), 1).tolist()
    [3.0, 4.0]
    """
    return np.asarray(np.array(one_hot(index, len(table)), np.float64) @ table)


@dataclass(frozen=True, eq=False)
class TinyWeights:
    """A model small enough for paper: E (V,d), and the linear layer's W (V,d) and b (V,)."""

    embedding: Floats
    weight: Floats
    bias: Floats


def tiny_weights(seed: int, vocab_size: int = 3, d_model: int = 2) -> TinyWeights:
    """Random beginnings as PyTorch gives them: embeddings normal, a linear layer uniform in ± 1 / √d."""
    generator = torch.Generator().manual_seed(seed)
    embedding = torch.randn(vocab_size, d_model, generator=generator)
    bound = d_model**-0.5
    weight = (2 * torch.rand(vocab_size, d_model, generator=generator) - 1) * bound
    bias = (2 * torch.rand(vocab_size, generator=generator) - 1) * bound
    return TinyWeights(*(part.double().numpy() for part in (embedding, weight, bias)))


@dataclass(frozen=True, eq=False)
class TinyPass:
    """Everything that the tiny model computes for T tokens; Q = K = V = embedded.

    Attributes:
        embedded: (T,d) rows of the embedding.
        scores: (T,T) Q Kᵀ.
        scaled: (T,T) scores / √d; -inf where a row may not look.
        attention: (T,T) softmax of each row.
        context: (T,d) attention × V.
        logits: (V,) W × the last context + b.
        probs: (V,) softmax of the logits.
    """

    embedded: Floats
    scores: Floats
    scaled: Floats
    attention: Floats
    context: Floats
    logits: Floats
    probs: Floats


def tiny_pass(weights: TinyWeights, ids: Sequence[int], *, causal: bool = False) -> TinyPass:
    """From ids to the probabilities of the next token, by one head without matrices of its own.

    What is too large to compute comes out as infinite or NaN.

    Scaled dot products: Vaswani et al. 2017, arXiv:1706.03762.

    Args:
        weights: of the model.
        ids: (T,) indices into the embedding.
        causal: let row t look at 1 … t only.

    Raises:
        ValueError: for no ids, or one outside the embedding.
    """
    if not ids:
        raise ValueError(say("no_numbers"))
    x = np.stack([look_up(weights.embedding, i) for i in ids])  # (T,d)
    with np.errstate(over="ignore", invalid="ignore"):
        scores = x @ x.T
        scaled = causal_scores(scores / np.sqrt(x.shape[1])) if causal else scores / np.sqrt(x.shape[1])
        attention = softmax(scaled)
        context = attention @ x
        logits = weights.weight @ context[-1] + weights.bias
        return TinyPass(x, scores, scaled, attention, context, logits, softmax(logits))


def causal_scores(scores: Floats) -> Floats:
    """Scores (T,T) with -inf where a later token stands: row t sees 1 … t.

    >>> causal_scores(np.zeros((2, 2))).tolist()
    [[0.0, -inf], [0.0, 0.0]]
    """
    return np.where(np.tril(np.ones_like(scores)) > 0, scores, -np.inf)


def pairs_seen(length: int) -> tuple[int, int]:
    """How many pairs of positions see each other: with the causal mask, and without it.

    >>> pairs_seen(4)
    (10, 16)
    """
    return length * (length + 1) // 2, length * length
