"""The way from logits to the distribution that is drawn from, every step of it: also those that are off."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from engine.stages import Settings, Stage, as_scores, penalised, sampling_stages

STEPS = ("logits", "penalty", "temperature", "softmax", "top-k", "top-p", "min-p", "drawn")
CUTS = STEPS[4:7]


@dataclass(frozen=True, eq=False)
class Column:
    """One step.

    Attributes:
        name: one of `STEPS`.
        values: (V,) float64. Of the first three steps the logits that they make, -∞ where nothing is left at
            temperature 0; of the others probabilities that sum to 1. A cut has those that come to it: what it
            removes is in them.
        kept: (V,) bool, what can still be drawn after this step.
        removed_mass: share of `values` that this step removes.
        entropy: in nats, of the distribution after this step; what is left is scaled to sum to 1 before it is
            measured, and of logits the softmax is.
        on: whether the step does anything.
    """

    name: str
    values: NDArray[np.float64]
    kept: NDArray[np.bool_]
    removed_mass: float
    entropy: float
    on: bool

    @property
    def of_logits(self) -> bool:
        """Whether the values are logits."""
        return self.name in STEPS[:3]

    @property
    def n_left(self) -> int:
        """How many tokens can still be drawn."""
        return int(self.kept.sum())

    @property
    def choices(self) -> float:
        """Effective number of choices: as many equally likely tokens would have this entropy."""
        return math.exp(self.entropy)

    def rest(self, ids: Sequence[int]) -> tuple[float, float]:
        """Probability of all tokens but these: what is kept, and what this step removes."""
        left = np.delete(self.values, list(ids))
        stays = np.delete(self.kept, list(ids))
        return float(left[stays].sum()), float(left[~stays].sum())


def _column(name: str, values: NDArray[np.float64], stage: Stage, *, on: bool = True) -> Column:
    return Column(name, values, stage.probs > 0, stage.removed_mass, stage.entropy, on)


def waterfall(logits: ArrayLike | torch.Tensor, **settings: Unpack[Settings]) -> list[Column]:
    """All of `STEPS`, computed by `engine.stages.sampling_stages`, whose arguments these are.

    Raises:
        ValueError: for settings out of range, or logits that are not finite.
    """
    stages = sampling_stages(logits, **settings)
    temperature, penalty = settings.get("temperature", 1.0), settings.get("repetition_penalty", 1.0)
    done = {stage.name: stage for stage in stages}
    plain = done["softmax"]
    lower = done.get("penalty", plain)
    now = done["temperature"]
    z = as_scores(logits)
    z_lower = penalised(z, settings.get("previous", ()), penalty)
    columns = [
        _column("logits", z, plain),
        _column("penalty", z_lower, lower, on=penalty > 1),
        _column("temperature", _divided(z_lower, temperature), now, on=temperature != 1),
        _column("softmax", now.probs, now),
    ]
    for name in CUTS:
        before, now = now, done.get(name, now)
        removed = now.removed_mass if name in done else 0.0
        columns.append(Column(name, before.probs, now.probs > 0, removed, now.entropy, name in done))
    columns.append(Column(STEPS[-1], now.probs, now.probs > 0, 0.0, now.entropy, True))
    return columns


def _divided(z: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """Logits over the temperature; at 0 only the largest stays, as it is."""
    if temperature == 0:
        return np.where(np.arange(len(z)) == z.argmax(), z, -np.inf)
    with np.errstate(over="ignore"):
        return z / temperature
