"""Worked example about attention: small enough for paper, or one head of a model."""

import math
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from ui import example_frame as frame
from ui import example_inputs as inputs
from ui.components import show
from ui.example_sum import Number, Sum, typed
from ui.model_refs import ModelRef
from ui.worked import LARGEST, score_of
from viz import attention_map, distribution_bars, visible
from wording import words

if TYPE_CHECKING:
    from engine.worked_vectors import TinyPass, TinyWeights

say = words("ui.example_attention")
_KEYS = 6  # tokens of a real text in one row of attention
_WIDTH = 400  # pixels of a map, so much as half of the examples' page has


def tiny_attention() -> None:
    """From two ids to three probabilities, every number on paper."""
    ref = frame.real(None, needs_text=1)
    if ref is not None:
        _real_head(ref)
        return
    from engine import worked_vectors

    weights, ids = _tiny_inputs()
    found = worked_vectors.tiny_pass(weights, ids)
    largest = float(np.max([found.scaled[-1].max(), found.logits.max()]))
    if not largest <= LARGEST:  # also where nothing finite came out
        raise ValueError(say("too_large", value=largest, most=LARGEST))

    def picture() -> None:
        names = [f"{t + 1} · id {i}" for t, i in enumerate(ids)]
        fig = attention_map(names, found.attention, objective="mlm", query=len(ids) - 1, width=300)
        show(fig, key="example_tiny_map")
        fig = distribution_bars([f"id {i}" for i in range(len(found.probs))], found.probs, tail=0, n_tail=0)
        show(fig, key="example_tiny_bars")

    frame.beside(picture, lambda: _tiny_lines(found, weights), share=0.39)
    st.caption(say("tiny_note"))


_SEED = 5  # its attention is neither equal nor all on one token
_TINY = ("tiny_embedding", "tiny_weight", "tiny_bias")


def _tiny_texts(seed: int) -> list[str]:
    """The random beginnings of a seed as they are typed, to two decimals."""
    from engine.worked_vectors import tiny_weights

    made = tiny_weights(seed)
    return [
        "\n".join(", ".join(typed(round(x, 2) + 0.0) for x in row) for row in part)
        for part in (made.embedding.tolist(), made.weight.tolist(), [made.bias.tolist()])
    ]


def _new_tiny() -> None:
    state = st.session_state
    state["_example_tiny_seed"] = state.get("_example_tiny_seed", _SEED) + 1
    for key, written in zip(_TINY, _tiny_texts(state["_example_tiny_seed"]), strict=True):
        state[f"example_{key}"] = written


def _tiny_inputs() -> "tuple[TinyWeights, list[int]]":
    from engine.worked_vectors import TinyWeights, matrix

    texts = _tiny_texts(_SEED)
    columns = st.columns([1, 1, 1, 1], vertical_alignment="top")
    with columns[0]:
        embedding = matrix(inputs.table(_TINY[0], say("embedding"), texts[0]))
    with columns[1]:
        weight = matrix(inputs.table(_TINY[1], say("linear_weight"), texts[1]))
    with columns[2]:
        bias = np.array(inputs.numbers(_TINY[2], say("linear_bias"), texts[2]))
    with columns[3]:
        ids = inputs.whole_numbers("tiny_ids", say("ids"), "0, 1", most=6)
        st.button(say("random"), key="example_tiny_random", on_click=_new_tiny, help=say("random_help"))
    if weight.shape != embedding.shape or len(bias) != len(weight):
        raise ValueError(say("shapes", v=len(embedding), d=embedding.shape[1]))
    return TinyWeights(embedding, weight, bias), ids


