"""The server's plain log on the screen: where it is, and what it tells."""

import streamlit as st

from engine import plain_log
from ui.words import literal
from wording import words

say = words("ui.selftest_log")


def draw() -> None:
    """An expander. Others are told where the log is, and that it is not for them."""
    with st.expander(say("title"), key="selftest_log"):
        st.markdown(say("what", file=literal(plain_log.NAME)))
