"""Tokens as rows of a table, linked to a strip: `st.dataframe` neither scrolls to a row nor takes Enter."""

from collections.abc import Callable, Sequence
from typing import Protocol

import streamlit as st

import viz
from ui.components._shared import asset
from wording import words

say = words("ui.component_token_table")

_COMPONENT = st.components.v2.component(
    "loupe_token_table",
    html=asset("token_table.html"),
    css=asset("token_table.css"),
    js=asset("token_table.js"),
)


class PlacedToken(Protocol):
    """What a row needs of a token."""

    @property
    def id(self) -> int: ...  # noqa: D102

    @property
    def data(self) -> bytes: ...  # noqa: D102

    @property
    def start(self) -> int: ...  # noqa: D102

    @property
    def byte_start(self) -> int: ...  # noqa: D102


def token_table(
    tokens: Sequence[PlacedToken],
    *,
    key: str,
    selected: int,
    on_press: Callable[[int], None],
    label: str = "",
) -> None:
    """Draws id, text, bytes and places of tokens, a row each.

    Args:
        tokens: the rows.
        key: of the component.
        selected: index of the chosen row; it is kept in sight.
        on_press: called with the index when a row is chosen; the choice is the caller's to keep.
        label: the table's name for screen readers.
    """
    rows = [
        {
            "id": token.id,
            "parts": viz.visible_parts(token.data),
            "color": viz.token_color(token.id),
            "bytes": token.data.hex(" ").upper(),
            "start": token.start,
            "byte": token.byte_start,
        }
        for token in tokens
    ]

    def pressed() -> None:
        index = st.session_state[key].pressed
        if isinstance(index, int) and 0 <= index < len(rows):
            on_press(index)

    data = {"rows": rows, "selected": selected, "label": label or say("label"), "words": say.table("words")}
    _COMPONENT(key=key, data=data, on_pressed_change=pressed)
