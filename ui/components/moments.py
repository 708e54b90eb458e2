"""One text at all kept moments of a training, and a slider: the browser holds them all and moves at once."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

import viz
from ui.components._shared import asset, current, told
from ui.components.token_strip import TokenLike
from viz.theme import PROBABILITY_COLORS
from wording import words

say = words("ui.component_moments")

_COMPONENT = st.components.v2.component(
    "loupe_moments",
    html=asset("moments.html"),
    css=asset("token_strip.css") + asset("moments.css"),
    js=asset("fill.js") + asset("moments.js"),
)


def chips(
    segments: Sequence[Sequence[TokenLike]], *, selected: int, n_greyed: int = 0, hidden: bool = False
) -> dict[str, Any]:
    """The tokens of the text, in groups that are whole graphemes.

    Args:
        segments: tokens in groups.
        selected: index of the chosen one.
        n_greyed: how many at the start are outside the context.
        hidden: whether the chosen one is hidden from the model.
    """
    groups, i = [], 0
    for segment in segments:
        group: dict[str, Any] = {"chips": []}
        for token in segment:
            group["chips"].append({"i": i, "id": token.id, "parts": viz.visible_parts(token.data)})
            i += 1
        if len(segment) > 1:
            group["whole"] = viz.visible(b"".join(token.data for token in segment))
        groups.append(group)
    return {"groups": groups, "selected": selected, "greyed": n_greyed, "hidden": hidden}


def moments(
    steps: Sequence[int],
    parts: dict[str, Any],
    *,
    key: str,
    default: int,
    on_place: Callable[[int], None],
    on_head: Callable[[int, int], None],
) -> int:
    """Draws the parts with a slider over the steps; gives the chosen step.

    Args:
        steps: (S,) of the moments, oldest first.
        parts: what is drawn, with S entries wherever it depends on the moment; see `ui.time_parts`.
        key: of the component; `select(key, step)` moves the slider.
        default: step chosen at first.
        on_place: called with the index of a token that is pressed.
        on_head: called with the layer and the head that are chosen.
    """
    now = current(key, default)
    data = {
        **parts,
        "steps": list(steps),
        "ramp": list(PROBABILITY_COLORS),
        "trueColor": viz.TRUE,
        "modelColor": viz.MODEL,
        "neutral": viz.NEUTRAL,
        "words": say.table("words"),
        **told(key, default, valid=now in steps),
    }

    def place() -> None:
        index = st.session_state[key].place
        if isinstance(index, int):
            on_place(index)

    def head() -> None:
        chosen = st.session_state[key].head
        if isinstance(chosen, list | tuple) and len(chosen) == 2:
            on_head(int(chosen[0]), int(chosen[1]))

    _COMPONENT(
        key=key, data=data, on_selected_change=lambda: None, on_place_change=place, on_head_change=head
    )
    return int(current(key, default))
