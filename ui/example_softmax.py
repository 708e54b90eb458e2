"""Worked examples about softmax: its safe form, the sigmoid, five words, temperature, softmax twice."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from ui import example_frame as frame
from ui import example_inputs as inputs
from ui.components import show
from ui.example_sum import Number, Sum
from viz import distribution_bars
from viz.examples import curve_with_point
from wording import words

say = words("ui.example_softmax")
FIVE = "3.2, 1.1, 0.4, 2.4, -1"


class Scores(NamedTuple):
    """Tokens and their logits; of a model the likeliest, then one entry for all others.

    Attributes:
        names: of the tokens.
        logits: of the tokens.
        full: (V,) all logits; the same as `logits` where they were typed.
        ids: of the tokens, in `full`.
        n_rest: tokens in the last entry; 0 if there is none.
    """

    names: list[str]
    logits: list[float]
    full: Sequence[float]
    ids: list[int]
    n_rest: int = 0

    @property
    def labels(self) -> list[str]:
        """Names with that of the rest."""
        return [*self.names, frame.rest_name(self.n_rest)] if self.n_rest else self.names

    def bars(self, probs: Sequence[float], *, key: str, mark: int | None = None, **second: Any) -> None:
        """Draw probabilities of all entries."""
        shown = list(probs[: len(self.names)])
        tail = float(probs[-1]) if self.n_rest else 0.0
        fig = distribution_bars(
            self.names, shown, tail=tail, n_tail=self.n_rest, true_index=mark,
            true_note=say("target_mark"), **second,
        )  # fmt: skip
        show(fig, key=key)

    def number(self, s: Sum, value: float) -> Number:
        """A logit as typed, or rounded if a model computed it."""
        return s.read(value) if self.n_rest else s.given(value)


def real_scores(also: int | None = None) -> Scores | None:
    """The model's logits after the text in the sidebar, if the switch is on and all fits."""
    ref = frame.real()
    if ref is None:
        return None
    from engine.worked_sums import with_rest

    z = frame.looked(ref).logits[-1].astype(np.float64)
    names, ids, n_rest = frame.likeliest(ref, z, also=also)
    return Scores(names, with_rest(z, ids).tolist(), z.tolist(), ids, n_rest)


def plain_scores(key: str, default: str, name: Callable[[int], str]) -> Scores:
    """Logits that are typed.

    Raises:
        ValueError: for what is no number.
    """
    z = inputs.numbers(key, say("logits"), default, most=12)
    return Scores([name(i) for i in range(len(z))], z, z, list(range(len(z))))


def five() -> tuple[Scores, Any]:
    """The five words and their logits, shared by the examples about them, and the row for more inputs.

    Raises:
        ValueError: for another number of words than of logits.
    """
    found = real_scores()
    row = frame.inputs()
    if found is not None:
        return found, row
    with row:
        called = inputs.names("five_words", say("words"), say("default.five"))
        z = inputs.numbers("five_logits", say("logits"), FIVE, most=12)
    if len(called) != len(z):
        raise ValueError(say("words_and_logits", words=len(called), logits=len(z)))
    return Scores(called, z, z, list(range(len(z)))), row


# ---- logits to probabilities


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


# ---- five words


def five_words() -> None:
    """Probabilities of the next word, and the loss for each word that might come."""
    from engine.worked_sums import safe_softmax

    read, row = five()
    n = len(read.names)
    with row:
        target = inputs.count("five_target", say("target", last=n - 1), 0, 0, n - 1)
    found = safe_softmax(read.logits)
    s = Sum()
    z = [read.number(s, x) for x in read.logits]
    e = (
        [s.of(math.exp(x), math.exp, q) for x, q in zip(read.logits, z, strict=True)]
        if max(read.logits) < 700
        else []
    )
    p = [s.read(x, 3) for x in found.probs.tolist()]
    losses = [
        s.of(-math.log(x) if x > 0 else math.inf, lambda v: -math.log(v), s.read(x)) for x in found.probs
    ]
    total = s.of(float(found.naive_weights.sum()), lambda *v: math.fsum(v), *e) if e else s.read(math.inf)
    chosen = s.read(float(found.probs[target]))
    if e:
        chosen = s.of(float(found.probs[target]), lambda a, b: a / b, e[target], total)
    loss = s.of(losses[target].value, lambda v: -math.log(v), chosen)
    worst = int(np.argmin(read.logits))
    s.alike(z, e)
    s.settle()

    def lines() -> None:
        written = [rf"p_{{{target}}} &= \frac{{e^{{{z[target]}}}}}{{\sum_j e^{{z_j}}}}"]
        written += [rf"&= \frac{{{e[target]}}}{{{total}}} = {chosen}"] if e else [rf"&= {chosen}"]
        frame.formula(*written, rf"-\ln p_{{{target}}} &= {loss}")
        frame.grid({say("column.word"): frame.escaped(read.labels), "$z$": z, "$p$": p, "$-\\ln p$": losses})

    frame.beside(lambda: read.bars(found.probs.tolist(), key="example_five_bars", mark=target), lines)
    if worst != target and math.isfinite(losses[worst].value):
        gap = Number(read.logits[target] - read.logits[worst], 4)
        called = frame.escaped(read.labels)
        st.caption(say("five_gap", first=called[worst], second=called[target], gap=gap.cell))


