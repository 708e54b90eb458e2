"""Formulas of token vectors with today's numbers: look up, add a position, turn, compare, measure."""

import math
from collections.abc import Sequence

from engine.config import Rotary
from engine.positions import PLAIN, speeds
from ui.worked import aligned, tex, tie


def signed(x: float, digits: int) -> str:
    """A number inside a sum or product: in brackets if it is negative."""
    return f"({tex(x, digits)})" if x < 0 else tex(x, digits)


def look_up(column: dict[int, float], token_id: int, vocab_size: int, dim: int, *, digits: int = 4) -> str:
    """One number of one-hot · E as a sum over the vocabulary.

    Args:
        column: E_{v,j} for the first id, the last id and `token_id`; the terms that are written out.
        token_id: the row that is looked up.
        vocab_size: V.
        dim: j.
        digits: of all numbers; nothing is computed from them but a copy.
    """
    last = max(column)
    lines = [rf"x_{{{dim}}} &= \sum_{{v=0}}^{{{vocab_size - 1}}} h_v\,E_{{v,{dim}}}"]
    before = -1
    for v in sorted(column):
        start = "&=" if v == min(column) else r"&\quad +"
        gap = r" \dots +" if v > before + 1 else ""
        lines.append(rf"{start}{gap} {int(v == token_id)} \cdot {signed(column[v], digits)}")
        before = v
    if last < vocab_size - 1:
        lines[-1] += r" + \dots"
    value = tex(column[token_id], digits)
    return aligned(*lines, rf"&= E_{{{token_id},{dim}}} = {value}")


def addition(
    token: float, position: float | None, token_id: int, t: int, dim: int, *,
    previous: tuple[int, float, float] | None = None, scale: float = 1.0, d_model: int = 1, digits: int = 4,
) -> str:  # fmt: skip
    """One number of a token's vector plus what is added to it.

    Args:
        token: the number.
        position: that of its position; None where no position is added.
        token_id: the token.
        t: the position.
        dim: which number it is.
        previous: of a model that mixes in the token before: its id, the learned factor, and its number.
        scale: √d_model for sinusoids, which multiplies all but the position; else 1.
        d_model: the width.
        digits: of the sum; the terms have as many as it needs.
    """

    def total(a: float, p: float, w: float, b: float) -> float:
        return scale * (a + w * b) + p

    before, w, b = previous or (0, 0.0, 0.0)
    inputs = (token, position or 0.0, w, b)
    n = tie(total, *inputs, digits=digits)
    symbols, numbers = rf"E_{{{token_id},{dim}}}", tex(token, n)
    if scale != 1 and previous is None:
        numbers = signed(token, n)
    if previous is not None:
        symbols += rf" + w_{{{dim}}}\,E_{{{before},{dim}}}"
        numbers += rf"\\[8pt]&\quad + {signed(w, n)} \cdot {signed(b, n)}"  # short lines
    if scale != 1:
        whole = (lambda inner: rf"\bigl({inner}\bigr)") if previous is not None else str
        symbols = rf"\sqrt{{d_{{\text{{model}}}}}}\,{whole(symbols)}"
        numbers = rf"\sqrt{{{d_model}}} \cdot {whole(numbers)}"
    if position is not None:
        symbols += rf" + P_{{{t},{dim}}}"
        numbers += f" + {signed(position, n)}"
    lines = [rf"x_{{{dim}}} &= {symbols}", f"&= {numbers}", f"&= {tex(total(*inputs), digits)}"]
    return aligned(*(lines if previous is not None or position is not None else [lines[0], lines[2]]))


def sinusoid(t: int, dim: int, d_model: int, *, digits: int = 4) -> str:
    """One number of the fixed table of positions (Vaswani et al. 2017, arXiv:1706.03762, §3.5)."""
    name, wave = (r"\sin", math.sin) if dim % 2 == 0 else (r"\cos", math.cos)
    even = dim - dim % 2
    angle = t * 10000.0 ** (-even / d_model)
    n = tie(wave, angle, digits=digits)
    return aligned(
        rf"P_{{t,{dim}}} &= {name}\!\left(\frac{{t}}{{10000^{{{even}/d_{{\text{{model}}}}}}}}\right)",
        rf"P_{{{t},{dim}}} &= {name}\!\left(\frac{{{t}}}{{10000^{{{even}/{d_model}}}}}\right)",
        rf"&= {name}({tex(angle, n)}) = {tex(wave(angle), digits)}",
    )


