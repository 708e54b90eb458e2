"""The path: twelve short lessons in order, each done on the live pages, with a check at the end."""

import streamlit as st

from ui import nav

nav.require_app()

st.title(nav.title("lessons"))
