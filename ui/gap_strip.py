"""The text with its gaps: press a token to hide it, hide several by chance, choose the gap to look at."""

from typing import Any

import streamlit as st

from ui import hiding
from ui.components import token_strip
from ui.hiding import Both

SCROLLS = 60  # tokens; a longer text scrolls, so that the picture stays in sight
KEEP: dict[str, Any] = {"persist_state": "session"}


def draw(both: Both) -> int | None:
    """Draw the text and its controls; gives the gap to look at, None if nothing is hidden."""
    text, hidden = both.text, both.hidden
    if text.unused:
        st.caption(
            f"Using the last {len(text.seen):,} of {len(text.tokens):,} tokens: the model can’t see more."
        )
    place = hiding.look_at(hidden)
    long = len(text.seen) > SCROLLS
    with st.container(height=180 if long else "content", border=long):
        token_strip(
            text.segments,
            key=hiding.STRIP,
            hidden=hidden,
            on_press=hiding.press,
            label="Press a token to hide it or to show it again",
        )
    _controls(both)
    return place


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
            st.selectbox("Look at gap", hidden, format_func=both.name, key=hiding.PLACE, width=138, **KEEP)
        st.slider(
            "Share to hide", 5, 100, step=5, format="%d %%", key=hiding.SHARE, width=138,
            on_change=hiding.by_chance, **chance, **KEEP,
        )  # fmt: skip
        st.number_input(
            "Seed", 0, 2**31, key=hiding.SEED, width=110, on_change=hiding.by_chance, **chance, **KEEP
        )
        st.button("Hide by chance", key="masking_chance", on_click=hiding.by_chance, **chance)
        st.button("Hide all", key="masking_all", on_click=hiding.hide, args=(range(len(text.seen)),))
        st.button("Show all", key="masking_none", on_click=hiding.hide, args=((),))
