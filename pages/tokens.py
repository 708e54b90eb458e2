"""How a text becomes numbers: the pieces and their ids, in one vocabulary or in many."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from ui import (
    address,
    lesson,
    merge_lab,
    nav,
    session,
    tokens_compare,
    tokens_languages,
    tokens_pieces,
    vocabularies,
)
from wording import words

nav.require_app()

say = words("pages.tokens")
OWN = vocabularies.OWN  # the model’s vocabulary; without a model another one
FAMILY = "Zoë saw a 👨‍👩‍👧 at 9:45."
SPACES = "a cat\na  cat\n\ta cat"
CONTROL = "The end.<|endoftext|>Once upon a time, a [MASK] sang."
NUMBERS = "In 1999, 3.14159 × 1,000,000 = 3,141,590."
CODE = "def area(r):\n    return 3.14 * r**2  # a circle"
HINDI = tokens_languages.SENTENCES["hi"]


def show(text: str, option: str | None = None, view: str = "pieces") -> None:
    """For a button: put a text, and perhaps a vocabulary, in place."""
    session.set_text(text)
    st.session_state["view"] = view
    st.session_state["tokens_special"] = False
    options = vocabularies.options(session.model())
    st.session_state["tokens_vocabulary"] = option if option in options else options[0]


def compare_language(language: str) -> None:
    """For a button: choose a language."""
    st.session_state["tokens_language"] = language


def see(text: str) -> None:
    """For a button: the same view, another text."""
    session.set_text(text)


STEPS: dict[str, dict[str, tuple[Callable[..., None], tuple[Any, ...]]]] = {
    "pieces": {
        "family": (show, (FAMILY, "bytes")),
        "spaces": (show, (SPACES, OWN)),
        "control": (show, (CONTROL, OWN)),
    },
    "side-by-side": {"numbers": (see, (NUMBERS,)), "program": (see, (CODE,)), "hindi": (see, (HINDI,))},
    "languages": {
        "chinese": (compare_language, ("zh",)),
        "german": (compare_language, ("de",)),
        "cuts": (show, (HINDI, None, "side-by-side")),
    },
}


def step(name: str, action: Callable[..., None], args: tuple[Any, ...]) -> lesson.Step:
    """Something to try, with its words."""
    return lesson.Step(say(f"try.{name}.text"), say(f"try.{name}.button"), action, args)


st.title(nav.title("tokens"))
place = st.empty()
written = session.text()
view = address.choose(
    st.segmented_control, say("view_label"), say.table("view"), key="view", required=True, wrap=True,
    label_visibility="collapsed",
)  # fmt: skip
place.write(say(f"about.{view}"))
if view == "languages":
    tokens_languages.draw()
else:
    lesson.need_text(written)
    if view == "side-by-side":
        tokens_compare.draw(written)
    elif view == "train-your-own":
        merge_lab.draw(written)
    else:
        tokens_pieces.draw(written)
if view in STEPS:
    lesson.try_this(*(step(name, *does) for name, does in STEPS[view].items()))
