"""The arithmetic of one row of attention: a weight, the whole softmax, and weights times values."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine.heads import attention_cell, head_output
from engine.trace import Trace
from ui import worked, worked_attention
from ui.again import Again
from ui.lesson import literal
from ui.words import counted
from viz import format_prob
from wording import words

say = words("ui.attention_arithmetic")

_HEIGHT = 250


@dataclass(frozen=True, eq=False)
class Place:
    """A cell of one head, and the positions that are drawn.

    Attributes:
        passed: the pass over the text.
        names: (T,) visible token texts of the whole pass.
        begin, end: of the drawn positions.
    """

    passed: Again[Trace]
    layer: int
    head: int
    query: int
    key: int
    names: list[str]
    begin: int
    end: int

    @property
    def trace(self) -> Trace:
        """The pass over the text."""
        return self.passed.get()

    def keys(self, *, hidden: bool) -> range:
        """The drawn keys; with or without those that the query can't see."""
        if hidden:
            return range(self.begin, self.end)
        seen = np.flatnonzero(self.seen)
        return range(max(self.begin, int(seen[0])), min(self.end, int(seen[-1]) + 1))

    @property
    def seen(self) -> NDArray[np.bool_]:
        """(T,) which keys the query can see: of a causal model none after it, in a window few before it."""
        return np.asarray(self.trace.visible(self.layer)[self.query])


def draw(place: Place) -> None:
    """One of three views."""
    views = say.table("view")
    view = st.segmented_control(
        say("work_out"),
        list(views),
        default="weight",
        required=True,
        format_func=views.__getitem__,
        key="attention_arithmetic",
        persist_state="session",
    )
    {"weight": _weight, "row": _row, "output": _output}[str(view)](place)


def _weight(place: Place) -> None:
    trace = place.trace
    cell = attention_cell(trace, place.layer, place.head, place.query, place.key)
    d_head, dots = len(cell.products), cell.dots[np.isfinite(cell.row_scores)]
    scale = trace.config.score_scale
    row = worked_attention.written_row(dots.tolist(), d_head, scale=scale)  # the same numbers in every view
    written = worked_attention.written_products(
        trace.q[place.layer, place.head, place.query].tolist(),
        trace.k[place.layer, place.head, place.key].tolist(),
        digits=row.digits,
    )
    left, right = st.columns(2, gap="large")
    with left:
        name = literal(place.names[place.key])
        st.markdown(say("why", weight=format_prob(cell.weight), at=place.key, token=name))
        less = row.subtracted
        st.latex(
            worked.attention(cell.dot, d_head, row.total, scale=scale, subtracted=less, others=row.digits)
        )
        st.caption(" ".join([say("dot"), *_subtracted(less), *_facts(place)]))
    with right:
        st.markdown(say("products"))
        st.dataframe(
            {
                "i": list(range(1, len(cell.products) + 1)),
                "q": written.left.tolist(),
                "k": written.right.tolist(),
                "q · k": written.products.tolist(),
            },
            hide_index=True,
            height=_HEIGHT,
            column_config=_as_written("q", "k", "q · k"),
            key="attention_products",
        )


def _subtracted(less: int) -> list[str]:
    """Why a number stands beside every score in the exponents, if one does."""
    return [say("subtracted", n=f"{less}".replace("-", "−"))] if less else []


def _facts(place: Place) -> list[str]:
    """What else this model does to q and k, in sentences."""
    config, told = place.trace.config, []
    if config.qk_norm:
        told.append(say("qk_norm"))
    if config.positions == "rotary":
        width, apart = config.rotary.width(config.d_head), abs(place.query - place.key)
        told.append(say("turned" if width == config.d_head else "turned_in_part", width=width, n=apart))
    return told + _sharing(place)


