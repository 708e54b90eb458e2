"""The server's plain log on the screen: its newest lines, for who holds the teacher's secret."""

import streamlit as st

from engine import plain_log
from ui import resources, teacher_gate
from ui.words import literal
from wording import words

say = words("ui.selftest_log")

LINES = 200  # that are shown


def draw() -> None:
    """An expander. Others are told where the log is, and that it is not for them."""
    with st.expander(say("title"), key="selftest_log"):
        st.markdown(say("what", file=literal(plain_log.NAME)))
        if not teacher_gate.is_teacher():
            st.caption(say("for_teachers"))
            teacher_gate.ask("teacher_log")
            return
        home = resources.home()
        st.caption(say("path", path=literal(str(plain_log.path(home).absolute()))))
        if lines := plain_log.last_lines(LINES, home):
            st.code("\n".join(lines), language=None, height=400)
        else:
            st.info(say("empty"))
