"""The logit lens on the screen: what every layer would predict, and what one of them changed."""

from typing import Any

import numpy as np
import streamlit as st

import viz
from engine.inside import Lens, lens, lens_logits, shift
from engine.metrics import most_likely, softmax_parts, tail_of
from ui import inside_text, worked
from ui.components import show
from ui.inside_text import Looked
from ui.lesson import literal
from ui.words import counted
from wording import words

say = words("ui.inside_lens")

LAYER = "inside_layer"
WIDE = 760  # pixels of a map of many layers
BARS = 5
MOVED = 4  # tokens shown that rose, and that fell


@st.cache_resource(max_entries=512, show_spinner=False)
def _lens_at(_looked: Looked, key: tuple[Any, ...], position: int) -> Lens:
    """One position alone, so that the next choice reads only what it brings in."""
    return lens(_looked.model, _looked.trace, [position])


def _lens(looked: Looked, rows: range) -> Lens:
    """The lens at the positions that are drawn."""
    key = (looked.ref, looked.text, looked.trace.hidden)
    with st.spinner(say("reading")):
        parts = [_lens_at(looked, key, t) for t in rows]
    return Lens(
        np.concatenate([part.positions for part in parts]),
        np.concatenate([part.ids for part in parts], axis=1),
        np.concatenate([part.probs for part in parts], axis=1),
        np.concatenate([part.ranks for part in parts], axis=1),
        np.concatenate([part.true_probs for part in parts], axis=1),
        np.concatenate([part.targets for part in parts]),
    )


def draw(looked: Looked) -> None:
    """The whole view."""
    n_layer = len(looked.trace.residual) - 1
    inside_text.allowed(LAYER, range(n_layer + 1), n_layer)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        shown = st.segmented_control(
            say("cells"), ["guess", "rank"], default="guess", required=True, key="inside_cells",
            persist_state="session", format_func=say.table("cell").__getitem__,
        )  # fmt: skip
        layer = st.select_slider(
            say("look_after"), range(n_layer + 1), key=LAYER, width=320,
            persist_state="session", format_func=lambda n: layer_name(n, n_layer),
        )  # fmt: skip
    many = len(looked.columns(int(layer))) <= n_layer
    if many:
        with st.container(key="inside_lens_place"):  # frame.css lets it scroll
            _map(looked, int(layer), str(shown), width=WIDE)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        if not many:
            _map(looked, int(layer), str(shown))
        _worked(looked, int(layer), n_layer)
    with right:
        _cell(looked, int(layer), n_layer)


def layer_name(layer: int, n_layer: int) -> str:
    """In words: "the embedding", "block 2", "block 4, the output"."""
    if layer == 0:
        return say("layer.embedding")
    return say("layer.last", n=layer) if layer == n_layer else say("layer.block", n=layer)


def _map(looked: Looked, layer: int, shown: str, **more: Any) -> None:
    rows, names = looked.rows(), looked.names
    found, columns = _lens(looked, rows), looked.columns(layer)
    guesses = [[looked.name_of(i) for i in cells[:, 0]] for cells in found.ids.swapaxes(0, 1)]
    ranks, true_probs = found.ranks.T, found.true_probs.T  # (P,L+1)
    best = shown == "guess"
    truths = [looked.name_of(int(t)) if t >= 0 else "" for t in found.targets]

    def hover(p: int, n: int) -> str:
        truth = {"token": truths[p], "rank": ranks[p, n], "p": true_probs[p, n]}
        return "\n".join(
            (
                say("hover.position", n=rows[p], token=names[rows[p]]),
                say("hover.layer", layer=layer_name(n, len(found.ids) - 1)),
                say("hover.guess", token=guesses[p][n], p=found.probs[n, p, 0]),
                say("hover.truth", **truth) if truths[p] else say("hover.no_truth"),
            )
        )

    places = range(len(rows))
    guessed = [p for p in places if not looked.masked or rows[p] == looked.position]
    fig = viz.cell_map(
        looked.row_labels(),
        [looked.layers[n] for n in columns],
        (found.probs[:, :, 0].T if best else true_probs)[:, columns],
        texts=[
            [guesses[p][n] if best else f"{ranks[p, n]:,}" if ranks[p, n] else "" for n in columns]
            for p in places
        ],
        hover=[[hover(p, n) for n in columns] for p in places],
        scale="probability",
        unit=say("unit.guess") if best else say("unit.truth"),
        x_title=say("axis.block_framed") if best else say("axis.block"),
        y_title=say("axis.position") if looked.masked else say("axis.after"),
        alt=say(
            "alt",
            blocks=counted(len(found.ids) - 1, "block"),
            positions=counted(len(rows), "position"),
            position=looked.position,
            token=looked.name_of(_output(looked)),
        ),
        chosen=(looked.position - rows[0], columns.index(layer)),
        framed=[(p, c) for p in guessed for c, n in enumerate(columns) if ranks[p, n] == 1],
        aside=None if looked.masked else (say("truth"), truths),
        color=looked.color,
        **more,
    )

    def press(column: int, row: int) -> None:
        looked.choose(rows[row])
        if column < len(columns):
            st.session_state[LAYER] = columns[column]

    show(fig, key="inside_lens", on_press=press)
    if looked.masked:
        st.caption(say("only_hidden", position=looked.position))
    looked.note_rows()
    looked.note_columns(columns)


