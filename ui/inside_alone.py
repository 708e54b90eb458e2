"""Every part of a model switched off alone, on the screen: which of them the loss needs most."""

import time
from typing import Any

import numpy as np
import streamlit as st

import viz
from engine.ablation import Alone, each_alone, logits_without, most_lost
from engine.plan import FLOPS_PER_SECOND
from ui import choice, inside_text, lesson, passes, resources
from ui.components import show
from ui.inside_off import options, shown, switch_off
from ui.inside_text import Looked
from ui.model_refs import ModelRef
from ui.words import duration
from wording import words

say = words("ui.inside_alone")

MOST = 128  # tokens read while every part is tried alone
MOST_OF_LARGE = 64  # the same of a large model
SECONDS_PER_BLOCK = 0.0006  # what a block costs however few the tokens are
_WANTED = "_inside_ranking_wanted"  # what all parts are to be tried of
_BEGUN = "_inside_ranking_begun"  # that, and what was found so far
_THEN = "_inside_ranking_then"  # of what the most missed head is to be switched off afterwards
_READY = "_inside_ranking_ready"


class _NotYet(Exception):
    """Nobody has tried every part of this text alone yet."""


@st.cache_resource(max_entries=32, show_spinner=False)
def _alone(
    ref: ModelRef, text: str, hidden: tuple[int, ...], _found: list[Alone] | None = None
) -> list[Alone]:
    """What every part alone does, kept for all people once somebody has `_found` it."""
    if _found is None:
        raise _NotYet  # an error is not kept
    return _found


def _known(about: tuple[ModelRef, str, tuple[int, ...]]) -> list[Alone] | None:
    try:
        return _alone(*about)
    except _NotYet:
        return None


def most_read(ref: ModelRef) -> int:
    """Tokens that are read while every part is tried alone."""
    return MOST_OF_LARGE if ref.large else MOST


def seconds(looked: Looked) -> float:
    """How long trying every part alone will take, about: each pass begins at its part's block."""
    config, ref = looked.model.config, looked.ref
    tokens = min(len(looked.trace.ids), most_read(ref))
    n = config.n_layer * (config.n_head + 2)
    inside = ref.n_params - config.vocab_size * config.d_model  # a tied head counts once
    # few tokens at once: half the speed of training
    work = 2 * tokens * n * (inside / 2 + config.vocab_size * config.d_model)
    return 2 * work / FLOPS_PER_SECOND + n * config.n_layer / 2 * SECONDS_PER_BLOCK


def want_the_most_missed(ref: ModelRef, text: str) -> None:
    """For a button: try every part alone, then switch off the head without which the loss grows most.

    Of a masked model the last token is hidden. The page has to look at the same text.

    Raises:
        ValueError: if the model can't read the text, or predicts nothing in it.
    """
    whole = passes.traced(ref, text)
    hidden = (whole.inner.stop - 1,) if whole.objective == "mlm" else ()
    if hidden:
        strip = lesson.strip_of(ref, text)
        choice.hold(inside_text.STRIP, hidden[0] + strip.n_greyed, about=(ref, text))
    about = (ref, text, hidden)
    st.session_state[_WANTED] = st.session_state[_THEN] = about
    if (found := _known(about)) is not None:
        without_the_most_missed(about, found)


def prepare() -> None:
    """Before anything is drawn: switch the most missed head off, if that was waited for and is known now."""
    about = st.session_state.get(_THEN)
    if st.session_state.pop(_READY, False) and about is not None and (found := _known(about)) is not None:
        without_the_most_missed(about, found)


def without_the_most_missed(about: tuple[ModelRef, str, tuple[int, ...]], found: list[Alone]) -> None:
    """Switch off the head that is missed most, and go where it is missed most; before the page is drawn."""
    st.session_state.pop(_THEN, None)
    ref, text, hidden = about
    whole = passes.traced(ref, text, hidden=hidden)
    head = max((a for a in found if a.kind == "head"), key=lambda a: a.change)
    n_layer, n_head = whole.attentions.shape[:2]
    switch_off(n_layer, head.layer, [options(n_head)[head.head]])
    cut = logits_without(resources.load(ref).model, whole, [(head.layer, head.head)])
    position = hidden[0] if hidden else most_lost(whole, cut)
    choice.hold(inside_text.STRIP, position + lesson.strip_of(ref, text).n_greyed, about=(ref, text))


