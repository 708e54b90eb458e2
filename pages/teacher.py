"""For a teacher: links for a class, the board of how far everybody is, and all runs of the server."""

import streamlit as st

from ui import address, class_links, class_make, class_people, nav, resources, teacher_runs
from ui.words import literal
from wording import words

nav.require_app()

say = words("pages.teacher")
st.title(nav.title("teacher"))


def _classes() -> None:
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


desk = address.choose(
    st.segmented_control, say("desk"), say.table("desks"), key="desk", required=True, wrap=True,
    label_visibility="collapsed",
)  # fmt: skip
if desk == "runs":
    teacher_runs.draw()
else:
    _classes()