def angle(t: int, pair: int, width: int, rotary: Rotary = PLAIN, *, digits: int = 4) -> str:
    """How far a pair is turned at a position (Su et al. 2021, arXiv:2104.09864).

    Args:
        t: the position.
        pair: j.
        width: how many numbers of a head turn.
        rotary: the model's base, and whether it slows pairs down.
        digits: of the angle.
    """
    base = f"{rotary.base:.0f}" if rotary.base == round(rotary.base) else repr(rotary.base)
    d = r"d_{\text{head}}" if rotary.share == 1 else r"d_{\mathrm{rot}}"
    speed, plain = float(speeds(width, rotary)[pair]), rotary.base ** (-2 * pair / width)
    value, slowed = t * speed, speed / plain
    if rotary.stretch == 1:
        return aligned(
            rf"\theta &= t \cdot {base}^{{-2j/{d}}} = {t} \cdot {base}^{{-{2 * pair}/{width}}}",
            rf"&= {tex(value, digits)}\ \text{{rad}}",
        )
    n = tie(lambda s: t * plain * s, slowed, digits=digits)
    return aligned(
        rf"\theta &= t \cdot {base}^{{-2j/{d}}} \cdot s_j",
        rf"&= {t} \cdot {base}^{{-{2 * pair}/{width}}} \cdot {tex(slowed, n)}",
        rf"&= {tex(value, digits)}\ \text{{rad}}",
    )


def rotation(a: float, b: float, theta: float, pair: int, *, digits: int = 4) -> str:
    """Both numbers of a pair after the turn."""
    n = tie([_turned_first, _turned_second], a, b, theta, digits=[digits, digits])
    shown, first, second = tex(theta, n), signed(a, n), signed(b, n)
    i = 2 * pair
    return aligned(
        rf"q'_{{{i}}} &= q_{{{i}}}\cos\theta - q_{{{i + 1}}}\sin\theta",
        rf"&= {first}\cos {shown}",
        rf"&\quad - {second}\sin {shown}",
        rf"&= {tex(_turned_first(a, b, theta), digits)}",
        rf"q'_{{{i + 1}}} &= q_{{{i}}}\sin\theta + q_{{{i + 1}}}\cos\theta",
        rf"&= {first}\sin {shown}",
        rf"&\quad + {second}\cos {shown}",
        rf"&= {tex(_turned_second(a, b, theta), digits)}",
    )


def _turned_first(a: float, b: float, theta: float) -> float:
    return a * math.cos(theta) - b * math.sin(theta)


def _turned_second(a: float, b: float, theta: float) -> float:
    return a * math.sin(theta) + b * math.cos(theta)


def cosine(dot: float, first: float, second: float, d_model: int, *, digits: int = 4) -> str:
    """Cosine of the angle between two vectors.

    Args:
        dot: a · b.
        first: length of a.
        second: length of b.
        d_model: how many numbers each has.
        digits: of the cosine.
    """
    n = tie(lambda x, a, b: x / (a * b), dot, first, second, digits=digits)
    return aligned(
        rf"a \cdot b &= \sum_{{j=0}}^{{{d_model - 1}}} a_j b_j = {tex(dot, n)}",
        rf"\cos &= \frac{{a \cdot b}}{{|a|\,|b|}}"
        rf" = \frac{{{tex(dot, n)}}}{{{tex(first, n)} \cdot {tex(second, n)}}}",
        rf"&= {tex(dot / (first * second), digits)}",
    )


def length(squares: float, d_model: int, *, digits: int = 4) -> str:
    """Length of a vector from the sum of its squares."""
    n = tie(math.sqrt, squares, digits=digits)
    return (
        rf"|x| = \sqrt{{\sum_{{j=0}}^{{{d_model - 1}}} x_j^2}} = \sqrt{{{tex(squares, n)}}}"
        rf" = {tex(math.sqrt(squares), digits)}"
    )


def coordinates(values: Sequence[float], d_model: int, *, digits: int = 4) -> str:
    """Where a token lies along each direction of the map; μ is the mean, w a direction."""
    lines = [rf"z_k &= \sum_{{j=0}}^{{{d_model - 1}}} (x_j - \mu_j)\,w_{{k,j}}"]
    lines += [rf"\text{{PC }}{k}: z_{k} &= {tex(value, digits)}" for k, value in enumerate(values, 1)]
    return aligned(*lines)
