"""Worked example about vectors: a row looked up by one-hot times matrix."""

import streamlit as st

from ui import example_frame as frame
from ui import example_inputs as inputs
from ui import resources
from ui.components import show
from ui.example_sum import Number, typed
from ui.model_refs import ModelRef
from viz import visible
from viz.examples import number_grid
from wording import words

say = words("ui.example_vectors")
_COLUMNS = 4  # numbers of a real vector that are shown


def one_hot() -> None:
    """One-hot × E is a row of E."""
    from engine import worked_vectors

    ref = frame.real(None, needs_text=1)
    if ref is not None:
        _real_row(ref)
        return
    with frame.inputs():
        table = worked_vectors.matrix(
            inputs.table("one_hot_table", say("embedding"), "0.5, -1\n2, 0.3\n-0.7, 1.2")
        )
        index = inputs.count("one_hot_index", say("index", last=len(table) - 1), 1, 0, len(table) - 1)
    x = worked_vectors.one_hot(index, len(table))
    row = worked_vectors.look_up(table, index)

    def picture() -> None:
        names = [f"{i} · {bit}" for i, bit in enumerate(x)]
        fig = number_grid(
            table, names, [str(k) for k in range(table.shape[1])], row=index, y_title=say("rows"),
            alt=say("row_alt", index=index),
        )  # fmt: skip
        show(fig, key="example_one_hot_grid")

    def lines() -> None:
        written = []
        for k in range(table.shape[1]):
            terms = [rf"{bit} \cdot {_bracket(v)}" for bit, v in zip(x, table[:, k].tolist(), strict=True)]
            written.append(rf"(\mathbf{{x}} E)_{{{k}}} &= {' + '.join(terms)} = {typed(row[k])}")
        frame.formula(
            rf"\mathbf{{x}} &= ({', '.join(map(str, x))})", *written,
            rf"\mathbf{{x}} E &= ({', '.join(typed(v) for v in row)}) = E_{{{index}}}",
        )  # fmt: skip

    frame.beside(picture, lines)
    st.caption(say("one_hot_note"))


def _bracket(x: float) -> str:
    return f"({typed(x)})" if x < 0 else typed(x)


def _real_row(ref: ModelRef) -> None:
    trace = frame.looked(ref)
    t = inputs.count("one_hot_position", say("position", last=len(trace.ids) - 1), 0, 0, len(trace.ids) - 1)
    vectors = resources.embedding_of(ref)
    v, d = vectors.shape
    token_id = int(trace.ids[t])
    first = min(max(token_id - 1, 0), v - 3)
    shown = vectors[first : first + 3, :_COLUMNS]
    name = visible(trace.tokens[t].data)

    def picture() -> None:
        names = [f"{i} · {int(i == token_id)}" for i in range(first, first + 3)]
        fig = number_grid(
            shown, names, [str(k) for k in range(shown.shape[1])], row=token_id - first, y_title=say("rows"),
            alt=say("row_alt", index=token_id),
        )  # fmt: skip
        show(fig, key="example_one_hot_grid")

    def lines() -> None:
        row = ", ".join(str(Number(float(x), 4)) for x in vectors[token_id, :_COLUMNS])
        row += r", \dots" if d > _COLUMNS else ""
        frame.formula(
            rf"x_{{{token_id}}} &= 1,\quad x_i = 0\ (i \neq {token_id})",
            rf"(\mathbf{{x}} E)_k &= \sum_{{i=0}}^{{{v - 1}}} x_i E_{{ik}} = E_{{{token_id} k}}",
            rf"\mathbf{{x}} E &= ({row})",
        )

    frame.beside(picture, lines)
    st.caption(say("real_row_note", token=frame.escaped([name])[0], v=v, d=d, shown=min(d, _COLUMNS)))
