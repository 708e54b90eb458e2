"""A button that copies a text to the clipboard, character for character."""

import streamlit as st

from ui.components._shared import asset
from wording import words

say = words("ui.component_copy_text")

_COMPONENT = st.components.v2.component(
    "loupe_copy_text",
    html=asset("copy_text.html"),
    css=asset("copy_text.css"),
    js=asset("copy_text.js"),
)


def copy_text(label: str, text: str, *, key: str) -> None:
    """Draws the button. `st.code` has one too, but loses a line end at either end of the text.

    Args:
        label: on the button.
        text: what is copied, blanks and line ends included.
        key: of the component.
    """
    _COMPONENT(
        key=key,
        data={"label": label, "text": text, "words": say.table("words")},
        width="content",
        height="content",
    )
