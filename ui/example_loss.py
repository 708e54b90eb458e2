"""Worked examples about the loss: one target, a batch, perplexity, one step down the slope."""

import math

import numpy as np
import streamlit as st

from ui import example_frame as frame
from ui import example_inputs as inputs
from ui.components import show
from ui.example_scores import Scores, plain_scores
from ui.example_sum import Number, Sum
from ui.example_text import Sentence, real_sentence, surprise_picture
from viz import surprisal_bars, visible
from viz.examples import number_grid
from wording import words

say = words("ui.example_loss")
_ROWS = 6  # predictions of the sidebar's text in a batch


# ---- one target


def one_target() -> None:
    """softmax(2, 1, 0) with target index 1, counted from 0."""
    from engine.worked_sums import batch_loss, safe_softmax

    read, target = _with_target()
    found = safe_softmax(read.logits)
    loss_value = batch_loss([read.logits], [target]).loss
    raised = list(read.logits)
    raised[target] += 1
    s = Sum()
    z = [read.number(s, x) for x in read.logits]
    off = [
        s.of(x, lambda a, b: a - b, q, z[int(np.argmax(read.logits))])
        for x, q in zip(found.shifted.tolist(), z, strict=True)
    ]
    e = [s.of(x, math.exp, q) for x, q in zip(found.weights.tolist(), off, strict=True)]
    total = s.of(found.total, lambda *v: math.fsum(v), *e)
    p = s.of(float(found.probs[target]), lambda a, b: a / b, e[target], total)
    loss = s.of(loss_value, lambda v: -math.log(v), p, digits=5, places=6)
    s.alike(z, e)
    s.settle()

    def lines() -> None:
        frame.formula(
            rf"\textstyle\sum_j e^{{z_j - m}} &= {frame.added(e, most=3)}",
            rf"&= {total}",
            rf"p_{{{target}}} &= \frac{{{e[target]}}}{{{total}}} = {p}",
            rf"\mathcal{{L}} &= -\ln {p} = {loss}",
        )
        columns: dict[str, list[str] | list[Number]] = {
            say("column.index"): [str(i) for i in range(len(z))],
            say("column.entry"): frame.escaped(read.labels), "$z$": z, "$e^{z-m}$": e,
            "$p$": [Number(x, 3) for x in found.probs.tolist()],
        }  # fmt: skip
        frame.grid(columns)
        after = Number(batch_loss([raised], [target]).loss, 4)
        st.caption(say("raised", before=loss.cell, after=after.cell))

    frame.beside(
        lambda: read.bars(found.probs.tolist(), key="example_target_bars", mark=target), lines, share=0.45
    )
    st.caption(say("index_base"))


def _with_target() -> tuple[Scores, int]:
    """Logits and a target: typed, or a token of the text, and what was expected there."""
    ref = frame.real(needs_text=2)
    if ref is None:
        with frame.inputs():
            read = plain_scores("target_logits", "2, 1, 0", lambda i: f"z{i}")
            n = len(read.names)
            target = inputs.count("target_index", say("target", last=n - 1), min(1, n - 1), 0, n - 1)
        return read, target
    from engine.metrics import next_token_scores
    from engine.worked_sums import with_rest

    trace = frame.looked(ref)
    scores = next_token_scores(trace.logits, trace.ids.tolist())
    n = len(trace.ids)
    worst = int(scores.log_probs.argmin()) + 1  # the token that surprised most
    t = inputs.count("target_place", say("place", last=n - 1), worst, 1, n - 1)
    z, target_id = trace.logits[t - 1].astype(np.float64), int(trace.ids[t])
    names, ids, n_rest = frame.likeliest(ref, z, also=target_id)
    return Scores(names, with_rest(z, ids).tolist(), z.tolist(), ids, n_rest), ids.index(target_id)


# ---- a batch


def batch() -> None:
    """The mean over the rows, as PyTorch's cross_entropy."""
    from engine.worked_sums import batch_loss

    ref = frame.real(needs_text=2)
    if ref is not None:
        trace = frame.looked(ref)
        n = min(len(trace.ids) - 1, _ROWS)
        z = trace.logits[-n - 1 : -1].astype(np.float64)
        targets = [int(i) for i in trace.ids[-n:]]
        names = [visible(token.data) for token in trace.tokens[-n:]]
    else:
        with frame.inputs():
            rows = inputs.table("batch_logits", say("rows"), "2, 1, 0.1\n0.5, 2.5, 0.2")
            targets = inputs.whole_numbers("batch_targets", say("targets"), "0, 1", most=8)
        batch_loss(rows, targets)  # says what does not fit
        z, names = np.array(rows), [str(i) for i in targets]
    found = batch_loss(z, targets)
    s = Sum()
    b = len(targets)
    at = [s.read(x) if ref else s.given(x) for x in found.target_logits.tolist()]
    log_sums = [s.read(x) for x in found.log_sums.tolist()]
    parts = [
        s.of(x, lambda u, v: v - u, a, w, places=6)
        for x, a, w in zip(found.surprisals.tolist(), at, log_sums, strict=True)
    ]
    loss = s.of(found.loss, lambda *v: math.fsum(v) / b, *parts)
    s.alike(at, log_sums, parts)
    s.settle()

    def picture() -> None:
        if ref is not None:
            show(surprisal_bars(names, found.surprisals, mean=found.loss), key="example_batch_bars")
            return
        fig = number_grid(
            z, [str(i) for i in range(b)], [str(k) for k in range(z.shape[1])],
            cells=list(enumerate(targets)), x_title=say("axis.class"), y_title=say("axis.row"),
            alt=say("batch_alt", b=b, v=z.shape[1]),
        )  # fmt: skip
        show(fig, key="example_batch_grid")

    def lines() -> None:
        frame.formula(
            r"-\ln p &= \ln \textstyle\sum_j e^{z_j} - z_y",
            rf"\mathcal{{L}} &= \frac{{{frame.added(parts, most=3)}}}{{{b}}}",
            rf"&= {loss}",
        )
        frame.grid({
            say("column.target"): frame.escaped(names), "$z_y$": at, "$\\ln \\sum_j e^{z_j}$": log_sums,
            "$-\\ln p$": parts,
        })  # fmt: skip

    frame.beside(picture, lines)
    st.caption(say("batch_note"))


