"""All runs on this server: the queue, the limits, and the best of each text by bits per byte."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from ui import class_board, resources, run_choice, session
from ui.class_board import WATCHED
from ui.words import duration, literal, state_name
from viz import format_count
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo

say = words("ui.class_view")

POLL_SECONDS = 2.0  # while anything runs or waits
FIRST = 8  # runs of a list that are named


def draw() -> None:
    """The board of a class: who trains now, who waits, and who got furthest with each text."""
    run_choice.show_problem()
    infos = resources.run_store().list()
    if not infos:
        _nobody_yet()
        return
    boards = class_board.boards()
    what, size = st.columns([3, 1], vertical_alignment="bottom")
    with what:
        chosen = class_board.choose(boards) if boards else None
    large = size.toggle(
        say("large_letters"), key="class_large", bind="query-params",
        help=say("large_letters_help"),
    )  # fmt: skip
    st.fragment(_live, run_every=POLL_SECONDS if any(i.active for i in infos) else None)(
        chosen, large, _standing(infos), tuple(class_board.key(b) for b in boards)
    )


def _standing(infos: "Sequence[RunInfo]") -> bool:
    return any(info.active for info in infos)


def _live(
    chosen: class_board.Key | None, large: bool, active: bool, known: tuple[class_board.Key, ...]
) -> None:
    """What changes while runs go on."""
    infos = resources.run_store().list()
    boards = class_board.boards()
    if (
        st.session_state.pop(WATCHED, False)
        or _standing(infos) != active
        or {class_board.key(board) for board in boards} != set(known)
    ):
        st.rerun()  # to another view, at another pace, or with another text to choose
    board = next((board for board in boards if class_board.key(board) == chosen), None)
    if board is not None:
        class_board.draw(board, large)
    else:
        st.info(say("nothing_measured"))
    _queue(infos, large)


def _queue(infos: "Sequence[RunInfo]", large: bool) -> None:
    """Who trains and who waits, and how many may at once."""
    slots = resources.run_store().slots
    at_work = [info for info in infos if info.active and info.state != "queued"]
    waiting = sorted((info for info in infos if info.state == "queued"), key=lambda i: i.queue_place or 0)
    st.subheader(say("now"))
    with st.grid(3, min_column_width=150, gap="small"):
        st.metric(say("training"), say("of_slots", n=len(at_work), slots=slots))
        st.metric(say("waiting"), format_count(len(waiting)))
        st.metric(say("ended"), format_count(len(infos) - len(at_work) - len(waiting)))
    st.caption(say("limit", n=slots))
    size = "#### " if large else ""
    for info in at_work[:FIRST]:
        facts = [_name(info), say("step", step=info.step, steps=info.steps)]
        facts += [] if info.state == "running" else [state_name(info.state)]
        facts += [] if info.eta_s is None else [say("left", time=duration(info.eta_s))]
        text = size + " · ".join(facts)
        st.progress(min(1.0, info.step / max(info.steps, 1)), text)
    _rest(len(at_work))
    for info in waiting[:FIRST]:
        st.markdown(size + say("place", place=info.queue_place, name=_name(info)))
    _rest(len(waiting))
    for info in [i for i in infos if i.state == "failed" and i.owned_by(session.owner())][:2]:
        st.warning(say("ended_early", name=literal(info.name), message=literal(info.message)))


def _rest(n: int) -> None:
    if n > FIRST:
        st.caption(say("more", n=n - FIRST))


def _name(info: "RunInfo") -> str:
    name = literal(info.name)
    return say("my_name", name=name) if info.owned_by(session.owner()) else say("name", name=name)


def _nobody_yet() -> None:
    st.info(say("nobody_yet"))
    st.button(say("go_train"), key="class_go_train", on_click=class_board.go_train, type="primary")
