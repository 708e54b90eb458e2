"""The scaling law of the worked examples: the loss by weights and tokens, and the best of both for a budget.

L(N, D) = E + A / N^α + B / D^β, and a training costs C = 6 N D operations; form and constants of Hoffmann et
al. 2022 (arXiv:2203.15556, approach 3), the cost of Kaplan et al. 2020 (arXiv:2001.08361).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wording import words

say = words("engine.worked_scaling")


@dataclass(frozen=True)
class Constants:
    """Of the law; all above 0, the floor at least 0."""

    floor: float = 1.69
    a: float = 406.4
    alpha: float = 0.34
    b: float = 410.7
    beta: float = 0.28

    def __post_init__(self) -> None:
        """Refuse constants that are no law."""
        for name, value in (("A", self.a), ("α", self.alpha), ("B", self.b), ("β", self.beta)):
            if not 0 < value < math.inf:
                raise ValueError(say("not_positive", name=name, value=value))
        if not 0 <= self.floor < math.inf:
            raise ValueError(say("floor_below_zero", value=self.floor))


PUBLISHED = Constants()


@dataclass(frozen=True)
class Loss:
    """A loss in its three parts, nats per token."""

    floor: float
    by_size: float
    by_data: float

    @property
    def total(self) -> float:
        """The loss."""
        return self.floor + self.by_size + self.by_data


def loss_of(n: float, d: float, law: Constants = PUBLISHED) -> Loss:
    """The loss of a model of n weights after d tokens.

    Raises:
        ValueError: unless both are above 0.

    >>> round(loss_of(70e9, 1.4e12).total, 3)
    1.937
    """
    if not (0 < n < math.inf and 0 < d < math.inf):
        raise ValueError(say("sizes_above_zero", n=n, d=d))
    return Loss(law.floor, law.a / n**law.alpha, law.b / d**law.beta)


@dataclass(frozen=True)
class Balance:
    """The best division of a budget: n weights, d tokens, and the loss that they reach."""

    n: float
    d: float
    loss: float


def balance(compute: float, law: Constants = PUBLISHED) -> Balance:
    """The n and d with the least loss for 6 · n · d = compute.

    With D = C / 6N the loss has its minimum where α A N^-α = β B D^-β: at N = G · (C / 6)^(β / (α + β)) with
    G = (α A / β B)^(1 / (α + β)).

    Raises:
        ValueError: unless the budget is above 0.
    """
    if not 0 < compute < math.inf:
        raise ValueError(say("no_budget", value=compute))
    both = law.alpha + law.beta
    gain = (law.alpha * law.a / (law.beta * law.b)) ** (1 / both)
    n = gain * (compute / 6) ** (law.beta / both)
    d = compute / 6 / n
    return Balance(n, d, loss_of(n, d, law).total)


def along_budget(
    compute: float, law: Constants = PUBLISHED, *, reach: float = 30.0, points: int = 81
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sizes from 1/reach to reach times the best one, and the loss of each for the same budget."""
    best = balance(compute, law).n
    with np.errstate(over="ignore"):  # `loss_of` says of an infinite size what is wrong
        sizes = best * np.geomspace(1 / reach, reach, points)
    return sizes, np.array([loss_of(n, compute / 6 / n, law).total for n in sizes.tolist()])
