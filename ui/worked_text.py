"""Worked formulas of a whole text: the chain rule, log-sum-exp, entropy; numbers too small for a float."""

import math
from collections.abc import Callable

from ui.worked import LARGEST, aligned, in_range, mantissa, power, tex, tie
from wording import words

say = words("ui.worked_text")

_LOGS = {"nats": (r"\ln", "e", 1.0), "bits": (r"\log_2", "2", math.log(2))}  # sign, base, nats in one
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _text(key: str) -> str:
    """A word of a formula, in LaTeX."""
    return rf"\text{{{say('formula.' + key)}}}"


def product(log: float, digits: int = 4) -> str:
    """The number whose natural log is `log`, for a table; without a power of ten down to 0.001.

    >>> product(-2000.0), product(0.0), product(math.log(0.25))
    ('2.577×10⁻⁸⁶⁹', '1.000', '0.2500')
    """
    if not math.isfinite(log):
        return "0" if log == -math.inf else say("not_finite")
    written, exponent = mantissa(log, digits)
    if -3 <= exponent < 0:
        return _in_full(written, exponent)
    return written + (f"×10{str(exponent).translate(_SUPERSCRIPT)}" if exponent else "")


def _in_full(written: str, exponent: int) -> str:
    """A mantissa and a negative power of ten as a decimal fraction, with the same digits."""
    return "0." + "0" * (-exponent - 1) + written.replace(".", "")


def _product_tex(log: float, digits: int) -> str:
    written, exponent = mantissa(log, digits)
    if -3 <= exponent < 0:
        return _in_full(written, exponent)
    return written + (rf"\times10^{{{exponent}}}" if exponent else "")


def chain(total: float, n: int, n_bytes: int, *, unit: str = "nats", digits: int = 4) -> str:
    """From the sum of logs to the probability of the text, loss, perplexity and bits per byte.

    Args:
        total: natural log of the probability of all scored tokens together.
        n: how many these are.
        n_bytes: how many bytes they have.
        unit: of the logs, "nats" or "bits".
        digits: of the results; what goes into them has as many more as that needs.
    """
    log, base, nats = _LOGS[unit]
    exponent = mantissa(total, digits)[1]

    def scaled(x: float) -> float:
        return math.exp(-x * nats - exponent * math.log(10))

    n_total, n_loss = _places(total, n, n_bytes, unit, digits, scaled)
    shown, minus = tex(-total / nats, n_total), "-" if total < 0 else ""
    return aligned(
        rf"{log} P &= \sum_{{t=1}}^{{{n}}} {log} p_t = {minus}{shown}",
        rf"P &= \prod_{{t=1}}^{{{n}}} p_t = {base}^{{{minus}{shown}}}",
        rf"&= {_product_tex(total, digits)}",
        rf"{_text('loss')} &= \frac{{-{log} P}}{{{n}}} = \frac{{{shown}}}{{{n}}}",
        rf"&= {tex(-total / nats / n, n_loss)}\ \text{{{unit}}}",
        *_averages(total, n, n_bytes, unit, shown, n_loss, digits),
    )


def _places(
    total: float, n: int, n_bytes: int, unit: str, digits: int, *more: Callable[[float], float]
) -> tuple[int, int]:
    """Digits of the sum of surprisals and of the loss, so that all that follows can be redone by hand."""
    nats = _LOGS[unit][2]
    loss = -total / n / nats
    n_loss = tie(lambda x: math.exp(x * nats), loss, digits=digits) if loss * nats < LARGEST else digits
    computes: list[Callable[..., float]] = [lambda x: x / n, lambda x: x * nats / math.log(2) / n_bytes]
    places = [n_loss, digits, *[digits] * len(more)]
    return tie([*computes, *more], -total / nats, digits=places), n_loss


def _averages(
    total: float, n: int, n_bytes: int, unit: str, shown: str, n_loss: int, digits: int
) -> tuple[str, str]:
    """Perplexity and bits per byte, from the loss and the sum of surprisals as they are written."""
    base, nats = _LOGS[unit][1:]
    loss, bits = -total / n, -total / math.log(2) / n_bytes
    below = rf"\ln 2 \cdot {n_bytes}" if unit == "nats" else f"{n_bytes}"
    return (
        rf"{_text('perplexity')} &= {base}^{{{tex(loss / nats, n_loss)}}} = {tex(exp(loss), digits)}",
        rf"{_text('bits_per_byte')} &= \frac{{{shown}}}{{{below}}} = {tex(bits, digits)}",
    )


