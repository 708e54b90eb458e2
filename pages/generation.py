"""Generation: how a distribution becomes a word, and words a text."""

from typing import Any

import streamlit as st

from ui import (
    address,
    lesson,
    nav,
    sampling_form,
    session,
    write_view,
    writing,
    writing_weights,
    written_text,
)
from ui.branch_view import compare, switcher
from ui.dice import dice, look_at_last
from ui.draws_view import draws_view
from ui.model_refs import ModelRef
from ui.possible import possible_story
from ui.prompt import Prompt, chat_switch, framed_tokens, prompt_of
from ui.strategies_view import ask, strategies_view
from ui.tree_view import tree_view
from ui.waterfall_view import live
from wording import words

nav.require_app()
say = words("pages.generation")


def try_in(name: str, settings: dict[str, Any]) -> None:
    """For a button: set what the view uses; in Write also begin a new branch at the prompt, and write."""
    if name in ("write", "waterfall", "draws"):
        sampling_form.reset()
    st.session_state.update(settings)
    if name == "write":
        writing.begin_again()
        write_view.ask_many()
    elif name == "strategies":
        ask()


TRY: dict[str, dict[str, dict[str, Any]]] = {
    "write": {
        "greedy": {"temperature": 0.0, "top_p": 1.0},
        "hot": {"temperature": 2.5, "top_p": 1.0},
        "hot_cut": {"temperature": 2.5, "top_p": 1.0, "top_k": 3},
    },
    "waterfall": {
        "heat_first": {"temperature": 2.0, "top_p": 0.8},
        "zero": {"temperature": 0.0, "top_p": 1.0},
        "penalty": {"penalty": 1.5, "top_p": 1.0},
    },
    "strategies": {"longer": {"tokens": 150}, "seed": {"seed": 2}},
    "tree": {
        "deep": {"generation_tree_breadth": 2, "generation_tree_depth": 4, "generation_tree_beam": 4},
        "narrow": {"generation_tree_beam": 1},
    },
    "draws": {"sure": {"temperature": 0.0}, "flat": {"temperature": 3.0, "top_p": 1.0}},
}


def write(ref: ModelRef, given: Prompt) -> None:
    """One token after the other: drawn, forced, rewound, in branches."""
    ids, text = given.ids, writing.writing(ref, given)
    busy = bool(st.session_state.pop(write_view.ASKED, False))
    top, middle, below, end = (st.container() for _ in range(4))
    with middle:
        write_view.live(ref, given, text, end, alone=not busy)
    how = sampling_form.settings(ref)
    with top:
        panel, place = st.empty(), st.empty()
        write_view.buttons(text, ref, ids, how.n, busy)
        switcher(text)
        parts = written_text.halves(ref, given, text)
        panel.html(written_text.written(*parts, written_text.pieces_of(ref, text)))
        written_text.notes(ref, given.text, len(ids), text, how.stop_ids)
        writing.say_what_is_kept(text)
        possible_story(ref, given.text + text.text(ended=False))
    with below:
        dice(ref, ids, text, key=write_view.STRIP)
        compare(text)
    if busy:
        writing.write(panel, place, text, parts, ref, ids, how)
        look_at_last(text, key=write_view.STRIP)
        st.rerun()


def view(name: str, ref: ModelRef, prompt: str) -> None:
    """What the person chose to see; a ValueError says why it can't be shown."""
    if trouble := st.session_state.pop(write_view.ERROR, None):
        raise ValueError(trouble)
    chat_switch(ref)
    given = prompt_of(ref, prompt)
    framed_tokens(ref, given)
    if name == "write":
        write(ref, given)
    elif name == "strategies":
        strategies_view(ref, given)
    else:
        one_moment(name, ref, given)


def one_moment(name: str, ref: ModelRef, given: Prompt) -> None:
    """The views of where the text that is being written has come to."""
    ids, text = given.ids, writing.writing(ref, given)
    parts = written_text.halves(ref, given, text)
    st.html(written_text.written(*parts, written_text.pieces_of(ref, text)))
    if name == "waterfall":
        live(ref, [*ids, *text.ids])
    elif name == "tree":
        tree_view(ref, ids, text)
    elif name == "draws":
        draws_view(ref, [*ids, *text.ids])


st.title(nav.title("generation"))
st.write(say("intro"))
model_ref, start = writing_weights.chosen(session.require_model("clm")), session.text()
lesson.need_text(start)
sampling_form.begin()
chosen = address.choose(
    st.segmented_control, say("show"), say.table("view"), key="lab", required=True,
    label_visibility="collapsed",
)  # fmt: skip
writing_weights.draw(model_ref)
body = st.container()
lesson.try_this(
    *(
        lesson.Step(say(f"try.{name}"), say(f"try_button.{name}"), try_in, (chosen, settings))
        for name, settings in TRY[chosen].items()
    )
)
with body:
    try:
        view(chosen, model_ref, start)
    except ValueError as error:
        st.error(lesson.literal(str(error)))
