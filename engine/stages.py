"""From logits to the distribution that a token is drawn from, stage by stage.

The order is fixed: repetition penalty, temperature, softmax, top-k, top-p, min-p. After every cut what is
left is scaled to sum to 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from engine.config import check_sampling
from engine.metrics import entropy, softmax
from wording import words

say = words("engine.stages")


class Settings(TypedDict, total=False):
    """How a token is drawn: the keywords of `sampling_stages`, which says what each means."""

    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    repetition_penalty: float
    previous: Sequence[int]


@dataclass(frozen=True, eq=False)
class Stage:
    """The distribution after one stage.

    Attributes:
        name: "softmax", "penalty", "temperature", "top-k", "top-p" or "min-p".
        probs: (V,) float64, sums to 1; a token that was cut has exactly 0.
        removed_mass: share of the probability before this stage that it cut away.
    """

    name: str
    probs: NDArray
    removed_mass: float

    @property
    def n_kept(self) -> int:
        """How many tokens can still be drawn."""
        return int((self.probs > 0).sum())

    @property
    def entropy(self) -> float:
        """In nats."""
        return entropy(self.probs)

    @property
    def choices(self) -> float:
        """Effective number of choices: as many equally likely tokens would have this entropy."""
        return math.exp(self.entropy)

    def rest(self, ids: Sequence[int]) -> float:
        """Probability of all tokens but these; exactly 0 if all the others were cut."""
        return float(np.delete(self.probs, list(ids)).sum())


def as_scores(logits: ArrayLike | torch.Tensor) -> NDArray:
    """Logits as float64 (V,), refused if no distribution can come of them."""
    if isinstance(logits, torch.Tensor):
        logits = logits.detach().cpu()
        logits = (logits if logits.dtype in (torch.float32, torch.float64) else logits.float()).numpy()
    z = np.asarray(logits, np.float64)
    if z.ndim != 1 or len(z) == 0:
        raise ValueError(say("one_row_least_1", shape=z.shape))
    # The largest is NaN where there is one, infinite where one is, and -∞ where there is nothing else.
    if not math.isfinite(z.max()):
        raise ValueError(say("model_output_not_finite"))
    return z


def _tempered(z: NDArray, temperature: float) -> NDArray:
    if temperature == 0:  # the limit: everything on the largest logit, of equal ones the lowest id
        probs = np.zeros(len(z))
        probs[z.argmax()] = 1.0
        return probs
    with np.errstate(over="ignore"):  # a difference too large for a float is as good as infinite
        return softmax((z - z.max()) / temperature)  # the maximum first: 0 stays 0, so never inf - inf


def _cut(name: str, probs: NDArray, keep: NDArray) -> Stage:
    kept = np.where(keep, probs, 0.0)
    mass = kept.sum()
    return Stage(name, kept / mass, float(max(0.0, 1.0 - mass)))


def _likeliest(probs: NDArray, n: int) -> NDArray:
    """Ids of at least the n likeliest in order, of equal ones the lowest first.

    The beginning of a stable sort of all, but only these are sorted.
    """
    if n >= len(probs):
        return np.argsort(-probs, kind="stable")
    least = np.partition(probs, len(probs) - n)[len(probs) - n]
    ids = np.flatnonzero(probs >= least)
    return ids[np.argsort(-probs[ids], kind="stable")]


def _top_k(probs: NDArray, k: int) -> NDArray:
    keep = np.zeros(len(probs), bool)
    keep[_likeliest(probs, int(k))[: int(k)]] = True
    return keep


def _top_p(probs: NDArray, p: float) -> NDArray:
    """The fewest likeliest whose mass reaches p, at least one (Holtzman et al. 2019, arXiv:1904.09751)."""
    n = 64
    while True:  # sorting a large vocabulary takes longer than all the rest
        order = _likeliest(probs, n)
        sums = np.cumsum(probs[order])
        if sums[-1] >= p or len(order) == len(probs):
            break
        n *= 16
    keep = np.zeros(len(probs), bool)
    keep[order[: max(1, int((sums - probs[order] < p).sum()))]] = True
    return keep


def penalised(z: NDArray, previous: Sequence[int], penalty: float) -> NDArray:
    """Logits (V,) in which those of the tokens that came before are made smaller.

    A positive logit is divided by the penalty, a negative one multiplied by it, once for each different token
    (Keskar et al. 2019, arXiv:1909.05858).

    >>> penalised(np.array([2.0, -1.0, 3.0]), [0, 1, 0], 2.0).tolist()
    [1.0, -2.0, 3.0]
    """
    seen = np.unique(np.asarray(previous, dtype=np.int64))
    lower = z.copy()
    lower[seen] = np.where(z[seen] > 0, z[seen] / penalty, z[seen] * penalty)
    return lower


def sampling_stages(
    logits: ArrayLike | torch.Tensor,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    previous: Sequence[int] = (),
) -> list[Stage]:
    """Every stage from the plain softmax to the distribution that is drawn from.

    Args:
        logits: (V,).
        temperature: logits are divided by it; 0 is exactly greedy (of equal logits the lowest id).
        top_k: keep the k likeliest; None or 0 is off, more than V keeps all.
        top_p: keep the likeliest until their mass reaches p; None or 1 is off, 0 keeps one.
        min_p: keep what has at least this share of the likeliest one's probability (Nguyen et al. 2024,
            arXiv:2407.01082); None or 0 is off.
        repetition_penalty: see `penalised`; 1 is off.
        previous: ids that came before, for the penalty.

    Returns:
        "softmax", "penalty" if it is on, "temperature", then one stage for each cut that is on.

    Raises:
        ValueError: for settings out of range, or logits that are not finite.
    """
    check_sampling(temperature, top_k, top_p, min_p, repetition_penalty)
    z = as_scores(logits)
    stages = [Stage("softmax", softmax(z), 0.0)]
    if repetition_penalty > 1:
        z = penalised(z, previous, repetition_penalty)
        stages.append(Stage("penalty", softmax(z), 0.0))
    probs = stages[-1].probs if temperature == 1 else _tempered(z, temperature)
    stages.append(Stage("temperature", probs, 0.0))
    return [*stages, *_cuts(probs, top_k, top_p, min_p)]


def _cuts(probs: NDArray, top_k: int | None, top_p: float | None, min_p: float | None) -> list[Stage]:
    """The cuts that are on, one after the other."""
    cuts: list[Stage] = []
    if top_k:
        cuts.append(_cut("top-k", probs, _top_k(probs, top_k)))
    if top_p is not None and top_p < 1:
        probs = cuts[-1].probs if cuts else probs
        cuts.append(_cut("top-p", probs, _top_p(probs, top_p)))
    if min_p:
        probs = cuts[-1].probs if cuts else probs
        cuts.append(_cut("min-p", probs, probs >= min_p * probs.max()))
    return cuts


def before_and_after(
    logits: ArrayLike | torch.Tensor,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    previous: Sequence[int] = (),
) -> tuple[NDArray, NDArray]:
    """The model's own distribution (V,) and the one that is drawn from: the ends of `sampling_stages`.

    What lies between is not kept, and the penalty's own softmax, which nothing is drawn from, not computed.
    """
    z = as_scores(logits)
    own = softmax(z)
    if repetition_penalty > 1:
        z = penalised(z, previous, repetition_penalty)
    plain = temperature == 1 and repetition_penalty == 1
    probs = own if plain else _tempered(z, temperature)
    cuts = _cuts(probs, top_k, top_p, min_p)
    return own, cuts[-1].probs if cuts else probs


def next_token_distribution(logits: ArrayLike | torch.Tensor, **settings: Unpack[Settings]) -> NDArray:
    """The distribution (V,) that the next token is drawn from: the last of `sampling_stages`.

    >>> next_token_distribution([3.2, 1.1, 0.4, 2.4, -1.0], top_p=0.8).round(2).tolist()
    [0.69, 0.0, 0.0, 0.31, 0.0]
    """
    return sampling_stages(logits, **settings)[-1].probs


class Worked(NamedTuple):
    """How one token got its probability, step by step.

    Attributes:
        logit, top: its logit and the largest one.
        weight: exp((logit - top) / temperature).
        total: the sum of all tokens' weights.
        tempered: weight / total.
        kept: share of the probability that the cuts left.
        final: tempered / kept, or 0 if the token was cut.
    """

    logit: float
    top: float
    weight: float
    total: float
    tempered: float
    kept: float
    final: float


def worked_out(
    logits: NDArray,
    stages: Sequence[Stage],
    token_id: int,
    temperature: float,
    *,
    repetition_penalty: float = 1.0,
    previous: Sequence[int] = (),
) -> Worked:
    """Work out again what `sampling_stages` gave one token; with temperature 0 the weights are 1 and 0.

    The logits of the result are those after the penalty.
    """
    z = penalised(as_scores(logits), previous, repetition_penalty)
    at = [stage.name for stage in stages].index("temperature")
    if temperature == 0:
        weight, total = float(stages[at].probs[token_id]), 1.0
    else:
        with np.errstate(over="ignore"):
            weights = np.exp((z - z.max()) / temperature)
        weight, total = float(weights[token_id]), float(weights.sum())
    kept = math.prod(1.0 - stage.removed_mass for stage in stages[at + 1 :])
    final = float(stages[-1].probs[token_id])
    return Worked(float(z[token_id]), float(z.max()), weight, total, weight / total, kept, final)
