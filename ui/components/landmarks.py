"""For keyboards and screen readers: the way past the sidebar, and a menu that says what it is."""

import streamlit as st

from ui.components._shared import asset
from wording import words

say = words("ui.component_landmarks")
_COMPONENT = st.components.v2.component(
    "loupe_landmarks",
    html=asset("landmarks.html") + "\n",
    css=asset("landmarks.css"),
    js=asset("landmarks.js"),
)


def landmarks() -> None:
    """Mounted once, first in the sidebar."""
    with st.container(key="frame_skip"):
        _COMPONENT(key="_landmarks", data={"words": say("skip")}, height="content")
