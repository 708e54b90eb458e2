"""Worked examples about softmax: its safe form, and the sigmoid as softmax over two classes."""

import math

import numpy as np
import streamlit as st

from ui import example_frame as frame
from ui import example_inputs as inputs
from ui.components import show
from ui.example_scores import plain_scores, real_scores
from ui.example_sum import Number, Sum
from viz.examples import curve_with_point
from wording import words

say = words("ui.example_softmax")


def softmax() -> None:
    """The largest logit comes off first: the same result, and safe at 1000."""
    from engine.worked_sums import safe_softmax

    read = real_scores()
    if read is None:
        with frame.inputs():
            read = plain_scores("softmax_logits", "2, 1, 0", lambda i: f"z{i}")
            _preset(say("at_1000"), "softmax_logits", "1000, 999, 998")
            _preset(say("equal"), "softmax_logits", "0, 0")
            _preset(say("back"), "softmax_logits", "2, 1, 0")
    found = safe_softmax(read.logits)
    s = Sum(3)
    z = [read.number(s, x) for x in read.logits]
    top = z[int(np.argmax(read.logits))]
    off = [s.of(x, lambda a, b: a - b, q, top) for x, q in zip(found.shifted.tolist(), z, strict=True)]
    e = [s.of(x, math.exp, q) for x, q in zip(found.weights.tolist(), off, strict=True)]
    total = s.of(found.total, lambda *v: math.fsum(v), *e)
    p = [s.of(x, lambda a, b: a / b, q, total) for x, q in zip(found.probs.tolist(), e, strict=True)]
    s.alike(z, off, e)
    s.settle()
    finite = bool(np.isfinite(found.naive_probs).all())
    naive = [Number(x, 4) for x in found.naive_weights.tolist()]

    def lines() -> None:
        frame.formula(
            rf"m &= \max_j z_j = {top}",
            rf"\textstyle\sum_j e^{{z_j - m}} &= {frame.added(e, most=3)}",
            rf"&= {total}",
            rf"p_i &= \frac{{e^{{z_i - m}}}}{{\sum_j e^{{z_j - m}}}} = \frac{{e^{{z_i - m}}}}{{{total}}}",
        )
        frame.grid({
            say("column.entry"): frame.escaped(read.labels), "$z$": z, "$z-m$": off, "$e^{z-m}$": e, "$p$": p,
            "$e^{z}$": naive,
        })  # fmt: skip
        if finite:
            st.caption(say("naive_fine"))
        else:
            st.warning(say("naive_breaks"))

    frame.beside(lambda: read.bars(found.probs.tolist(), key="example_softmax_bars"), lines, share=0.42)


def _preset(label: str, key: str, value: str) -> None:
    """A button that fills an input."""

    def fill() -> None:
        st.session_state[f"example_{key}"] = value

    st.button(label, key=f"example_{key}_{value}", on_click=fill)


# ---- two classes


def sigmoid() -> None:
    """Softmax over two classes, the second logit fixed at 0."""
    from engine import worked_sums

    read = real_scores()
    if read is not None and len(read.names) > 1:
        z = read.logits[0] - read.logits[1]
        st.markdown(
            say("real_sigmoid", first=frame.escaped(read.names)[0], second=frame.escaped(read.names)[1])
        )
    else:
        z = inputs.number("sigmoid_z", say("logit"), 1.3, -1000, 1000)
    p, two = worked_sums.sigmoid(z), worked_sums.safe_softmax([z, 0.0])
    s = Sum(6)
    logit = s.read(z) if read is not None else s.given(z)
    safe = abs(z) <= 700  # e^z itself can be written
    lines_: list[str] = []
    if safe:
        e = s.of(math.exp(z), math.exp, logit)
        shown = s.of(float(two.probs[0]), lambda v: v / (v + 1), e)
        e_minus = s.of(math.exp(-z), lambda v: math.exp(-v), logit)
        again = s.of(p, lambda v: 1 / (1 + v), e_minus)
        s.settle()
        lines_ += [
            rf"e^{{{logit}}} &= {e},\quad e^0 = 1",
            rf"\mathrm{{softmax}}(z)_1 &= \frac{{{e}}}{{{e} + 1}} = {shown}",
            rf"e^{{-z}} &= {e_minus}",
            rf"\sigma({logit}) &= \frac{{1}}{{1 + {e_minus}}} = {again}",
        ]
    else:
        lines_ += [
            rf"\mathrm{{softmax}}(z)_1 &= {Number(float(two.probs[0]), 6)}",
            rf"\sigma(z) &= {Number(p, 6)}",
        ]

    lines_.insert(0, rf"z &= ({logit},\ 0)")

    def picture() -> None:
        reach = max(6.0, abs(z) * 1.15)
        x = np.linspace(-reach, reach, 201)
        fig = curve_with_point(
            x, [worked_sums.sigmoid(v) for v in x.tolist()], (z, p), x_title=say("axis.logit"),
            y_title=say("axis.probability"), point_name=f"{p:.6f}", alt=say("sigmoid_alt", p=f"{p:.6f}"),
        )  # fmt: skip
        show(fig, key="example_sigmoid_curve")

    frame.beside(picture, lambda: frame.formula(*lines_))
