"""The formulas of the Inside page with the model's numbers, each line following from the numbers written."""

import math
from collections.abc import Sequence

from ui.worked import EXACT, aligned, rounded, tex, tie
from wording import words

say = words("ui.worked_inside")


def logit_sum(names: Sequence[str], values: Sequence[float], *, left: str, digits: int = 4) -> str:
    """A logit as the sum of what parts of the model add to it, one below the other.

    Args:
        names: of the groups of parts, plain words.
        values: what each adds.
        left: what stands on the left, LaTeX.
        digits: of the sum; the terms have as many as it needs.
    """
    n = tie(lambda *terms: math.fsum(terms), *values, digits=digits)
    terms = [
        rf"&{'=' if i == 0 else '+'} {_bracketed(tex(value, n), i)} &&\text{{{name}}}"
        for i, (name, value) in enumerate(zip(names, values, strict=True))
    ]
    return aligned(left + terms[0], *terms[1:], rf"&= {tex(math.fsum(values), digits)}")


def _bracketed(number: str, place: int = 1) -> str:
    """A negative number in brackets, but for the first of a sum."""
    return f"({number})" if number.startswith("-") and place else number


def frozen_norm(norm: str, divisor: float, *, digits: int = 4) -> str:
    """What a part a adds to the logit of token v, through the final norm with its divisor held.

    Args:
        norm: "layernorm" or "rmsnorm".
        divisor: what the norm divides by at this position.
        digits: of the divisor.
    """
    above = r"a - \bar a" if norm == "layernorm" else "a"
    return aligned(
        rf"\text{{{say('adds')}}}(a) &= u_v \cdot \Bigl(w \odot \frac{{{above}}}{{s}}\Bigr)",
        rf"s &= {tex(divisor, digits)}",
    )


def frozen_gate() -> str:
    """GELU as a product whose second factor is held, and so is the same for all parts."""
    return r"\text{GELU}(h) = h \cdot \Phi(h)\,"


def longer(before: float, added: float, cosine: float, *, digits: int = 4) -> str:
    """How long the stream x is once a is added, from both lengths and the angle between them."""

    def total(x: float, a: float, t: float) -> float:
        return math.sqrt(max(x * x + a * a + t, 0.0))

    cross = 2 * before * added * cosine
    wanted, m, n = tex(total(before, added, cross), digits), digits, EXACT
    for m in range(digits, EXACT):  # digits of the cross term, until the length follows from what is written
        n = tie(lambda x, a, c: 2 * x * a * c, before, added, cosine, digits=m)
        written = rounded(before, n), rounded(added, n), rounded(cross, m)
        if tex(total(*written), digits) == wanted:
            break
    x, a, c, t = tex(before, n), tex(added, n), tex(cosine, n), tex(cross, m)
    plus = f"- {t[1:]}" if t.startswith("-") else f"+ {t}"
    return aligned(  # in short lines: a formula that is too wide for a small screen would have to scroll
        r"t &= 2\,\|x\|\,\|a\|\cos",
        rf"&= 2 \cdot {x} \cdot {a} \cdot {_bracketed(c)}",
        rf"&= {t}",
        r"\|x + a\| &= \sqrt{\|x\|^2 + \|a\|^2 + t}",
        rf"&= \sqrt{{{x}^2 + {a}^2 {plus}}}",
        rf"&= {wanted}",
    )


def share(mlp: float, attention: float, *, digits: int = 3) -> str:
    """The MLP's share of what a block adds."""
    n = tie(lambda m, a: m / (m + a), mlp, attention, digits=digits)
    m, a = tex(mlp, n), tex(attention, n)
    return aligned(
        rf"\text{{{say('share')}}} &= \frac{{\|m\|}}{{\|a\| + \|m\|}}",
        rf"&= \frac{{{m}}}{{{a} + {m}}} = {tex(mlp / (mlp + attention), digits)}",
    )


def change(before: float, after: float, *, digits: int = 4) -> str:
    """The change of the loss, nats per token that is predicted."""
    n = tie(lambda b, a: a - b, before, after, digits=digits)
    return aligned(
        rf"\Delta &= \text{{{say('without')}}} - \text{{{say('loss')}}}",
        rf"&= {tex(after, n)} - {tex(before, n)} = {tex(after - before, digits)}\ \text{{nats}}",
    )


def divergence(nats: float, *, digits: int = 4) -> str:
    """How far the distribution q without some parts is from the whole model's p."""
    return aligned(
        r"D_{\text{KL}} &= \sum_v p_v\,\ln \frac{p_v}{q_v}",
        rf"&= {tex(nats, digits)}\ \text{{nats}}",
    )
