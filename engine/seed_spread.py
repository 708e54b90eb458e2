"""What the seed alone changes: how a number spreads, and whether a difference is more than that."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Two-sided 95 % points of Student's t (1908) for 1, 2, 3 ... degrees of freedom.
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True)
class Spread:
    """One number over several runs that differ in the seed only. `std` is NaN for a single run."""

    n: int
    mean: float
    std: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """How a number spreads; what is not finite does not count.

    Example:
        >>> spread([1.0, 2.0, 3.0])
        Spread(n=3, mean=2.0, std=1.0, low=1.0, high=3.0)
    """
    good = [v for v in values if math.isfinite(v)]
    if not good:
        return Spread(0, math.nan, math.nan, math.nan, math.nan)
    mean = math.fsum(good) / len(good)
    squares = math.fsum((v - mean) ** 2 for v in good)
    std = math.sqrt(squares / (len(good) - 1)) if len(good) > 1 else math.nan
    return Spread(len(good), mean, std, min(good), max(good))


@dataclass(frozen=True)
class Contrast:
    """Two settings compared by a number.

    Attributes:
        difference: mean of the second minus mean of the first.
        pooled: standard deviation of one run around its mean, from both; NaN with a single seed each.
        student: the factor for 19 of 20 cases.
        margin: how far chance alone moves the difference in 19 of 20 cases; NaN with a single seed each.
    """

    difference: float
    pooled: float
    student: float
    margin: float

    @property
    def clear(self) -> bool | None:
        """Whether the difference is larger than chance; None if nobody knows how large chance is."""
        return None if math.isnan(self.margin) else abs(self.difference) > self.margin


def contrast(first: Spread, second: Spread) -> Contrast:
    """A difference, against what the seed alone does: Student's t for two samples of one variance (1908).

    The margin is t · s · sqrt(1/n1 + 1/n2), with the variance s² pooled over both. It also holds if one of
    them has a single run.
    """
    difference = second.mean - first.mean
    freedom = first.n + second.n - 2
    if freedom < 1 or not (first.n and second.n):
        return Contrast(difference, math.nan, math.nan, math.nan)
    squares = sum((s.n - 1) * s.std**2 for s in (first, second) if s.n > 1)
    pooled = math.sqrt(squares / freedom)
    student = _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else 1.96
    return Contrast(difference, pooled, student, student * pooled * math.sqrt(1 / first.n + 1 / second.n))
