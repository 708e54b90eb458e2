"""The glossary: one term for each idea, and the other names that books use."""

import streamlit as st

from ui import nav

nav.require_app()

st.title(nav.title("glossary"))
