"""Filling blanks and comparing contexts, worked out with today's numbers."""

import math
from collections.abc import Sequence

from ui.worked import aligned, rounded, tex, tie
from wording import words

say = words("ui.worked_fill")

MOST_TERMS = 6  # written out


def product(probs: Sequence[float], *, digits: int = 3) -> str:
    """The probability of all fillers together: the product of what each had when it was filled.

    Args:
        probs: of the fillers, in the order in which they were filled; all above 0.
        digits: of the result.
    """

    def log_product(*p: float) -> float:
        return math.fsum(math.log(x) for x in p)

    n = tie([lambda *p: math.prod(p), log_product], *probs, digits=[digits, 4])
    terms = [tex(p, n) for p in probs]
    shown = r" \cdot ".join(terms if len(terms) <= MOST_TERMS else [*terms[:3], r"\dots", terms[-1]])
    logs = rf"\ln p &= {tex(log_product(*probs), 4)}\ \text{{nats}}"
    if len(probs) == 1:
        return aligned(rf"p(\text{{{say('filler')}}}) &= {shown}", logs)
    return aligned(
        rf"p(\text{{{say('fillers')}}}) &= \prod_{{k=1}}^{{{len(probs)}}} p_k",
        rf"&= {shown}",
        rf"&= {tex(math.prod(probs), digits)}",
        logs,
    )


def bayes(log_left: float, log_right: float, log_total: float, n: int, *, digits: int = 3) -> str:
    """A filler's share by Bayes' rule, from logs.

    Args:
        log_left: ln p(v | left).
        log_right: ln p(right | left, v).
        log_total: ln Σ over the fillers that were tried.
        n: how many these are.
        digits: of the share.
    """

    def share(a: float, b: float, c: float) -> float:
        return math.exp(a + b - c)

    d = tie(share, log_left, log_right, log_total, digits=digits)
    a, b, c = (tex(x, d) for x in (log_left, log_right, log_total))
    result = share(*(rounded(x, d) for x in (log_left, log_right, log_total)))
    left, right = rf"\text{{{say('left')}}}", rf"\text{{{say('right')}}}"
    return aligned(
        rf"p(v \mid {left}, {right}) &= \frac{{p(v \mid {left})\; p({right} \mid {left}, v)}}"
        rf"{{\sum_{{u=1}}^{{{n}}} p(u \mid {left})\; p({right} \mid {left}, u)}}",
        rf"&= e^{{{a} + ({b}) - ({c})}}",
        rf"&= {tex(result, digits)}",
    )
