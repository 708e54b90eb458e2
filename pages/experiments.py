"""Experiments: small studies that train a few models each, with a prediction first and the result after."""

import streamlit as st

from engine.experiments import STUDIES
from ui import address, experiment_view, nav
from ui.experiment_words import words_of
from ui.lesson import Step, try_this
from wording import words

nav.require_app()
say = words("pages.experiments")

heading, choice = st.columns([3, 2], vertical_alignment="bottom")
heading.title(nav.title("experiments"))
with choice:
    titles = {study: words_of(study).title for study in STUDIES}
    chosen = address.choose(st.selectbox, say("study"), titles, key="study", label_visibility="collapsed")
st.write(say("questions", n=len(STUDIES)))


def go(study: str) -> None:
    """Open another study. For `on_click`."""
    st.session_state["study"] = study


experiment_view.draw(chosen)

following = [STUDIES[(STUDIES.index(chosen) + k) % len(STUDIES)] for k in (1, 2)]
try_this(
    *(Step(words_of(study).question, titles[study], go, (study,)) for study in following),
    key="experiments_try",
)
