"""Worked examples about scale: the loss as a power law, and the best division of a budget."""

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from ui import example_frame as frame
from ui import example_inputs as inputs
from ui import model_refs, resources
from ui.components import show
from ui.example_sum import Number, Sum, typed
from viz import format_number
from viz.examples import curve_with_point
from wording import words

if TYPE_CHECKING:
    from engine.worked_scaling import Constants

say = words("ui.example_scale")


def _constants() -> "Constants":
    """E, A, α, B, β as typed.

    Raises:
        ValueError: for another number of them, or no law.
    """
    from engine.worked_scaling import PUBLISHED, Constants

    given = [PUBLISHED.floor, PUBLISHED.a, PUBLISHED.alpha, PUBLISHED.b, PUBLISHED.beta]
    found = inputs.numbers("scale_constants", say("constants"), ", ".join(f"{x:g}" for x in given), most=5)
    if len(found) != 5:
        raise ValueError(say("five_constants", n=len(found)))
    return Constants(*found)


def scaling() -> None:
    """L(N, D) = E + A / N^α + B / D^β."""
    from engine.worked_scaling import loss_of

    with frame.inputs():
        n = inputs.positive("scale_n", say("weights"), "70e9")
        d = inputs.positive("scale_d", say("tokens"), "1.4e12")
        law = _constants()
    found, double = loss_of(n, d, law), loss_of(2 * n, d, law)
    s = Sum()
    size = s.of(found.by_size, lambda a: a / n**law.alpha, s.given(law.a))
    data = s.of(found.by_data, lambda b: b / d**law.beta, s.given(law.b))
    total = s.of(found.total, lambda e, a, b: e + a + b, s.given(law.floor), size, data)
    ratio = s.of(2**-law.alpha, lambda a: 2**-a, s.given(law.alpha))
    after = s.of(double.by_size, lambda a, r: a * r, size, ratio)
    s.settle()

    def picture() -> None:
        floor = found.floor + found.by_data
        sizes = np.geomspace(n / 1000, n * 1000, 121)
        losses = [loss_of(x, d, law).total for x in sizes.tolist()]
        fig = curve_with_point(
            sizes, losses, (n, found.total), x_title=say("axis.weights"), y_title=say("axis.loss"),
            point_name=f"{found.total:.3f}", log_x=True, log_y=True,
            level=(floor, say("floor_line")),
            alt=say("scaling_alt", loss=f"{found.total:.3f}"),
        )  # fmt: skip
        show(fig, key="example_scaling_curve")

    def lines() -> None:
        frame.formula(
            r"L(N, D) &= E + \frac{A}{N^{\alpha}} + \frac{B}{D^{\beta}}",
            rf"\frac{{{law.a:g}}}{{({typed(n)})^{{{law.alpha:g}}}}} &= {size}",
            rf"\frac{{{law.b:g}}}{{({typed(d)})^{{{law.beta:g}}}}} &= {data}",
            rf"L &= {law.floor:g} + {size} + {data}",
            rf"&= {total}",
            rf"2^{{-\alpha}} &= 2^{{-{law.alpha:g}}} = {ratio}",
            rf"\frac{{A}}{{(2N)^{{\alpha}}}} &= {size} \cdot {ratio}",
            rf"&= {after}",
        )

    frame.beside(picture, lines)
    st.caption(say("scaling_note"))


def balance() -> None:
    """For a fixed C = 6 N D there is a best N."""
    from engine.worked_scaling import along_budget, loss_of
    from engine.worked_scaling import balance as best_of

    ref = frame.real(None, needs_text=0)
    spent = _spent(ref) if ref is not None else None
    with frame.inputs():
        if ref is not None and spent is not None:
            n, compute = float(ref.n_params), 6.0 * ref.n_params * spent
        else:
            compute = inputs.positive("balance_c", say("budget"), "5.76e23")
            n = inputs.positive("balance_n", say("own_weights"), "280e9")
        law = _constants()
    best, d = best_of(compute, law), compute / 6 / n
    mine = loss_of(n, d, law)
    s = Sum()
    c = s.given(compute) if spent is None else s.read(compute)
    n_best, own = s.read(best.n), s.given(n)
    d_best = s.of(best.d, lambda a, b: a / (6 * b), c, n_best)
    d_own = s.of(d, lambda a, b: a / (6 * b), c, own)
    per = s.of(best.d / best.n, lambda a, b: a / b, d_best, n_best, digits=3)
    s.settle()

    def picture() -> None:
        reach = max(30.0, 2 * max(n / best.n, best.n / n))
        sizes, losses = along_budget(compute, law, reach=reach)
        fig = curve_with_point(
            sizes, losses, (best.n, best.loss), x_title=say("axis.weights_budget"), y_title=say("axis.loss"),
            point_name=say("best"), second=(n, mine.total, say("own")), log_x=True,
            alt=say("balance_alt", n=format_number(best.n)),
        )  # fmt: skip
        show(fig, key="example_balance_curve")

    def lines() -> None:
        frame.formula(
            rf"C &= 6 N D = {c}",
            r"N^* &= \left(\tfrac{\alpha A}{\beta B}\right)^{\frac{1}{\alpha + \beta}}"
            r" \left(\tfrac{C}{6}\right)^{\frac{\beta}{\alpha + \beta}}",
            rf"&= {n_best}",
            rf"D^* &= \frac{{C}}{{6 N^*}} = {d_best}",
            rf"D^* / N^* &= {per},\quad L^* = {Number(best.loss, 4)}",
            rf"N &= {own},\quad D = {d_own}",
            rf"L &= {Number(mine.total, 4)}",
        )

    frame.beside(picture, lines)
    if ref is not None and spent is None:
        st.info(say("no_tokens"))
    st.caption(say("balance_note"))


def _spent(ref: model_refs.ModelRef) -> float | None:
    """Tokens that the model read in training; None if its settings were not kept."""
    from engine.objectives import price

    checkpoint = resources.load(ref)
    if checkpoint.train_config is None or not ref.step:
        return None
    return float(ref.step * price(checkpoint.model.config, checkpoint.train_config).tokens)