# ---- temperature


def temperature() -> None:
    """Divide the logits before softmax: sharper below 1, flatter above."""
    from engine.stages import next_token_distribution

    read, row = five()
    with row:
        t = inputs.number("temperature", say("temperature"), 0.5, 0.0, 10.0, 0.1)
    rows = {
        x: gathered(read, next_token_distribution(read.full, temperature=x).tolist())
        for x in (0.5, 1.0, 2.0, t)
    }
    best = int(np.argmax(read.logits[: len(read.names)]))

    def picture() -> None:
        names = (f"τ = {t:g}", "τ = 1")
        second: dict[str, Any] = {}
        if t != 1:
            second = {"second": rows[1.0][: len(read.names)], "names": names}
            second |= {"second_tail": rows[1.0][-1]} if read.n_rest else {}
        read.bars(rows[t], key="example_temperature_bars", **second)

    def lines() -> None:
        if t > 0:
            _temperature_lines(read, rows[t], best, t)
        else:
            frame.formula(
                r"\tau \to 0:\quad z_i = \max_j z_j \;\Rightarrow\; p_i &= 1", rf"p_{{{best}}} &= 1"
            )
            st.caption(say("greedy"))
        columns: dict[str, list[str | Number]] = {say("column.word"): [*frame.escaped(read.labels)]}
        columns |= {rf"$\tau = {x:g}$": [Number(p, 3) for p in row] for x, row in rows.items()}
        frame.grid(columns)

    frame.beside(picture, lines)
    st.caption(say("temperature_note"))


def gathered(read: Scores, probs: Sequence[float]) -> list[float]:
    """The probabilities of the entries: those of the tokens, and one for all others."""
    from engine.metrics import tail_of

    shown = [float(probs[i]) for i in read.ids]
    return [*shown, tail_of(probs, read.ids)] if read.n_rest else shown


def _temperature_lines(read: Scores, probs: list[float], best: int, t: float) -> None:
    full = np.asarray(read.full, np.float64)
    s = Sum()
    z, top = read.number(s, read.logits[best]), read.number(s, float(full.max()))
    with np.errstate(over="ignore"):
        weights = np.exp((full - full.max()) / t)
    off = s.of((read.logits[best] - full.max()) / t, lambda a, b: (a - b) / t, z, top)
    e = s.of(float(weights[read.ids[best]]), math.exp, off)
    total = s.read(float(weights.sum()))
    p = s.of(probs[best], lambda a, b: a / b, e, total)
    s.settle()
    frame.formula(
        r"p_i &= \frac{e^{(z_i - m) / \tau}}{\sum_j e^{(z_j - m) / \tau}}",
        rf"\textstyle\sum_j e^{{(z_j - {top}) / {t:g}}} &= {total}",
        rf"p_{{{best}}} &= \frac{{{e}}}{{{total}}} = {p}",
    )


# ---- softmax twice


def softmax_twice() -> None:
    """What a loss looks like that is given probabilities and puts them through softmax again."""
    from engine.worked_sums import safe_softmax
    from engine.worked_sums import softmax_twice as both

    read, row = five()
    n = len(read.names)
    with row:
        target = inputs.count("five_target", say("target", last=n - 1), 0, 0, n - 1)
    right, wrong = both(read.full, read.ids[target])
    v = len(read.full)
    once = safe_softmax(read.full).probs
    twice = safe_softmax(once.tolist())
    s = Sum()
    p = s.read(float(once[read.ids[target]]))
    loss = s.of(right, lambda x: -math.log(x), p)
    e = s.of(math.exp(p.value), math.exp, p)
    total = s.read(float(np.exp(once).sum()))
    p2 = s.of(float(twice.probs[read.ids[target]]), lambda a, b: a / b, e, total)
    loss2 = s.of(wrong, lambda x: -math.log(x), p2)
    least = s.read(-math.log(math.e / (math.e + v - 1)))
    s.settle()

    def lines() -> None:
        frame.formula(
            rf"-\ln p_{{{target}}} &= -\ln {p} = {loss}",
            rf"p'_{{{target}}} &= \frac{{e^{{p_{{{target}}}}}}}{{\sum_j e^{{p_j}}}}",
            rf"&= \frac{{{e}}}{{{total}}} = {p2}",
            rf"-\ln p'_{{{target}}} &= {loss2}",
            rf"-\ln \frac{{e}}{{e + {v} - 1}} &= {least}",
        )
        st.caption(say("twice_note", least=least.cell))

    names = (say("once"), say("twice"))
    first, second = gathered(read, once.tolist()), gathered(read, twice.probs.tolist())
    more: dict[str, Any] = {"second": second[:n], "names": names} | (
        {"second_tail": second[-1]} if read.n_rest else {}
    )
    frame.beside(lambda: read.bars(first, key="example_twice_bars", mark=target, **more), lines)
