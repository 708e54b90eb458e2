"""Models: published ones and your own, and where they compute."""

import streamlit as st

from ui import nav
from wording import words

nav.require_app()
say = words("pages.models")

st.title(nav.title("models"))
st.write(say("intro"))
