"""Bars of the same tokens through several steps, which can be pressed; a change is drawn at once."""

from collections.abc import Callable, Sequence

import streamlit as st

import viz
from ui.components._shared import asset
from viz.sampling import BarColumn, bar_cells
from wording import words

say = words("ui.component_stage_bars")
says_removed = words("viz.sampling")  # its cells say it, and the browser compares

_COMPONENT = st.components.v2.component(
    "loupe_stage_bars",
    html=asset("stage_bars.html"),
    css=asset("stage_bars.css"),
    js=asset("stage_bars.js"),
)


def stage_bars(
    tokens: Sequence[tuple[int, bytes]],
    columns: Sequence[BarColumn],
    *,
    key: str,
    n_tail: int,
    label: str,
    facts: Sequence[str] = (),
    narrow: float = 5.4,
    verb: str = "",
    on_press: Callable[[int], None] | None = None,
    chosen: int | None = None,
) -> None:
    """Draws a table: a row a token and one for all others, a column a step, and facts under the columns.

    Args:
        tokens: id and bytes of the tokens shown, top to bottom.
        columns: the steps, see `viz.sampling.BarColumn`.
        key: of the component.
        n_tail: how many tokens have no row of their own.
        label: what the table shows, for screen readers.
        facts: names of the rows of facts.
        narrow: rem; a column is never narrower, a screen too narrow scrolls.
        verb: what pressing a token does, as "Force"; empty: it can't be pressed.
        on_press: called with the id of a token that is pressed.
        chosen: id of the token whose row is marked.
    """
    rows: list[dict[str, object]] = [{"id": i, "parts": viz.visible_parts(data[:40])} for i, data in tokens]
    if n_tail:
        rows.append({"rest": say("rest", n=viz.format_count(n_tail))})
    drawn = bar_cells(columns, n_tail=n_tail)
    for cells, column in zip(drawn, columns, strict=True):
        cells["logits"] = column.tail is None
    data = {
        "rows": rows,
        "columns": drawn,
        "facts": list(facts),
        "label": label,
        "removed": says_removed("removed"),
        "verb": verb,
        "chooses": chosen is not None,
        "chosen": chosen,
        "narrow": narrow,
        "color": viz.MODEL,
        "neutral": viz.NEUTRAL,
    }
    ids = {i for i, _ in tokens}

    def pressed() -> None:
        found = st.session_state[key].pressed
        if on_press is not None and found in ids:
            on_press(int(found))

    _COMPONENT(key=key, data=data, on_pressed_change=pressed)
