"""The sums of the worked examples: softmax, cross-entropy, perplexity, each with its lines kept."""

import decimal
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engine.metrics import log_softmax, perplexity, softmax
from wording import words

say = words("engine.worked_sums")


def probabilities(values: Sequence[float]) -> list[float]:
    """The numbers, if each can be a probability.

    Raises:
        ValueError: for none at all, or the first that lies outside 0 … 1 or is not a number.
    """
    if not values:
        raise ValueError(say("no_numbers"))
    for p in values:
        if not 0 <= p <= 1:  # also refuses NaN
            raise ValueError(say("not_a_probability", value=p))
    return list(values)


def logits_of(values: Sequence[float]) -> NDArray[np.float64]:
    """The numbers as logits (V,).

    Raises:
        ValueError: for none at all, or one that is not finite.
    """
    if not len(values):
        raise ValueError(say("no_numbers"))
    for z in values:
        if not math.isfinite(z):
            raise ValueError(say("not_finite", value=z))
    return np.asarray(values, np.float64)


@dataclass(frozen=True)
class Chain:
    """A sentence by the chain rule.

    Attributes:
        probs: of each token after those before it.
        log_probs: their natural logarithms.
        product: probability of the sentence; may be 0 where its logarithm is not.
        total: the sum of the negative logarithms, nats.
        loss: their mean.
        perplexity: exp(loss).
    """

    probs: list[float]
    log_probs: list[float]
    product: float
    total: float
    loss: float
    perplexity: float


def chain(probs: Sequence[float]) -> Chain:
    """The chain rule, p(w₁ … w_T) = Π p(w_t | w₁ … w_t-1), and the loss that comes of it.

    Raises:
        ValueError: for no numbers, or one that is no probability.

    >>> c = chain([0.9, 0.8])
    >>> round(c.product, 2), round(c.total, 4), round(c.loss, 4), round(c.perplexity, 4)
    (0.72, 0.3285, 0.1643, 1.1785)
    """
    probs = probabilities(probs)
    logs = [math.log(p) if p > 0 else -math.inf for p in probs]
    total = 0.0 - math.fsum(logs)
    loss = total / len(probs)
    return Chain(probs, logs, math.prod(probs), total, loss, perplexity(loss))


def rounded_first(probs: Sequence[float], decimals: int) -> tuple[float, list[float]]:
    """What comes out if each surprisal is rounded before they are added, and these rounded ones.

    >>> rounded_first([0.9, 0.8], 3)  # the exact sum, 0.3285, rounds to 0.329
    (0.328, [0.105, 0.223])
    """
    rows = [round(-x, decimals) for x in chain(probs).log_probs]
    return round(math.fsum(rows), decimals), rows


class JointSize(NamedTuple):
    """How many sequences there are: mantissa × 10^exponent, and the numbers that the factors need."""

    mantissa: float
    exponent: int
    by_factors: int


def joint_size(vocab_size: int, length: int) -> JointSize:
    """V^T sequences of T tokens, against T distributions over V tokens for the factors of one of them.

    Raises:
        ValueError: if either is below 1.

    >>> joint_size(50_000, 10)
    JointSize(mantissa=9.765625, exponent=46, by_factors=500000)
    """
    if vocab_size < 1 or length < 1:
        raise ValueError(say("no_sequences", vocab_size=vocab_size, length=length))
    with decimal.localcontext(prec=30, Emax=decimal.MAX_EMAX):
        count = decimal.Decimal(vocab_size) ** length
        exponent = count.adjusted()
        return JointSize(float(count.scaleb(-exponent)), exponent, vocab_size * length)


@dataclass(frozen=True, eq=False)
class SafeSoftmax:
    """A softmax with its largest logit taken off first, and beside it the one without.

    Attributes:
        top: the largest logit.
        shifted: (V,) logits - top; 0 is the largest.
        weights: (V,) exp(shifted).
        total: their sum, at least 1.
        probs: (V,) weights / total.
        naive_weights: (V,) exp(logits); infinite above 709.78.
        naive_probs: (V,) naive_weights / their sum; NaN where that is infinite or 0.
    """

    top: float
    shifted: NDArray[np.float64]
    weights: NDArray[np.float64]
    total: float
    probs: NDArray[np.float64]
    naive_weights: NDArray[np.float64]
    naive_probs: NDArray[np.float64]


def safe_softmax(logits: Sequence[float]) -> SafeSoftmax:
    """Every number on the way from logits to probabilities, in the safe way and in the naive one.

    Raises:
        ValueError: for no logits, or one that is not finite.

    >>> s = safe_softmax([1000.0, 999.0, 998.0])
    >>> s.probs.round(3).tolist(), s.naive_probs.tolist()
    ([0.665, 0.245, 0.09], [nan, nan, nan])
    """
    z = logits_of(logits)
    shifted = z - z.max()
    weights = np.exp(shifted)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        naive = np.exp(z)
        naive_probs = naive / naive.sum()
    return SafeSoftmax(float(z.max()), shifted, weights, float(weights.sum()), softmax(z), naive, naive_probs)


