"""A figure on the screen, in one line."""

from typing import Literal

import plotly.graph_objects as go
import streamlit as st

import viz


def show(fig: go.Figure, *, key: str) -> None:
    """Draws a figure of viz with its alt text; figures with a width of their own keep it."""
    width: Literal["content", "stretch"] = "content" if fig.layout.width else "stretch"
    st.plotly_chart(fig, key=key, alt=viz.alt_text(fig), config=viz.CONFIG, width=width)
