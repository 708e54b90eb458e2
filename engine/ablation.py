"""Switching parts of a model off: what the loss and the predictions are without them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engine.metrics import IGNORED, cross_entropy, kl_divergence, log_softmax, softmax
from engine.model import Transformer
from engine.recorder import Recorder
from engine.trace import PARTS, Trace
from wording import words

say = words("engine.ablation")


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


def effect(whole: Trace, cut: Trace) -> Effect:
    """Compare a pass with parts switched off to the whole one, on the same text."""
    divergence = np.array(
        [kl_divergence(softmax(p), softmax(q)) for p, q in zip(whole.logits, cut.logits, strict=True)]
    )
    return Effect(loss(whole), loss(cut), np.maximum(divergence, 0.0))


def most_lost(whole: Trace, cut: Trace) -> int:
    """The position at which the surprise at what had to be predicted grew most.

    Raises:
        ValueError: if nothing had to be predicted.
    """
    places = np.flatnonzero(whole.scored != IGNORED)
    if not len(places):
        raise ValueError(say("nothing_predicted_here_nothing"))
    grown = [
        log_softmax(whole.logits[t])[whole.scored[t]] - log_softmax(cut.logits[t])[whole.scored[t]]
        for t in places
    ]
    return int(places[int(np.argmax(grown))])


def loss(traced: Trace) -> float:
    """Mean surprisal of what the model had to predict, nats; NaN if that is nothing.

    Of a causal model every token but the first, of a masked one the hidden tokens.
    """
    places = np.flatnonzero(traced.scored != IGNORED)
    if not len(places):
        return float("nan")
    true = [log_softmax(traced.logits[t])[traced.scored[t]] for t in places]
    return float(0.0 - np.mean(true))


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
def each_alone(model: Transformer, traced: Trace, *, most: int = 128) -> Iterator[Alone]:
    """Switch off every head and every half of a block, one after the other: L·H + 2·L passes.

    Args:
        model: the one that was traced.
        traced: the whole pass, with something to predict in it.
        most: tokens that are read: the first, or of a masked model those around the first hidden one.

    Raises:
        ValueError: if the text gives nothing to predict.
    """
    begin = max(0, min(traced.hidden, default=0) - most // 2)
    ids = torch.tensor(traced.ids[None, begin : begin + most], device=model.device)
    targets = torch.tensor(traced.scored[None, begin : begin + most], device=model.device)
    if traced.objective == "clm":
        targets[0, -1] = IGNORED  # its target may lie beyond what is read: not read, so not counted
    if not bool((targets != IGNORED).any()):
        raise ValueError(say("nothing_predicted_here_there"))

    def run(recorder: Recorder) -> float:
        return float(cross_entropy(model(ids, recorder=recorder), targets))

    whole = run(Recorder(keeps=False))
    for layer in range(model.config.n_layer):
        for head in range(model.config.n_head):
            cut = Recorder(ablate=[(layer, head)], keeps=False)
            yield Alone("head", layer, head, run(cut) - whole)
        for part in PARTS:
            yield Alone(part, layer, -1, run(Recorder(ablate_parts=[(part, layer)], keeps=False)) - whole)
