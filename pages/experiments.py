"""Experiments: small studies that train a few models each, with a prediction first and the result after."""

import streamlit as st

from ui import experiment_view, nav
from ui.experiment_words import WORDS
from ui.lesson import Step, try_this
from wording import words

nav.require_app()
say = words("pages.experiments")

STUDIES = {words.title: name for name, words in WORDS.items()}

heading, choice = st.columns([3, 2], vertical_alignment="bottom")
heading.title(say("experiments"))
with choice:
    title = st.selectbox(
        say("study"), list(STUDIES), key="study", bind="query-params", label_visibility="collapsed"
    )
st.write(say("questions_chosen_above_say", n_studies=len(STUDIES)))


def go(study: str) -> None:
    """Open another study. For `on_click`."""
    st.session_state["study"] = study


experiment_view.draw(STUDIES[str(title)])

titles = list(STUDIES)
following = [titles[(titles.index(str(title)) + k) % len(titles)] for k in (1, 2)]
try_this(
    *(Step(WORDS[STUDIES[name]].question, name, go, (name,)) for name in following), key="experiments_try"
)
