"""The table of everybody's runs with its filters, and what the teacher does with one of them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import streamlit as st

from ui import nav, resources, teacher_acts
from ui.words import literal, size, state_name
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo

MOST = 500  # rows that are drawn
_LATEST, _MOST = 4_102_444_800, 2**53  # no number of one run may cost the teacher the table of all
WHEN = "YYYY-MM-DD HH:mm"
GROUPS = {
    "active": ("queued", "starting", "running", "paused"),
    "stopped": ("stopped",),
    "finished": ("finished",),
    "failed": ("failed",),
}
SELDOM = ("place", "kept")  # columns that stand there only where a run has something in them
_STATE, _WHO, _FIND, _ONE = "teacher_state", "teacher_who", "teacher_find", "teacher_one"
say = words("ui.teacher_table")


def draw(infos: "Sequence[RunInfo]", names: Mapping[str, str]) -> None:
    """Filters, table, one run.

    Args:
        infos: all runs, the newest first.
        names: what their people are called, by `RunInfo.owner_hash`.
    """
    st.subheader(say("title"))
    found = _filtered(infos, names)
    if not infos:
        st.info(say("none"))
    elif not found:
        st.info(say("none_such"))
    else:
        _table(found[:MOST], names)
        if len(found) > MOST:
            st.caption(say("only", n=MOST, total=len(found)))
        _one(found, names)
    if broken := resources.run_store().unreadable():
        st.warning(say("unreadable", n=len(broken), names=literal(", ".join(broken[:5]))))


def _filtered(infos: "Sequence[RunInfo]", names: Mapping[str, str]) -> "list[RunInfo]":
    with st.container(horizontal=True, vertical_alignment="bottom"):
        groups = say.table("group")
        states = st.pills(
            say("state"), list(GROUPS), format_func=lambda name: groups.get(name, name), key=_STATE,
            selection_mode="multi", persist_state="session", wrap=True,
        )  # fmt: skip
        people = {owner: names[owner] for owner in sorted(names, key=lambda owner: names[owner].casefold())}
        if st.session_state.get(_WHO) not in people:
            st.session_state[_WHO] = None
        who = st.selectbox(
            say("who"), list(people), format_func=lambda owner: people.get(owner, ""), key=_WHO, index=None,
            placeholder=say("everybody"), persist_state="session", width=180,
        )  # fmt: skip
        typed = st.text_input(say("find"), key=_FIND, persist_state="session", max_chars=80, width=180)
    wanted = {state for name in states or () for state in GROUPS[name]}
    find = typed.strip().casefold()
    return [
        info
        for info in infos
        if (not wanted or info.state in wanted)
        and (who is None or info.owner_hash == who)
        and (find in info.name.casefold() or find in info.id)
    ]


def _table(found: "Sequence[RunInfo]", names: Mapping[str, str]) -> None:
    store, titles = resources.run_store(), say.table("column")
    rows: dict[str, list[object]] = {
        "run": [info.name for info in found],
        "who": [names[info.owner_hash] for info in found],
        "state": [state_name(info.state) for info in found],
        "place": [info.queue_place for info in found],
        "age": [datetime.fromtimestamp(min(max(0, int(info.created)), _LATEST), UTC) for info in found],
        "step": [min(info.step, _MOST) for info in found],
        "steps": [min(info.steps, _MOST) for info in found],
        "size": [store.size(info.id) / 1e6 for info in found],
        "device": ["GPU" if info.device.startswith("cuda") else info.device.upper() for info in found],
        "kept": [info.kept for info in found],
    }
    rows = {name: values for name, values in rows.items() if name not in SELDOM or any(values)}
    column = st.column_config
    st.dataframe(
        {titles[name]: values for name, values in rows.items()},
        hide_index=True,
        key="teacher_table",
        height="content" if len(found) < 12 else 420,
        placeholder="–",
        column_config={
            titles["run"]: column.TextColumn(width="medium"),
            titles["age"]: column.DatetimeColumn(format=WHEN, timezone=st.context.timezone),
            titles["step"]: column.NumberColumn(format="localized"),
            titles["steps"]: column.NumberColumn(format="localized"),
            titles["size"]: column.NumberColumn(format="%.1f"),
        },
    )


def _one(found: "Sequence[RunInfo]", names: Mapping[str, str]) -> None:
    """Look at, stop or delete one run."""
    by_id = {info.id: info for info in found}
    if st.session_state.get(_ONE) not in by_id:
        st.session_state[_ONE] = found[0].id
    with st.container(horizontal=True, vertical_alignment="bottom"):
        run_id = st.selectbox(
            say("one"), list(by_id), key=_ONE, width=420,
            format_func=lambda one: _label(by_id[one], names) if one in by_id else "",
        )  # fmt: skip
        info = by_id.get(str(run_id), found[0])
        nav.link("training", say("open"), run=info.id)
        if info.active:
            st.button(
                say("stop"), key="teacher_stop_one", icon=":material/stop:", on_click=teacher_acts.stop,
                args=([info.id],),
            )  # fmt: skip
        else:
            _delete(info, names)


def _label(info: "RunInfo", names: Mapping[str, str]) -> str:
    return say("label", name=info.name, who=names[info.owner_hash], end=info.id[-4:])


def _delete(info: "RunInfo", names: Mapping[str, str]) -> None:
    with st.popover(say("delete"), key="teacher_delete_one", icon=":material/delete:"):
        facts = {"name": literal(info.name), "who": literal(names[info.owner_hash])}
        facts |= {"size": size(resources.run_store().size(info.id))}
        st.markdown(say("delete_what", **facts))
        if info.kept:
            st.markdown(say("is_kept"))
        sure = st.checkbox(say("sure"), key=f"teacher_sure_{info.id}")
        st.button(
            say("delete_yes"), key="teacher_delete_one_yes", type="primary", disabled=not sure,
            on_click=teacher_acts.delete, args=([info.id],),
        )  # fmt: skip
