"""Experiments: small studies that train a few models each, with a prediction first and the result after."""

import streamlit as st

from ui import nav

nav.require_app()

st.title("Experiments")
st.write("Ask a question, say what you expect, train a few small models, and see.")
