"""Switching parts of a model off: what the loss and the predictions are without them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.metrics import IGNORED, cross_entropy, log_softmax
from engine.model import Transformer
from engine.recorder import Recorder
from engine.trace import PARTS, Trace, check_ablation
from wording import words

say = words("engine.ablation")
LARGEST = 2_000_000  # logits at once in float64 while two passes are compared: 16 MB


@dataclass(frozen=True, eq=False)
class Effect:
    """What switching parts off did.

    Attributes:
        before, after: the loss, nats per scored token; NaN if nothing is scored.
        divergence: (T,) KL(before ‖ after) at every position, nats.
    """

    before: float
    after: float
    divergence: NDArray

    @property
    def change(self) -> float:
        """Change of the loss, nats per scored token."""
        return self.after - self.before


def effect(whole: Trace, cut: Trace | NDArray) -> Effect:
    """Compare a pass with parts switched off, or its logits (T,V), to the whole one on the same text."""
    logits = cut.logits if isinstance(cut, Trace) else cut
    rows = max(1, LARGEST // logits.shape[1])
    divergence = [
        _divergence(whole.logits[begin : begin + rows], logits[begin : begin + rows])
        for begin in range(0, len(logits), rows)
    ]
    after = _mean_surprisal(logits, whole.scored)
    return Effect(loss(whole), after, np.maximum(np.concatenate(divergence), 0.0))


def _divergence(p: NDArray, q: NDArray) -> NDArray:
    """KL(p ‖ q) of each row of logits (R,V), in float64."""
    log_p, log_q = (torch.tensor(x, dtype=torch.float64).log_softmax(dim=-1) for x in (p, q))
    return np.asarray((log_p.exp() * (log_p - log_q)).sum(dim=-1).numpy())


@torch.no_grad()
def logits_without(
    model: Transformer,
    traced: Trace,
    ablate: Iterable[tuple[int, int]] = (),
    ablate_parts: Iterable[tuple[str, int]] = (),
) -> NDArray:
    """(T,V) float32 logits of a traced text with parts switched off, as `engine.trace.trace` gives them.

    What stands before the first of these parts is not computed again.

    Raises:
        ValueError: for a head or part that the model does not have.
    """
    ablate, ablate_parts = list(ablate), list(ablate_parts)
    check_ablation(model.config, ablate, ablate_parts)
    layers = [*(layer for layer, _ in ablate), *(layer for _, layer in ablate_parts)]
    if not layers:
        return traced.logits
    first = min(layers)
    weight = model.embedding.weight
    x = torch.tensor(traced.residual[None, first], device=weight.device, dtype=weight.dtype)
    x = _blocks_from(model, x, first, Recorder(ablate, ablate_parts, keeps=False))
    return np.asarray(model.read_out(x)[0].float().cpu().numpy())


def _blocks_from(model: Transformer, x: Tensor, first: int, recorder: Recorder) -> Tensor:
    """The stream (1,T,C) that enters block `first` -> after the last block."""
    turns = None if model.turns is None else model.turns[: x.shape[1]]
    for layer in range(first, model.config.n_layer):
        x = model.blocks[layer](x, layer, turns, None, recorder, None)
    return x


def most_lost(whole: Trace, cut: Trace | NDArray) -> int:
    """The position at which the surprise at what had to be predicted grew most; `cut` as in `effect`.

    Raises:
        ValueError: if nothing had to be predicted.
    """
    places = np.flatnonzero(whole.scored != IGNORED)
    if not len(places):
        raise ValueError(say("nothing_predicted_here_nothing"))
    logits = cut.logits if isinstance(cut, Trace) else cut
    grown = [
        log_softmax(whole.logits[t])[whole.scored[t]] - log_softmax(logits[t])[whole.scored[t]]
        for t in places
    ]
    return int(places[int(np.argmax(grown))])


def loss(traced: Trace) -> float:
    """Mean surprisal of what the model had to predict, nats; NaN if that is nothing.

    Of a causal model every token but the first, of a masked one the hidden tokens.
    """
    return _mean_surprisal(traced.logits, traced.scored)


def _mean_surprisal(logits: NDArray, scored: NDArray) -> float:
    places = np.flatnonzero(scored != IGNORED)
    if not len(places):
        return float("nan")
    return float(0.0 - np.mean([log_softmax(logits[t])[scored[t]] for t in places]))


@dataclass(frozen=True)
class Alone:
    """One part switched off alone.

    Attributes:
        kind: "head", "attention" or "mlp".
        layer: counted from 0.
        head: of a head, counted from 0, or -1.
        change: of the loss, nats per scored token.
    """

    kind: str
    layer: int
    head: int
    change: float


@torch.no_grad()
def each_alone(model: Transformer, traced: Trace, *, most: int = 128, skip: int = 0) -> Iterator[Alone]:
    """Switch off every head and every half of a block, one after the other: L·H + 2·L passes.

    Each pass begins at the block of its part: what stands before it is computed once.

    Args:
        model: the one that was traced.
        traced: the whole pass, with something to predict in it.
        most: tokens that are read: the first, or of a masked model those around the first hidden one.
        skip: how many of the parts were tried before.

    Raises:
        ValueError: if the text gives nothing to predict.
    """
    places = _piece(traced, most)
    ids = torch.tensor(traced.ids[None, places], device=model.device)
    targets = torch.tensor(traced.scored[None, places], device=model.device)
    if traced.objective == "clm":
        targets[0, -1] = IGNORED  # its target may lie beyond what is read: not read, so not counted
    if not bool((targets != IGNORED).any()):
        raise ValueError(say("nothing_predicted_here_there"))
    scored = (targets[0] != IGNORED).nonzero()[:, 0]  # nothing else is read out
    streams = _streams(model, ids)

    def run(first: int, recorder: Recorder) -> float:
        x = _blocks_from(model, streams[first], first, recorder)
        return float(cross_entropy(model.read_out(x[:, scored]), targets[:, scored]))

    whole = run(model.config.n_layer, Recorder(keeps=False))
    for kind, layer, head in list(_parts(model))[skip:]:
        heads, parts = ([(layer, head)], []) if kind == "head" else ([], [(kind, layer)])
        yield Alone(kind, layer, head, run(layer, Recorder(heads, parts, keeps=False)) - whole)


def _piece(traced: Trace, most: int) -> NDArray:
    """Positions that are read; what the model wants around a text stands around them too."""
    inner = np.array(traced.inner)
    begin = max(0, min((t - traced.frame[0] for t in traced.hidden), default=0) - most // 2)
    first, last = np.arange(inner[0]), np.arange(inner[-1] + 1, len(traced.ids))
    return np.concatenate((first, inner[begin : begin + max(1, most - len(first) - len(last))], last))


def _streams(model: Transformer, ids: Tensor) -> list[Tensor]:
    """The stream (1,T,C) that enters each block, and after the last one."""
    recorder = Recorder(only=("residual",))
    model(ids, recorder=recorder)
    return recorder.kept["residual"]


def _parts(model: Transformer) -> Iterator[tuple[str, int, int]]:
    """Kind, layer and head of everything that can be switched off alone."""
    for layer in range(model.config.n_layer):
        yield from (("head", layer, head) for head in range(model.config.n_head))
        yield from ((part, layer, -1) for part in PARTS)
