"""Worked examples: small sums whose every line follows when a number changes."""

import streamlit as st

from ui import address, nav
from ui.diagram import diagram
from ui.example_list import EXAMPLES, aim, titles
from ui.words import literal
from wording import words

nav.require_app()

say = words("pages.examples")
slugs = list(EXAMPLES)


def go(slug: str) -> None:
    """For a button: show another example."""
    st.session_state["example"] = slug


def choose() -> str:
    """The list of examples, and buttons for the one before and the one after."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="examples_choice"):
        chosen = address.choose(
            st.selectbox, say("choose"), titles(), key="example", label_visibility="collapsed", width=420
        )  # so wide that on a telephone the buttons stand below it
        before, after = st.empty(), st.empty()
    at = slugs.index(chosen)
    back, forth = slugs[at - 1], slugs[(at + 1) % len(slugs)]
    before.button(
        say("previous"), key="examples_previous", on_click=go, args=(back,), icon=":material/arrow_back:"
    )
    after.button(
        say("next"), key="examples_next", on_click=go, args=(forth,), icon=":material/arrow_forward:"
    )
    return chosen


st.title(nav.title("examples"))
name = choose()
example = EXAMPLES[name]
st.write(aim(name))
try:
    example.draw()
except ValueError as error:
    st.warning(literal(str(error)))
except ArithmeticError:  # a power that no float can hold
    st.warning(say("out_of_reach"))
st.subheader(say("place"))
diagram(example.flow, lit=example.lit, key=f"examples_flow_{example.flow}")
nav.link(example.page, say("page", page=nav.title(example.page)), **example.query)
