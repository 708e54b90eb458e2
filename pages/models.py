"""Which models are on this machine, how large they are, where they compute, and how to get more."""

import streamlit as st

from ui import address, model_card, model_get, model_list, model_progress, nav
from wording import words

nav.require_app()
say = words("pages.models")

st.title(nav.title("models"))
st.write(say("intro"))
view = address.choose(
    st.segmented_control, say("view"), say.table("views"), key="models", required=True, wrap=True,
    label_visibility="collapsed",
)  # fmt: skip

if view == "here":
    if model_progress.running():
        model_progress.draw()
    chosen = model_list.choose()
    if chosen is not None:
        model_card.draw(chosen)
        with st.expander(say("all")):
            model_list.table()
    model_list.broken()
else:
    model_get.draw()