def _tiny_lines(found: "TinyPass", weights: "TinyWeights") -> None:
    """The row of the last token, whose context gives the logits."""
    t, d = len(found.embedded) - 1, found.embedded.shape[1]
    s = Sum(3)
    x = [[s.given(v) for v in row] for row in found.embedded.tolist()]
    w = [[s.given(v) for v in row] for row in weights.weight.tolist()]
    b = [s.given(v) for v in weights.bias.tolist()]
    dots = [s.of(found.scores[t, j], _dot, *x[t], *x[j]) for j in range(t + 1)]
    scaled = [s.of(found.scaled[t, j], lambda v: v / math.sqrt(d), dots[j]) for j in range(t + 1)]
    powers = [s.of(math.exp(found.scaled[t, j]), math.exp, scaled[j]) for j in range(t + 1)]
    total = s.of(math.fsum(p.value for p in powers), lambda *v: math.fsum(v), *powers)
    a = [s.of(found.attention[t, j], lambda p, q: p / q, powers[j], total) for j in range(t + 1)]
    context = [
        s.of(found.context[t, k], _dot, *a, *(x[j][k] for j in range(t + 1))) for k in range(d)
    ]  # fmt: skip
    logits = [
        s.of(z, lambda *v: _dot(*v[:-1]) + v[-1], *context, *w[i], b[i])
        for i, z in enumerate(found.logits.tolist())
    ]
    e = [s.of(math.exp(z.value), math.exp, z) for z in logits]
    e_total = s.of(math.fsum(v.value for v in e), lambda *v: math.fsum(v), *e)
    p = [s.of(v, lambda q, r: q / r, e[i], e_total) for i, v in enumerate(found.probs.tolist())]
    s.run(*p)
    last = t + 1
    frame.formula(
        *(
            rf"q_{{{last}}} \cdot k_{{{j + 1}}} &= {_dots(x[t], x[j])} = {dots[j]}"
            for j in range(min(t + 1, 3))
        ),
        rf"s &= \tfrac{{q_{{{last}}} \cdot k}}{{\sqrt{{{d}}}}} = ({_list(scaled)})",
        rf"e^{{s}} &= ({_list(powers)}),\quad \Sigma = {total}",
        rf"a &= ({_list(a)})",
        *(
            rf"c_{{{k}}} &= {_dots(a, [x[j][k] for j in range(t + 1)])} = {context[k]}"
            for k in range(min(d, 3))
        ),
        *(
            rf"z_{{{i}}} &= {_dots(context, w[i])} + {b[i].signed} = {logits[i]}"
            for i in range(min(len(logits), 4))
        ),
        rf"e^{{z}} &= ({_list(e)}),\quad \Sigma = {e_total}",
        rf"p &= ({_list(p)})",
        small=True,
    )


def _dot(*values: float) -> float:
    half = len(values) // 2
    return math.fsum(a * b for a, b in zip(values[:half], values[half:], strict=True))


def _dots(left: list[Number], right: list[Number]) -> str:
    parts = [rf"{a.signed} \cdot {b.signed}" for a, b in zip(left, right, strict=True)]
    return " + ".join(parts if len(parts) < 4 else [*parts[:2], r"\dots", parts[-1]])


def _list(numbers: list[Number]) -> str:
    return r",\ ".join(map(str, numbers))


def _real_head(ref: ModelRef) -> None:
    """The same lines for one head of the model: the last token's row."""
    from engine.heads import attention_cell

    trace = frame.looked(ref)
    n_layer, n_head = trace.attentions.shape[:2]
    with frame.inputs():
        layer, head = frame.which_head(n_layer, n_head)
    t, scale = trace.inner.stop - 1, trace.config.score_scale  # the text's last token
    cell = attention_cell(trace, layer, head, t, t)
    order = np.argsort(-cell.row_weights, kind="stable")[:_KEYS]
    keys, d = sorted(j for j in order.tolist() if np.isfinite(cell.row_scores[j])), trace.q.shape[-1]
    n_others = int(np.isfinite(cell.row_scores).sum()) - len(keys)
    others = float(np.delete(np.exp(cell.row_scores), keys).sum())
    s = Sum()
    dots = [s.read(float(cell.dots[j])) for j in keys]
    scores = [
        s.of(float(cell.row_scores[j]), lambda v: score_of(v, d, scale), q)
        for j, q in zip(keys, dots, strict=True)
    ]
    powers = [s.of(math.exp(q.value), math.exp, q) for q in scores]
    rest = s.read(others)
    total = s.of(cell.row_total, lambda *v: math.fsum(v), *powers, rest)
    s.alike(dots, scores, powers)
    a = [
        s.of(float(cell.row_weights[j]), lambda p, q: p / q, p, total)
        for j, p in zip(keys, powers, strict=True)
    ]
    s.settle()
    names = [visible(token.data) for token in trace.tokens]

    def picture() -> None:
        first = max(0, t + 1 - 12)
        fig = attention_map(
            names[first:], trace.attentions[layer, head, first:, first:], objective=trace.objective,
            query=t - first, first=first, width=_WIDTH,
        )  # fmt: skip
        show(fig, key="example_tiny_map")

    def lines() -> None:
        left = rf" + {rest}" if n_others else ""
        dot = rf"q_{{{t}}} \cdot k_j"
        score = rf"\tfrac{{{dot}}}{{\sqrt{{{d}}}}}"
        if scale is not None:
            score = dot if scale == 1 else rf"{scale!r}\,({dot})"
        frame.formula(
            rf"s_j &= {score}",
            r"\Sigma &= \textstyle\sum_j e^{s_j}",
            rf"&= {frame.added(powers, most=3)}{left}",
            rf"&= {total}",
            r"a_j &= e^{s_j} / \Sigma",
        )
        frame.grid({
            say("key"): frame.escaped([f"{j} {names[j]}" for j in keys]), "$q \\cdot k$": dots, "$s$": scores,
            "$e^s$": powers, "$a$": a,
        })  # fmt: skip
        if left:
            st.caption(say("other_keys", n=n_others))

    frame.beside(picture, lines)
