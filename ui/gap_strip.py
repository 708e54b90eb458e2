"""The text with its gaps: press a token to hide it, hide several by chance, choose the gap to look at."""

from typing import Any

import streamlit as st

from ui import hiding, resources
from ui.components import token_strip
from ui.hiding import Both
from ui.words import literal
from viz import visible
from wording import words

say = words("ui.gap_strip")

SCROLLS = 60  # tokens; a longer text scrolls, so that the picture stays in sight
KEEP: dict[str, Any] = {"persist_state": "session"}


def draw(both: Both) -> int | None:
    """Draw the text and its controls; gives the gap to look at, None if nothing is hidden."""
    text, hidden = both.text, both.hidden
    if text.unused:
        st.caption(say("using_last_tokens_model", n_seen=len(text.seen), n_tokens=len(text.tokens)))
    place = hiding.look_at(hidden)
    long = len(text.seen) > SCROLLS
    with st.container(height=180 if long else "content", border=long):
        token_strip(
            text.segments,
            key=hiding.STRIP,
            hidden=hidden,
            on_press=hiding.press,
            label=say("press_token_hide_show"),
        )
    frame_note(both)
    _controls(both)
    return place


def frame_note(both: Both) -> None:
    """What a published masked model reads around the text, if it does."""
    data_of = resources.tokenizer(both.masked).token_bytes
    before, after = (literal(" ".join(visible(data_of(i)) for i in ids)) for ids in both.frame)
    if before or after:
        st.caption(say("frame", before=before or "–", after=after or "–"))


def _controls(both: Both) -> None:
    """Which gap, and buttons that hide several tokens."""
    text, hidden = both.text, both.hidden
    st.session_state.setdefault(hiding.SEED, 1)
    st.session_state.setdefault(hiding.SHARE, hiding.USUAL)
    chance: dict[str, Any] = {
        "args": (text.ids, both.mask_id),
        "disabled": len(text.typed) == len(text.seen),
    }
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if hidden:
            st.selectbox(say("look_gap"), hidden, format_func=both.name, key=hiding.PLACE, width=138, **KEEP)
        st.slider(
            say("share_hide"), 5, 100, step=5, format="%d %%", key=hiding.SHARE, width=138,
            on_change=hiding.by_chance, **chance, **KEEP,
        )  # fmt: skip
        st.number_input(
            say("seed"), 0, 2**31, key=hiding.SEED, width=110, on_change=hiding.by_chance, **chance, **KEEP
        )
        st.button(say("hide_chance"), key="masking_chance", on_click=hiding.by_chance, **chance)
        st.button(say("hide_all"), key="masking_all", on_click=hiding.hide, args=(range(len(text.seen)),))
        st.button(say("show_all"), key="masking_none", on_click=hiding.hide, args=((),))
