"""Worked examples: small sums whose every line follows when a number changes."""

import streamlit as st

from ui import nav

nav.require_app()

st.title(nav.title("examples"))
