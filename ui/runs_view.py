"""A person's runs side by side: curves, what differs, bands over seeds, and files to take away."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from ui import (
    resources,
    run_choice,
    runs_choice,
    runs_files,
    runs_picture,
    runs_seeds,
    runs_tables,
    session,
    training_settings,
)
from ui.lesson import Step, literal, try_this
from ui.runs_choice import RunSet
from ui.words import MEASURES, objective_name
from wording import words

say = words("ui.runs_view")

POLL_SECONDS = 3.0  # while one of them goes on


def draw() -> None:
    """Choose runs; see them on the same axes, what differs between them, and what the seed alone does."""
    training_settings.prepare()
    run_choice.show_problem()
    offered = runs_choice.offered()
    if not offered:
        _nothing_yet()
        return
    sets = runs_choice.draw(offered)
    look = runs_picture.controls()
    if not sets:
        st.info(say("choose_above"))
    else:
        going = any(each.active for each in sets)
        st.fragment(_together, run_every=POLL_SECONDS if going else None)(
            tuple(each.id for each in sets), _standing(sets), look
        )
        runs_tables.differences(sets)
        for objective in MEASURES:
            alike = [each for each in sets if each.objective == objective]
            if alike and (objective == sets[0].objective or len(alike) > 1):
                runs_seeds.draw(alike, [runs_tables.result(each) for each in alike])
    runs_files.draw(sets)
    _try(sets)


def _standing(sets: Sequence[RunSet]) -> tuple[str, ...]:
    return tuple(f"{info.id} {info.state}" for each in sets for info in each.infos)


def _together(ids: tuple[str, ...], standing: tuple[str, ...], look: runs_picture.Look) -> None:
    """The pictures and the results, anew while a run goes on."""
    by_id = {each.id: each for each in runs_choice.offered()}
    sets = runs_choice.lettered([by_id[run_id] for run_id in ids if run_id in by_id])
    if _standing(sets) != standing:
        st.rerun()
    kinds = [objective for objective in MEASURES if any(each.objective == objective for each in sets)]
    if len(kinds) > 1:
        st.info(
            say("two_pictures"),
            icon=":material/info:",
        )
    for objective in kinds:
        alike = [each for each in sets if each.objective == objective]
        if len(kinds) > 1:
            st.markdown(say("guesses", objective=objective_name(objective)))
        shared = runs_picture.draw(alike, look)
        kept = [alike[i] for i in shared.kept]
        runs_tables.results(kept, [runs_tables.result(each) for each in kept], shared.quantity)


def _nothing_yet() -> None:
    st.info(say("no_run_yet"))
    st.button(say("go_train"), key="runs_go_train", on_click=go_train, type="primary")
    runs_files.draw([])


def go_train() -> None:
    """Open the Train view. For `on_click`."""
    st.session_state["watch"] = "train"


def _try(sets: Sequence[RunSet]) -> None:
    rate = training_settings.value("learning_rate")
    mine = next((each for each in sets if each.mine and not each.active), None)
    steps = [
        Step(
            say("try_third_rate", rate=rate / 3),
            say("third_rate"),
            _start,
            ("learning_rate", rate / 3),
        ),
        Step(
            say("try_characters"),
            say("characters"),
            _start,
            ("tokenizer", "characters"),
        ),
    ]
    if mine is not None:
        text = say("try_seeds", tag=literal(mine.tag))
        steps.insert(0, Step(text, say("four_more_seeds"), runs_seeds.repeat, (mine,)))
    try_this(*steps, key="runs_try")


def _start(setting: str, value: Any) -> None:
    """Start the run of the Train view with one setting changed, which then is as it was. For callbacks."""
    before = training_settings.value(setting)
    training_settings.fill(**{setting: value})
    try:
        runs_choice.add(resources.run_store().start(training_settings.spec(), session.owner()))
    except ValueError as error:
        run_choice.problem(str(error))
    training_settings.fill(**{setting: before})
