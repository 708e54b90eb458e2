"""The numbers of a study's result, worked out: each line follows from the numbers as they are written."""

import math

from ui.worked import aligned, tex, tie
from wording import words

say = words("ui.worked_experiments")


def law(floor: float, coefficient: float, exponent: float, size: float, *, digits: int = 4) -> str:
    """What a law gives for one size.

    Args:
        floor: E, nats.
        coefficient: A.
        exponent: α.
        size: x.
        digits: of the result; the numbers before have as many more as that needs.
    """
    n = tie(lambda e, a, p, x: e + a * x**-p, floor, coefficient, exponent, size, digits=digits)
    e, a, p, x = (tex(value, n) for value in (floor, coefficient, exponent, size))
    return aligned(
        r"L &= E + A \cdot x^{-\alpha}",
        rf"&= {e} + {a} \cdot {x}^{{-{p}}}",
        rf"&= {tex(floor + coefficient * size**-exponent, digits)}\ \text{{{say('nats')}}}",
    )


def perplexity(loss: float, *, digits: int = 4) -> str:
    """From a mean loss to its perplexity."""
    n = tie(math.exp, loss, digits=digits)
    return (
        rf"\text{{{say('perplexity')}}} = e^{{\text{{{say('loss')}}}}} = e^{{{tex(loss, n)}}}"
        rf" = {tex(math.exp(loss), digits)}"
    )


def gap(first: float, second: float, names: tuple[str, str], *, digits: int = 3) -> str:
    """The difference of two losses."""
    n = tie(lambda a, b: a - b, first, second, digits=digits)
    return (
        rf"\text{{{names[0]}}} - \text{{{names[1]}}} = {tex(first, n)} - {tex(second, n)}"
        rf" = {tex(first - second, digits)}\ \text{{{say('nats')}}}"
    )


def bits_per_byte(loss: float, bytes_per_token: float, *, digits: int = 4) -> str:
    """From nats a token to bits a byte."""

    def compute(nats: float, length: float) -> float:
        return nats / (math.log(2) * length)

    n = tie(compute, loss, bytes_per_token, digits=digits)
    return aligned(
        rf"\text{{{say('bits_per_byte')}}} &= \frac{{\text{{{say('loss_per_token')}}}}}"
        rf"{{\ln 2 \cdot \text{{{say('bytes_per_token')}}}}}",
        rf"&= \frac{{{tex(loss, n)}}}{{\ln 2 \cdot {tex(bytes_per_token, n)}}}"
        rf" = {tex(compute(loss, bytes_per_token), digits)}",
    )


def progress(start: float, loss: float, floor: float, *, digits: int = 3) -> str:
    """How far from guessing to the floor."""

    def compute(a: float, b: float, c: float) -> float:
        return (a - b) / (a - c)

    n = tie(compute, start, loss, floor, digits=digits)
    a, b, c = (tex(x, n) for x in (start, loss, floor))
    return aligned(
        rf"\text{{{say('way')}}} &= \frac{{\ln V - \text{{{say('loss')}}}}}"
        rf"{{\ln V - \text{{{say('floor')}}}}}",
        rf"&= \frac{{{a} - {b}}}{{{a} - {c}}} = {tex(compute(start, loss, floor), digits)}",
    )
