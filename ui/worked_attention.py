"""One head's softmax and output with the model's numbers, each line following from the numbers written."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ui.worked import EXACT, aligned, minus, rounded, score_of, tex
from wording import words

say = words("ui.worked_attention")

FAR = 700.0  # sizes of a score from which a sum of exponentials may leave the range of a float
WRITTEN = 3  # products that are written out; the others are one number


@dataclass(frozen=True, eq=False)
class Row:
    """A row's softmax in numbers that are written: each column follows from the one before.

    Attributes:
        digits: significant digits of all numbers but the weights.
        dots: (K,) q · k.
        scores: (K,) dots / √d, or dots times the model's own scale.
        subtracted: a whole number that is taken from every score before exp, which leaves the weights as they
            are; 0 unless a float can't hold exp(scores).
        powers: (K,) exp(scores - subtracted).
        total: their sum.
        weights: (K,) powers / total; as many significant digits as were asked for.
    """

    digits: int
    dots: NDArray[np.float64]
    scores: NDArray[np.float64]
    subtracted: int
    powers: NDArray[np.float64]
    total: float
    weights: NDArray[np.float64]


def written_row(dots: Sequence[float], d_head: int, *, scale: float | None = None, digits: int = 4) -> Row:
    """Write a row with as few digits as give the exact weights, to `digits` of them.

    Args:
        dots: q · k of the keys that the query may look at.
        d_head: numbers in q and in k.
        scale: what q · k is multiplied by; None: 1 / √d_head.
        digits: of the weights.
    """
    exact = np.array([score_of(float(x), d_head, scale) for x in dots])
    largest = float(exact.max())
    less = round(largest) if abs(largest) > FAR else 0
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = _rounded(np.exp(exact - exact.max()) / np.exp(exact - exact.max()).sum(), digits)
        for n in range(digits + 1, EXACT + 1):
            q_k = _rounded(dots, n)
            scores = _rounded([score_of(float(x), d_head, scale) for x in q_k], n)
            powers = _rounded(np.exp(np.minimum(scores - less, FAR)), n)
            total = rounded(math.fsum(powers), n)
            weights = _rounded(powers / total, digits)
            if (weights == wanted).all():
                break
    return Row(n, q_k, scores, less, powers, total, weights)


def _rounded(numbers: Sequence[float] | NDArray[np.float64], digits: int) -> NDArray[np.float64]:
    """What `worked.tex` writes, number by number."""
    return np.array([rounded(float(x), digits) for x in numbers])


@dataclass(frozen=True, eq=False)
class Products:
    """Numbers multiplied in pairs, as they are written: each product follows from its two factors.

    Attributes:
        digits: significant digits of all of them.
        left, right: (K,) factors.
        products: (K,)
    """

    digits: int
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    products: NDArray[np.float64]


def written_products(left: Sequence[float], right: Sequence[float], *, digits: int) -> Products:
    """Write factors and products with as few digits as let the products add up to the exact sum.

    Args:
        left: first factors.
        right: second factors.
        digits: of the sum, significant ones.
    """
    wanted = tex(math.fsum(x * y for x, y in zip(left, right, strict=True)), digits)
    for n in range(min(digits, 4), EXACT + 1):
        factors = _rounded(left, n), _rounded(right, n)
        products = _rounded(factors[0] * factors[1], n)
        sums = math.fsum(products), math.fsum(factors[0] * factors[1]), _with_rest(*factors, products, n)
        if all(tex(total, digits) == wanted for total in sums):
            break
    return Products(n, *factors, products)


def _with_rest(
    left: NDArray[np.float64], right: NDArray[np.float64], products: NDArray[np.float64], digits: int
) -> float:
    """The sum as `output` writes it: the largest products by their factors, the others as one number."""
    first, others = _largest(products)
    rest = rounded(math.fsum(products[others]), digits)
    return math.fsum([*(left[first] * right[first]), rest])


def _largest(products: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The places of the products that are written out, and of the others."""
    order = np.argsort(-abs(products), kind="stable")
    return order[:WRITTEN], order[WRITTEN:]


def output(written: Products, number: int, *, digits: int = 4) -> str:
    """One number of a head's output as a sum of weights times values, the largest products first.

    Args:
        written: weights and values of all keys that the query may look at, see `written_products`.
        number: which one it is, counted from 1.
        digits: of the sum.
    """
    n, (first, others) = written.digits, _largest(written.products)
    rest = rounded(math.fsum(written.products[others]), n)
    terms = [
        rf"{tex(written.left[j], n)} \cdot {_bracketed(tex(written.right[j], n))}" for j in first.tolist()
    ]
    if len(others):
        terms.append(rf"{_bracketed(tex(rest, n))} \quad \text{{{say('others', n=len(others))}}}")
    total = _with_rest(written.left, written.right, written.products, n)
    name = rf"o_{{{number}}}"
    return aligned(
        rf"{name} &= \sum_j \text{{{say('weight')}}}_j \cdot v_{{j,{number}}}",
        *(rf"&{'=' if i == 0 else '+'} {term}" for i, term in enumerate(terms)),
        rf"&= {tex(total, digits)}",
    )


def _bracketed(number: str) -> str:
    return f"({number})" if number.startswith("-") else number


def row(written: Row, hidden: int) -> str:
    """The sum under the fraction of a row's softmax.

    Args:
        written: of the keys that the query may look at.
        hidden: how many it may not look at.
    """
    unseen = rf"\text{{{say('hidden', n=hidden)}: }}e^{{-\infty}}"
    masked = rf" + \underbrace{{0}}_{{{unseen}}}" if hidden else ""
    seen = rf"\text{{{say('seen', n=len(written.powers))}}}"
    total, less = tex(written.total, written.digits), minus(written.subtracted)
    return aligned(
        rf"\text{{{say('weight')}}}_j &= \frac{{e^{{s_j{less}}}}}{{\sum_k e^{{s_k{less}}}}}",
        rf"\sum_k e^{{s_k{less}}} &= \underbrace{{{total}}}_{{{seen}}}{masked}",
    )
