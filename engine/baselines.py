"""What counting alone can do: uniform, unigram, bigram and trigram models of the same text, same measure.

Each order is mixed with the one below it (Jelinek & Mercer 1980; Chen & Goodman 1996), down to 1 / V, so that
every token has some probability after every context and the probabilities of all tokens add up to 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engine.batches import Batch
from engine.metrics import IGNORED
from wording import words

say = words("engine.baselines")

NAMES = ("uniform", "unigram", "bigram", "trigram")
HELD_OUT = 0.1  # share of the training text that decides how far to trust the counts
LEAST_TRUST = 1e-6
_HALVINGS = 50


@dataclass(frozen=True, eq=False)
class _Counts:
    """How often each run of n tokens occurs, by a key that is its number to the base V."""

    keys: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, keys: NDArray[np.int64]) -> "_Counts":
        return cls(*np.unique(keys, return_counts=True))

    def __call__(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """How often these keys were counted, in their shape."""
        if len(self.keys) == 0:
            return np.zeros(keys.shape, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.counts[at], 0)


class NGrams:
    """Counts of single tokens, pairs and triples of a text, and how far to trust each.

    p₀ = 1 / V; pₙ(w | h) = λₙ · count(h w) / count(h) + (1 - λₙ) · pₙ₋₁(w | h without its first token), and
    pₙ = pₙ₋₁ where h was never seen. λₙ is what makes the end of the training text likeliest when the counts
    come from its beginning; afterwards all of it is counted.

    Args:
        ids: (N,) the training text.
        vocab_size: V.

    Attributes:
        trust: λ of "unigram", "bigram" and "trigram".

    Raises:
        ValueError: for an empty text, or ids outside the vocabulary.
    """

    def __init__(self, ids: Sequence[int] | NDArray[np.integer] | torch.Tensor, vocab_size: int) -> None:
        text = np.asarray(ids, dtype=np.int64)
        if len(text) == 0:
            raise ValueError(say("counting_needs_text_least"))
        if text.min() < 0 or text.max() >= vocab_size:
            raise ValueError(
                say(
                    "ids_must_lie_between",
                    last=vocab_size - 1,
                    odd=int(text.min() if text.min() < 0 else text.max()),
                )
            )
        self.vocab_size = vocab_size
        self.trust: list[float] = []
        cut = len(text) - max(1, round(HELD_OUT * len(text)))
        self._count(text[:cut])
        for order in (1, 2, 3):
            self.trust.append(self._best_trust(order, text, cut))
        self._count(text)

    def _count(self, text: NDArray[np.int64]) -> None:
        v = self.vocab_size
        pairs = text[:-1] * v + text[1:]
        triples = pairs[:-1] * v + text[2:]
        self._total = max(1, len(text))
        self._seen = [_Counts.of(text), _Counts.of(pairs), _Counts.of(triples)]
        self._contexts = [_Counts.of(text[:-1]), _Counts.of(pairs[:-1])]  # those that something follows

    def _best_trust(self, order: int, text: NDArray[np.int64], cut: int) -> float:
        """λ of one order: the likeliest for the held-out end of the text."""
        at = np.arange(max(cut, order - 1), len(text))
        history = (
            np.stack([text[at - back] for back in range(order - 1, 0, -1)], axis=-1) if order > 1 else None
        )
        counted, known = self._counted(history, text[at], order)
        below = self.probs(history, text[at], order - 1)
        counted, below = counted[known], below[known]
        if len(counted) == 0:
            return 0.5
        low, high = LEAST_TRUST, 1 - LEAST_TRUST  # a text that only repeats itself must not rule out all else
        for _ in range(_HALVINGS):  # the likelihood is concave: halve towards where its slope is 0
            trust = (low + high) / 2
            slope = ((counted - below) / (trust * counted + (1 - trust) * below)).sum()
            low, high = (trust, high) if slope > 0 else (low, trust)
        return (low + high) / 2

    def _counted(
        self, history: NDArray[np.int64] | None, targets: NDArray[np.int64], order: int
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """count(h w) / count(h), and where h was seen at all."""
        if order == 1 or history is None:
            share = self._seen[0](targets) / self._total
            return share, np.ones(targets.shape, dtype=bool)
        context = history[..., -1]
        if order == 3:
            context = np.where(history[..., -2] < 0, -1, history[..., -2] * self.vocab_size + context)
        before = self._contexts[order - 2](context)
        pair = self._seen[order - 1](np.where(context < 0, -1, context * self.vocab_size + targets))
        return pair / np.maximum(before, 1), (before > 0) & (context >= 0)

    def probs(
        self, history: NDArray[np.int64] | None, targets: NDArray[np.int64], order: int
    ) -> NDArray[np.float64]:
        """Probability of each target after its history.

        Args:
            history: (…, H) the tokens before it, the nearest last; -1 where there is none; None: none at all.
            targets: (…) ids.
            order: 0 uniform, 1 unigram, 2 bigram, 3 trigram.
        """
        result = np.full(targets.shape, 1.0 / self.vocab_size)
        for n in range(1, order + 1):
            if n > 1 and (history is None or history.shape[-1] < n - 1):
                break
            counted, known = self._counted(history, targets, n)
            trust = self.trust[n - 1]
            result = np.where(known, trust * counted + (1 - trust) * result, result)
        return result


def baseline_losses(counts: NGrams, batch: Batch, objective: str) -> dict[str, float]:
    """Loss of each baseline on the very targets on which a model is scored, nats a scored token.

    Args:
        counts: of the training text.
        batch: (B,T) inputs and targets of the evaluation.
        objective: "clm", or "mlm": what is left and right of a gap does not fit these models, so there only
            uniform and unigram are given.
    """
    inputs, targets = (part.cpu().numpy().astype(np.int64) for part in batch)
    scored = targets != IGNORED
    before = np.pad(inputs, ((0, 0), (1, 0)), constant_values=-1)[:, :-1]
    history = np.stack([before, inputs], axis=-1)  # (B,T,2): the nearest token last
    names = NAMES if objective == "clm" else NAMES[:2]
    losses = {}
    for order, name in enumerate(names):
        probs = counts.probs(history, np.where(scored, targets, 0), order)
        losses[name] = float(-np.log(probs[scored]).mean()) if scored.any() else math.nan
    return losses
