"""Exercises that mark themselves: fresh numbers from a seed, hints, and the worked solution."""

import streamlit as st

from ui import nav

nav.require_app()

st.title(nav.title("exercises"))
