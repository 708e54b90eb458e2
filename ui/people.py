"""How far the person before the screen is, kept on this server under a hash of their browser's word."""

from pathlib import Path

import streamlit as st

from engine.progress import Progress, ProgressStore
from ui import resources, session


def store() -> ProgressStore:
    """The files of all people."""
    return _store(str(resources.home()))


@st.cache_resource(max_entries=4, show_spinner=False)
def _store(folder: str) -> ProgressStore:
    return ProgressStore(Path(folder))


def progress() -> Progress:
    """How far this person is."""
    return store().read(session.owner())


def pass_lesson(lesson: str) -> Progress:
    """Note that this person passed a lesson."""
    return store().pass_lesson(session.owner(), lesson)


def answer(exercise: str, *, seed: int, right: bool, hints: int = 0) -> Progress:
    """Count this person's answer to an exercise."""
    return store().answer(session.owner(), exercise, seed=seed, right=right, hints=hints)


def rename(name: str | None) -> Progress:
    """Take a name, or give it up.

    Raises:
        ValueError: one sentence, if it can't be a name.
    """
    return store().rename(session.owner(), name)


def join(room: str | None) -> Progress:
    """Join a class, or leave it with None.

    Raises:
        ValueError: if that can't be the code of a class.
    """
    return store().join(session.owner(), room)


def delete() -> None:
    """Leave nothing of this person's progress."""
    store().delete(session.owner())
