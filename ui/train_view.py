"""Train a model and watch it learn: start, stop, go on, and the settings of the next run."""

from typing import Any

import streamlit as st

from ui import (
    resources,
    run_choice,
    run_curve,
    run_list,
    run_player,
    run_view,
    session,
    training_form,
    training_settings,
)
from ui.lesson import Step, try_this
from wording import words

say = words("ui.train_view")


def start() -> None:
    """Start the run that the settings describe. For `on_click`; pressed twice it is one run."""
    training_settings.fit_heads()
    try:
        run_choice.show(resources.run_store().start(training_settings.spec(), session.owner()))
    except ValueError as error:
        run_choice.problem(str(error))


def start_with(**settings: Any) -> None:
    """Change settings, then start a run named after them. For `on_click`."""
    training_settings.fill(name="", **settings)
    start()
    run_choice.point_up()


def learn_by_heart() -> None:
    """200 steps on a text of one's own: the pasted one, or else a letter."""
    paste = training_settings.value("paste")
    start_with(
        text="pasted",
        paste=paste if paste.strip() else say("letter"),
        tokenizer="characters",
        objective="clm",
        steps=200,
        learning_rate=training_settings.RATES[training_settings.value("optimizer")],
    )


def learn_hidden() -> None:
    """The same text and size, the other objective."""
    start_with(objective="mlm")


def learn_slowly() -> None:
    """The same run with a hundredth of the learning rate; the settings stay as they are."""
    rate = training_settings.value("learning_rate")
    start_with(learning_rate=rate / 100)
    training_settings.fill(learning_rate=rate)


def draw() -> None:
    """The run that is looked at, the settings of the next one, and the list of one's runs."""
    training_settings.prepare()
    resources.run_store().warm()  # the next run begins at once
    info = run_choice.shown()
    idle = info is None or not info.active
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            say("start_training") if idle else say("start_another"),
            key="training_start",
            icon=":material/rocket_launch:",
            type="primary" if idle else "secondary",
            on_click=start,
        )
        if info is not None:
            run_player.draw(info)
    run_choice.show_problem()

    top = st.container()
    left, settings = st.columns([2, 1], gap="medium")
    if info is None:
        with left:
            run_view.before_the_first_run(training_settings.value("objective"))
    else:
        with top:
            run_view.watch(info, left.container())
            with st.container(horizontal=True, vertical_alignment="center"):
                run_curve.take_away(info.id)
                run_player.time_machine(info)
    with settings, st.container(key="training_next" if info else None):  # frame.css puts it first on a phone
        st.markdown(say("next_run"))
        training_form.draw()

    run_list.draw(info.id if info else None)
    try_this(
        Step(
            say("try_my_text"),
            say("train_on_my_text"),
            learn_by_heart,
        ),
        Step(
            say("try_masked"),
            say("train_masked"),
            learn_hidden,
        ),
        Step(
            say("try_slower"),
            say("train_slower"),
            learn_slowly,
        ),
    )
