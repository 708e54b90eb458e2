"""A law of the form L = E + A · x^-α fitted to losses at several sizes, and what it says of a further size.

The form is that of Kaplan et al. 2020 (arXiv:2001.08361) with the floor E of Hoffmann et al. 2022
(arXiv:2203.15556): x is the number of weights or of tokens, L the loss in nats. For a given α the law is
linear in E and A, so only α is searched (variable projection: Golub & Pereyra 1973); E and A are never
negative. What is made small are the errors as shares of the losses, which is nearly the same as those of
log L (as in Hoffmann et al.): a hundredth of a nat counts for more where the loss is low.

All intervals follow one rule. Fixing a quantity at a value makes the best sum of squares S larger than its
minimum S₀; the value is inside as long as S ≤ S₀ · (1 + t² / (n - 3)), t being Student's quantile for n - 3
degrees of freedom. For a straight line this is the textbook interval exactly (Bates & Watts 1988, chapter
6), and with so few sizes it is wide where it has to be. The interval of a prediction treats the loss to
come as one more measurement.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wording import words

say = words("engine.scaling")

Floats = NDArray[np.float64]

LEAST_SIZES = 4  # three numbers are fitted: with three sizes every law would fit
EXPONENTS = (0.02, 4.0)  # where α is searched
_GRID, _ROUNDS = 160, 7
_HALVINGS = 12


@dataclass(frozen=True)
class Interval:
    """From `low` to `high`. Open where the losses don't settle that end: it lies beyond what was searched."""

    low: float
    high: float
    open_low: bool = False
    open_high: bool = False

    def __contains__(self, value: float) -> bool:
        """Whether a value lies inside."""
        return (self.open_low or self.low <= value) and (self.open_high or value <= self.high)


@dataclass(frozen=True, eq=False)
class Law:
    """A fitted law.

    Attributes:
        sizes, losses: (n,) what it was fitted to, by rising size.
        floor: E, nats; what is left however large the size.
        scale: A · x₀^-α with x₀ the geometric mean of the sizes: nats above E in the middle of them.
        exponent: α.
        middle: x₀.
        sse: sum of the squared errors, each as a share of its loss.
        level: of the intervals, such as 0.95.
    """

    sizes: Floats
    losses: Floats
    floor: float
    scale: float
    exponent: float
    middle: float
    sse: float
    level: float

    def __call__(self, size: ArrayLike) -> Floats:
        """The loss that the law gives at a size, nats; same shape."""
        return self.floor + self.scale * (np.asarray(size, np.float64) / self.middle) ** -self.exponent

    @property
    def coefficient(self) -> float:
        """A in L = E + A · x^-α."""
        return float(self.scale * self.middle**self.exponent)

    @property
    def saved_by_doubling(self) -> float:
        """By what share the distance to E shrinks when the size doubles: 1 - 2^-α."""
        return float(1 - 2**-self.exponent)

    @property
    def limit(self) -> float:
        """The sum of squares up to which a value is inside an interval."""
        free = len(self.sizes) - 3
        return float(self.sse * (1 + student((1 + self.level) / 2, free) ** 2 / free))


def fit(sizes: ArrayLike, losses: ArrayLike, level: float = 0.95) -> Law:
    """Fit L = E + A · x^-α by least squares of the relative errors.

    Args:
        sizes: (n,) weights or tokens, above 0, at least 4 different ones.
        losses: (n,) nats, above 0.
        level: of the intervals.

    Raises:
        ValueError: for too few sizes, losses that are not finite, or losses that don't fall: one sentence.

    >>> law = fit([1, 2, 4, 8, 16], [3, 2, 1.5, 1.25, 1.125])
    >>> round(law.floor, 6), round(law.coefficient, 6), round(law.exponent, 6)
    (1.0, 2.0, 1.0)
    """
    x, y = np.asarray(sizes, np.float64), np.asarray(losses, np.float64)
    _check(x, y)
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    middle = float(np.exp(np.log(x).mean()))
    sse, exponent, floor, scale = _best(np.log(x / middle), y)
    law = Law(x, y, floor, scale, exponent, middle, sse, level)
    _refuse_without_a_fall(law)
    return law


def exponent_interval(law: Law) -> Interval:
    """Which exponents the losses allow."""
    log_x = np.log(law.sizes / law.middle)

    def sse(log_exponent: float) -> float:
        return float(_project(np.array([math.exp(log_exponent)]), log_x, law.losses)[0][0])

    low, high = (math.log(end) for end in EXPONENTS)
    found = _inside(sse, math.log(law.exponent), low, high, law.limit)
    return Interval(math.exp(found.low), math.exp(found.high), found.open_low, found.open_high)


def floor_interval(law: Law) -> Interval:
    """Which floors E the losses allow; never below 0."""
    log_x = np.log(law.sizes / law.middle)

    def sse(floor: float) -> float:
        return _best_with_floor(log_x, law.losses, floor)

    found = _inside(sse, law.floor, 0.0, float(law.losses.max()), law.limit)
    return Interval(
        found.low, found.high, False, found.open_high
    )  # 0 is an end of its own, not of the search


def predict(law: Law, size: float) -> Interval:
    """Where the loss of one more run of this size will lie, with the law's level of confidence, nats.

    Raises:
        ValueError: if the size is not above 0.
    """
    if not size > 0:
        raise ValueError(say("size_above_0", size=size))
    log_x = np.append(np.log(law.sizes / law.middle), math.log(size / law.middle))

    def sse(loss: float) -> float:
        return _best(log_x, np.append(law.losses, loss))[0]

    here = float(law(size))
    reach = 4 * float(np.ptp(law.losses)) + here
    return _inside(sse, here, here / 1000, here + reach, law.limit)


