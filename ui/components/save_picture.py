"""Two buttons that save a chart of the page as a picture; the browser does it alone."""

import streamlit as st

from ui.components._shared import asset
from wording import words

say = words("ui.component_save_picture")

_COMPONENT = st.components.v2.component(
    "loupe_save_picture",
    html=asset("save_picture.html"),
    css=asset("save_picture.css"),
    js=asset("save_picture.js"),
)


def save_picture(chart: str, *, key: str, name: str) -> None:
    """Draws the buttons.

    Args:
        chart: key of the Plotly chart.
        key: of the component.
        name: of the file, without its ending.
    """
    _COMPONENT(key=key, data={"chart": chart, "name": name, "words": say.table("words")})
