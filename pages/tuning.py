"""Fine-tuning: a trained model learns from a text, from answers, from preferences."""

import streamlit as st

from ui import address, nav, tuning_answers, tuning_preferences, tuning_text
from wording import words

nav.require_app()
say = words("pages.tuning")

VIEWS = {
    "text": tuning_text.draw,
    "answers": tuning_answers.draw,
    "preferences": tuning_preferences.draw,
}

st.title(nav.title("tuning"))
st.write(say("intro"))
view = address.choose(
    st.segmented_control, say("view"), say.table("views"), key="tune", required=True, wrap=True,
    label_visibility="collapsed",
)  # fmt: skip
VIEWS[view]()