def student(share: float, free: int) -> float:
    """Student's t: the value below which lies this `share`, for `free` degrees of freedom.

    >>> [round(student(0.975, n), 3) for n in (1, 3, 10)]
    [12.706, 3.182, 2.228]
    """
    # With t = √free · tan θ the density becomes cos^(free-1) θ on a bounded range.
    angle = np.linspace(0, math.pi / 2, 20_001)
    height = np.cos(angle) ** (free - 1)
    area = np.concatenate(([0.0], np.cumsum((height[1:] + height[:-1]) / 2)))
    return float(math.sqrt(free) * math.tan(np.interp(abs(2 * share - 1), area / area[-1], angle))) * (
        1 if share >= 0.5 else -1
    )


# ---- inside


def _check(x: Floats, y: Floats) -> None:
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(say("one_loss_each", sizes=x.size, losses=y.size))
    if not (np.isfinite(x).all() and np.isfinite(y).all() and (x > 0).all() and (y > 0).all()):
        raise ValueError(say("not_finite"))
    if len(np.unique(x)) < LEAST_SIZES:
        raise ValueError(say("too_few_sizes", n=len(np.unique(x)), least=LEAST_SIZES))


def _refuse_without_a_fall(law: Law) -> None:
    """Say so if a constant explains the losses as well (F test at 5 %), or they rise."""
    free = len(law.losses) - 3
    weights = law.losses**-2.0
    mean = float((weights * law.losses).sum() / weights.sum())
    constant = float((weights * (law.losses - mean) ** 2).sum())
    if law.scale <= 0 or constant <= 1e-18:  # no more than rounding
        raise ValueError(say("no_fall"))
    critical = free / 2 * (0.05 ** (-2 / free) - 1)  # of F(2, free), whose tail has this closed form
    if (constant - law.sse) / 2 < critical * law.sse / free:
        raise ValueError(say("hardly_falls"))
    if law.exponent > 0.99 * EXPONENTS[1]:
        raise ValueError(say("a_step"))


def _project(exponents: Floats, log_x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """For each exponent (K,) the best E and A, neither negative: sums of squares, E, A, each (K,)."""
    u = np.exp(-exponents[:, None] * log_x)  # (K, n)
    w = y**-2.0 / (y**-2.0).sum()  # errors count as shares of the losses
    u_mean, y_mean = u @ w, float(w @ y)
    off = u - u_mean[:, None]
    scale = off @ (w * (y - y_mean)) / (off**2 @ w)
    floor = y_mean - scale * u_mean
    through_zero = np.maximum(u @ (w * y) / (u**2 @ w), 0.0)
    scale = np.where(floor < 0, through_zero, scale)
    floor = np.where(floor < 0, 0.0, floor)
    floor = np.where(scale < 0, max(y_mean, 0.0), floor)
    scale = np.where(scale < 0, 0.0, scale)
    sse = ((1 - (floor[:, None] + scale[:, None] * u) / y) ** 2).sum(axis=1)
    return sse, floor, scale


def _search(sse: Callable[[Floats], Floats]) -> float:
    """The exponent with the least sum of squares: a grid, then finer ones around its best point."""
    low, high = (math.log(end) for end in EXPONENTS)
    for _ in range(_ROUNDS):
        grid = np.linspace(low, high, _GRID if high - low > 1 else 11)
        at = int(np.argmin(sse(np.exp(grid))))
        low, high = float(grid[max(at - 1, 0)]), float(grid[min(at + 1, len(grid) - 1)])
    return math.exp((low + high) / 2)


def _best(log_x: Floats, y: Floats) -> tuple[float, float, float, float]:
    """Least sum of squares, and its α, E and A."""
    exponent = _search(lambda exponents: _project(exponents, log_x, y)[0])
    sse, floor, scale = _project(np.array([exponent]), log_x, y)
    return float(sse[0]), exponent, float(floor[0]), float(scale[0])


def _best_with_floor(log_x: Floats, y: Floats, floor: float) -> float:
    """Least sum of squares with E given."""
    above = 1 - floor / y

    def sse(exponents: Floats) -> Floats:
        u = np.exp(-exponents[:, None] * log_x) / y  # (K, n)
        scale = np.maximum(u @ above / (u**2).sum(axis=1), 0.0)
        return np.asarray(((above - scale[:, None] * u) ** 2).sum(axis=1))

    return float(sse(np.array([_search(sse)]))[0])


def _inside(sse: Callable[[float], float], best: float, low: float, high: float, limit: float) -> Interval:
    """The values around `best` at which `sse` stays below `limit`, searched between `low` and `high`."""

    def end(outer: float) -> tuple[float, bool]:
        (inner, least), most = (best, sse(best)), sse(outer)
        if most <= limit:
            return outer, True
        for _ in range(_HALVINGS):
            half = (inner + outer) / 2
            found = sse(half)
            if found <= limit:
                inner, least = half, found
            else:
                outer, most = half, found
        return inner + (outer - inner) * max(0.0, limit - least) / (most - least), False

    (first, open_low), (last, open_high) = end(low), end(high)
    return Interval(first, last, open_low, open_high)
