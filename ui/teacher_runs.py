"""Everybody's runs, for the teacher of a server: what trains and waits now, the switch for new runs, room."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from engine import new_runs
from engine.memory import free_disk
from engine.run_sizes import data_bytes
from ui import (
    class_links,
    people,
    resources,
    run_choice,
    session,
    teacher_acts,
    teacher_gate,
    teacher_old,
    teacher_table,
)
from ui.words import STATES, duration, literal, size, state_name
from viz import format_count
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo

POLL_SECONDS = 2.0
ANONYMOUS = "teacher_runs_anonymous"
say = words("ui.teacher_runs")


def draw() -> None:
    """The question for the secret, then all runs."""
    if not teacher_gate.is_teacher():
        st.markdown(say("what"))
        teacher_gate.ask("teacher")
        return
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.toggle(say("anonymous"), key=ANONYMOUS, persist_state="session", help=say("anonymous_help"))
        st.button(
            say("leave"), key="teacher_leave", icon=":material/lock:", type="tertiary",
            on_click=teacher_gate.leave, help=say("leave_help"),
        )  # fmt: skip
    run_choice.show_problem(to_teacher=True)
    teacher_acts.undo()
    infos = resources.run_store().list()
    st.fragment(_live, run_every=POLL_SECONDS)(_standing(infos))
    teacher_table.draw(infos, names(infos))
    teacher_old.draw(infos, names(infos))
    _room()


def names(infos: "Sequence[RunInfo]") -> dict[str, str]:
    """What the people of these runs are called, by the hash in `RunInfo.owner_hash`."""
    hide = bool(st.session_state.get(ANONYMOUS))
    return {owner: _name(owner, hide) for owner in {info.owner_hash for info in infos}}


def _name(owner: str, hide: bool) -> str:
    """As the board of a class has it: the name that a person gave, or their number; else a mark."""
    record = people.store().known(owner)
    if record.name and not hide:
        return record.name
    room = class_links.store().get(record.room) if record.room else None
    if room is not None:
        number = class_links.store().numbers(room.code, [owner]).get(owner, 0)
        return say("student", n=number, title=class_links.title(room))
    return say("nameless", mark=owner[:4])


def _standing(infos: "Sequence[RunInfo]") -> tuple[str, ...]:
    return tuple(f"{info.id} {info.state}" for info in infos)


def _live(standing: tuple[str, ...]) -> None:
    """What changes while runs go on. It asks anew who looks: the secret may have changed meanwhile."""
    infos = resources.run_store().list()
    if not teacher_gate.is_teacher() or _standing(infos) != standing:
        st.rerun()
    who = names(infos)
    at_work = [info for info in infos if info.active and info.state != "queued"]
    waiting = sorted((info for info in infos if info.state == "queued"), key=lambda i: i.queue_place or 0)
    with st.grid(3, min_column_width=150, gap="small"):
        st.metric(say("training"), say("of_slots", n=len(at_work), slots=resources.run_store().slots))
        st.metric(say("waiting"), format_count(len(waiting)))
        st.metric(say("ended"), format_count(len(infos) - len(at_work) - len(waiting)))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _switch()
        _stop_all(len(at_work) + len(waiting))
    for info in (*at_work, *waiting):
        _row(info, who[info.owner_hash])
    if not at_work and not waiting:
        st.caption(say("nothing_goes_on"))


def _switch() -> None:
    """Whether new runs may begin, as it stands now: another teacher may have changed it."""
    st.session_state["teacher_new_runs"] = "begin" if new_runs.may_begin(resources.home()) else "wait"
    st.segmented_control(
        say("new_runs"), ["begin", "wait"], format_func=lambda name: say(f"switch.{name}"),
        key="teacher_new_runs", required=True, help=say("new_runs_help"), on_change=_switched,
    )  # fmt: skip


def _switched() -> None:
    teacher_acts.let_begin(st.session_state.get("teacher_new_runs") == "begin")


def _stop_all(n: int) -> None:
    with st.popover(say("stop_all"), key="teacher_stop_all", icon=":material/stop:", disabled=n == 0):
        st.markdown(say("stop_all_what", n=n))
        st.button(
            say("stop_all_yes"), key="teacher_stop_all_yes", type="primary", on_click=teacher_acts.stop_all
        )


def _row(info: "RunInfo", who: str) -> None:
    color, icon = STATES[info.state]
    facts = [literal(who)]
    if info.queue_place is not None:
        facts.append(say("place", place=info.queue_place))
    else:
        facts.append(say("step", step=info.step, steps=info.steps))
    facts += [] if info.eta_s is None else [say("left", time=duration(info.eta_s))]
    facts += [literal(device(info))] if info.device else []
    facts.append(size(resources.run_store().size(info.id)))
    name = literal(info.name)
    mine = say("mine", name=name) if info.owned_by(session.owner()) else say("name", name=name)
    with st.container(
        border=True, horizontal=True, horizontal_alignment="distribute", vertical_alignment="center",
        key=f"teacher_row_{info.id}",
    ):  # fmt: skip
        badge = f":{color}-badge[{icon} {state_name(info.state)}]"
        st.markdown(f"{badge} {mine}  \n:small[{' · '.join(facts)}]", width="content")
        st.button(
            say("stop"), key=f"teacher_stop_{info.id}", icon=":material/stop:", on_click=teacher_acts.stop,
            args=([info.id],), help=say("stop_help"),
        )  # fmt: skip


def device(info: "RunInfo") -> str:
    """Where it trains, or trained."""
    return "GPU" if info.device.startswith("cuda") else info.device.upper()


def _room() -> None:
    """How much the data folder takes, and of what."""
    found = _bytes(str(resources.home().absolute()))
    st.subheader(say("room"))
    with st.grid(4, min_column_width=140, gap="small"):
        st.metric(say("all"), size(found["all"]))
        st.metric(say("runs"), size(found["runs"]))
        st.metric(say("models"), size(found["models"]))
        st.metric(say("free"), size(free_disk(resources.home())))
    st.caption(say("room_what"))


@st.cache_data(ttl=20, max_entries=4, show_spinner=False)
def _bytes(home: str) -> dict[str, int]:
    return data_bytes(resources.home())
