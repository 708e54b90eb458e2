"""What each objective pays for: tokens read, targets scored, and how fast a loss goes its way."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.config import ModelConfig, TrainConfig


@dataclass(frozen=True)
class Price:
    """What one training step costs and gives.

    Attributes:
        tokens: tokens read in a step.
        targets: targets scored in a step; for a masked model the expected number.
        share: targets / tokens.
    """

    tokens: int
    targets: float
    share: float


def price(model: ModelConfig, training: TrainConfig) -> Price:
    """Count the tokens and targets of one step: a causal model scores every position, a masked one a share.

    >>> price(ModelConfig(vocab_size=10, context_length=100), TrainConfig(batch_size=2))
    Price(tokens=200, targets=200.0, share=1.0)
    """
    tokens = training.batch_size * model.context_length
    share = 1.0 if model.objective == "clm" else training.mask_prob
    return Price(tokens, tokens * share, share)


@dataclass(frozen=True, eq=False)
class Learning:
    """The evaluations of a training.

    Attributes:
        steps: (N,) at which it was evaluated.
        losses: (N,) on the validation text, nats per target.
        floor: the loss of the true source on the same targets; None if not known.
    """

    steps: list[int]
    losses: list[float]
    floor: float | None

    def step_of(self, share: float) -> int | None:
        """The first evaluated step at which so much of the way from the start to the floor lay behind.

        None without a floor, or if it was not reached.
        """
        if self.floor is None or not self.losses:
            return None
        wanted = self.losses[0] - share * (self.losses[0] - self.floor)
        return next((s for s, loss in zip(self.steps, self.losses, strict=True) if loss <= wanted), None)


def learning_of(records: Iterable[Mapping[str, Any]]) -> Learning:
    """Read the records of a run or of a shipped model."""
    steps: list[int] = []
    losses: list[float] = []
    floor = None
    for record in records:
        if record.get("kind") == "floor":
            floor = record.get("value")
        elif record.get("kind") == "eval" and record.get("val_loss") is not None:
            steps.append(int(record["step"]))
            losses.append(float(record["val_loss"]))
    return Learning(steps, losses, floor)


def span_of(tokens: Sequence[float]) -> tuple[float, float]:
    """Powers of ten around some numbers above 0, for an axis that two pictures share.

    >>> span_of([6144, 18_432_000])
    (1000.0, 100000000.0)
    """
    found = [n for n in tokens if n > 0] or [1.0, 10.0]
    low, high = 10.0 ** math.floor(math.log10(min(found))), 10.0 ** math.ceil(math.log10(max(found)))
    return low, high if high > low else 10 * low
