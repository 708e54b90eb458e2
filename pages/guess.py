"""Guess the token: bets on a held-out text, scored in bits against models and the truth."""

import streamlit as st

from ui import nav

nav.require_app()

st.title(nav.title("guess"))