def log_prob(z: float, log_total: float, v: int, *, unit: str = "nats", digits: int = 4) -> str:
    """From a logit and the log-sum-exp of all logits to a log-probability and a probability.

    Args:
        z: the token's logit.
        log_total: log Σ exp(z) over the vocabulary.
        v: how many tokens the sum runs over.
        unit: of the log-probability, "nats" or "bits".
        digits: of the results.
    """
    value = z - log_total
    n_value = tie(lambda x: math.exp(x - in_range(value)[1]), value, digits=digits) if value else digits
    places = [n_value]
    computes = [lambda a, b: a - b]
    if unit == "bits":
        computes.append(lambda a, b: (a - b) / math.log(2))
        places.append(digits)
    n = tie(computes, z, log_total, digits=places)
    lines = [
        rf"z &= {tex(z, n)}",
        rf"\operatorname{{LSE}} &= \ln \sum_{{j=1}}^{{{v}}} e^{{z_j}} = {tex(log_total, n)}",
        rf"\ln p &= z - \operatorname{{LSE}} = {tex(value, n_value)}",
        rf"p &= e^{{{tex(value, n_value)}}} = {power(value, digits)}",
    ]
    if unit == "bits":
        lines.append(
            rf"\log_2 p &= \frac{{\ln p}}{{\ln 2}} = {tex(value / math.log(2), digits)}\ \text{{bits}}"
        )
    return aligned(*lines)


def corpus(total: float, n: int, n_bytes: int, *, unit: str = "nats", digits: int = 4) -> str:
    """Loss, perplexity and bits per byte of a long text, from the sum of all surprisals.

    Args:
        total: natural log of the probability of all scored tokens together.
        n: how many these are.
        n_bytes: how many bytes they have.
        unit: of the surprisals, "nats" or "bits".
        digits: of the results.
    """
    log, _, nats = _LOGS[unit]
    n_total, n_loss = _places(total, n, n_bytes, unit, digits)
    shown = tex(-total / nats, n_total)
    return aligned(
        rf"{_text('loss')} &= \frac{{1}}{{{n}}} \sum_{{t=1}}^{{{n}}} -{log} p_t = \frac{{{shown}}}{{{n}}}",
        rf"&= {tex(-total / nats / n, n_loss)}\ \text{{{say('per_token', unit=unit)}}}",
        *_averages(total, n, n_bytes, unit, shown, n_loss, digits),
    )


def exp(x: float) -> float:
    """e^x, infinite where a float ends."""
    return math.exp(x) if x < LARGEST else math.inf


def pieces(parts: tuple[list[float], list[float]], unit: str, *, digits: int = 4, most: int = 4) -> str:
    """The surprisals of two models for one piece of text: sums over their tokens, and the difference.

    Args:
        parts: surprisals of each model's tokens in the piece, in `unit`.
        unit: "nats" or "bits".
        digits: of the difference.
        most: terms of a sum that are written out.
    """
    sums = [sum(part) for part in parts]
    n = tie(lambda a, b: a - b, *sums, digits=digits) if sums[0] != sums[1] else digits
    lines = []
    for name, part, total in zip("AB", parts, sums, strict=True):
        terms = ""
        if 1 < len(part) <= most:
            n_terms = tie(lambda *xs: sum(xs), *part, digits=n)
            terms = " + ".join(tex(x, n_terms) for x in part) + " = "
            if len(part) > 2:  # too long for one line
                terms = terms.removesuffix("= ") + r"\\ &= "
        elif len(part) > most:
            terms = rf"\sum_{{i=1}}^{{{len(part)}}} -\ln p_i = ".replace(
                r"\ln", r"\ln" if unit == "nats" else r"\log_2"
            )
        lines.append(rf"s_{name} &= {terms}{tex(total, n)}\ \text{{{unit}}}")
    lines.append(rf"s_A - s_B &= {tex(sums[0] - sums[1], digits)}\ \text{{{unit}}}")
    return aligned(*lines)


def distances(kl_ab: float, kl_ba: float, js: float, unit: str, *, digits: int = 4) -> str:
    """Distances between the distributions of two models at one place, all given in `unit`."""
    log = _LOGS[unit][0]
    return aligned(
        rf"D_{{\text{{KL}}}}(A \Vert B) &= \sum_v a_v {log} \frac{{a_v}}{{b_v}}",
        rf"&= {tex(kl_ab, digits)}\ \text{{{unit}}}",
        rf"D_{{\text{{KL}}}}(B \Vert A) &= {tex(kl_ba, digits)}\ \text{{{unit}}}",
        r"M &= \tfrac12 (A + B)",
        r"D_{\text{JS}} &= \tfrac12 D_{\text{KL}}(A \Vert M)",
        r"&\quad + \tfrac12 D_{\text{KL}}(B \Vert M)",
        rf"&= {tex(js, digits)}\ \text{{{unit}}}",
    )
