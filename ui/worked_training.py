"""Worked formulas of one training step: the loss of a batch, the gradient's length, the update's size."""

import math
from collections.abc import Sequence

from ui.worked import aligned, rounded, tex, tie
from wording import words

say = words("ui.worked_training")

SHOWN = 3  # squares that are written out; the others are added up to one number


def token_loss(log_prob: float, *, digits: int = 4) -> str:
    """From the probability of one target to its loss."""
    p, loss = math.exp(log_prob), 0.0 - log_prob
    if not 0 < p < 1:
        return aligned(rf"-\ln p &= {tex(loss, digits)}\ \text{{{say('nats')}}}")
    n = tie(lambda x: -math.log(x), p, digits=digits)
    return aligned(rf"-\ln p &= -\ln {tex(p, n)} = {tex(loss, digits)}\ \text{{{say('nats')}}}")


def batch_loss(total: float, n: int, shape: tuple[int, int], *, digits: int = 4) -> str:
    """From the losses of all scored targets to the loss of the batch.

    Args:
        total: their sum, nats.
        n: how many are scored.
        shape: rows and positions of the batch.
        digits: of the loss.
    """
    n_total = tie(lambda x: x / n, total, digits=digits)
    count = rf"{shape[0]} \cdot {shape[1]} = {n}" if shape[0] * shape[1] == n else str(n)
    return aligned(
        rf"N &= {count}",
        rf"\text{{{say('loss')}}} &= \frac{{1}}{{N}} \sum_{{i=1}}^{{N}} -\ln p_i"
        rf" = \frac{{{tex(total, n_total)}}}{{{n}}}",
        rf"&= {tex(total / n, digits)}\ \text{{{say('nats_per_token')}}}",
    )


def gradient_length(gradients: Sequence[float], limit: float, *, digits: int = 4) -> str:
    """From the lengths of the parts' gradients to the length of all, and what clipping makes of it.

    Args:
        gradients: Euclidean length for each part.
        limit: the longest that is let through; 0 is no limit.
        digits: of the results.
    """
    squares = sorted((g * g for g in gradients), reverse=True)
    written, rest = squares[:SHOWN], squares[SHOWN:]
    inputs = [*written, math.fsum(rest)] if rest else written
    total = math.fsum(squares)
    norm = math.sqrt(total)
    clipped = bool(limit) and norm > limit
    n_norm = tie(lambda x: limit / x, norm, digits=digits) if clipped else digits
    n_total = tie(math.sqrt, total, digits=n_norm) if total else digits
    n = tie(lambda *x: math.fsum(x), *inputs, digits=n_total)
    terms = [tex(x, n) for x in inputs]
    if rest:
        terms[-1] = rf"\underbrace{{{terms[-1]}}}_{{\text{{{say('more', n=len(rest))}}}}}"
    lines = [
        rf"\lVert g \rVert^2 &= \sum_{{\text{{{say('parts')}}}}}"
        rf" \lVert g_{{\text{{{say('part')}}}}} \rVert^2",
        "&= " + " + ".join(terms[:2]),  # short lines, for a telephone
        *([r"&\quad + " + " + ".join(terms[2:])] if terms[2:] else []),
        rf"&= {tex(total, n_total)}",
        rf"\lVert g \rVert &= \sqrt{{{tex(total, n_total)}}} = {tex(norm, n_norm)}",
    ]
    if clipped:
        lines.append(
            rf"\text{{{say('clipping')}}} &: g \leftarrow g \cdot "
            rf"\frac{{{tex(limit, digits)}}}{{{tex(norm, n_norm)}}} = {tex(limit / norm, digits)}\,g"
        )
    elif limit:
        lines.append(rf"{tex(norm, n_norm)} &\le {tex(limit, digits)}: \text{{ {say('nothing_clipped')}}}")
    return aligned(*lines)


def update_ratio(update: float, weights: float, *, digits: int = 3) -> str:
    """How far a part's weights move, measured in their own length."""
    if not weights or not update:
        return aligned(rf"\lVert \Delta w \rVert &= {tex(update, digits)}")
    n = tie(lambda a, b: a / b, update, weights, digits=digits)
    return aligned(
        r"\frac{\lVert \Delta w \rVert}{\lVert w \rVert}"
        rf" &= \frac{{{tex(update, n)}}}{{{tex(weights, n)}}} = {tex(update / weights, digits)}",
        rf"&= {tex(100 * update / weights, digits)}\,\%",
    )


def mean_change(update: float, n: int, learning_rate: float, *, digits: int = 3) -> str:
    """The root mean square change of one number of a part, beside the learning rate."""
    if not update:
        return aligned(r"\Delta w &= 0")
    n_update = tie(lambda x: x / math.sqrt(n), update, digits=digits)
    size = rounded(update, n_update) / math.sqrt(n)
    return aligned(
        r"\frac{\lVert \Delta w \rVert}{\sqrt{n}}"
        rf" &= \frac{{{tex(update, n_update)}}}{{\sqrt{{{n}}}}}",
        rf"&= {tex(size, digits)}",
        rf"\text{{{say('learning_rate')}}} &= {tex(learning_rate, digits)}",
    )


def loss_change(before: float, after: float, *, digits: int = 4) -> str:
    """What the step did to the loss of its own batch."""
    n = tie(lambda a, b: b - a, before, after, digits=digits) if before != after else digits
    return aligned(
        rf"\text{{{say('after')}}} - \text{{{say('before')}}} &= {tex(after, n)} - {tex(before, n)}",
        rf"&= {tex(after - before, digits)}\ \text{{{say('nats')}}}",
    )
