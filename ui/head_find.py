"""Finding a head that follows a rule, and a row in which that can be seen."""

import streamlit as st

from engine.heads import Example, best_example
from ui import choice, lesson, passes, session
from ui.components import select
from ui.model_refs import ModelRef
from viz import format_number, format_prob
from wording import words

say = words("ui.head_find")

PRESSED = "_attention_pressed"  # (query, key) of a cell to choose in the next run
REPEATED = "The fox saw the owl. The fox saw the owl. The fox saw the owl."
CLEAR = 0.5  # of a row's weight: from here on no other token can get more
_FOUND = "_attention_found"


def written(weight: float) -> str:
    """A weight under a token."""
    return lesson.brief(weight) if weight < 0.001 else format_prob(weight)


def find(ref: ModelRef, text: str, rule: str, most: int) -> None:
    """For a button: choose the head that follows a rule, and a row that shows it, if there is one.

    Args:
        ref: the model.
        text: looked at first; a text that repeats itself is taken where this one does not show the rule.
        rule: of `engine.heads.RULES`.
        most: tokens that are drawn; of a longer text the row might not be.
    """
    found: tuple[str, Example] | None = None
    for candidate in (REPEATED,) if rule == "induction" else (text, REPEATED):
        try:
            trace = passes.traced(ref, candidate)
        except ValueError:
            continue  # the page says why this text can't be read
        example = best_example(trace, rule) if len(trace.ids) <= most else None
        if example and (found is None or example.weight > found[1].weight):
            found = candidate, example
        if found and found[1].weight >= CLEAR:
            break
    if found is None:
        session.set_text(REPEATED)
        return
    shown, example = found
    session.set_text(shown)
    select("attention_heads", (example.layer, example.head))
    place = example.query + lesson.strip_of(ref, shown).n_greyed
    choice.hold("attention_query", place, about=(ref, shown, 0))
    st.session_state[PRESSED] = (example.query, example.key)
    st.session_state[_FOUND] = (ref, shown, rule, example)


def tell(ref: ModelRef, text: str, layer: int, head: int, query: int) -> None:
    """Say what `find` has found, as long as it is looked at."""
    about, shown, rule, found = st.session_state.get(_FOUND) or (None, "", "", None)
    if found is None or (about, shown) != (ref, text):
        return
    if (layer, head, query) != (found.layer, found.head, found.query):
        return
    numbers = {"weight": format_prob(found.weight), "mean": format_number(found.mean)}
    if found.weight < CLEAR:
        st.caption(say(f"unclear.{rule}", **numbers))
    elif found.mean >= CLEAR:
        st.caption(say(f"often.{rule}", **numbers))
    else:
        st.caption(say(f"here.{rule}", **numbers))
