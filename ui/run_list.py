"""The list of a person's runs."""

import math
import time
from typing import TYPE_CHECKING

import streamlit as st

from engine import reading, retention
from engine.corpus import title as corpus_title
from engine.parameter_parts import parameter_count
from ui import resources, run_choice, session
from ui.lesson import literal
from ui.words import STATES, age, counted, day, objective_name, size, state_name
from viz import format_count, format_number
from wording import words

if TYPE_CHECKING:
    from engine.runs import RunInfo

say = words("ui.run_list")

FIRST = 6  # shown at once


def draw(shown_id: str | None) -> None:
    """All runs of this person, newest first, each with what can be done with it."""
    runs = resources.run_store().list(session.owner())
    run_choice.undo("training")
    if not runs:
        return
    st.subheader(say("my_runs"))
    n_bytes = sum(resources.run_store().size(info.id) for info in runs)
    total = say("all_take", runs=counted(len(runs), "run"), size=size(n_bytes))
    st.caption(f"{say('a_run_goes_on')} {total}")
    every = len(runs) <= FIRST or st.toggle(say("show_all", n_runs=len(runs)), key="training_all")
    for info in runs if every else runs[:FIRST]:
        _row(info, shown_id)


def _row(info: "RunInfo", shown_id: str | None) -> None:
    with st.container(border=True):
        what, does = st.columns(2, vertical_alignment="center")
        color, icon = STATES[info.state]
        what.markdown(
            f":{color}-badge[{icon} {state_name(info.state)}] **{literal(info.name)}**  \n"
            f":small[{_facts(info)}]"
        )
        with does.container(horizontal=True, horizontal_alignment="right"):
            _buttons(info, shown_id)


def _facts(info: "RunInfo") -> str:
    objective = info.measure
    facts = [
        literal(corpus_title(info.corpus["name"], info.corpus["kind"])),
        objective_name(objective),
        say("parameters", n=parameter_count(info.model)),
        counted(info.steps, "step")
        if info.active
        else say("step", step=format_count(info.step), steps=format_count(info.steps)),
        say("ago", time=age(time.time() - info.created)),
    ]
    if info.active:
        return " · ".join(facts)  # what goes on changing would soon be wrong: this list is not redrawn
    facts.append(size(resources.run_store().size(info.id)))
    now = reading.read(resources.run_store().history(info.id), info.n_choices)
    if now is not None and math.isfinite(now.best_loss):
        what = "training" if now.val_loss is None else objective
        facts.append(say(f"best.{what}", loss=format_number(now.best_loss)))
        if now.best_bits_per_byte is not None:
            facts.append(say("bits_per_byte", bits=format_number(now.best_bits_per_byte)))
    if info.due is not None:
        facts.append(say("will_be_deleted", day=day(max(info.due, time.time() + retention.DAY))))
    return " · ".join(facts)


def _buttons(info: "RunInfo", shown_id: str | None) -> None:
    if info.id != shown_id:
        st.button(say("show"), key=f"training_show_{info.id}", on_click=run_choice.show, args=(info.id,))
    if info.has_checkpoint:
        st.button(
            say("look_inside"),
            key=f"training_use_{info.id}",
            on_click=session.choose_model,
            args=(f"run:{info.id}",),
            help=say("look_inside_help"),
        )
    if info.active:
        return
    if info.can_resume:
        st.button(
            say("resume"),
            key=f"training_resume_{info.id}",
            on_click=_resume,
            args=(info.id,),
            help=say("resume_help"),
        )
    st.button(
        say("kept") if info.kept else say("keep"),
        key=f"training_keep_{info.id}",
        icon=":material/bookmark_added:" if info.kept else ":material/bookmark_add:",
        type="tertiary",
        on_click=run_choice.attempt,
        args=("keep", info.id),
        kwargs={"wanted": not info.kept},
        help=say("kept_help") if info.kept else say("keep_help"),
    )
    with st.popover(say("delete"), key=f"training_delete_{info.id}"):
        st.markdown(say("removed", size=size(resources.run_store().size(info.id))))
        st.button(
            say("delete_it"),
            key=f"training_delete_yes_{info.id}",
            type="primary",
            on_click=run_choice.delete,
            args=(info.id,),
        )


def _resume(run_id: str) -> None:
    run_choice.attempt("resume", run_id)
    run_choice.show(run_id)
