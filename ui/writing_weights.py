"""With which weights a large published model writes: its own, or those of 8 bits; and what that costs."""

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from ui import resources
from ui.model_refs import ModelRef
from ui.words import literal
from viz import format_count, format_number
from wording import words

if TYPE_CHECKING:  # it imports torch
    from engine.eight_bits import Comparison

say = words("ui.writing_weights")

KEY = "generation_weights"
FULL, EIGHT = "full", "eight"
_ASKED = "_generation_weights_asked"
_SCORED = 500  # tokens of the text on which both are compared
_CHARACTERS = 8  # of that text for each token, more than enough
_KEPT = 32  # comparisons, of all people


def offered(ref: ModelRef) -> bool:
    """Whether a model is one for which there is something to choose: large, published, and it writes."""
    return ref.kind == "hub" and ref.large and ref.objective == "clm"


def chosen(ref: ModelRef) -> ModelRef:
    """The model as this person wants it to write."""
    wanted = offered(ref) and st.session_state.get(KEY) == EIGHT
    return replace(ref, bits=8) if wanted and not _trouble(ref) else ref


def _trouble(ref: ModelRef) -> str:
    """Why a model can't write with 8 bits here; "" if it can."""
    from engine.eight_bits import trouble

    return trouble(resources.load(replace(ref, bits=32)).model)


def draw(ref: ModelRef) -> None:
    """The choice, with what is known of it; nothing for a model that has none."""
    if not offered(ref):
        return
    if trouble := _trouble(ref):
        st.caption(trouble)
        return
    if st.session_state.get(KEY) not in (FULL, EIGHT):
        st.session_state[KEY] = FULL
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            say("weights"), [FULL, EIGHT], key=KEY, required=True, persist_state="session",
            format_func=say.table("choice").__getitem__, help=say("help"),
        )  # fmt: skip
        told(ref, key="generation_weights_measure")


def told(ref: ModelRef, *, key: str) -> None:
    """What 8 bits gain and cost, measured on this machine; a button while nobody has measured it."""
    full = replace(ref, bits=32)
    found = _comparisons().get(full.identity)
    if found is None and st.session_state.pop(_ASKED, False):
        found = _measured(full)
    if found is None:
        st.button(say("measure"), key=key, on_click=_ask, help=say("measure_help", n=_SCORED))
        return
    st.caption(in_words(found))


def _ask() -> None:
    st.session_state[_ASKED] = True


def in_words(found: "Comparison") -> str:
    """A comparison in two sentences."""
    return say(
        "found",
        full_speed=format_number(found.full_speed),
        speed=format_number(found.rounded_speed),
        times=format_number(found.speedup),
        n=format_count(len(found.full)),
        full=float(found.full.mean()),
        rounded=float(found.rounded.mean()),
        cost=found.cost,
        error=found.error,
    )


@st.cache_resource(show_spinner=False)
def _comparisons() -> "dict[str, Comparison]":
    """By the identity of a model: its speed and its text are the same for all people."""
    return {}


def _measured(ref: ModelRef) -> "Comparison | None":
    from engine.corpus import python_docs
    from engine.eight_bits import compare

    tokenizer, place = resources.tokenizer(ref), st.empty()
    ids = tokenizer.encode(python_docs().text[: _CHARACTERS * _SCORED])[:_SCORED]

    def tell(done: int, n: int) -> None:
        place.progress(done / n, say("measuring"))

    try:
        pair = resources.load(ref).model, resources.load(replace(ref, bits=8)).model
        found = compare(*pair, ids, tell)
    except ValueError as error:
        st.error(literal(str(error)))
        return None
    finally:
        place.empty()
    kept = _comparisons()
    kept[ref.identity] = found
    while len(kept) > _KEPT:
        kept.pop(next(iter(kept)), None)
    return found


def on_card(ref: ModelRef) -> None:
    """One line where a model is described: that there is the choice, and what was measured of it."""
    found = _comparisons().get(ref.identity)
    st.caption(say("choice_is_there") if found is None else f"{say('choice_is_there')} {in_words(found)}")
