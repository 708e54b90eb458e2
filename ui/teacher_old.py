"""Runs that ended long ago, deleted together: the list first, then the question."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from engine import retention
from ui import resources, teacher_acts
from ui.words import age, size
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo

DAY = 86_400.0
DAYS_AT_FIRST, MOST_DAYS = 30, 3650
_DAYS, _SURE = "teacher_old_days", "teacher_old_sure"
say = words("ui.teacher_old")


def draw(infos: "Sequence[RunInfo]", names: Mapping[str, str]) -> None:
    """How old, the list, and the button.

    Args:
        infos: all runs.
        names: what their people are called, by `RunInfo.owner_hash`.
    """
    with st.expander(say("title"), key="teacher_old", icon=":material/auto_delete:"):
        days = st.number_input(
            say("days"), 0, MOST_DAYS, DAYS_AT_FIRST, key=_DAYS, persist_state="session", width=320,
            on_change=_ask_anew,
        )  # fmt: skip
        now = time.time()
        found = [info for info in old(infos, float(days), now) if not info.kept]
        n_kept = len(old(infos, float(days), now)) - len(found)
        if found:
            _list(found, names, now)
            _ask(found)
        else:
            st.caption(say("none"))
        if n_kept:
            st.caption(say("kept", n=n_kept))
        if keep_days := retention.keep_days():
            st.caption(say("by_itself", n=round(keep_days)))
        else:
            st.caption(say("for_ever", variable=retention.VARIABLE))


def old(infos: "Sequence[RunInfo]", days: float, now: float) -> "list[RunInfo]":
    """Runs that ended, and that nothing has changed for so many days."""
    return [info for info in infos if not info.active and now - info.updated >= days * DAY]


def _list(found: "Sequence[RunInfo]", names: Mapping[str, str], now: float) -> None:
    store, titles = resources.run_store(), say.table("column")
    rows = {
        "run": [info.name for info in found],
        "who": [names[info.owner_hash] for info in found],
        "age": [age(now - info.updated) for info in found],
        "size": [size(store.size(info.id)) for info in found],
    }
    st.dataframe(
        {titles[name]: values for name, values in rows.items()}, hide_index=True, key="teacher_old_list",
        height="content" if len(found) < 10 else 360,
    )  # fmt: skip


def _ask(found: "Sequence[RunInfo]") -> None:
    n_bytes = sum(resources.run_store().size(info.id) for info in found)
    sure = st.checkbox(say("sure", n=len(found), size=size(n_bytes)), key=_SURE)
    st.button(
        say("delete", n=len(found)), key="teacher_old_delete", type="primary", icon=":material/delete:",
        disabled=not sure, on_click=_delete, args=([info.id for info in found],),
    )  # fmt: skip


def _ask_anew() -> None:
    """A yes to one list is none to another."""
    st.session_state[_SURE] = False


def _delete(run_ids: Sequence[str]) -> None:
    teacher_acts.delete(run_ids)
    st.session_state[_SURE] = False
