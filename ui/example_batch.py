"""Worked examples about training data: shift by one, windows, what each objective scores, a blank filled."""

import math
from collections.abc import Sequence

import numpy as np
import streamlit as st

from ui import example_frame as frame
from ui import example_inputs as inputs
from ui import model_refs, passes, session
from ui.components import show, token_strip
from ui.example_scores import Scores
from ui.example_sum import Number, Sum
from ui.example_text import Chip, strip
from viz import visible
from viz.examples import window_map
from wording import words

say = words("ui.example_batch")
_TEXT = 24  # tokens of the sidebar's text that are used
IDS = "4, 8, 15, 16, 23, 42"
LONG = "4, 8, 15, 16, 23, 42, 7, 1, 9, 3, 12, 5"


def _real_ids(ref: model_refs.ModelRef) -> tuple[list[int], list[str]]:
    """Ids and names of the beginning of the sidebar's text."""
    window = passes.window(ref, session.text())
    tokens = [window.tokens[t] for t in window.inner][:_TEXT]
    return [token.id for token in tokens], [visible(token.data) for token in tokens]


# ---- shift by one


def shift() -> None:
    """Inputs without the last id, targets without the first, then flatten and compare."""
    from engine import worked_text

    ref = frame.real(needs_text=2)
    if ref is not None:
        ids, names = _real_ids(ref)
        trace = frame.looked(ref)
        begin = trace.inner.start
        rows, logits = [ids], trace.logits[None, begin : begin + len(ids) - 1]
        v = logits.shape[-1]
    else:
        with frame.inputs():
            rows = inputs.whole_table("shift_ids", say("ids"), IDS)
            largest = max(map(max, rows))
            v = inputs.count("shift_v", say("vocab_size"), max(50, largest + 1), largest + 1, 10_000_000)
        names, logits = [str(i) for i in rows[0]], None
    batch = worked_text.shift(rows)
    found = worked_text.compare(batch, v, logits)
    x, y = batch.inputs[0].tolist(), batch.targets[0].tolist()

    def picture() -> None:
        st.markdown(say("inputs"))
        strip(names[:-1], x, key="example_shift_x", label=say("inputs"), values=ref is not None)
        st.markdown(say("targets"))
        strip(names[1:], y, key="example_shift_y", label=say("targets"), values=ref is not None)
        frame.grid({
            "$t$": [str(t) for t in range(1, min(len(x), 6) + 1)],
            say("column.reads"): frame.escaped([_prefix(names, t) for t in range(1, min(len(x), 6) + 1)]),
            say("column.guesses"): frame.escaped(names[1:7]),
        })  # fmt: skip

    def lines() -> None:
        b, t = batch.inputs.shape
        n = b * t
        frame.formula(
            rf"\mathbf{{x}}, \mathbf{{y}} &: {b} \times {t}\qquad ({t} = {t + 1} - 1)",
            rf"L &: B \times T \times V = {b} \times {t} \times {v}",
            rf"L_{{\text{{flat}}}} &: {n} \times {v},\quad \mathbf{{y}}_{{\text{{flat}}}} : {n}",
            rf"\mathcal{{L}} &= -\tfrac{{1}}{{{n}}} \textstyle\sum_{{b,t}} \ln p_{{b,t,y}}",
            rf"&= {Number(found.loss, 4)}",
            rf"\ln V &= \ln {v} = {Number(math.log(v), 4)}",
        )
        st.caption(say("shift_real") if ref is not None else say("shift_random"))

    frame.beside(picture, lines)


def _prefix(names: Sequence[str], t: int) -> str:
    shown = list(names[max(0, t - 4) : t])
    return ("… " if t > 4 else "") + " ".join(shown)


# ---- windows


def windows() -> None:
    """Windows that begin anywhere with equal chance, stacked."""
    from engine.worked_text import draw_windows

    ref = frame.real(None, needs_text=3)
    ids, names = ([], []) if ref is None else _real_ids(ref)
    with frame.inputs():
        if ref is None:
            ids = inputs.whole_numbers("windows_ids", say("text_ids"), LONG, most=40)
            names = [str(i) for i in ids]
        most = max(1, len(ids) - 1)
        t = inputs.count("windows_t", say("context"), min(4, most), 1, most)
        b = inputs.count("windows_b", say("batch_size"), 3, 1, 8)
        seed = inputs.count("windows_seed", say("seed"), 0, 0, 9999)
    found = draw_windows(ids, t, b, seed)
    starts, n = found.starts.tolist(), len(ids)

    def picture() -> None:
        show(window_map(names, starts, t, last_start=n - t - 1), key="example_windows_map")

    def lines() -> None:
        frame.formula(
            r"i &\sim \text{U}\{0, \dots, N - T - 1\}",
            rf"&= \text{{U}}\{{0, \dots, {n - t - 1}\}}",
            rf"P(i) &= \tfrac{{1}}{{N - T}} = \tfrac{{1}}{{{n} - {t}}} = {Number(1 / found.n_starts, 4)}",
            rf"\mathbf{{x}}, \mathbf{{y}} &: B \times T = {b} \times {t}",
        )
        frame.grid({
            "$i$": [str(i) for i in starts],
            "$\\mathbf{x} = s_i \\dots s_{i+T-1}$": [_row(row) for row in found.batch.inputs.tolist()],
            "$\\mathbf{y} = s_{i+1} \\dots s_{i+T}$": [_row(row) for row in found.batch.targets.tolist()],
        })  # fmt: skip

    frame.beside(picture, lines)
    st.caption(say("windows_note", n=n, t=t, last=n - t - 1))


