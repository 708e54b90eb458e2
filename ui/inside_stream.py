"""The residual stream on the screen: how long it is, and how much each half of a block adds."""

from typing import Any

import streamlit as st
from numpy.typing import NDArray

import viz
from engine.inside import Stream, stream
from ui import inside_text, worked_inside
from ui.components import show
from ui.inside_lens import LAYER
from ui.inside_text import Looked
from ui.words import counted
from wording import words

say = words("ui.inside_stream")

# What is shown -> (name of the field, scale, whether there is a value for the embedding)
SHOWN = {
    "length": ("lengths", "size", True),
    "attention": ("attention", "size", False),
    "mlp": ("mlp", "size", False),
    "attention-direction": ("attention_cosine", "signed", False),
    "mlp-direction": ("mlp_cosine", "signed", False),
    "mlp-share": ("mlp_share", "probability", False),
}


@st.cache_resource(max_entries=32, show_spinner=False)
def _stream(_looked: Looked, about: tuple[Any, ...]) -> Stream:
    return stream(_looked.trace)


def draw(looked: Looked) -> None:
    """The whole view."""
    found = _stream(looked, (looked.ref, looked.text, looked.trace.hidden))
    shown = st.segmented_control(
        say("cells"), list(SHOWN), default="length", required=True, key="inside_stream_shown",
        persist_state="session", format_func=say.table("shown").__getitem__,
    )  # fmt: skip
    left, right = st.columns([3, 2], gap="medium")
    n_layer = len(looked.trace.residual) - 1
    inside_text.allowed(LAYER, range(n_layer + 1), n_layer)
    layer = int(st.session_state[LAYER])
    with left:
        _map(looked, found, str(shown), layer)
    with right:
        layer = _one(looked, found, n_layer)
    with left:
        _added(looked, found, layer)


def _block(n: int) -> str:
    return say("block", n=n) if n else say("embedding")


def _map(looked: Looked, found: Stream, shown: str, layer: int) -> None:
    name, scale, with_embedding = SHOWN[shown]
    unit = say(f"unit.{shown}")
    rows, names = looked.rows(), looked.names
    values: NDArray = getattr(found, name)[:, rows[0] : rows[-1] + 1].T  # (P, layers)
    first = 0 if with_embedding else 1
    columns = [n for n in looked.columns(layer) if n >= first]
    values = values[:, [n - first for n in columns]]

    def hover(p: int, column: int) -> str:
        where = say("hover", n=rows[p], token=names[rows[p]])
        return f"{where}\n{_block(columns[column])}\n{unit}: {values[p, column]:.6g}"

    fig = viz.cell_map(
        looked.row_labels(),
        [looked.layers[n] for n in columns],
        values,
        texts=viz.cell_numbers(values),
        hover=[[hover(p, c) for c in range(len(columns))] for p in range(len(rows))],
        scale=scale,
        unit=unit,
        x_title=say("axis.after") if with_embedding else say("axis.in"),
        y_title=say("axis.position"),
        alt=say(
            "alt",
            unit=unit,
            positions=counted(len(rows), "position"),
            layers=counted(len(columns), "layer"),
        ),
        chosen=(looked.position - rows[0], columns.index(layer) if layer >= first else None),
        color=looked.color,
    )

    def press(column: int, row: int) -> None:
        looked.choose(rows[row])
        st.session_state[LAYER] = columns[column]

    with st.container(key="inside_stream_place"):  # frame.css lets it scroll
        show(fig, key="inside_stream_map", on_press=press)
    looked.note_rows()
    looked.note_columns(columns)


def _one(looked: Looked, found: Stream, n_layer: int) -> int:
    """The chosen position: lengths by block; gives the chosen block."""
    layer = int(
        st.select_slider(
            say("look"), range(n_layer + 1), key=LAYER, persist_state="session",
            format_func=_block,
        )
    )  # fmt: skip
    t = looked.position
    st.markdown(say("stream", place=looked.place()))
    show(
        viz.stream_lengths(
            looked.layers, found.lengths[:, t], found.attention[:, t], found.mlp[:, t], chosen=layer
        ),
        key="inside_lengths",
    )
    return layer


def _added(looked: Looked, found: Stream, layer: int) -> None:
    """The chosen block's update worked out."""
    t = looked.position
    if not layer:
        mixed = looked.model.config.mix_previous and looked.position
        st.caption(say("starts_mixed" if mixed else "starts"))
        return
    before, added = float(found.lengths[layer - 1, t]), float(found.attention[layer - 1, t])
    st.markdown(say("added", n=layer))
    if added > 0 and before > 0:
        st.latex(worked_inside.longer(before, added, float(found.attention_cosine[layer - 1, t])))
        st.latex(worked_inside.share(float(found.mlp[layer - 1, t]), added))
    config = looked.model.config
    if config.parallel:
        st.caption(say("cosine_parallel"))
    else:
        st.caption(say("cosine_and_norm") if config.norm_place == "post" else say("cosine"))
