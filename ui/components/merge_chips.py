"""One merge of a BPE as a picture: chip + chip = chip."""

from collections.abc import Sequence

import streamlit as st

import viz
from ui.components._shared import asset
from wording import words

say = words("ui.component_merge_chips")

_COMPONENT = st.components.v2.component(
    "loupe_merge_chips",
    html=asset("merge_chips.html"),
    css=asset("merge_chips.css"),
    js=asset("merge_chips.js"),
)
MOST_BYTES = 24  # of a token; of a longer one both ends are drawn


def merge_chips(pieces: Sequence[tuple[int, bytes]], *, key: str) -> None:
    """Draws a merge: its two tokens and what they became, each with its colour, its marks and its id.

    Args:
        pieces: id and bytes of the left, the right and the new token.
        key: of the component.
    """
    drawn = [
        {"id": i, "parts": viz.visible_parts(data) if len(data) <= MOST_BYTES else _ends(data),
         "color": viz.token_color(i)}
        for i, data in pieces
    ]  # fmt: skip
    left, right, new = ("".join(text for text, _ in viz.visible_parts(data[:80])) for _, data in pieces)
    ids = {"left_id": pieces[0][0], "right_id": pieces[1][0], "new_id": pieces[2][0]}
    label = say("sum", left=left, right=right, new=new, **ids)
    _COMPONENT(key=key, data={"pieces": drawn, "label": label})


def _ends(data: bytes) -> list[tuple[str, bool]]:
    half = MOST_BYTES // 2
    return [*viz.visible_parts(data[:half]), (" … ", True), *viz.visible_parts(data[-half:])]
