"""All runs on this server: the queue, the limits, and the best of each text by bits per byte."""

import streamlit as st


def draw() -> None:
    """The board of a class."""
    st.info("Coming.")
