"""Switching parts off on the screen: what the loss and the next guess are without them together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

import viz
from engine.ablation import Effect, effect, logits_without
from engine.metrics import most_likely, softmax, tail_of
from ui import worked_inside
from ui.components import show
from ui.inside_text import Looked
from ui.words import counted
from wording import words

say = words("ui.inside_off")

BARS = 7
_MANY = 6  # blocks: more rows of buttons get a box of their own to scroll in


def key_of(layer: int) -> str:
    """The widget that switches a block's parts off."""
    return f"inside_off_{layer}"


def options(n_head: int) -> list[str]:
    """What can be switched off in a block, by its name in the session."""
    return [*(f"H{h + 1}" for h in range(n_head)), "attention", "MLP"]


def shown(name: str) -> str:
    """How one of `options` is shown."""
    return say("part.head", n=name[1:]) if name.startswith("H") else say(f"part.{name}")


def all_on(n_layer: int) -> None:
    """For a button: switch everything on."""
    for layer in range(n_layer):
        st.session_state[key_of(layer)] = []


def switch_off(n_layer: int, layer: int, names: Sequence[str]) -> None:
    """For a button: switch off some parts of one block and nothing else."""
    all_on(n_layer)
    st.session_state[key_of(layer)] = list(names)


def draw(looked: Looked) -> None:
    """The whole view."""
    left, right = st.columns(2, gap="medium")
    with left:
        heads, parts = _switches(looked)
    with right:
        if heads or parts:
            about = (looked.ref, looked.text, looked.trace.hidden, looked.position)
            found, logits = _without(looked, about, heads, parts)
            _guess(looked, logits, True)
            _numbers(looked, found, float(found.divergence[looked.position]))
        else:
            _guess(looked, looked.trace.logits[looked.position], False)


@st.cache_resource(max_entries=64, show_spinner=say.later("reading"))
def _without(
    _looked: Looked,
    about: tuple[Any, ...],
    heads: tuple[tuple[int, int], ...],
    parts: tuple[tuple[str, int], ...],
) -> tuple[Effect, NDArray]:
    """What is lost, and the logits (V,) at the chosen position; the pass itself is not kept."""
    cut = logits_without(_looked.model, _looked.trace, heads, parts)
    return effect(_looked.trace, cut), cut[_looked.position].copy()


def _switches(looked: Looked) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[str, int], ...]]:
    """Rows of switches, a block each; gives the heads and the halves that are off."""
    config = looked.model.config
    names = options(config.n_head)
    heads: list[tuple[int, int]] = []
    parts: list[tuple[str, int]] = []
    st.markdown(say("press"))
    with st.container(height=330 if config.n_layer > _MANY else "content", border=False):
        for layer in range(config.n_layer):
            stored = st.session_state.get(key_of(layer)) or []
            if not set(stored) <= set(names):  # chosen in a model of another shape
                st.session_state[key_of(layer)] = [name for name in stored if name in names]
            off = st.pills(
                say("block", n=layer + 1),
                names,
                selection_mode="multi",
                format_func=shown,
                key=key_of(layer),
                persist_state="session",
            )
            heads += [(layer, h) for h in range(config.n_head) if names[h] in off]
            parts += [
                (part, layer) for part, name in (("attention", "attention"), ("mlp", "MLP")) if name in off
            ]
    st.caption(say("parts_biased" if config.biased_out else "parts"))
    st.button(say("all_on"), key="inside_all_on", on_click=all_on, args=(config.n_layer,))
    return tuple(heads), tuple(parts)


def _guess(looked: Looked, without: NDArray, changed: bool) -> None:
    """The distribution at the chosen position, whole and cut."""
    whole = softmax(looked.trace.logits[looked.position])
    top = most_likely(whole, BARS, also=looked.target)
    cut = softmax(without)
    ids = top.ids.tolist()
    rival = int(cut.argmax())
    if rival not in ids:  # what it says instead
        top = most_likely(whole, BARS - 1, also=looked.target)
        ids = [*top.ids.tolist(), rival]
    st.markdown(say("guess", place=looked.place()))
    fig = viz.distribution_bars(
        [looked.name_of(i) for i in ids],
        whole[ids],
        tail=tail_of(whole, ids),
        n_tail=len(whole) - len(ids),
        true_index=None if looked.target is None else ids.index(looked.target),
        true_note=looked.truth_note,
        second=cut[ids] if changed else None,
        second_tail=tail_of(cut, ids) if changed else None,
        names=(say("whole"), say("without")),
        colors=(viz.MODEL, viz.NEUTRAL),
    )
    show(fig, key="inside_off_guess")
    if not changed:
        st.caption(say("nothing_off"))


def _numbers(looked: Looked, found: Effect, divergence: float) -> None:
    """Loss and KL, worked out."""
    if np.isnan(found.before):
        st.caption(say("one_token"))
    else:
        st.latex(worked_inside.change(found.before, found.after))
        n = len(looked.trace.ids) - 1
        of_text = say("loss_of_text", tokens=counted(n, "predicted token"))
        st.caption(say("loss_of_hidden") if looked.masked else of_text)
    st.latex(worked_inside.divergence(divergence))
    st.caption(say("divergence", position=looked.position))
