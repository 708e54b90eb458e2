"""Masking: one text, two objectives: what each model sees, guesses and pays for."""

import streamlit as st

from engine.tokenizer import MASK_TEXT
from ui import (
    address,
    hiding,
    infill_view,
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
from ui.model_refs import ModelRef
from wording import words

nav.require_app()
say = words("pages.masking")

PAIR = "train-a-pair"
VIEWS = {
    masking_pair.PAGE_FIRST_VIEW: masking_sentence.draw,
    "masked-batch": masking_batch.draw,
    "what-is-paid": masking_paid.draw,
    "not-comparable": masking_limits.draw,
    "fill-blanks": masking_fill.draw,
    "meaning": masking_meaning.draw,
}


def partner(ref: ModelRef) -> ModelRef | None:
    """The model of the other kind: chosen where there are several."""
    others = {other.id: other for other in hiding.partners(ref)}
    if len(others) > 1:
        labels = {name: other.label for name, other in others.items()}
        label = say("partner.masked") if ref.objective == "clm" else say("partner.causal")
        return others[address.choose(st.selectbox, label, labels, key="partner", width=330)]
    return next(iter(others.values()), None)


st.title(say("title"))
st.write(say("about"))
view = address.choose(
    st.segmented_control, say("view"), say.table("views"), key="hide",
    required=True, wrap=True, label_visibility="collapsed",
)  # fmt: skip
if view == PAIR:
    masking_pair.draw()
    nav.end_page()
model, start = session.require_model(), session.text()
lesson.need_text(start)
start = start.replace("[_]", MASK_TEXT)  # the usual way to write a blank
causal, masked = hiding.pair(model, partner(model))
if view == "fill-blanks" and model.objective == "clm" and hiding.unlike(causal, masked):
    try:
        infill_view.draw(model, start)
    except ValueError as error:
        st.error(lesson.literal(str(error)))
    nav.end_page()
if masked is None:
    st.info(say("there_no_masked_model"))
    nav.link("training", say("train_masked_model"))
    nav.end_page()
try:
    text = hiding.read(masked, start)
    both = hiding.Both(causal, masked, text, start, hiding.hidden(masked, text, start))
    VIEWS[view](both)
except ValueError as error:
    st.error(lesson.literal(str(error)))
