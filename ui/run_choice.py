"""Which run is looked at, and what is asked of the store about it."""

import time
from typing import TYPE_CHECKING, Any

import streamlit as st

from engine import new_runs
from engine.folders import room_problem, told
from engine.run_bin import UNDO_SECONDS
from ui import resources, session
from ui.lesson import literal
from wording import words

if TYPE_CHECKING:
    from engine.runs import RunInfo

say = words("ui.run_choice")

_SHOWN, _IN_ADDRESS, _PROBLEM = "_training_run", "_training_run_in_address", "_training_problem"
_POINT_UP = "_training_point_up"
_DELETED = "_training_deleted"  # when, which run, and its name


def show(run_id: str | None) -> None:
    """Look at a run. For `on_click`."""
    st.session_state[_SHOWN] = run_id


def forget(run_id: str) -> None:
    """Don't look at a run any more that has been deleted."""
    if st.session_state.get(_SHOWN) == run_id:
        st.session_state[_SHOWN] = st.session_state[_IN_ADDRESS] = None
        st.query_params.pop("run", None)


def shown() -> "RunInfo | None":
    """The run to show: the one in the address, else the one looked at last, else this person's newest."""
    state, linked = st.session_state, st.query_params.get("run")
    if linked and linked != state.get(_IN_ADDRESS):
        state[_SHOWN] = linked  # opened from a link, after a reload, or with the browser's Back
    info = _find(state.get(_SHOWN))
    if info is None:
        mine = resources.run_store().list(session.owner())
        info = next((i for i in mine if i.active), mine[0] if mine else None)
    wanted = info.id if info else None
    if wanted and wanted != linked:
        st.query_params["run"] = wanted
    elif linked and not wanted:
        del st.query_params["run"]
    state[_IN_ADDRESS] = wanted
    if wanted:
        resources.run_store().opened(wanted)
    return info


def _find(run_id: str | None) -> "RunInfo | None":
    if not run_id:
        return None
    try:
        return resources.run_store().info(run_id)
    except ValueError as error:
        show(None)
        problem(str(error))
        return None


def problem(message: str) -> None:
    """Remember a sentence that the page shows once, in its next run."""
    st.session_state[_PROBLEM] = message


def point_up() -> None:
    """Say, in the page's next run, where a run is that was started far below. For callbacks."""
    st.session_state[_POINT_UP] = True


def show_problem(*, to_teacher: bool = False) -> None:
    """Draw the sentence of `problem` and that of `point_up`; and that new runs only wait, if they do.

    Args:
        to_teacher: leave the last out, for who can change it right there.
    """
    if st.session_state.pop(_POINT_UP, False):
        st.toast(say("new_run_on_top"), icon=":material/arrow_upward:")
    message = st.session_state.pop(_PROBLEM, "")
    if message:
        st.error(literal(message))
    else:
        show_room()
    if not to_teacher and not new_runs.may_begin(resources.home()):
        st.info(say("new_runs_wait"), icon=":material/hourglass_empty:")


def show_room() -> None:
    """Say it beforehand if nothing can be kept now: a full disk, or a folder that can't be written."""
    if why := room_problem(resources.home()):
        st.warning(literal(why), icon=":material/save:")


def attempt(action: str, run_id: str, **options: Any) -> None:
    """Stop, pause, resume or keep a run; what forbids it becomes a sentence on the page. For `on_click`."""
    _attempt(action, run_id, **options)


def _attempt(action: str, run_id: str, **options: Any) -> bool:
    try:
        with told():
            getattr(resources.run_store(), action)(run_id, session.owner(), **options)
    except ValueError as error:  # among these: it is somebody else's, the disk is full
        problem(str(error))
        return False
    return True


def delete(run_id: str) -> None:
    """Delete a run; `undo` offers it back for a while. For `on_click`."""
    name = _find(run_id)
    if _attempt("delete", run_id):
        st.session_state[_DELETED] = (time.time(), run_id, name.name if name else run_id)
        forget(run_id)


def undo(key: str) -> None:
    """Draw what was deleted a moment ago, and the button that brings it back.

    Args:
        key: begins the keys of the widgets.
    """
    when, run_id, name = st.session_state.get(_DELETED, (0.0, "", ""))
    if not run_id or time.time() - when > UNDO_SECONDS:
        return
    with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_deleted"):
        st.markdown(say("deleted", name=literal(name), minutes=UNDO_SECONDS / 60), width="content")
        st.button(say("undo"), key=f"{key}_undo", icon=":material/undo:", on_click=_restore, args=(run_id,))


def _restore(run_id: str) -> None:
    st.session_state.pop(_DELETED, None)
    attempt("restore", run_id)
