"""A figure on the screen, in one line, with its data and its picture to take away."""

from collections.abc import Callable
from typing import Any, Literal

import plotly.graph_objects as go
import streamlit as st

import viz
from ui import projector
from ui.cells import table_csv
from ui.components.save_picture import save_picture
from viz.projector import enlarge
from viz.tables import table_of
from wording import words

say = words("ui.component_figure")


def show(fig: go.Figure, *, key: str, on_press: Callable[[int, int], None] | None = None) -> None:
    """Draws a figure of viz with its alt text; figures with a width of their own keep it.

    Below it stands a small button with the numbers as CSV and the picture as PNG or SVG.

    Args:
        fig: of viz.
        key: of the chart.
        on_press: called with the column and the row of a point that is pressed.
    """
    given = fig
    if projector.on():
        fig = enlarge(fig)
    width: Literal["content", "stretch"] = "content" if fig.layout.width else "stretch"
    looks: dict[str, Any] = {"alt": viz.alt_text(fig), "config": viz.CONFIG, "width": width}
    if on_press is not None:

        def pressed() -> None:
            points = st.session_state[key].selection.points
            if points:
                on_press(round(points[0]["x"]), round(points[0]["y"]))

        looks |= {"on_select": pressed, "selection_mode": "points"}
    with st.container(gap=None):
        st.plotly_chart(fig, key=key, **looks)
        _download(given, key)


def _download(fig: go.Figure, key: str) -> None:
    """What a figure gives away: its numbers, made when they are asked for, and its picture."""
    with st.popover(say("download"), type="tertiary", icon=":material/download:", key=f"download_{key}"):
        st.download_button(
            say("csv"),
            lambda: table_csv(table_of(fig)),
            file_name=f"{key}.csv",
            mime="text/csv",
            key=f"csv_{key}",
            on_click="ignore",
        )
        save_picture(key, key=f"save_{key}", name=key)
