"""Training: train a model, take one step apart, go back in time, compare runs, see what the class does."""

import streamlit as st

from ui import class_view, nav, run_player, runs_view, step_view, time_machine, train_view

nav.require_app()

VIEWS = {
    "Train": train_view.draw,
    "One step": step_view.draw,
    "Time machine": time_machine.draw,
    "Runs": runs_view.draw,
    "Class": class_view.draw,
}

st.title("Training")
st.write("Watch a model learn: its loss falls from pure guessing towards the best that the text allows.")
with st.container(horizontal=True, vertical_alignment="center"):
    view = st.segmented_control(
        "View", list(VIEWS), default="Train", required=True, key="watch",
        bind="query-params", wrap=True, label_visibility="collapsed",
    )  # fmt: skip
    if view in ("One step", "Time machine"):
        run_player.offer()
VIEWS[str(view)]()
