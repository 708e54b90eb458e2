"""Experiments: small studies that train a few models each, with a prediction first and the result after."""

import streamlit as st

from ui import experiment_view, nav
from ui.experiment_words import WORDS
from ui.lesson import Step, try_this

nav.require_app()

STUDIES = {words.title: name for name, words in WORDS.items()}

heading, choice = st.columns([3, 2], vertical_alignment="bottom")
heading.title("Experiments")
with choice:
    title = st.selectbox(
        "Study", list(STUDIES), key="study", bind="query-params", label_visibility="collapsed"
    )
st.write(f"{len(STUDIES)} questions, chosen above: say what you expect, train a few small models, and see.")


def go(study: str) -> None:
    """Open another study. For `on_click`."""
    st.session_state["study"] = study


experiment_view.draw(STUDIES[str(title)])

titles = list(STUDIES)
following = [titles[(titles.index(str(title)) + k) % len(titles)] for k in (1, 2)]
try_this(
    *(Step(WORDS[STUDIES[name]].question, name, go, (name,)) for name in following), key="experiments_try"
)
