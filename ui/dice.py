"""How chance picked a token: the drawn tokens, and for one of them the number thrown and where it fell."""

import streamlit as st

from engine.dice import cumulative_line
from engine.sampling import sampling_stages
from ui import resources
from ui.branches import Branch, Draw, Writing
from ui.components import current, select, show, token_strip
from ui.lesson import literal
from ui.model_refs import ModelRef
from ui.writing import logits_after, seen
from viz import format_count, format_number, format_prob, token_color, visible
from viz.draws import draw_line
from wording import words

say = words("ui.dice")

CHIPS = 40  # tokens that have a chip, unless all are asked for
ALL = "generation_all_chips"


def _first_chip(text: Writing) -> int:
    """The oldest token that has a chip."""
    return 0 if st.session_state.get(ALL) else max(0, len(text.draws) - CHIPS)


def look_at_last(text: Writing, *, key: str) -> None:
    """Choose the token that came last."""
    if text.draws:
        select(key, len(text.draws) - 1 - _first_chip(text))


def dice(ref: ModelRef, prompt: list[int], text: Writing, *, key: str) -> None:
    """Draw the part of a page that shows every draw; nothing as long as nothing was drawn."""
    if not text.draws:
        return
    st.subheader(say("title"))
    st.caption(in_numbers(text.branch))
    if len(text.draws) > CHIPS:
        every = say("show_all", n=format_count(len(text.draws)))
        st.toggle(every, key=ALL, persist_state="session", on_change=select, args=(key, 0))
    start = _first_chip(text)
    recent = text.draws[start:]
    last = len(recent) - 1
    if (current(key, last) or 0) > last:  # undone, or another branch is shorter
        select(key, last)
    chosen = token_strip(
        [[draw] for draw in recent],
        key=key,
        selected=last,
        values=[say("forced") if draw.forced else format_prob(draw.prob) for draw in recent],
        label=say("strip"),
    )
    at = start + (last if chosen is None else min(chosen, last))
    draw = text.draws[at]
    name = literal(visible(draw.data))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(say("rewind", token=name), key="generation_rewind", on_click=text.rewind, args=(at,))
        st.caption(say("rewind_note"))
    if draw.forced:
        st.caption(_no_dice(draw, name))
    else:
        _line(ref, [*prompt, *text.ids[:at]], draw, key="generation_dice")


def in_numbers(branch: Branch) -> str:
    """How likely the model itself finds a branch."""
    n, forced = len(branch.draws), branch.n_forced
    likely = {"log_prob": format_number(branch.log_prob), "each": format_number(branch.per_token)}
    if forced:
        return say("numbers_with_forced", n=n, forced=forced, **likely)
    return say("numbers", n=n, **likely)


def _no_dice(draw: Draw, name: str) -> str:
    alone = {"token": name, "alone": format_prob(draw.model_prob)}
    if draw.prob:
        return say("no_dice", **alone, drawn=format_prob(draw.prob))
    return say("no_dice_and_cut", **alone)


def _line(ref: ModelRef, before: list[int], draw: Draw, *, key: str) -> None:
    """The line from 0 to 1 on which the number fell."""
    assert draw.u is not None
    stages = sampling_stages(logits_after(ref, before), **draw.settings, previous=seen(ref, before))
    line = cumulative_line(stages[-1].probs, show=[draw.id])
    single = [stretch.n_tokens == 1 for stretch in line]
    data_of = resources.tokenizer(ref).token_bytes
    labels = [
        visible(data_of(s.id)) if one else say("rare", n=s.n_tokens)
        for s, one in zip(line, single, strict=True)
    ]
    colors = [token_color(s.id) if one else None for s, one in zip(line, single, strict=True)]
    fell = next(i for i, stretch in enumerate(line) if stretch.id == draw.id and single[i])
    show(draw_line(labels, [(s.low, s.high) for s in line], u=draw.u, chosen=fell, colors=colors), key=key)
    st.caption(
        say(
            "number",
            u=draw.u,
            low=line[fell].low,
            high=line[fell].high,
            token=literal(labels[fell]),
            alone=format_prob(draw.model_prob),
        )
    )
