"""Tokens as chips that can be looked at, walked through and chosen."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import streamlit as st

import viz
from ui.components._shared import asset, current, told
from wording import words

say = words("ui.component_token_strip")

_COMPONENT = st.components.v2.component(
    "loupe_token_strip",
    html=asset("token_strip.html"),
    css=asset("token_strip.css"),
    js=asset("fill.js") + asset("token_strip.js"),
)


class TokenLike(Protocol):
    """What a chip needs of a token."""

    @property
    def id(self) -> int: ...  # noqa: D102

    @property
    def data(self) -> bytes: ...  # noqa: D102


def token_strip(
    segments: Sequence[Sequence[TokenLike]],
    *,
    key: str,
    selected: int | None = None,
    values: Sequence[str] | None = None,
    colors: Sequence[str] | None = None,
    hidden: Collection[int] = (),
    greyed: Collection[int] = (),
    label: str = "",
    on_press: Callable[[int], None] | None = None,
) -> int | None:
    """Draws tokens in order as chips; returns the index of the chosen one.

    Args:
        segments: tokens grouped into whole graphemes (`tokenizer.segments`); a group of several gets a frame.
        key: of the component.
        selected: index chosen at first; None for none.
        values: a short text under each chip, by token index.
        colors: background of each chip as `#RRGGBB`, by token index; else the token's own colour.
        hidden: indices drawn as masked, with a pattern.
        greyed: indices outside the context: drawn pale.
        label: the strip's name for screen readers.
        on_press: called with the index at every press, also of the chip that is chosen already; the choice is
            then the caller's (`select`) and no longer the click's.
    """
    now = current(key, None)
    n = sum(len(segment) for segment in segments)
    data = {
        "groups": _groups(segments, values, colors, set(hidden), set(greyed)),
        "label": label or say("label"),
        "words": say.table("words"),
        "presses": on_press is not None,
        **told(key, selected, valid=now is None or now < n),
    }

    def pressed() -> None:
        index = st.session_state[key].pressed
        if on_press is not None and isinstance(index, int) and 0 <= index < n:
            on_press(index)

    _COMPONENT(key=key, data=data, on_selected_change=lambda: None, on_pressed_change=pressed)
    chosen: int | None = current(key, selected)
    return chosen


def _groups(
    segments: Sequence[Sequence[TokenLike]],
    values: Sequence[str] | None,
    colors: Sequence[str] | None,
    hidden: set[int],
    greyed: set[int],
) -> list[dict[str, Any]]:
    """Chips by group, as the browser draws them."""
    groups = []
    i = 0
    for segment in segments:
        chips = []
        for token in segment:
            chip: dict[str, Any] = {"i": i, "id": token.id, "parts": viz.visible_parts(token.data)}
            chip["color"] = colors[i] if colors is not None else viz.token_color(token.id)
            if values is not None:
                chip["value"] = values[i]
            if i in hidden:
                chip["hidden"] = True
            if i in greyed:
                chip["greyed"] = True
            chips.append(chip)
            i += 1
        group: dict[str, Any] = {"chips": chips}
        if len(chips) > 1:
            group["whole"] = viz.visible(b"".join(token.data for token in segment))
        groups.append(group)
    return groups
