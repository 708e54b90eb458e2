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
from wording import words

nav.require_app()
say = words("pages.inside")

LENS, PARTS, STREAM, OFF = say("logit_lens"), "Contributions", "Stream", say("switch_off")
VIEWS = {
    LENS: (inside_lens.draw, say("what_would_model_say")),
    PARTS: (inside_parts.draw, say("which_parts_model_vote")),
    STREAM: (inside_stream.draw, say("how_long_stream_how")),
    OFF: (inside_off.draw, say("what_gets_worse_if")),
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


st.title(say("inside"))
st.write(say("see_how_guess_comes"))
ref, text = session.require_model(), session.text()
looked = inside_text.look(ref, text)
view = st.segmented_control(
    say("view"), list(VIEWS), default=LENS, required=True, key="inside", bind="query-params",
    label_visibility="collapsed",
)  # fmt: skip
draw, question = VIEWS[str(view)]
st.caption(question)
draw(looked)
lesson.try_this(
    lesson.Step(say("name_comes_back_where"), say("find_lily"), go, (LENS, RECALL)),
    lesson.Step(say("which_heads_bring_name"), say("take_apart"), go, (PARTS, RECALL)),
    lesson.Step(say("which_head_missed_most"), say("switch_off_2"), silence, (ref,)),
)
