"""Training: train a model, take one step apart, go back in time, compare runs, see what the class does."""

import streamlit as st

from ui import address, class_view, nav, run_player, runs_view, step_view, time_machine, train_view
from wording import words

nav.require_app()
say = words("pages.training")

VIEWS = {
    "train": train_view.draw,
    "one-step": step_view.draw,
    "time-machine": time_machine.draw,
    "runs": runs_view.draw,
    "class": class_view.draw,
}

st.title(nav.title("training"))
st.write(say("watch_model_learn"))
with st.container(horizontal=True, vertical_alignment="center"):
    view = address.choose(
        st.segmented_control, say("view"), say.table("views"), key="watch", required=True, wrap=True,
        label_visibility="collapsed",
    )  # fmt: skip
    if view in ("one-step", "time-machine"):
        run_player.offer()
VIEWS[view]()
