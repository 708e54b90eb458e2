"""From logits to a drawn token, stage by stage, and from tokens to text.

The order is fixed: temperature, softmax, top-k, top-p, min-p. After every cut what is left is scaled to sum
to 1.
"""

import codecs
import math
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from engine.config import check_sampling
from engine.metrics import softmax
from engine.model import KVCache, Transformer


@dataclass(frozen=True, eq=False)
class Stage:
    """The distribution after one stage.

    Attributes:
        name: "softmax", "temperature", "top-k", "top-p" or "min-p".
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

    def rest(self, ids: Sequence[int]) -> float:
        """Probability of all tokens but these; exactly 0 if all the others were cut."""
        return float(np.delete(self.probs, list(ids)).sum())


def _as_scores(logits: ArrayLike | torch.Tensor) -> NDArray:
    """Logits as float64 (V,), refused if no distribution can come of them."""
    z = (
        logits.detach().double().cpu().numpy()
        if isinstance(logits, torch.Tensor)
        else np.asarray(logits, np.float64)
    )
    if z.ndim != 1 or len(z) == 0:
        raise ValueError(f"One row of at least 1 logit is needed, not an array of shape {z.shape}.")
    if np.isnan(z).any() or np.isposinf(z).any() or np.isneginf(z).all():
        raise ValueError(
            "The model output is not finite (did its training diverge?). "
            "Choose an earlier checkpoint or another model."
        )
    return z


def _tempered(z: NDArray, temperature: float) -> NDArray:
    if temperature == 0:  # the limit: everything on the largest logit, of equal ones the lowest id
        return np.eye(1, len(z), int(z.argmax()))[0]
    with np.errstate(over="ignore"):  # a difference too large for a float is as good as infinite
        return softmax((z - z.max()) / temperature)  # the maximum first: 0 stays 0, so never inf - inf


def _cut(name: str, probs: NDArray, keep: NDArray) -> Stage:
    kept = np.where(keep, probs, 0.0)
    mass = kept.sum()
    return Stage(name, kept / mass, float(max(0.0, 1.0 - mass)))


def _top_k(probs: NDArray, k: int) -> NDArray:
    order = np.argsort(-probs, kind="stable")  # of equal ones the lowest id first
    keep = np.zeros(len(probs), bool)
    keep[order[: int(k)]] = True
    return keep


def _top_p(probs: NDArray, p: float) -> NDArray:
    """The fewest likeliest whose mass reaches p, at least one (Holtzman et al. 2019, arXiv:1904.09751)."""
    order = np.argsort(-probs, kind="stable")
    before = np.cumsum(probs[order]) - probs[order]
    keep = np.zeros(len(probs), bool)
    keep[order[: max(1, int((before < p).sum()))]] = True
    return keep


def sampling_stages(
    logits: ArrayLike | torch.Tensor,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> list[Stage]:
    """Every stage from the plain softmax to the distribution that is drawn from.

    Args:
        logits: (V,).
        temperature: logits are divided by it; 0 is exactly greedy (of equal logits the lowest id).
        top_k: keep the k likeliest; None or 0 is off, more than V keeps all.
        top_p: keep the likeliest until their mass reaches p; None or 1 is off, 0 keeps one.
        min_p: keep what has at least this share of the likeliest one's probability (Nguyen et al. 2024,
            arXiv:2407.01082); None or 0 is off.

    Returns:
        "softmax", "temperature", then one stage for each cut that is on.

    Raises:
        ValueError: for settings out of range, or logits that are not finite.
    """
    check_sampling(temperature, top_k, top_p, min_p)
    z = _as_scores(logits)
    stages = [Stage("softmax", softmax(z), 0.0), Stage("temperature", _tempered(z, temperature), 0.0)]
    if top_k:
        stages.append(_cut("top-k", stages[-1].probs, _top_k(stages[-1].probs, top_k)))
    if top_p is not None and top_p < 1:
        stages.append(_cut("top-p", stages[-1].probs, _top_p(stages[-1].probs, top_p)))
    if min_p:
        probs = stages[-1].probs
        stages.append(_cut("min-p", probs, probs >= min_p * probs.max()))
    return stages


def next_token_distribution(
    logits: ArrayLike | torch.Tensor,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> NDArray:
    """The distribution (V,) that the next token is drawn from: the last of `sampling_stages`.

    >>> next_token_distribution([3.2, 1.1, 0.4, 2.4, -1.0], top_p=0.8).round(2).tolist()
    [0.69, 0.0, 0.0, 0.31, 0.0]
    """
    return sampling_stages(logits, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)[-1].probs


def draw(probs: NDArray, u: float) -> int:
    """The id in whose stretch of the cumulative line u of [0, 1) falls; never one of probability 0."""
    line = np.cumsum(probs)
    found = int(np.searchsorted(line, u, side="right"))
    return min(found, int(np.flatnonzero(probs)[-1]))  # rounding may leave the line a hair below 1


class Stretch(NamedTuple):
    """A piece of the cumulative line: one token, or neighbours too small to be shown one by one.

    Attributes:
        id: the token, or the first one of the neighbours.
        low, high: where it lies between 0 and 1; a number u with low <= u < high draws it.
    """

    id: int
    n_tokens: int
    low: float
    high: float


def cumulative_line(probs: NDArray, *, show: Sequence[int] = (), smallest: float = 0.02) -> list[Stretch]:
    """The line from 0 to 1 on which `draw` looks up its number: a stretch is as long as its probability.

    Args:
        probs: (V,); the stretches lie in the order of the ids, those of probability 0 have none.
        show: ids that get a stretch of their own however short it is.
        smallest: neighbouring tokens with less than this probability share one stretch.

    >>> cumulative_line(np.array([0.5, 0.0, 0.25, 0.01, 0.01, 0.23]))[2]
    Stretch(id=3, n_tokens=2, low=0.75, high=0.77)
    """
    ends = np.cumsum(probs)
    line: list[Stretch] = []
    open_run = False
    for token_id in np.flatnonzero(probs).tolist():
        low, high = line[-1].high if line else 0.0, float(ends[token_id])
        small = probs[token_id] < smallest and token_id not in show
        if small and open_run:
            line[-1] = line[-1]._replace(n_tokens=line[-1].n_tokens + 1, high=high)
        else:
            line.append(Stretch(token_id, 1, low, high))
        open_run = small
    return line


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


def worked_out(logits: NDArray, stages: Sequence[Stage], token_id: int, temperature: float) -> Worked:
    """Work out again what `sampling_stages` gave one token; with temperature 0 the weights are 1 and 0."""
    z = _as_scores(logits)
    if temperature == 0:
        weight, total = float(stages[1].probs[token_id]), 1.0
    else:
        with np.errstate(over="ignore"):
            weights = np.exp((z - z.max()) / temperature)
        weight, total = float(weights[token_id]), float(weights.sum())
    kept = math.prod(1.0 - stage.removed_mass for stage in stages[2:])
    final = float(stages[-1].probs[token_id])
    return Worked(float(z[token_id]), float(z.max()), weight, total, weight / total, kept, final)


@dataclass(frozen=True, eq=False)
class Step:
    """One drawn token.

    Attributes:
        id: the token.
        probs: (V,) the distribution that it was drawn from.
        model_probs: (V,) the model's own, before temperature and cuts.
        log_prob: natural log of the model's own probability of it.
        u: the random number in [0, 1) that chose it.
        context: how many tokens the model saw.
    """

    id: int
    probs: NDArray
    model_probs: NDArray
    log_prob: float
    u: float
    context: int


class Continuation:
    """Logits of the next token after a growing row of ids, with a cache while everything fits the context.

    Past the context every step is a forward over the last `context_length` tokens: exact, and slower.
    """

    def __init__(self, model: Transformer, ids: Sequence[int], *, use_cache: bool = True) -> None:
        if model.config.objective != "clm":
            raise ValueError("A masked model fills gaps and can't continue a text. Choose a causal model.")
        self.model = model
        self.ids = [int(i) for i in ids]
        if not self.ids:
            raise ValueError("There is no token to continue from. Type a prompt of at least 1 character.")
        weight = model.embedding.weight
        self._cache = KVCache(model.config, device=weight.device, dtype=weight.dtype) if use_cache else None
        self._last = torch.empty(0)  # logits after the newest token that the cache holds

    @torch.no_grad()
    def logits(self) -> torch.Tensor:
        """(V,) for the token after the last one."""
        limit, device = self.model.config.context_length, self.model.device
        if self._cache is None or len(self.ids) > limit:
            return self.model(torch.tensor([self.ids[-limit:]], device=device))[0, -1]
        fresh = self.ids[self._cache.length :]
        if fresh:
            self._last = self.model(torch.tensor([fresh], device=device), cache=self._cache)[0, -1]
        return self._last


def next_logits(model: Transformer, ids: Sequence[int]) -> NDArray:
    """Logits (V,) float32 of the token after the last one; only the last `context_length` ids are seen.

    Raises:
        ValueError: for no ids, or a masked model.
    """
    logits: NDArray = Continuation(model, ids, use_cache=False).logits().float().cpu().numpy()
    return logits


def generate(
    model: Transformer,
    ids: Sequence[int],
    *,
    n_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    seed: int | None = None,
    skip: int = 0,
    use_cache: bool = True,
) -> Iterator[Step]:
    """Continue a prompt token by token; leaving the loop stops the computing.

    Args:
        model: a causal one.
        ids: the prompt, at least one token; only the last `context_length` are seen.
        n_tokens: how many tokens to draw.
        temperature: as in `sampling_stages`.
        top_k: as in `sampling_stages`.
        top_p: as in `sampling_stages`.
        min_p: as in `sampling_stages`.
        seed: of a generator that belongs to this call alone; None draws a fresh one.
        skip: how many of the seed's numbers were used before. Drawing 3 tokens and then 5 with ``skip=3``
            gives the same text as drawing 8 at once.
        use_cache: reuse keys and values while everything fits the context; the numbers are the same.

    Raises:
        ValueError: for an empty prompt, a masked model, settings out of range, or logits that are not finite.
    """
    check_sampling(temperature, top_k, top_p, min_p)
    text = Continuation(model, ids, use_cache=use_cache)
    dice = torch.Generator().manual_seed(secrets.randbits(62) if seed is None else seed)
    torch.rand(skip, generator=dice, dtype=torch.float64)

    def steps() -> Iterator[
        Step
    ]:  # apart, so that a wrong setting is refused by the call, not by the first step
        for _ in range(n_tokens):
            stages = sampling_stages(
                text.logits(), temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p
            )
            u = float(torch.rand((), generator=dice, dtype=torch.float64))
            chosen = draw(stages[-1].probs, u)
            context = min(len(text.ids), model.config.context_length)
            own = stages[0].probs
            log_prob = math.log(own[chosen]) if own[chosen] > 0 else -math.inf
            yield Step(chosen, stages[-1].probs, own, log_prob, u, context)
            text.ids.append(chosen)

    return steps()


class TextStream:
    r"""Turns the bytes of tokens into text as they come; half a character waits for its other half.

    >>> stream = TextStream()
    >>> stream.push(b"\xf0\x9f\x98"), stream.push(b"\x80"), stream.end()
    ('', '😀', '')
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def push(self, data: bytes) -> str:
        r"""Text that is complete now; bytes that can't be UTF-8 come as ``\xf0``."""
        return self._decoder.decode(data)

    def end(self) -> str:
        r"""What was still waiting, as ``\xf0``."""
        return self._decoder.decode(b"", final=True)
