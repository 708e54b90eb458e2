"""How an id becomes a vector, how its position gets in, and which vectors are alike."""

import re
from functools import partial

import streamlit as st

from ui import (
    address,
    choice,
    embedding_data,
    embedding_lookup,
    embedding_map,
    embedding_neighbours,
    embedding_norms,
    embedding_position,
    lesson,
    model_refs,
    nav,
    passes,
    resources,
    session,
)
from ui.again import Again
from ui.components import select, token_strip
from ui.embedding_data import Chosen
from ui.model_refs import ModelRef
from ui.part import part
from wording import words

nav.require_app()
say = words("pages.embeddings")

VIEWS = {
    "look-up": embedding_lookup.draw,
    "position": embedding_position.draw,
    "neighbours": embedding_neighbours.draw,
    "map": embedding_map.draw,
    "length": embedding_norms.draw,
}
LARGE = 5000  # tokens; a list of more would take long to send
NAME = "Once upon a time, there was a princess called Lily"


def token_key(ref: ModelRef) -> str:
    """Key of the choice of any token: another vocabulary has other ids."""
    return f"embeddings_token_{resources.tokenizer(ref).hash}_{ref.objective}"


def any_token(ref: ModelRef, about: object) -> int | None:
    """A token that need not be in the text; None for the one chosen there. A new choice there ends it."""
    key, state = token_key(ref), st.session_state
    if state.get("_embeddings_about") not in (None, about):
        state[key] = None
    state["_embeddings_about"] = about
    called = embedding_data.names(ref)
    if len(called) <= LARGE:
        found = st.selectbox(
            say("another"), range(len(called)), index=None, key=key, persist_state="session",
            placeholder=say("another_hint"), label_visibility="collapsed",
            format_func=lambda i: f"{called[i]}  (id {i})",
        )  # fmt: skip
        return None if found is None else int(found)
    written = st.text_input(
        say("another"), key=key, persist_state="session", label_visibility="collapsed",
        placeholder=say("typed_hint"),
    )  # fmt: skip
    if by_id := re.fullmatch(r"id (\d{1,9})", written or ""):  # also tokens that no text gives
        if int(by_id[1]) < len(called):
            return int(by_id[1])
        st.caption(say("no_such_id", last=len(called) - 1))
        return None
    ids = resources.tokenizer(ref).encode(written or "")
    if len(ids) > 1:
        st.caption(say("several", n=len(ids)))
    return ids[0] if ids else None


def look_at(view: str, text: str | None = None) -> None:
    """For a button: open a view, perhaps on the last token of a text."""
    st.session_state["vectors"] = view
    ref = session.model()
    if text is not None and ref is not None:
        session.set_text(text)
        st.session_state[token_key(ref)] = None
        n = len(passes.window(ref, text).tokens)
        select("embeddings_strip", n - 1)


def look_at_first_step(ref: ModelRef) -> None:
    """For a button: the map before training, or in 3-D if there is only one moment."""
    look_at("map")
    if len(model_refs.history(ref)) > 1:
        embedding_map.first_step(ref)
    else:
        st.session_state["embeddings_axes"] = 3


def look_at_rarest(about: Chosen) -> None:
    """For a button: the rarest token beside the most frequent one."""
    look_at("length")
    token_id = embedding_norms.rarest(about)
    large = len(embedding_data.names(about.ref)) > LARGE
    st.session_state[token_key(about.ref)] = f"id {token_id}" if large else token_id


st.title(nav.title("embeddings"))
st.write(say("intro"))

ref, text = session.require_model(), session.text()
trace = lesson.look(ref, text)
strip = lesson.strip_of(ref, text)
last = strip.n_greyed + len(trace.tokens) - 1
choice.begin("embeddings_strip", last, about=(ref, text), names=("pos",), first=-strip.n_greyed)
index = token_strip(
    strip.segments, key="embeddings_strip", selected=last, greyed=range(strip.n_greyed),
    label=say("strip"),
)  # fmt: skip
position = max((last if index is None else index) - strip.n_greyed, 0)
choice.share({"pos": position})

with st.container(horizontal=True, vertical_alignment="bottom"):
    view = address.choose(
        st.segmented_control, say("view_label"), say.table("view"), key="vectors", required=True, wrap=True,
        label_visibility="collapsed",
    )  # fmt: skip
    token_id = int(trace.ids[position])
    if view != "position":
        other = any_token(ref, (ref, text, position))
        token_id = token_id if other is None else other
chosen = Chosen(ref, text, Again(trace, partial(passes.traced, ref, text)), position, token_id)
part(VIEWS[view])(chosen)

least = "shortest" if embedding_data.untold(ref) else "rarest"
first = "first_step" if len(model_refs.history(ref)) > 1 else "turn"
lesson.try_this(
    lesson.Step(say("try.lily.text"), say("try.lily.button"), look_at, ("neighbours", NAME)),
    lesson.Step(say(f"try.{first}.text"), say(f"try.{first}.button"), look_at_first_step, (ref,)),
    lesson.Step(say(f"try.{least}.text"), say(f"try.{least}.button"), look_at_rarest, (chosen,)),
)
del trace  # a function that a button calls lives on, and with it all names of this page
