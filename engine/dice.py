"""How chance picks a token: a random number on a line from 0 to 1; one draw, or a thousand to check it."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

LEAST_EXPECTED = 5.0  # draws; below it the chi-square distribution is a poor guide (Cochran 1954)


def draw(probs: NDArray, u: float) -> int:
    """The id in whose stretch of the cumulative line u of [0, 1) falls; never one of probability 0."""
    found = int(probs.cumsum().searchsorted(u, side="right"))
    if found < len(probs):  # the line grows there, and so the probability is not 0
        return found
    return int(np.flatnonzero(probs)[-1])  # rounding may leave the line a hair below 1


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


def throws(n: int, seed: int, *, stream: int = 0, skip: int = 0) -> NDArray:
    """(n,) float64 random numbers in [0, 1) of a seed, after the first `skip` of them.

    Args:
        n: how many.
        seed: of a generator that belongs to this call alone.
        stream: the same seed has other numbers in every stream: one for each branch of a text.
        skip: how many of the seed's numbers were used before.
    """
    # Only the lowest 32 bits of a seed matter to torch; odd multiples of 2³² / golden ratio lie far apart.
    generator = torch.Generator().manual_seed((seed + stream * 2_654_435_761) % 2**32)
    numbers: NDArray = torch.rand(skip + n, generator=generator, dtype=torch.float64).numpy()[skip:]
    return numbers


def draw_many(probs: NDArray, n: int, seed: int) -> NDArray:
    """(V,) how often each token comes in n draws from (V,) probabilities, each by the rule of `draw`."""
    line, last = np.cumsum(probs), int(np.flatnonzero(probs)[-1])
    found = np.minimum(np.searchsorted(line, throws(n, seed), side="right"), last)
    return np.bincount(found, minlength=len(probs))


class Fit(NamedTuple):
    """How well counts agree with the probabilities that they were drawn from (Pearson 1900).

    Attributes:
        chi_square: Σ (count - expected)² / expected over the bins.
        n_bins: tokens with at least `LEAST_EXPECTED` expected draws, and all others together.
        p_value: how often honest draws would disagree at least so much; NaN with a single bin.
    """

    chi_square: float
    n_bins: int
    p_value: float

    @property
    def degrees(self) -> int:
        """Degrees of freedom: the counts add up, so one bin follows from the others."""
        return self.n_bins - 1


def p_value(chi_square: float, degrees: int) -> float:
    """Probability that a chi-square variable with these degrees of freedom is at least so large.

    >>> round(p_value(4.0, 1), 4)
    0.0455
    """
    half = torch.tensor([degrees / 2, chi_square / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))


def fit(counts: NDArray, probs: NDArray) -> Fit:
    """Pearson's chi-square test of counts (V,) against probabilities (V,); rare tokens share one bin."""
    expected = probs * counts.sum()
    common = expected >= LEAST_EXPECTED
    seen, wanted = counts[common].astype(np.float64), expected[common]
    if (rest := float(expected[~common].sum())) > 0:
        seen, wanted = np.append(seen, counts[~common].sum()), np.append(wanted, rest)
    chi_square = float(((seen - wanted) ** 2 / wanted).sum())
    if len(seen) < 2:
        return Fit(chi_square, len(seen), math.nan)
    return Fit(chi_square, len(seen), p_value(chi_square, len(seen) - 1))


def count_error(probs: NDArray, n: int) -> NDArray:
    """(V,) standard deviation of each count in n draws: √(n p (1 - p))."""
    error: NDArray = np.sqrt(n * probs * (1 - probs))
    return error
