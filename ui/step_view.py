"""One training step taken apart: the batch, its loss, its gradients, the update, and what it changed."""

import streamlit as st


def draw() -> None:
    """One step of the chosen run or model."""
    st.info("Coming.")
