"""Projector mode: everything larger, to be read from the back of a room."""

import streamlit as st

from wording import words

NAME = "projector"  # in the address and in the session
say = words("ui.projector")
# All sizes of the frame, the widgets and the components are in rem: one number enlarges them together.
_STYLE = """
:root:root { font-size: 20px; }
[data-testid="stMainBlockContainer"] { max-width: 100%; padding-inline: 2rem; }
[data-testid="stCaptionContainer"] { font-size: 1rem; }
"""


def on() -> bool:
    """Whether it is switched on."""
    return bool(st.session_state.get(NAME))


def choose() -> None:
    """The switch, in the sidebar."""
    st.toggle(say("label"), key=NAME, bind="query-params", help=say("help"))
    if on():
        st.html(f"<style>{_STYLE}</style>")
