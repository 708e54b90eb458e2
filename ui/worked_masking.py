"""Worked formulas of the Masking page: why one model wins a gap, two orders of filling, chance of no mask."""

import math
from fractions import Fraction

from ui.worked import aligned, tex, tie
from wording import words

say = words("ui.worked_masking")


def lead(masked: float, causal: float, true_masked: float | None, true_causal: float | None) -> str:
    """The masked model's lead in nats, and its two parts where the truth is known.

    Args:
        masked: probability that the masked model gives the hidden token.
        causal: that of the causal one.
        true_masked: the exact one given what the masked model sees; None or 0 if unknown.
        true_causal: given what the causal one sees.
    """

    def log_ratio(top: float, bottom: float) -> float:
        return math.log(top) - math.log(bottom)

    def line(top: float, bottom: float, digits: int) -> tuple[str, str]:
        n = tie(log_ratio, top, bottom, digits=digits)
        return rf"\ln\frac{{{tex(top, n)}}}{{{tex(bottom, n)}}}", tex(log_ratio(top, bottom), digits)

    who = rf"\text{{{say('masked')}}}", rf"\text{{{say('causal')}}}"
    all_of_it = log_ratio(masked, causal)
    if not true_masked or not true_causal:
        formula, value = line(masked, causal, 3)
        return aligned(
            rf"\text{{{say('lead')}}} &= \ln\frac{{p_{{{who[0]}}}}}{{p_{{{who[1]}}}}}",
            rf"&= {formula} = {value}\ \text{{nats}}",
        )
    told = log_ratio(true_masked, true_causal)
    n = max(tie(lambda x, y: x - y, all_of_it, told, digits=2), 3)
    formula, value = line(masked, causal, n)
    true_formula, true_value = line(true_masked, true_causal, n)
    minus = f"({true_value})" if told < 0 else true_value
    return aligned(  # short lines, for a telephone
        rf"\text{{{say('lead')}}} &= \ln\frac{{p_{{{who[0]}}}}}{{p_{{{who[1]}}}}}",
        rf"&= {formula} = {value}",
        rf"\text{{{say('told')}}} &= \ln\frac{{p^{{*}}_{{{who[0]}}}}}{{p^{{*}}_{{{who[1]}}}}}",
        rf"&= {true_formula} = {true_value}",
        rf"\text{{{say('learned')}}} &= {value} - {minus} = {tex(all_of_it - told, 2)}\ \text{{nats}}",
    )


def orders(a: float, b_after_a: float, b: float, a_after_b: float, *, star: bool = False) -> str:
    """Two products: one gap filled first, or the other, and how far apart they are in nats.

    `star` marks true probabilities: of these both orders give one product.
    """
    p = "p^{*}" if star else "p"
    first, second = a * b_after_a, b * a_after_b
    apart = math.log(second) - math.log(first) if first > 0 and second > 0 and not star else 0.0
    digits = 4
    if abs(apart) > 1e-9:
        digits = max(4, tie(lambda x, y: math.log(x / y), second, first, digits=3))

    def product(x: float, y: float) -> str:
        n = tie(lambda s, t: s * t, x, y, digits=digits)
        return rf"{tex(x, n)} \cdot {tex(y, n)} = {tex(x * y, digits)}"

    lines = [
        rf"{p}(a)\,{p}(b \mid a) &= {product(a, b_after_a)}",
        rf"{p}(b)\,{p}(a \mid b) &= {product(b, a_after_b)}",
    ]
    if abs(apart) > 1e-9:
        ratio = rf"\ln\frac{{{tex(second, digits)}}}{{{tex(first, digits)}}}"
        lines.append(rf"\text{{{say('apart')}}} &= {ratio} = {tex(apart, 3)}\ \text{{nats}}")
    return aligned(*lines)


def log_probability(total: float, n: int) -> str:
    """The logarithm of a text's probability by the chain rule, over n tokens after the first."""
    return aligned(
        rf"\ln P &= \sum_{{t=1}}^{{{n}}} \ln p(x_t \mid x_{{<t}})", rf"&= {total:.3f}\ \text{{nats}}"
    )


def pseudo(total: float) -> str:
    """The pseudo-log-likelihood of a text."""
    return aligned(
        rf"\text{{PLL}} &= \sum_t \ln p(x_t \mid \text{{{say('all_others')}}})",
        rf"&= {total:.3f}\ \text{{nats}}",
    )


def totals(a_first: float, b_first: float, both_given: float) -> str:
    """Sums over every filling of two gaps: each order, and the product of both conditionals."""
    return aligned(
        rf"\sum p(a)\,p(b \mid a) &= {a_first:.4f}",
        rf"\sum p(b)\,p(a \mid b) &= {b_first:.4f}",
        rf"\sum p(a \mid b)\,p(b \mid a) &= {both_given:.4f}",
    )


def causal_total(total: float) -> str:
    """The sum over every pair of tokens after the left of a gap, by the chain rule."""
    left = rf"\text{{{say('left')}}}"
    return rf"\sum_{{a,b}} p(a \mid {left})\,p(b \mid {left}, a) = {total:.4f}"


def fraction(x: Fraction) -> str:
    """A fraction for LaTeX; a whole number as it is."""
    return str(x.numerator) if x.denominator == 1 else rf"\tfrac{{{x.numerator}}}{{{x.denominator}}}"


def pseudo_total(parts: list[Fraction]) -> str:
    """The sum of p(a | b) p(b | a) over all fillings, exact, and whether it is 1."""
    total = sum(parts, Fraction(0))
    return aligned(
        r"\sum_{a,b} &\;p(a \mid b)\,p(b \mid a)",  # short lines, for a telephone
        "&= " + " + ".join(fraction(x) for x in parts),
        f"&= {fraction(total)}" + (r" \neq 1" if total != 1 else ""),
    )


def none_chosen(n: int, mask_prob: float) -> str:
    """How likely no token of a row is chosen."""
    left = 1 - mask_prob
    return rf"(1 - {tex(mask_prob, 2)})^{{{n}}} = {tex(left, 2)}^{{{n}}} = {tex(left**n, 4)}"
