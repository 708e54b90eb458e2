"""The residual stream of one pass: read layer by layer, taken apart, measured, with parts switched off."""

import streamlit as st

from ui import (
    inside_lens,
    inside_off,
    inside_parts,
    inside_stream,
    inside_text,
    lesson,
    nav,
    session,
)
from ui.resources import ModelRef

nav.require_app()

LENS, PARTS, STREAM, OFF = "Logit lens", "Contributions", "Stream", "Switch off"
VIEWS = {
    LENS: (inside_lens.draw, "What would the model say if it stopped after each block?"),
    PARTS: (inside_parts.draw, "Which parts of the model vote for a token, and which against it?"),
    STREAM: (inside_stream.draw, "How long is the stream, and how much does each half of a block add?"),
    OFF: (inside_off.draw, "What gets worse if a part is missing?"),
}
RECALL = lesson.RECALL


def go(view: str, text: str) -> None:
    """For a button: another view of another text."""
    st.session_state["inside"] = view
    session.set_text(text)


def silence(ref: ModelRef) -> None:
    """For a button: a story in which a name comes back, without the head that is missed most there."""
    go(OFF, RECALL)
    try:
        inside_off.without_the_most_missed(ref, RECALL)
    except ValueError:
        return  # the page says why this text can't be read


st.title("Inside")
st.write(
    "See how a guess comes about, block by block. Each block adds to a stream of numbers at every token."
)
ref, text = session.require_model(), session.text()
looked = inside_text.look(ref, text)
view = st.segmented_control(
    "View", list(VIEWS), default=LENS, required=True, key="inside", bind="query-params",
    label_visibility="collapsed",
)  # fmt: skip
draw, question = VIEWS[str(view)]
st.caption(question)
draw(looked)
lesson.try_this(
    lesson.Step("A name comes back: where does the model decide on it?", "Find Lily", go, (LENS, RECALL)),
    lesson.Step("Which heads bring a name back from far away?", "Take it apart", go, (PARTS, RECALL)),
    lesson.Step("Which head is missed most in a story, and where?", "Switch it off", silence, (ref,)),
)
