"""The way past the sidebar for the keyboard, and what Streamlit says too little or nothing of, mended."""

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
        lost, menu = [say("lost_title"), say("lost")], [say("all_pages"), say("fewer_pages")]
        data = {"words": say("skip"), "lost": lost, "menu": menu}
        _COMPONENT(key="_landmarks", data=data, height="content")