# ---- perplexity


def perplexity() -> None:
    """The exp of the mean surprise, never the mean of the exps."""
    from engine.worked_sums import chain, mean_of_perplexities

    ref = frame.real(needs_text=2)
    if ref is not None:
        read = real_sentence(ref)
    else:
        with frame.inputs():
            probs = inputs.numbers("perplexity_probs", say("probs"), "0.9, 0.8, 0.1", most=12)
            _fill(say("never"), "1, 1, 1")
            _fill(say("four"), "0.25, 0.25, 0.25")
        read = Sentence(["–", *(f"p{i + 1}" for i in range(len(probs)))], probs)
    found = chain(read.probs)
    parts_value = [0.0 - x for x in found.log_probs]
    right, wrong = mean_of_perplexities(parts_value)
    s = Sum()
    n = len(read.probs)
    p = [s.read(x) if ref else s.given(x) for x in read.probs]
    parts = [s.of(x, lambda v: 0.0 - math.log(v), q, places=6) for x, q in zip(parts_value, p, strict=True)]
    loss = s.of(found.loss, lambda *v: math.fsum(v) / n, *parts)
    value = s.of(right, math.exp, loss)
    each = [s.of(math.exp(min(x, 700.0)), lambda v: 1 / v, q) for x, q in zip(parts_value, p, strict=True)]
    mean = s.of(wrong, lambda *v: math.fsum(v) / n, *each)
    s.alike(p, parts, each)
    s.settle()

    def lines() -> None:
        frame.formula(
            rf"\mathcal{{L}} &= \frac{{{frame.added(parts, most=3)}}}{{{n}}}",
            rf"&= {loss}",
            rf"\mathrm{{PPL}} &= e^{{{loss}}} = {value}",
            rf"\frac{{1}}{{{n}}} \sum_t \frac{{1}}{{p_t}} &= \frac{{{frame.added(each, most=3)}}}{{{n}}}",
            rf"&= {mean}",
        )
        frame.grid({"$t$": read.places, "$p$": p, "$-\\ln p$": parts, "$1/p$": each})

    frame.beside(
        lambda: surprise_picture(read, parts_value, key="example_perplexity_bars", mean=found.loss),
        lines,
        share=0.46,
    )
    st.caption(say("perplexity_note"))


def _fill(label: str, value: str) -> None:
    def fill() -> None:
        st.session_state["example_perplexity_probs"] = value

    st.button(label, key=f"example_perplexity_{value}", on_click=fill)


# ---- one step down the slope


def gradient() -> None:
    """The slope p - y: what backpropagation hands to the logits, and one step against it."""
    from engine.worked_sums import gradient_step

    with frame.inputs():
        read = plain_scores("target_logits", "2, 1, 0", lambda i: f"z{i}")
        n = len(read.names)
        target = inputs.count("target_index", say("target", last=n - 1), min(1, n - 1), 0, n - 1)
        rate = inputs.number("gradient_rate", say("rate"), 1.0, 0.0, 100.0)
    found = gradient_step(read.logits, target, rate)
    s = Sum()
    z = [s.given(x) for x in read.logits]
    p = [s.read(x) for x in found.probs.tolist()]
    slope = [
        s.of(x, lambda v, y=int(i == target): v - y, p[i]) for i, x in enumerate(found.gradient.tolist())
    ]
    after = [
        s.of(x, lambda a, g: a - rate * g, z[i], slope[i]) for i, x in enumerate(found.logits.tolist())
    ]  # fmt: skip
    s.alike(p, slope, after)
    s.settle()
    loss, new = Number(found.loss, 4), Number(found.new_loss, 4)

    def lines() -> None:
        frame.formula(
            r"\frac{\partial \mathcal{L}}{\partial z_i} &= p_i - y_i",
            rf"z'_{{{target}}} &= {z[target]} - {rate:g} \cdot {slope[target].signed} = {after[target]}",
            rf"\mathcal{{L}} &= {loss} \;\to\; {new}",
        )
        frame.grid({
            say("column.index"): [str(i) for i in range(n)], "$z$": z, "$p$": p,
            "$y$": [str(int(i == target)) for i in range(n)], "$p-y$": slope, "$z'$": after,
            "$p'$": [Number(x, 4) for x in found.new_probs.tolist()],
        })  # fmt: skip

    def picture() -> None:
        read.bars(
            found.probs.tolist(), key="example_gradient_bars", mark=target,
            second=found.new_probs.tolist(), names=(say("before"), say("after")),
        )  # fmt: skip

    frame.beside(picture, lines, share=0.45)
    st.caption(say("gradient_note"))
