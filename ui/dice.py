"""How chance picked a token: the drawn tokens, and for one of them the number thrown and where it fell."""

import streamlit as st

from engine.dice import cumulative_line
from engine.sampling import sampling_stages
from ui import resources
from ui.components import select, show, token_strip
from ui.lesson import literal
from ui.resources import ModelRef
from ui.writing import Writing, logits_after
from viz import format_prob, token_color, visible
from viz.draws import draw_line

CHIPS = 40  # drawn tokens that can be looked at


def _first_chip(text: Writing) -> int:
    """The oldest drawn token that has a chip."""
    return max(0, len(text.draws) - CHIPS)


def look_at_last(text: Writing, *, key: str) -> None:
    """Choose the token that was drawn last."""
    select(key, len(text.draws) - 1 - _first_chip(text))


def dice(ref: ModelRef, prompt: list[int], text: Writing, *, key: str) -> None:
    """Draw the part of a page that shows every draw; nothing as long as nothing was drawn."""
    if not text.draws:
        return
    st.subheader("How chance picked")
    start = _first_chip(text)
    recent = text.draws[start:]
    chances = [format_prob(draw.prob) for draw in recent]
    last = len(recent) - 1
    chosen = token_strip(
        [[draw] for draw in recent],
        key=key,
        selected=last,
        values=chances,
        label="Drawn tokens, each with its chance",
    )
    at = start + (last if chosen is None else chosen)
    draw = text.draws[at]
    logits = logits_after(ref, (*prompt, *text.ids[:at]))
    line = cumulative_line(sampling_stages(logits, **draw.settings)[-1].probs, show=[draw.id])
    single = [stretch.n_tokens == 1 for stretch in line]
    data_of = resources.tokenizer(ref).token_bytes
    labels = [
        visible(data_of(s.id)) if one else f"{s.n_tokens} rare" for s, one in zip(line, single, strict=True)
    ]
    colors = [token_color(s.id) if one else None for s, one in zip(line, single, strict=True)]
    fell = next(i for i, stretch in enumerate(line) if stretch.id == draw.id and single[i])
    show(
        draw_line(labels, [(s.low, s.high) for s in line], u=draw.u, chosen=fell, colors=colors),
        key=f"{key}_line",
    )
    st.caption(
        f"A random number, u = {draw.u:.6f}, picks the token in whose stretch it falls: "
        f"from {line[fell].low:.6f} to {line[fell].high:.6f} is **{literal(labels[fell])}**. "
        f"The model alone gave it {format_prob(draw.model_prob)}. Choose another token above to see its draw."
    )
