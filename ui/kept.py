"""What this server keeps about a person: seen, taken along, and deleted by them."""

import json
from dataclasses import asdict

import streamlit as st

from engine.progress import LONGEST_NAME, Progress
from ui import class_links, people
from ui.words import counted, literal
from wording import words

_PROBLEM = "_people_problem"
say = words("ui.kept")


def popover() -> None:
    """The way to it, in the sidebar."""
    with st.popover(say("open"), key="people_kept", width="stretch", on_change="rerun") as place:
        if place.open:
            draw()


def draw() -> None:
    """What is kept, and what can be done with it."""
    progress, room = people.progress(), class_links.joined()
    st.markdown(say("what"))
    if problem := st.session_state.pop(_PROBLEM, None):
        st.error(literal(problem))
    _name(progress)
    right = sum(done.right for done in progress.exercises.values())
    st.markdown(
        say(
            "record", lessons=counted(len(progress.lessons), "lesson"), right=right,
            exercises=counted(len(progress.exercises), "exercise"),
        )
    )  # fmt: skip
    if room is not None:
        st.markdown(say("in_class", title=literal(class_links.title(room))))
        st.button(say("leave"), key="people_leave", on_click=class_links.leave)
    elif progress.room:
        st.markdown(say("class_gone"))
    st.caption(say("runs_too"))
    with st.container(horizontal=True):
        st.download_button(
            say("download"), as_json(progress), "loupe-record.json", "application/json",
            key="people_download", on_click="ignore", icon=":material/download:",
        )  # fmt: skip
        sure = st.checkbox(say("sure"), key="people_sure")
        st.button(say("delete"), key="people_delete", on_click=_delete, disabled=not sure)


def as_json(progress: Progress) -> str:
    """Everything that is kept, as a file."""
    return json.dumps(asdict(progress), ensure_ascii=False, indent=1)


def _name(progress: Progress) -> None:
    st.session_state.setdefault("people_name", progress.name or "")
    st.text_input(
        say("name"), progress.name or "", key="people_name", max_chars=LONGEST_NAME, on_change=_rename,
        placeholder=say("no_name"),
    )  # fmt: skip


def _rename() -> None:
    try:
        people.rename(st.session_state.get("people_name") or None)
    except ValueError as error:
        st.session_state[_PROBLEM] = str(error)


def _delete() -> None:
    people.delete()
    for key in ("people_sure", "people_name"):
        st.session_state.pop(key, None)