def _sharing(place: Place) -> list[str]:
    """Which query heads use the same keys and values, if some do."""
    config = place.trace.config
    group = config.n_head // config.kv_heads
    if group == 1:
        return []
    number = place.head // group
    sharers = {"first": number * group + 1, "last": (number + 1) * group}
    return [say("shared", number=number + 1, kv=config.kv_heads, heads=config.n_head, **sharers)]


def _as_written(*columns: str) -> dict[str, Any]:
    """Columns of numbers that are rounded already, shown with all their digits."""
    return {name: st.column_config.NumberColumn(format="%.15g") for name in columns}


def _row(place: Place) -> None:
    trace = place.trace
    cell = attention_cell(trace, place.layer, place.head, place.query, place.key)
    causal = trace.objective == "clm"
    keys = list(place.keys(hidden=True))
    seen, d_head, scale = np.isfinite(cell.row_scores), len(cell.products), trace.config.score_scale
    written = worked_attention.written_row(cell.dots[seen].tolist(), d_head, scale=scale)
    n = written.digits
    dots = [worked.rounded(x, n) for x in cell.dots.tolist()]
    scores = [worked.rounded(worked.score_of(x, d_head, scale), n) for x in dots]
    score = "÷ √d" if scale is None else f"× {scale!r}"
    power = f"e^(s{worked.minus(written.subtracted)})" if written.subtracted else "e^s"
    powers, weights = np.zeros(len(seen)), np.zeros(len(seen))
    powers[seen], weights[seen] = written.powers, written.weights
    left, right = st.columns([3, 2], gap="large")
    weight = say("column.weight")
    with left:
        st.dataframe(
            {
                say("column.key"): keys,
                say("column.token"): [place.names[j] for j in keys],
                "q · k": [dots[j] for j in keys],
                score: [scores[j] for j in keys],
                say("column.mask"): ["+ 0" if seen[j] else "− ∞" for j in keys],
                power: powers[keys].tolist(),
                weight: weights[keys].tolist(),
            },
            hide_index=True,
            height=_HEIGHT,
            column_config=_as_written("q · k", score, power, weight),
            key="attention_row",
        )
    with right:
        st.latex(worked_attention.row(written, int((~seen).sum())))
        undrawn = int(seen.sum()) - sum(bool(seen[j]) for j in keys)
        if undrawn:
            st.caption(say("undrawn", keys=counted(undrawn, "key")))
        st.caption(" ".join([*_subtracted(written.subtracted), say("mask") if causal else say("no_mask")]))
        window = trace.config.window(place.layer)
        if causal and 0 < window <= place.query:
            st.caption(say("window", n=window))


def _output(place: Place) -> None:
    trace = place.trace
    n_numbers = trace.v.shape[-1]
    if not 1 <= st.session_state.get("attention_dim", 1) <= n_numbers:  # chosen in a wider model
        st.session_state["attention_dim"] = 1
    left, right = st.columns([3, 2], gap="large")
    with right:
        number = int(
            st.number_input(
                say("number", n=n_numbers), 1, n_numbers, key="attention_dim",
                persist_state="session",
            )
        )  # fmt: skip
    found = head_output(trace, place.layer, place.head, place.query, number - 1)
    seen = place.seen
    written = worked_attention.written_products(
        found.weights[seen].tolist(), found.values[seen].tolist(), digits=4
    )
    keys, value = list(place.keys(hidden=False)), say("column.value", number=number)
    rows = [key - int(np.flatnonzero(seen)[0]) for key in keys]
    weight, product = say("column.weight"), say("column.product")
    with left:
        st.dataframe(
            {
                say("column.key"): keys,
                say("column.token"): [place.names[j] for j in keys],
                weight: written.left[rows].tolist(),
                value: written.right[rows].tolist(),
                product: written.products[rows].tolist(),
            },
            hide_index=True,
            height=_HEIGHT,
            column_config=_as_written(weight, value, product),
            key="attention_output",
        )
    with right:
        st.latex(worked_attention.output(written, number))
        st.caption(" ".join([say("output", n=n_numbers), *_sharing(place)]))
