"""Which models are on this machine, how large they are, where they compute, and how to get more."""

import streamlit as st

from ui import address, lesson, model_card, model_get, model_list, model_progress, model_refs, nav, session
from wording import words

nav.require_app()
say = words("pages.models")

st.title(nav.title("models"))
st.write(say("intro"))
view = address.choose(
    st.segmented_control, say("view"), say.table("views"), key="models", required=True, wrap=True,
    label_visibility="collapsed",
)  # fmt: skip


def look_at_largest() -> None:
    """For a button: the model with the most parameters."""
    refs = model_refs.available_models(session.owner())
    if refs:
        st.session_state[model_list.LOOK] = max(refs, key=lambda ref: ref.n_params).id


def get_one() -> None:
    """For a button: the view that brings models."""
    st.session_state["models"] = "get"


if view == "here":
    if model_progress.running():
        model_progress.draw()
    chosen = model_list.choose()
    if chosen is not None:
        model_card.draw(chosen)
        with st.expander(say("all")):
            model_list.table()
    model_list.broken()
    lesson.try_this(
        lesson.Step(say("try.largest"), say("try.largest_button"), look_at_largest),
        lesson.Step(say("try.get"), say("try.get_button"), get_one),
    )
else:
    model_get.draw()
