"""What the teacher of a server does with anybody's runs. Nothing happens for who did not give the secret."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import streamlit as st

from engine import new_runs
from engine.folders import told
from engine.run_bin import UNDO_SECONDS
from ui import resources, run_choice, teacher_gate
from ui.words import counted
from wording import words

_DELETED = "_teacher_deleted"  # session: when, and which
say = words("ui.teacher_acts")


def stop(run_ids: Sequence[str]) -> None:
    """Stop runs with a checkpoint. For `on_click`."""
    if teacher_gate.is_teacher():
        with _told():
            resources.run_store().stop_for_teacher(*run_ids)


def stop_all() -> None:
    """Stop everything that runs or waits. For `on_click`."""
    if teacher_gate.is_teacher():
        with _told():
            stop([info.id for info in resources.run_store().list() if info.active])


def let_begin(allowed: bool) -> None:
    """Let new runs begin, or only wait. For callbacks."""
    if teacher_gate.is_teacher():
        with _told():
            new_runs.let_begin(resources.home(), allowed)
            if allowed:
                resources.run_store().pump()


@contextmanager
def _told() -> Iterator[None]:
    """What keeps it from being done becomes a sentence on the page: a full disk, a run that is gone."""
    try:
        with told():
            yield
    except ValueError as error:
        run_choice.problem(str(error))


def delete(run_ids: Sequence[str]) -> None:
    """Delete runs; for a while they can be brought back. For `on_click`."""
    if not teacher_gate.is_teacher():
        return
    gone = []
    for run_id in run_ids:
        with _told():  # it may have been started again a moment ago, or its owner was quicker
            resources.run_store().delete_for_teacher(run_id)
            gone.append(run_id)
    st.session_state[_DELETED] = (time.time(), gone)


def undo() -> None:
    """A line on what was just deleted, with the button that brings it back."""
    when, gone = st.session_state.get(_DELETED, (0.0, []))
    if not gone or time.time() - when > UNDO_SECONDS:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="teacher_deleted"):
        said = say("deleted", runs=counted(len(gone), "run"), minutes=UNDO_SECONDS / 60)
        st.markdown(said, width="content")
        st.button(say("undo"), key="teacher_undo", icon=":material/undo:", on_click=_restore)


def _restore() -> None:
    _, gone = st.session_state.pop(_DELETED, (0.0, []))
    if not teacher_gate.is_teacher():
        return
    for run_id in gone:
        with _told():
            resources.run_store().restore_for_teacher(run_id)
