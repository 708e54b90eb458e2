"""Sampling worked out: the probability that a token is drawn with, of a path, and the chi-square test."""

import math

from engine.dice import p_value
from ui.worked import LARGEST, aligned, tex, tie
from wording import words

say = words("ui.worked_sampling")


def sampled(
    logit: float,
    top: float,
    temperature: float,
    total: float,
    kept: float,
    cut: bool,
    *,
    raw: float | None = None,
    penalty: float = 1.0,
    digits: int = 4,
) -> str:
    """From a logit to the probability that its token is drawn with, each line following from the one before.

    Args:
        logit: the token's, after the penalty.
        top: the largest logit, after the penalty.
        temperature: what the logits are divided by; 0 gives the largest one everything.
        total: Σ exp((logit - top) / temperature) over the vocabulary.
        kept: share of the probability that the cuts left.
        cut: whether this token was cut away.
        raw: the token's logit before the penalty; None if the penalty left it alone.
        penalty: what it was divided or multiplied by.
        digits: of the result; the lines before have as many more as that needs.
    """
    if temperature == 0:
        return rf"T = 0:\quad p = {0 if cut else 1}\quad\text{{{say('greedy')}}}"

    def power(z: float, largest: float) -> float:
        return math.exp(max((z - largest) / temperature, -LARGEST))

    weight = power(logit, top)
    p = weight / total
    n_p = tie(lambda a, b: a / b, p, kept, digits=digits) if kept < 1 and not cut else digits
    n_w = tie(lambda a, b: a / b, weight, total, digits=n_p)
    n_z = tie(power, logit, top, digits=n_w)
    minus = f"+ {tex(-top, n_z)}" if top < 0 else f"- {tex(top, n_z)}"
    power_of = rf"e^{{({tex(logit, n_z)} {minus})/{temperature:g}}}"
    lines = [] if raw is None or raw == logit else [_penalty(raw, logit, penalty, n_z)]
    lines += [
        r"w &= e^{(z - z_{\max})/T}",
        rf"&= {power_of} = {tex(weight, n_w)}",
        rf"p &= \frac{{w}}{{\sum_j w_j}} = \frac{{{tex(weight, n_w)}}}{{{tex(total, n_w)}}} = {tex(p, n_p)}",
    ]
    if cut:
        lines.append(rf"p' &= 0\quad\text{{{say('cut')}}}")
    elif kept < 1:
        result, share = tex(p / kept, digits), say("kept")
        lines.append(
            rf"p' &= \frac{{p}}{{\text{{{share}}}}} = \frac{{{tex(p, n_p)}}}{{{tex(kept, n_p)}}} = {result}"
        )
    return aligned(*lines)


def _penalty(raw: float, logit: float, penalty: float, n_z: int) -> str:
    """The line that makes a logit smaller."""
    if raw > 0:
        n = tie(lambda x: x / penalty, raw, digits=n_z)
        return rf"z &= \frac{{z_0}}{{\theta}} = \frac{{{tex(raw, n)}}}{{{penalty:g}}} = {tex(logit, n_z)}"
    n = tie(lambda x: x * penalty, raw, digits=n_z)
    return rf"z &= z_0\,\theta = {tex(raw, n)} \cdot {penalty:g} = {tex(logit, n_z)}"


def chi_square(count: int, prob: float, n: int, total: float, degrees: int, *, digits: int = 4) -> str:
    """The test of counts against probabilities: one bin worked out, the sum over all, the p-value.

    Args:
        count: draws of one token.
        prob: its probability.
        n: all draws.
        total: the sum over all bins.
        degrees: bins less one.
        digits: of the results.
    """
    expected = n * prob
    part = (count - expected) ** 2 / expected
    n_e = tie(lambda e: (count - e) ** 2 / e, expected, digits=digits)
    n_p = tie(lambda p: n * p, prob, digits=n_e)
    bracket = rf"({count} - {tex(expected, n_e)})^2"
    chi = tex(total, tie(lambda x: p_value(x, degrees), total, digits=digits))
    return aligned(
        rf"E &= n\,p = {n} \cdot {tex(prob, n_p)}",
        rf"&= {tex(expected, n_e)}",
        rf"\frac{{(c - E)^2}}{{E}} &= \frac{{{bracket}}}{{{tex(expected, n_e)}}} = {tex(part, digits)}",
        rf"\chi^2 &= \sum_{{i=1}}^{{{degrees + 1}}} \frac{{(c_i - E_i)^2}}{{E_i}} = {chi}",
        rf"P(\chi^2_{{{degrees}}} \ge {chi}) &= {tex(p_value(total, degrees), digits)}",
    )


def path_product(probs: list[float], *, digits: int = 4) -> str:
    """The probability of a path: the product of its tokens' probabilities, each given those before it."""
    n = tie(lambda *p: math.prod(p), *probs, digits=digits)
    factors = r" \cdot ".join(tex(p, n) for p in probs)
    result = tex(math.prod(probs), digits)
    if len(probs) == 1:
        return rf"P = p_1 = {result}"
    return rf"P = \prod_{{t=1}}^{{{len(probs)}}} p_t = {factors} = {result}"
