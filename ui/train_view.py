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

LETTER = (
    "Dear Ada, the new flat is small but the kitchen gets the morning sun. On Monday the boiler broke and"
    " a man came with one spanner and a great deal of advice. He told me to open every window, so I did, "
    "and a pigeon walked in, looked at the sofa and left again. On Tuesday I found the market behind the "
    "station. They sell pears by the bucket and nobody believes that you only want two. The woman next "
    "door plays the cello, always the same nine bars, and always stops before the tenth. I have begun to "
    "hum the rest through the wall. Yesterday she hummed back. Work is quiet. My desk faces a brick wall "
    "with a painted door on it, and at lunch we guess where it leads. I say the sea. Write soon and tell "
    "me whether the dog still sleeps on the stairs, and who waters the lemon tree now that Tom is away. "
    "Bring a coat when you come, for the evenings are cold, and bring the blue map. Yours, June."
)


def start() -> None:
    """Start the run that the settings describe. For `on_click`; pressed twice it is one run."""
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
        paste=paste if paste.strip() else LETTER,
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
            "Start training" if idle else "Start another",
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
        st.markdown("**The next run**")
        training_form.draw()

    run_list.draw(info.id if info else None)
    try_this(
        Step(
            "Your own text, 200 steps. Training falls far below validation: the model learns it by heart.",
            "Train on my text",
            learn_by_heart,
        ),
        Step(
            "The other objective: guess hidden tokens from both sides. Its loss is another quantity.",
            "Train a masked model",
            learn_hidden,
        ),
        Step(
            "A hundredth of the learning rate. Then compare it with the run before, under the curve.",
            "Train a hundred times slower",
            learn_slowly,
        ),
    )
