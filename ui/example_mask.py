"""Worked example about the causal mask: which places a row of attention may see."""

import math

import numpy as np
import streamlit as st

from ui import example_frame as frame
from ui import example_inputs as inputs
from ui.components import show
from ui.example_sum import Number, Sum
from ui.model_refs import ModelRef
from viz import attention_map, mask_matrix, visible
from wording import words

say = words("ui.example_mask")


def causal_mask() -> None:
    """Row t sees 1 … t."""
    from engine.worked_vectors import causal_scores, pairs_seen

    ref = frame.real(None, needs_text=1)
    if ref is not None:
        _real_mask(ref)
        return
    with frame.inputs():
        n = inputs.count("mask_length", say("length"), 5, 1, 12)
        t = inputs.count("mask_row", say("row", last=n), min(3, n), 1, n)
    seen, whole = pairs_seen(n)
    hidden = n - t
    row = causal_scores(np.zeros((n, n)))[t - 1]

    def picture() -> None:
        show(mask_matrix([str(i) for i in range(1, n + 1)], "clm", query=t - 1), key="example_mask_map")

    def lines() -> None:
        scores = ",\\ ".join(r"-\infty" if np.isneginf(x) else "0" for x in row.tolist())
        zeros = rf" + {hidden} \cdot e^{{-\infty}}" if hidden else ""
        frame.formula(
            rf"s_{{{t}}} &= ({scores})",
            rf"\textstyle\sum_j e^{{s_j}} &= {t} \cdot e^{{0}}{zeros} = {t}",
            rf"a_{{{t}j}} &= \tfrac{{1}}{{{t}}} = {Number(1 / t, 4)}\ (j \le {t})"
            + (r",\quad 0\ (j > " + f"{t})" if hidden else ""),
            rf"\tfrac{{T (T + 1)}}{{2}} &= \tfrac{{{n} \cdot {n + 1}}}{{2}} = {seen}\quad (T^2 = {whole})",
        )
        st.caption(say("mask_note", t=t, next=t + 1) if hidden else say("mask_note_last", t=t))

    frame.beside(picture, lines)


def _real_mask(ref: ModelRef) -> None:
    trace = frame.looked(ref)
    n_layer, n_head = trace.attentions.shape[:2]
    n = min(len(trace.ids), 12)
    with frame.inputs():
        layer, head = frame.which_head(n_layer, n_head)
        t = inputs.count("mask_row", say("row", last=n), min(3, n), 1, n)
    names = [visible(token.data) for token in trace.tokens[:n]]
    row = trace.attentions[layer, head, t - 1, :].astype(np.float64)
    s = Sum()
    shown = [s.read(float(x)) for x in row[:n]]
    rest = s.read(float(row[n:].sum()))
    total = s.of(float(row.sum()), lambda *v: math.fsum(v), *shown, rest)
    s.settle()

    def picture() -> None:
        fig = attention_map(
            names, trace.attentions[layer, head, :n, :n], objective=trace.objective, query=t - 1, width=400
        )
        show(fig, key="example_mask_map")

    def lines() -> None:
        causal, window = trace.objective == "clm", trace.config.window(layer)
        narrow = causal and 0 < window < t
        before = rf",\ j \leq {t - window}" if narrow else ""
        frame.formula(
            rf"a_{{{t}j}} &= 0\quad (j > {t}{before})"
            if causal
            else rf"a_{{{t}j}} &> 0\quad (j \leq {len(row)})",
            rf"\textstyle\sum_j a_{{{t}j}} &= {total}",
        )  # fmt: skip
        table: dict[str, list[str | Number]] = {say("key"): [*frame.escaped(names)], "$a$": [*shown]}
        if len(row) > n:
            table[say("key")].append(say("other_tokens", n=len(row) - n))
            table["$a$"].append(rest)
        frame.grid(table)
        st.caption(say("real_mask_note.causal") if causal else say("real_mask_note.both"))
        if narrow:
            st.caption(say("real_mask_note.window", n=window))

    frame.beside(picture, lines)
