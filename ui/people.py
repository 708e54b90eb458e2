"""How far the person before the screen is, kept on this server under a hash of their browser's word."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st

from engine.folders import why_not
from engine.owners import owner_hash
from engine.progress import Progress, ProgressStore
from ui import resources, session
from ui.words import literal
from wording import words

say = words("ui.people")
_PROBLEM = "_people_not_kept"


def store() -> ProgressStore:
    """The files of all people."""
    return _store(str(resources.home()))


@st.cache_resource(max_entries=4, show_spinner=False)
def _store(folder: str) -> ProgressStore:
    return ProgressStore(Path(folder))


def progress() -> Progress:
    """How far this person is; nothing done if the folder can't be read now."""
    try:
        return store().read(session.owner())
    except OSError as error:
        return _not_kept(error)


def pass_lesson(lesson: str) -> Progress:
    """Note that this person passed a lesson."""
    try:
        return store().pass_lesson(session.owner(), lesson)
    except OSError as error:
        return _not_kept(error)


def answer(exercise: str, *, seed: int, right: bool, hints: int = 0) -> Progress:
    """Count this person's answer to an exercise."""
    try:
        return store().answer(session.owner(), exercise, seed=seed, right=right, hints=hints)
    except OSError as error:
        return _not_kept(error)


def _not_kept(error: OSError) -> Progress:
    """The folder can't be used, but work goes on: an answer is marked all the same."""
    st.session_state[_PROBLEM] = say("not-kept", why=literal(_why(error)))
    return Progress(owner_hash(session.owner()))


def _why(error: OSError) -> str:
    return str(error) if error.errno is None else why_not(error)  # one without a number is a sentence


@contextmanager
def keeping() -> Iterator[None]:
    """For callbacks: what can't be kept now becomes a sentence on the page instead of an error."""
    try:
        yield
    except OSError as error:
        st.session_state[_PROBLEM] = literal(_why(error))


def tell() -> None:
    """Say what went wrong since the last run, which may have been in a callback. For the frame."""
    if problem := st.session_state.pop(_PROBLEM, None):
        st.toast(problem, icon=":material/warning:")


def rename(name: str | None) -> Progress:
    """Take a name, or give it up.

    Raises:
        ValueError: one sentence, if it can't be a name.
    """
    return store().rename(session.owner(), name)


def join(room: str | None) -> None:
    """Join a class, or leave it with None; what keeps that from being noted is said on the page.

    Raises:
        ValueError: if that can't be the code of a class.
    """
    with keeping():
        store().join(session.owner(), room)


def delete() -> None:
    """Leave nothing of this person's progress."""
    with keeping():
        store().delete(session.owner())
