"""Exercises that mark themselves: fresh numbers from a seed, hints, and the worked solution."""

import streamlit as st

from engine.exercise_list import IDS
from ui import exercise_view, nav

nav.require_app()

st.title(nav.title("exercises"))
for name in IDS:
    exercise_view.draw(name, key="exercises")
