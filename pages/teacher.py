"""For a teacher: links for a class, its QR code, and the board of how far everybody is."""

import streamlit as st

from ui import nav

nav.require_app()

st.title(nav.title("teacher"))
