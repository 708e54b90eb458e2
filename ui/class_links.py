"""A class's link: who opens it is told what the teacher will see, and joins or not."""

from pathlib import Path

import streamlit as st

from engine.classes import Class, ClassStore, checked_code
from engine.progress import LONGEST_NAME
from ui import address, people, resources, session
from ui.words import literal
from wording import words

NAME = "class"  # in the address
_ASKED, _PROBLEM = "_class_link_asked", "_class_link_problem"
say = words("ui.class_links")


def store() -> ClassStore:
    """The classes of this server."""
    return _store(str(resources.home()))


@st.cache_resource(max_entries=4, show_spinner=False)
def _store(folder: str) -> ClassStore:
    return ClassStore(Path(folder))


def written(code: str) -> str:
    """A code as it is read out.

    >>> written("kx7m2qpa")
    'kx7m-2qpa'
    """
    return f"{code[:4]}-{code[4:]}"


def title(one: Class) -> str:
    """What a class is called; without a title, by its code. May hold any printable characters."""
    return one.title or say("untitled", code=written(one.code))


def begin() -> None:
    """Take over the class that the address names. The frame does this."""
    is_news, linked = address.news(NAME)
    if is_news:
        st.session_state[_ASKED] = linked
    address.write(NAME, st.session_state.get(_ASKED))


def notice() -> None:
    """Above a page: the question whether to join, or why that can't be."""
    asked = st.session_state.get(_ASKED)
    if not asked:
        return
    found = store().get(checked_code(asked))
    if found is None:
        with st.container(horizontal=True, vertical_alignment="center", key="class_link_unknown"):
            st.caption(say("unknown"), width="content")
            st.button(say("close"), key="class_link_close", type="tertiary", on_click=_close)
    elif found.owned_by(session.owner()):
        with st.container(key="class_link_own"):
            st.caption(say("own", title=literal(title(found))))
    elif people.progress().room != found.code:
        _ask(found)


def joined() -> Class | None:
    """The class that this person is in; None if none, or if it is gone."""
    room = people.progress().room
    return store().get(room) if room else None


def leave() -> None:
    """Leave the class. For `on_click`."""
    people.join(None)
    _close()


def _ask(found: Class) -> None:
    before = joined()
    with st.container(border=True, key="class_link_ask"):
        st.markdown(say("ask", title=literal(title(found))))
        st.markdown(say("what_is_seen"))
        if before is not None:
            st.markdown(say("leaves", title=literal(title(before))))
        if problem := st.session_state.pop(_PROBLEM, None):
            st.error(literal(problem))
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input(
                say("name"), people.progress().name or "", key="class_link_name", max_chars=LONGEST_NAME,
                placeholder=say("name_example"), width=280,
            )  # fmt: skip
            st.button(say("join"), key="class_link_join", type="primary", on_click=_join, args=(found.code,))
            st.button(say("not_now"), key="class_link_close", on_click=_close)


def _join(code: str) -> None:
    try:
        people.rename(st.session_state.get("class_link_name") or None)
    except ValueError as error:
        st.session_state[_PROBLEM] = str(error)
        return
    people.join(code)
    _close()


def _close() -> None:
    st.session_state[_ASKED] = None
