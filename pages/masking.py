"""Masking: one text, two objectives: what each model sees, guesses and pays for."""

import streamlit as st

from ui import (
    hiding,
    lesson,
    masking_batch,
    masking_fill,
    masking_limits,
    masking_meaning,
    masking_paid,
    masking_pair,
    masking_sentence,
    nav,
    session,
)
from ui.resources import ModelRef

nav.require_app()

PAIR = "Train a pair"
VIEWS = {
    masking_pair.PAGE_FIRST_VIEW: masking_sentence.draw,
    "Masked batch": masking_batch.draw,
    "What is paid": masking_paid.draw,
    "Not comparable": masking_limits.draw,
    "Fill blanks": masking_fill.draw,
    "Meaning": masking_meaning.draw,
}


def partner(ref: ModelRef) -> ModelRef | None:
    """The model of the other kind: chosen where there are several."""
    others = {other.label: other for other in hiding.partners(ref)}
    if len(others) > 1:
        if st.session_state.get("partner") not in others:
            st.session_state.pop("partner", None)
        kind = "masked" if ref.objective == "clm" else "causal"
        chosen = st.selectbox(
            f"The {kind} model", list(others), key="partner", bind="query-params", width=330
        )
        return others[str(chosen)]
    return next(iter(others.values()), None)


st.title("Masking")
st.write("Hide a token and let two models guess it: one sees both sides of the gap, the other only its left.")
view = st.segmented_control(
    "View", [*VIEWS, PAIR], default=next(iter(VIEWS)), required=True, key="hide", bind="query-params",
    wrap=True, label_visibility="collapsed",
)  # fmt: skip
if view == PAIR:
    masking_pair.draw()
    st.stop()
model, start = session.require_model(), session.text()
lesson.need_text(start)
causal, masked = hiding.pair(model, partner(model))
if masked is None:
    st.info("There is no masked model yet. Train one on the Training page: choose the objective “masked”.")
    nav.link("training", "Train a masked model")
    st.stop()
try:
    text = hiding.read(masked, start)
    both = hiding.Both(causal, masked, text, start, hiding.hidden(masked, text, start))
    VIEWS[str(view)](both)
except ValueError as error:
    st.error(lesson.literal(str(error)))
