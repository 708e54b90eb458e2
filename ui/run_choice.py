"""Which run is looked at, and what is asked of the store about it."""

from typing import TYPE_CHECKING, Any

import streamlit as st

from ui import resources, session
from ui.lesson import literal
from wording import words

if TYPE_CHECKING:
    from engine.runs import RunInfo

say = words("ui.run_choice")

_SHOWN, _IN_ADDRESS, _PROBLEM = "_training_run", "_training_run_in_address", "_training_problem"
_POINT_UP = "_training_point_up"


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


def show_problem() -> None:
    """Draw the sentence of `problem`, and that of `point_up`."""
    if st.session_state.pop(_POINT_UP, False):
        st.toast(say("new_run_on_top"), icon=":material/arrow_upward:")
    message = st.session_state.pop(_PROBLEM, "")
    if message:
        st.error(literal(message))


def attempt(action: str, run_id: str, **options: Any) -> None:
    """Stop, pause, resume or delete a run; what forbids it becomes a sentence on the page. For `on_click`."""
    try:
        getattr(resources.run_store(), action)(run_id, session.owner(), **options)
    except (ValueError, PermissionError) as error:
        problem(str(error))
