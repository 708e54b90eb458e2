"""The probability that a token is drawn with, worked out: logit, temperature, cuts."""

import math

from ui.worked import LARGEST, aligned, tex, tie


def sampled(
    logit: float, top: float, temperature: float, total: float, kept: float, cut: bool, *, digits: int = 4
) -> str:
    """From a logit to the probability that its token is drawn with, each line following from the one before.

    Args:
        logit: the token's.
        top: the largest logit.
        temperature: what the logits are divided by; 0 gives the largest one everything.
        total: Σ exp((logit - top) / temperature) over the vocabulary.
        kept: share of the probability that the cuts left.
        cut: whether this token was cut away.
        digits: of the result; the lines before have as many more as that needs.
    """
    if temperature == 0:
        return rf"T = 0:\quad p = {0 if cut else 1}\quad\text{{the largest logit takes all}}"

    def power(z: float, largest: float) -> float:
        return math.exp(max((z - largest) / temperature, -LARGEST))

    weight = power(logit, top)
    p = weight / total
    n_p = tie(lambda a, b: a / b, p, kept, digits=digits) if kept < 1 and not cut else digits
    n_w = tie(lambda a, b: a / b, weight, total, digits=n_p)
    n_z = tie(power, logit, top, digits=n_w)
    minus = f"+ {tex(-top, n_z)}" if top < 0 else f"- {tex(top, n_z)}"
    power_of = rf"e^{{({tex(logit, n_z)} {minus})/{temperature:g}}}"
    lines = [
        r"w &= e^{(z - z_{\max})/T}",
        rf"&= {power_of} = {tex(weight, n_w)}",
        rf"p &= \frac{{w}}{{\sum_j w_j}} = \frac{{{tex(weight, n_w)}}}{{{tex(total, n_w)}}} = {tex(p, n_p)}",
    ]
    if cut:
        lines.append(r"p' &= 0\quad\text{cut away}")
    elif kept < 1:
        result = tex(p / kept, digits)
        lines.append(
            rf"p' &= \frac{{p}}{{\text{{kept}}}} = \frac{{{tex(p, n_p)}}}{{{tex(kept, n_p)}}} = {result}"
        )
    return aligned(*lines)
