"""Whether everything works on this machine, and what happened on it lately."""

import streamlit as st

from ui import nav, selftest_log, selftest_view
from wording import words

nav.require_app()
say = words("pages.selftest")

st.title(nav.title("selftest"))
st.markdown(say("what"))
selftest_view.draw()
selftest_log.draw()
