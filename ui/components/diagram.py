"""A flow of boxes and arrows; a box that is pressed says its name."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from ui.components._shared import asset

_COMPONENT = st.components.v2.component(
    "loupe_diagram",
    html=asset("diagram.html"),
    css=asset("diagram.css"),
    js=asset("diagram.js"),
)


def boxes(
    lanes: Sequence[dict[str, Any]],
    *,
    key: str,
    label: str,
    start: dict[str, Any] | None = None,
    back: str | None = None,
) -> str | None:
    """Draws rows of boxes; returns the name of the one that was pressed just now.

    Args:
        lanes: for each row `boxes`, and perhaps `label` and `color`. A box has `name`, `title`, `leads`
            (said of it to a pointer and to screen readers) and perhaps `below` (a second line) and `lit`.
        key: of the component.
        label: the picture's name for screen readers.
        start: a box from which all rows go out.
        back: words on a way from the last box back to the first; None draws none.
    """
    data = {"lanes": list(lanes), "label": label, "start": start, "back": back}
    pressed = _COMPONENT(key=key, data=data, on_pressed_change=lambda: None).pressed
    return pressed if isinstance(pressed, str) else None