def _output(looked: Looked) -> int:
    return int(looked.trace.logits[looked.position].argmax())


def _cell(looked: Looked, layer: int, n_layer: int) -> None:
    """The chosen cell: its whole distribution, what the layer changed, and one probability worked out."""
    st.markdown(say("after", layer=layer_name(layer, n_layer), place=looked.place()))
    logits = lens_logits(looked.model, looked.trace, layer, looked.position)
    before = lens_logits(looked.model, looked.trace, layer - 1, looked.position) if layer else logits
    moved = shift(before, logits, MOVED)
    top = most_likely(moved.after, BARS, also=looked.target)
    ids = top.ids.tolist()
    rank = int((moved.after > moved.after[looked.target]).sum()) + 1 if looked.target is not None else 0
    show(
        viz.distribution_bars(
            [looked.name_of(i) for i in ids],
            top.probs,
            tail=top.tail,
            n_tail=top.n_tail,
            true_index=None if looked.target is None else ids.index(looked.target),
            true_note=say("rank", n=rank),
            second=moved.before[ids] if layer else None,
            second_tail=tail_of(moved.before, ids) if layer else None,
            names=(say("after_it"), say("before_it")),
            colors=(viz.MODEL, viz.NEUTRAL),
        ),
        key="inside_cell",
    )
    if looked.target is not None:
        st.caption(say("marks_hidden") if looked.masked else say("marks_next"))
    _moved(looked, moved, layer, n_layer)


def _worked(looked: Looked, layer: int, n_layer: int) -> None:
    """The probability of the truth in the chosen cell, else of the best guess."""
    logits = lens_logits(looked.model, looked.trace, layer, looked.position)
    target = looked.target if looked.target is not None else int(logits.argmax())
    z, log_sum, _ = softmax_parts(logits, target)
    name = literal(looked.name_of(target))
    st.markdown(say("how_likely", token=name, layer=layer_name(layer, n_layer)))
    st.latex(worked.softmax(z, log_sum, len(logits)))
    st.caption(how_read(looked))


def _moved(looked: Looked, moved: Any, layer: int, n_layer: int) -> None:
    if not layer:
        st.caption(say("nothing_read"))
        return
    ids = [*moved.promoted.tolist(), *reversed(moved.suppressed.tolist())]
    if not ids:
        st.caption(say("nothing_changed", n=layer))
        return
    changes = np.asarray(moved.after - moved.before)[ids]
    st.markdown(say("changed", n=layer))
    show(
        viz.signed_bars(
            [looked.name_of(i) for i in ids],
            changes,
            unit=say("unit.change", n=layer),
            alt=say("alt_changed", n=layer, raised=len(moved.promoted)),
            mono=True,
        ),
        key="inside_moved",
    )


def how_read(looked: Looked) -> str:
    """How a stream that is not the last is turned into logits."""
    config = looked.model.config
    if config.head_transform:
        return say("how_read.transform")
    return say("how_read.pre") if config.norm_place == "pre" else say("how_read.post")
