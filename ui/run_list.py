"""The list of a person's runs."""

import math
import time
from typing import TYPE_CHECKING

import streamlit as st

from engine import reading
from engine.plan import parameter_count
from ui import resources, run_choice, session
from ui.lesson import literal
from ui.words import LOSS_NAMES, OBJECTIVES, STATES, duration
from viz import format_count, format_number

if TYPE_CHECKING:
    from engine.runs import RunInfo

FIRST = 6  # shown at once


def draw(shown_id: str | None) -> None:
    """All runs of this person, newest first, each with what can be done with it."""
    runs = resources.run_store().list(session.owner())
    if not runs:
        return
    st.subheader("My runs")
    st.caption("A run goes on when you leave this page or close it. You find it here, and can stop it.")
    every = len(runs) <= FIRST or st.toggle(f"Show all {len(runs)}", key="training_all")
    for info in runs if every else runs[:FIRST]:
        _row(info, shown_id)


def _row(info: "RunInfo", shown_id: str | None) -> None:
    with st.container(border=True):
        what, does = st.columns(2, vertical_alignment="center")
        color, icon = STATES[info.state]
        what.markdown(
            f":{color}-badge[{icon} {info.state}] **{literal(info.name)}**  \n:small[{_facts(info)}]"
        )
        with does.container(horizontal=True, horizontal_alignment="right"):
            _buttons(info, shown_id)


def _facts(info: "RunInfo") -> str:
    objective = info.model.objective
    facts = [
        literal(info.corpus["name"]),
        OBJECTIVES[objective],
        f"{format_count(parameter_count(info.model))} parameters",
        f"{format_count(info.steps)} steps"
        if info.active
        else f"step {format_count(info.step)} of {format_count(info.steps)}",
        f"{duration(time.time() - info.created)} ago",
    ]
    if info.active:
        return " · ".join(facts)  # what goes on changing would soon be wrong: this list is not redrawn
    now = reading.read(resources.run_store().history(info.id), info.model.vocab_size)
    if now is not None and math.isfinite(now.best_loss):
        name = "training loss" if now.val_loss is None else LOSS_NAMES[objective].lower()
        facts.append(f"best {name} {format_number(now.best_loss)}")
        if now.best_bits_per_byte is not None:
            facts.append(f"{format_number(now.best_bits_per_byte)} bits per byte")
    return " · ".join(facts)


def _buttons(info: "RunInfo", shown_id: str | None) -> None:
    if info.id != shown_id:
        st.button("Show", key=f"training_show_{info.id}", on_click=run_choice.show, args=(info.id,))
    if info.has_checkpoint:
        st.button(
            "Look inside",
            key=f"training_use_{info.id}",
            on_click=session.choose_model,
            args=(f"run:{info.id}",),
            help="All pages then use this model.",
        )
    if info.active:
        return
    if info.can_resume:
        st.button(
            "Resume",
            key=f"training_resume_{info.id}",
            on_click=_resume,
            args=(info.id,),
            help="From its last checkpoint.",
        )
    with st.popover("Delete", key=f"training_delete_{info.id}"):
        st.markdown("The run, its curve and its model are removed for good.")
        st.button(
            "Delete it",
            key=f"training_delete_yes_{info.id}",
            type="primary",
            on_click=_delete,
            args=(info.id,),
        )


def _resume(run_id: str) -> None:
    run_choice.attempt("resume", run_id)
    run_choice.show(run_id)


def _delete(run_id: str) -> None:
    run_choice.attempt("delete", run_id)
    run_choice.forget(run_id)