def _row(ids: Sequence[int]) -> str:
    shown = [str(i) for i in ids]
    return " ".join(shown if len(shown) <= 8 else [*shown[:6], "…", shown[-1]])


# ---- what is scored


def signal() -> None:
    """15 % of the positions against all of them."""
    from engine.mask_draws import chance_of_none, draw_masks

    ref = frame.real(None, needs_text=2)
    ids, names = ([], []) if ref is None else _real_ids(ref)
    with frame.inputs():
        if ref is None:
            n = inputs.count("signal_n", say("tokens"), 20, 2, 60)
            ids, names = list(range(n)), [str(i + 1) for i in range(n)]
        p = inputs.number("signal_p", say("mask_prob"), 0.15, 0.01, 1.0, 0.01)
        seed = inputs.count("signal_seed", say("seed"), 0, 0, 9999)
    n = len(ids)
    mask_id = max(ids) + 1
    scored = draw_masks(ids, mask_prob=p, mask_id=mask_id, seed=seed, only_mask=True).scored
    s = Sum()
    chance = s.of(chance_of_none(n, p), lambda a: (1 - a) ** n, s.given(p))
    passes = s.of(1 / p, lambda a: 1 / a, s.given(p))
    s.settle()

    def picture() -> None:
        chips = [[Chip(i, name.encode())] for i, name in zip(ids, names, strict=True)]
        st.markdown(say("masked_scores", k=len(scored), n=n))
        token_strip(
            chips, key="example_signal_mlm", hidden=scored, label=say("masked_scores", k=len(scored), n=n),
            values=["?" if i in scored else "–" for i in range(n)],
        )  # fmt: skip
        st.markdown(say("causal_scores", k=n - 1, n=n))
        token_strip(
            chips, key="example_signal_clm", label=say("causal_scores", k=n - 1, n=n),
            values=["–", *(["?"] * (n - 1))],
        )  # fmt: skip

    def lines() -> None:
        frame.formula(
            rf"\mathbb{{E}}[\text{{MLM}}] &= p \cdot T = {p:g} \cdot {n} = {Number(p * n, 4)}",
            rf"\text{{CLM}} &= T - 1 = {n - 1}",
            rf"P(0) &= (1 - p)^T = {1 - p:.6g}^{{{n}}}",
            rf"&= {chance}",
            rf"1 / p &= 1 / {p:g} = {passes}",
        )
        st.caption(say("signal_note"))

    frame.beside(picture, lines)


# ---- a blank


def fill_blank() -> None:
    """Once upon a time, there was a ___."""
    read, target, probs = _blank()
    s = Sum()
    p = [s.read(x) if read.n_rest else s.given(x) for x in probs]
    total = s.of(math.fsum(probs), lambda *v: math.fsum(v), *p)
    value = probs[target]
    loss = s.of(-math.log(value) if value > 0 else math.inf, lambda v: -math.log(v), p[target])
    s.alike(p)
    losses = [
        s.of(-math.log(x) if x > 0 else math.inf, lambda v: -math.log(v), q)
        for x, q in zip(probs, p, strict=True)
    ]
    s.settle()

    def lines() -> None:
        frame.formula(
            rf"\textstyle\sum_v p_v &= {frame.added(p, most=3)} = {total}",
            rf"\mathcal{{L}} &= -\ln p_{{{target}}} = -\ln {p[target]} = {loss}",
        )
        frame.grid({say("column.word"): frame.escaped(read.labels), "$p$": p, "$-\\ln p$": losses})

    frame.beside(lambda: read.bars(probs, key="example_blank_bars", mark=target), lines)
    st.caption(say("blank_note"))


def _blank() -> tuple[Scores, int, list[float]]:
    """Words for the blank, which one was hidden, and their probabilities."""
    ref = frame.real("mlm", needs_text=2)
    if ref is None:
        with frame.inputs():
            called = inputs.names("blank_words", say("words"), say("default.blank"))
            probs = inputs.numbers("blank_probs", say("probs"), "0.9, 0.05, 0.05", most=12)
            n = len(called)
            target = inputs.count("blank_target", say("hidden_word", last=n - 1), 0, 0, n - 1)
        _check_blank(called, probs)
        st.markdown(say("blank_text"))
        return Scores(called, [], [], list(range(n))), target, probs
    from engine.metrics import softmax
    from ui.example_scores import gathered

    inner = passes.window(ref, session.text()).inner
    first, last = inner.start, inner.stop - 1
    middle = (first + last + 1) // 2
    at = inputs.count("blank_at", say("hidden_place", first=first, last=last), middle, first, last)
    trace = frame.looked(ref, hidden=(at,))
    z, hidden = trace.logits[at].astype(np.float64), trace.tokens[at].id
    token_strip(
        passes.window(ref, session.text()).segments,
        key="example_blank_strip",
        hidden=[at],
        label=say("text"),
    )
    names, ids, n_rest = frame.likeliest(ref, z, also=hidden)
    read = Scores(names, [], z.tolist(), ids, n_rest)
    return read, ids.index(hidden), gathered(read, softmax(z).tolist())


def _check_blank(called: Sequence[str], probs: Sequence[float]) -> None:
    from engine.worked_sums import probabilities

    probabilities(probs)
    if len(called) != len(probs):
        raise ValueError(say("words_and_probs", words=len(called), probs=len(probs)))
    if abs(math.fsum(probs) - 1) > 1e-9:
        raise ValueError(say("not_one", total=math.fsum(probs)))
