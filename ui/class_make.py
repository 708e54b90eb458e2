"""Making a class, and the link by which students join it."""

import streamlit as st

from engine.classes import LONGEST_TITLE, Class
from ui import class_links, link_address, link_panel, session
from ui.words import literal
from wording import words

CHOSEN = "teacher_class"
_PROBLEM = "_teacher_problem"
say = words("ui.class_make")


def chosen() -> Class | None:
    """The class that is looked at, of those that this browser made; None if there is none."""
    made = {one.code: one for one in class_links.store().of(session.owner())}
    if not made:
        return None
    if st.session_state.get(CHOSEN) not in made:
        st.session_state[CHOSEN] = next(iter(made))
    if len(made) == 1:
        return next(iter(made.values()))
    code = st.selectbox(
        say("class"),
        list(made),
        format_func=lambda one: class_links.title(made[one]) if one in made else one,
        key=CHOSEN,
        persist_state="session",
        width=360,
    )
    return made[str(code)]


def form() -> None:
    """A title, if wanted, and the button."""
    if problem := st.session_state.pop(_PROBLEM, None):
        st.error(literal(problem))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            say("title"),
            key="teacher_title",
            max_chars=LONGEST_TITLE,
            placeholder=say("title_example"),
            width=360,
        )
        st.button(say("make"), key="teacher_make", type="primary", icon=":material/add:", on_click=_make)


def _make() -> None:
    try:
        code = class_links.store().create(session.owner(), st.session_state.get("teacher_title") or "")
    except ValueError as error:
        st.session_state[_PROBLEM] = str(error)
        return
    st.session_state[CHOSEN] = code
    st.session_state["teacher_title"] = ""


def link(room: Class) -> None:
    """The code, the link and its QR code."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.markdown(say("code"))
        with st.container(key="teacher_code"):
            st.code(class_links.written(room.code), language=None)
        url = link_panel.where("teacher_address")
        whole = link_address.link(url, "lessons", {class_links.NAME: room.code})
        st.markdown(say("link"))
        st.code(whole, language=None, wrap_lines=True)
        st.caption(say("any_link"))
    with right:
        large = link_panel.code(whole, prefix="teacher")
    if large:
        link_panel.large(whole, prefix="teacher")
