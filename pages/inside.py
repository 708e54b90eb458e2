"""The residual stream of one pass: read layer by layer, taken apart, measured, with parts switched off."""

import streamlit as st

from ui import (
    address,
    inside_alone,
    inside_lens,
    inside_off,
    inside_parts,
    inside_stream,
    inside_text,
    lesson,
    nav,
    session,
)
from ui.components import current
from ui.model_refs import ModelRef
from ui.part import part
from wording import words

nav.require_app()
say = words("pages.inside")


def switch_off(looked: inside_text.Looked) -> None:
    """The view of parts that are switched off: those that are chosen, then each alone."""
    inside_off.draw(looked)
    inside_alone.draw(looked)


DRAW = {
    "logit-lens": inside_lens.draw,
    "contributions": inside_parts.draw,
    "stream": inside_stream.draw,
}
RECALL = lesson.RECALL


def draw(name: str, of: inside_text.Looked, chip: int) -> None:
    """A view whose controls change nothing else, but for its maps, in which a token can be chosen."""
    if current(inside_text.STRIP, chip) != chip:
        st.rerun()
    DRAW[name](of)


def go(view: str, text: str) -> None:
    """For a button: another view of another text."""
    st.session_state["inside"] = view
    session.set_text(text)


def silence(ref: ModelRef) -> None:
    """For a button: a story in which a name comes back, without the head that is missed most there."""
    go("switch-off", RECALL)
    try:
        inside_alone.want_the_most_missed(ref, RECALL)
    except ValueError:
        return  # the page says why this text can't be read


st.title(nav.title("inside"))
st.write(say("intro"))
ref, text = session.require_model(), session.text()
inside_alone.prepare()
looked = inside_text.look(ref, text)
view = address.choose(
    st.segmented_control, say("choose"), say.table("view"), key="inside", required=True,
    label_visibility="collapsed",
)  # fmt: skip
st.caption(say(f"question.{view}"))
if view == "switch-off":
    switch_off(looked)
else:
    part(draw)(view, looked, current(inside_text.STRIP, 0))
lesson.try_this(
    lesson.Step(say("try.lens"), say("try.lens_button"), go, ("logit-lens", RECALL)),
    lesson.Step(say("try.parts"), say("try.parts_button"), go, ("contributions", RECALL)),
    lesson.Step(say("try.off"), say("try.off_button"), silence, (ref,)),
)
