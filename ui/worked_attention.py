"""One head's softmax and output with the model's numbers, each line following from the numbers written."""

import math
from collections.abc import Sequence

from ui.worked import aligned, tex, tie

WRITTEN = 3  # products that are written out; the others are one number


def output(weights: Sequence[float], values: Sequence[float], number: int, *, digits: int = 4) -> str:
    """One number of a head's output as a sum of weights times values, the largest products first.

    Args:
        weights: of the keys, from one query.
        values: the chosen number of each key's value.
        number: which one it is, counted from 1.
        digits: of the sum; the products have as many more as it needs.
    """
    order = sorted(range(len(weights)), key=lambda j: -abs(weights[j] * values[j]))
    first, others = order[:WRITTEN], order[WRITTEN:]
    rest = math.fsum(weights[j] * values[j] for j in others)
    numbers = [x for j in first for x in (weights[j], values[j])] + ([rest] if others else [])

    def total(*given: float) -> float:
        pairs = given[: 2 * len(first)]
        products = (w * v for w, v in zip(pairs[::2], pairs[1::2], strict=True))
        return math.fsum([*products, *given[2 * len(first) :]])

    n = tie(total, *numbers, digits=digits)
    terms = [rf"{tex(weights[j], n)} \cdot {_bracketed(tex(values[j], n))}" for j in first]
    if others:
        plural = "s" if len(others) > 1 else ""
        terms.append(rf"{_bracketed(tex(rest, n))} \quad \text{{({len(others)} other key{plural})}}")
    name = rf"o_{{{number}}}"
    return aligned(
        rf"{name} &= \sum_j \text{{weight}}_j \cdot v_{{j,{number}}}",
        *(rf"&{'=' if i == 0 else '+'} {term}" for i, term in enumerate(terms)),
        rf"&= {tex(total(*numbers), digits)}",
    )


def _bracketed(number: str) -> str:
    return f"({number})" if number.startswith("-") else number


def row(scores: Sequence[float], hidden: int, *, digits: int = 4) -> str:
    """The sum under the fraction of a row's softmax.

    Args:
        scores: of the keys that the query may look at.
        hidden: how many it may not look at.
        digits: of the sum.
    """
    total = math.fsum(math.exp(score) for score in scores)
    plural = "s" if hidden != 1 else ""
    masked = rf" + \underbrace{{0}}_{{{hidden}\text{{ hidden key{plural}: }}e^{{-\infty}}}}" if hidden else ""
    seen = f"{len(scores)}" + r"\text{ key" + ("s" if len(scores) != 1 else "") + "}"
    return aligned(
        r"\text{weight}_j &= \frac{e^{s_j}}{\sum_k e^{s_k}}",
        rf"\sum_k e^{{s_k}} &= \underbrace{{{tex(total, digits)}}}_{{{seen}}}{masked}",
    )
