"""Worked examples about five words that may come next: their losses, temperature, softmax twice."""

import math
from typing import Any

import numpy as np
import streamlit as st

from ui import example_frame as frame
from ui import example_inputs as inputs
from ui.example_scores import Scores, five, gathered
from ui.example_sum import Number, Sum
from wording import words

say = words("ui.example_five")


# ---- what each word would cost


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
