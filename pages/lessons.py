"""The path: twelve short lessons in order, each done on the live pages, with a check at the end."""

import streamlit as st

from ui import address, lesson_page, lesson_path, lesson_summary, nav
from ui.lesson_list import LESSONS
from ui.words import literal
from wording import words

nav.require_app()
say = words("pages.lessons")

OPEN, SUMMARY = "_lesson_open", "summary"

is_news, linked = address.news("lesson")
if is_news:
    st.session_state[OPEN] = linked
asked = st.session_state.get(OPEN)
if asked and asked not in LESSONS and asked != SUMMARY:
    st.warning(say("unknown", name=literal(asked)))
    asked = st.session_state[OPEN] = None
address.write("lesson", asked)
if asked == SUMMARY:
    lesson_summary.draw()
elif asked:
    lesson_page.draw(asked)
else:
    lesson_path.draw()
