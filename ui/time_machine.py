"""The chosen model at any kept moment of its training, on the text of all pages."""

import streamlit as st


def draw() -> None:
    """The curve with a cursor, and what the model expects at that moment."""
    st.info("Coming.")
