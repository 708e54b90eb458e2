"""For a teacher: links for a class, its QR code, and the board of how far everybody is."""

import streamlit as st

from ui import class_links, class_make, class_people, nav, resources
from ui.words import literal
from wording import words

nav.require_app()

say = words("pages.teacher")
st.title(nav.title("teacher"))
room = class_make.chosen()
st.markdown(say("what"))

if room is not None:
    st.subheader(literal(class_links.title(room)))
    class_people.draw(room)
    with st.expander(
        say("join"), expanded=not class_people.rows(room.code, class_people.NONE), key="teacher_join"
    ):
        class_make.link(room)
    with st.container(horizontal=True, vertical_alignment="center"):
        class_people.remove(room)
        class_people.delete(room)
    st.caption(say("where", folder=literal(str(resources.home().absolute()))))
    with st.expander(say("another")):
        class_make.form()
else:
    st.subheader(say("make"))
    st.markdown(say("how"))
    class_make.form()

st.subheader(say("links"))
st.markdown(say("links_how"))
for name in ("tokens", "next_token", "attention"):
    nav.link(name)