def _want_ranking(about: Any) -> None:
    st.session_state[_WANTED] = about


def _stop() -> None:
    for name in (_WANTED, _THEN):
        st.session_state.pop(name, None)


def draw(looked: Looked) -> None:
    """Every part alone, on demand: the change of the loss, as a map and as a table that sorts."""
    st.subheader(say("matters"))
    config = looked.model.config
    n = config.n_layer * (config.n_head + 2)
    about = (looked.ref, looked.text, looked.trace.hidden)
    found = _known(about)
    if found is None and st.session_state.get(_WANTED) == about:
        try:
            found = _try_all(looked, n)
        except ValueError as error:
            _stop()
            st.info(lesson.literal(str(error)))
            return
        _alone(*about, found)
    if found is not None and st.session_state.get(_THEN) == about:
        st.session_state[_READY] = True  # the switches were drawn already: the next run begins with them
        st.rerun()
    if found is None:
        long = seconds(looked)
        st.write(say("passes_long", n=n, long=duration(long)) if long > 5 else say("passes", n=n))
        st.button(say("try_all"), key="inside_rank", on_click=_want_ranking, args=(about,))
        return
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _ranking_map(found, config.n_layer, config.n_head)
    with right:
        rows = sorted(found, key=lambda a: -a.change)
        st.dataframe(
            {
                say("column.block"): [a.layer + 1 for a in rows],
                say("column.part"): [shown(part_name(a)) for a in rows],
                say("column.change"): [a.change for a in rows],
            },
            hide_index=True,
            column_config={say("column.change"): st.column_config.NumberColumn(format="%+.4g")},
            height=250,
            key="inside_rank_table",
        )
    if len(looked.trace.ids) > (most := most_read(looked.ref)):
        st.caption(say("read_around", n=most) if looked.masked else say("read_here", n=most))


def part_name(alone: Alone) -> str:
    """A head by its number from 1, or the half of the block, as in `options`."""
    return {"head": f"H{alone.head + 1}", "attention": "attention", "mlp": "MLP"}[alone.kind]


def _try_all(looked: Looked, n: int) -> list[Alone]:
    """One part after the other; what was found is kept when the page is drawn anew meanwhile."""
    about = (looked.ref, looked.text, looked.trace.hidden)
    if st.session_state.get(_BEGUN, (None,))[0] != about:
        st.session_state[_BEGUN] = (about, [])
    found: list[Alone] = st.session_state[_BEGUN][1]
    passing = each_alone(looked.model, looked.trace, most=most_read(looked.ref), skip=len(found))
    place = st.empty()
    with place.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(len(found) / n, say("trying"))
        st.button(say("stop"), key="inside_rank_stop", on_click=_stop, icon=":material/stop:")
    begin, before, told = time.monotonic(), len(found), 0.0
    for alone in passing:
        found.append(alone)
        now = time.monotonic()
        if now - told > 0.2:
            told = now
            left = (now - begin) / (len(found) - before) * (n - len(found))
            many = {"done": len(found), "n": n}
            words_ = say("tried_left", **many, left=duration(left)) if left > 5 else say("tried", **many)
            bar.progress(len(found) / n, words_)
    place.empty()
    del st.session_state[_BEGUN]
    return list(found)


def _ranking_map(found: list[Alone], n_layer: int, n_head: int) -> None:
    names = options(n_head)
    grid = np.zeros((n_layer, len(names)))
    for alone in found:
        grid[alone.layer, names.index(part_name(alone))] = alone.change
    heads = [str(h + 1) for h in range(n_head)]
    worst = max(found, key=lambda a: a.change)
    fig = viz.cell_map(
        [str(layer + 1) for layer in range(n_layer)],
        [*heads, say("short_attention"), "MLP"],
        grid,
        texts=viz.cell_numbers(grid),
        hover=[
            [say("hover", n=i + 1, part=shown(name), change=v) for name, v in zip(names, row, strict=True)]
            for i, row in enumerate(grid)
        ],
        scale="signed",
        unit=say("unit"),
        x_title=say("axis.part"),
        y_title=say("axis.block"),
        alt=say("alt", n=worst.layer + 1, part=shown(part_name(worst)), change=worst.change),
    )

    def press(column: int, row: int) -> None:
        switch_off(n_layer, row, [names[column]])

    show(fig, key="inside_rank_map", on_press=press)
