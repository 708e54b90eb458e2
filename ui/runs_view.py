"""A person's runs side by side: curves, what differs, bands over seeds, and files to take away."""

import streamlit as st


def draw() -> None:
    """Runs to compare."""
    st.info("Coming.")
