"""Fine-tuning: a trained model learns from a text, from answers, from preferences."""

import streamlit as st

from ui import nav
from wording import words

nav.require_app()
say = words("pages.tuning")

st.title(nav.title("tuning"))
st.write(say("intro"))
