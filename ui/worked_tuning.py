"""Worked formulas of fine-tuning: the loss of an answer, the loss of a preference."""

import math

from ui.worked import LARGEST, aligned, tex, tie
from wording import words

say = words("ui.worked_tuning")


def answer_loss(totals: dict[str, float], n: int, left_out: int, *, digits: int = 4) -> str:
    """From the surprise of an answer's tokens to the loss of its pair.

    Args:
        totals: sum of -log p over the tokens that count, nats; "before", or "before" and "after".
        n: how many these are.
        left_out: tokens of the prompt, which don't count.
        digits: of the loss.
    """
    lines = []
    for which, total in totals.items():
        n_total = tie(lambda x: x / n, total, digits=digits)
        sign = rf"L_{{\text{{{say(f'sign.{which}')}}}}}" if len(totals) > 1 else "L"
        lines.append(rf"{sign} &= \frac{{{tex(total, n_total)}}}{{{n}}} = {tex(total / n, digits)}")
    return aligned(  # short lines, for a telephone
        rf"L &= \frac{{1}}{{N}} \sum_{{t\,\in\,\text{{{say('answer')}}}}} -\ln p_t",
        rf"N &= {n + left_out} - {left_out} = {n}",
        *lines,
    )


def margin(after: tuple[float, float], before: tuple[float, float], beta: float, *, digits: int = 4) -> str:
    """From four log probabilities of two answers to the reward margin of their pair.

    Args:
        after: ln π of the chosen and of the rejected answer, all their tokens together.
        before: the same under the start.
        beta: of the run.
        digits: of the margin.
    """
    gains = (after[0] - before[0], after[1] - before[1])
    n = tie(lambda chosen, rejected: beta * (chosen - rejected), *gains, digits=digits)
    lines = []
    for name, gain, now, then in zip(("chosen", "rejected"), gains, after, before, strict=True):
        places = tie(lambda a, b: a - b, now, then, digits=n) if now != then else n
        lines += [
            rf"g_{{\text{{{say(f'sign.{name}')}}}}} &= {tex(now, places)} - {_inner(then, places)}",
            rf"&= {tex(gain, n)}",
        ]
    return aligned(  # short lines, for a telephone
        rf"g &= \ln \pi_{{\text{{{say('sign.after')}}}}} - \ln \pi_{{\text{{{say('sign.before')}}}}}",
        *lines,
        rf"m &= \beta\,(g_{{\text{{{say('sign.chosen')}}}}} - g_{{\text{{{say('sign.rejected')}}}}})",
        rf"&= {beta:g} \cdot ({tex(gains[0], n)} - {_inner(gains[1], n)})",
        rf"&= {tex(beta * (gains[0] - gains[1]), digits)}",
    )


def _inner(x: float, digits: int) -> str:
    """A number after a sign."""
    return rf"({tex(x, digits)})" if x < 0 else tex(x, digits)


def preference_loss(value: float, *, digits: int = 4) -> str:
    """From the margin of a pair to its loss, ln 2 where the margin is 0."""
    sigma = r"L &= -\ln \sigma(m) = -\ln \frac{1}{1 + e^{-m}}"
    if -value > LARGEST:
        return aligned(sigma, rf"&\approx -m = {tex(-value, digits)}\ \text{{nats}}")
    power = math.exp(-value)
    n_power = tie(math.log1p, power, digits=digits) if power else digits
    n = tie(lambda m: math.exp(-m), value, digits=n_power) if value else digits
    two = r" = \ln 2" if value == 0 else ""
    return aligned(
        sigma,
        r"&= \ln(1 + e^{-m})",
        rf"e^{{-m}} &= e^{{{tex(0.0 - value, n)}}} = {tex(power, n_power)}",
        rf"L &= \ln(1 + {tex(power, n_power)}){two} = {tex(math.log1p(power), digits)}\ \text{{nats}}",
    )


def changes(new_before: float, new_after: float, old_before: float, old_after: float) -> str:
    """What the loss on the new and on the old text changed by: what was learned, what was forgotten."""
    lines = []
    for name, before, after in (("new", new_before, new_after), ("old", old_before, old_after)):
        n = tie(lambda a, b: b - a, before, after, digits=4) if before != after else 4
        lines.append(
            rf"\Delta L_{{\text{{{say(f'sign.{name}')}}}}} &= {tex(after, n)} - {tex(before, n)}"
            rf" = {tex(after - before, 4)}\ \text{{nats}}"
        )
    return aligned(*lines)