def with_rest(logits: ArrayLike, ids: Sequence[int]) -> NDArray[np.float64]:
    """The logits of some tokens (K,) and one logit for all the others together: softmax keeps its values.

    >>> np.exp(with_rest([2.0, 1.0, 0.0], [0])).round(3).tolist()  # e², and e¹ + e⁰
    [7.389, 3.718]
    """
    z = np.asarray(logits, np.float64)
    rest = np.delete(z, np.asarray(ids, np.int64))
    if not len(rest):
        return z[list(ids)]
    top = rest.max()
    return np.append(z[list(ids)], top + np.log(np.exp(rest - top).sum()))


def sigmoid(z: float) -> float:
    """1 / (1 + e^-z), without overflow.

    >>> round(sigmoid(1.3), 6), sigmoid(-1000.0)
    (0.785835, 0.0)
    """
    if not math.isfinite(z):
        raise ValueError(say("not_finite", value=z))
    return 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))


@dataclass(frozen=True, eq=False)
class BatchLoss:
    """The cross-entropy of a batch, row by row.

    Attributes:
        target_logits: (B,) z of each target.
        log_sums: (B,) ln Σ exp(z) of each row.
        surprisals: (B,) their differences, nats.
        loss: the mean of these.
    """

    target_logits: NDArray[np.float64]
    log_sums: NDArray[np.float64]
    surprisals: NDArray[np.float64]
    loss: float


def batch_loss(logits: Sequence[Sequence[float]] | NDArray, targets: Sequence[int]) -> BatchLoss:
    """-ln p of each row's target, and their mean, as `engine.metrics.cross_entropy` gives it.

    Args:
        logits: (B,V).
        targets: (B,) indices into the rows, counted from 0.

    Raises:
        ValueError: for rows of unequal length, another number of targets, or one outside its row.

    >>> found = batch_loss([[2.0, 1.0, 0.1], [0.5, 2.5, 0.2]], [0, 1])
    >>> found.surprisals.round(4).tolist(), round(found.loss, 4)
    ([0.417, 0.2116], 0.3143)
    """
    if len({len(row) for row in logits}) > 1:
        raise ValueError(say("uneven_rows"))
    if len(logits) != len(targets):
        raise ValueError(say("targets_and_rows", targets=len(targets), rows=len(logits)))
    z = np.stack([logits_of(row) for row in logits]) if len(logits) else logits_of([])[None]
    for target in targets:
        if not 0 <= target < z.shape[1]:
            raise ValueError(say("target_outside", target=target, last=z.shape[1] - 1))
    surprisals = 0.0 - log_softmax(z)[np.arange(len(z)), list(targets)]
    at = z[np.arange(len(z)), list(targets)]
    return BatchLoss(at, at + surprisals, surprisals, float(surprisals.mean()))


def softmax_twice(logits: Sequence[float], target: int) -> tuple[float, float]:
    """The loss of some logits, and what comes out if their probabilities are put through softmax again.

    >>> [round(x, 4) for x in softmax_twice([3.2, 1.1, 0.4, 2.4, -1.0], 0)]
    [0.4993, 1.2292]
    """
    right = batch_loss([logits], [target]).loss
    return right, batch_loss([softmax(logits_of(logits)).tolist()], [target]).loss


def mean_of_perplexities(surprisals: Sequence[float]) -> tuple[float, float]:
    """The perplexity, exp of the mean, and beside it the mean of the exps: never the same unless all are.

    >>> [round(x, 4) for x in mean_of_perplexities([0.0, 2 * math.log(3)])]
    [3.0, 5.0]
    """
    if not surprisals:
        raise ValueError(say("no_numbers"))
    for x in surprisals:
        if not x >= 0:
            raise ValueError(say("not_a_surprisal", value=x))
    n = len(surprisals)
    return perplexity(math.fsum(surprisals) / n), math.fsum(perplexity(x) for x in surprisals) / n


@dataclass(frozen=True, eq=False)
class GradientStep:
    """One step of gradient descent on the logits of one prediction.

    Attributes:
        probs: (V,) before.
        gradient: (V,) p - y, y being 1 at the target and 0 elsewhere: the slope of the loss.
        logits: (V,) after: z - learning_rate · gradient.
        new_probs: (V,) after.
        loss, new_loss: nats.
    """

    probs: NDArray[np.float64]
    gradient: NDArray[np.float64]
    logits: NDArray[np.float64]
    new_probs: NDArray[np.float64]
    loss: float
    new_loss: float


def gradient_step(logits: Sequence[float], target: int, learning_rate: float) -> GradientStep:
    """Let the loss fall by one step: the slope of -ln p_target in logit i is p_i - y_i.

    >>> step = gradient_step([2.0, 1.0, 0.0], 1, 1.0)
    >>> step.gradient.round(3).tolist(), round(step.new_loss, 3)
    ([0.665, -0.755, 0.09], 0.596)
    """
    loss = batch_loss([logits], [target]).loss
    z = logits_of(logits)
    gradient = softmax(z)
    probs = gradient.copy()
    gradient[target] -= 1
    after = z - learning_rate * gradient
    return GradientStep(
        probs, gradient, after, softmax(after), loss, batch_loss([after.tolist()], [target]).loss
    )
