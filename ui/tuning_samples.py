"""What a model writes before and after it learned further: the same prompt, the same dice."""

import streamlit as st

from ui import lesson, session, tuning_data
from ui.model_refs import ModelRef
from ui.tuning_models import Compared
from ui.words import literal
from viz import visible
from wording import words

say = words("ui.tuning_samples")

DICE = "tuning_dice"
MOST_DICE = 99_999


def dice() -> int:
    """The control for the dice of all samples; gives their seed."""
    return int(
        st.number_input(
            say("dice"),
            0,
            MOST_DICE,
            value=1,
            key=DICE,
            persist_state="session",
            width=130,
            help=say("same_dice"),
        )
    )


def one(ref: ModelRef) -> None:
    """What a model writes now."""
    text = session.text()
    if not text.strip():
        st.caption(say("no_prompt"))
        return
    st.subheader(say("what_it_writes", name=literal(ref.name)))
    try:
        column(ref, "", text, dice())
    except ValueError as error:
        lesson.explain(error)


def two(models: Compared) -> None:
    """What it writes before and after, side by side."""
    st.subheader(say("side_by_side"))
    text = session.text()
    if not text.strip():
        st.caption(say("no_prompt"))
        return
    seed = dice()
    try:
        for ref, place, which in zip(models, st.columns(2), ("before", "after"), strict=True):
            with place:
                column(ref, title(ref, which), text, seed)
    except ValueError as error:
        st.error(literal(str(error)))
    st.caption(say("prompt_of_sidebar"))


def title(ref: ModelRef, which: str) -> str:
    """How a column is called: "before" and the start's name, "after" and the step."""
    if which == "before":
        return say("before", name=literal(ref.name))
    return say("after", step=ref.step)


def column(ref: ModelRef, name: str, prompt: str, seed: int) -> None:
    """A text as a model writes it on, word for word."""
    with st.container(border=True, height="stretch"):
        if name:
            st.markdown(f"**{name}**")
        shown(prompt + tuning_data.continued(ref, prompt, seed))


def shown(text: str) -> None:
    """A text as it is, line ends visible."""
    st.text(text.replace("\n", visible("\n") + "\n"))
