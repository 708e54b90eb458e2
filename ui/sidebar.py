"""What stands beside every page: the model, where it computes, and the text."""

from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ui import (
    address,
    class_links,
    glossary,
    kept,
    language,
    link_hidden,
    link_notice,
    link_panel,
    link_settings,
    model_refs,
    model_shelf,
    projector,
    server_start,
    session,
)
from ui.components.landmarks import landmarks
from ui.components.owner import answered, mount_owner
from ui.model_refs import ModelRef
from ui.words import counted, literal
from viz import format_count
from wording import words

_ASKED, _UNSURE = "_model_asked_for", "_model_perhaps_ones_own"
say = words("ui.sidebar")


class Places(NamedTuple):
    """Where `finish` writes."""

    badge: DeltaGenerator
    links: DeltaGenerator
    notices: DeltaGenerator


def draw(page: str) -> Places:
    """Draw the sidebar beside a page, and what stands above it.

    Args:
        page: name of the page's script.

    Returns:
        The places for `finish`.
    """
    server_start.begin()
    address.begin(page)
    n_bad = link_hidden.begin()
    class_links.begin()
    link_settings.apply(page)
    with st.sidebar:
        landmarks()
        _model_picker()
        with st.container(key="model_badge"):
            badge = st.empty()
        ref = session.model()
        if ref:
            _badge(badge, ref)
        _text_box()
        language.choose()
        projector.choose()
        glossary.draw(page)
        links = st.container(key="frame_links")
        mount_owner(asks=st.session_state.get(_UNSURE, False))
    notices = st.container(key="frame_notices", gap="small")
    with notices:
        link_notice.draw(n_bad)
        _missing(ref)
    return Places(badge, links, notices)


def finish(places: Places) -> None:
    """What can be said only after the page was drawn: where the weights are, and all of its settings."""
    ref = session.model()
    if ref:
        _badge(places.badge, ref)
    with places.links:
        link_panel.button()
        kept.popover()
    with places.notices:
        link_notice.ignored(link_settings.left_out(address.page()))


def _model_picker() -> None:
    refs = {ref.id: ref for ref in model_refs.available_models(session.owner())}
    _linked(refs)
    if not refs:
        st.selectbox(say("model"), [], key="no_model", disabled=True, placeholder=say("no_model"))
        session.remember_model(None)
        return
    chosen = address.choose(
        st.selectbox,
        say("model"),
        {model_id: ref.choice for model_id, ref in refs.items()},
        key="model",
        on_change=lambda: st.session_state.pop(_ASKED, None),
        help=say("model_help"),
    )
    session.remember_model(refs[chosen])


def _linked(refs: dict[str, ModelRef]) -> None:
    """Keep in mind a model that is not here: a link's, or the chosen one that was deleted meanwhile.

    A reload or a link may name a run before this browser has said whose runs are its: it is chosen then.
    """
    state, asked = st.session_state, st.query_params.get("model")
    if asked and asked not in refs and "model" not in state:
        state[_ASKED], state[_UNSURE] = asked, asked.startswith("run:")
    elif state.get(_ASKED) in refs:
        state["model"] = state.pop(_ASKED)
    elif "model" in state and state["model"] not in refs:
        state[_ASKED] = state["model"]
    elif refs and state.get("model") != next(iter(refs)):  # a button chose one: what was asked for is past
        state.pop(_ASKED, None)


def _missing(ref: ModelRef | None) -> None:
    """Say that the numbers are those of another model than the one that was asked for."""
    if st.session_state.pop(_UNSURE, False) and answered() is None:
        return  # it may be one's own run: the browser is about to say whose runs are its
    asked = st.session_state.get(_ASKED)
    if ref and asked and asked != ref.id:
        link_notice.missing(str(asked), ref)


def _badge(place: DeltaGenerator, ref: ModelRef) -> None:
    """What the chosen model is, where its weights are, and why they aren't where they were wanted."""
    placed = model_shelf.where(ref)
    if placed is None:
        return
    steps = say("published") if ref.kind == "hub" else counted(ref.step, "step")
    size, device = format_count(ref.n_params), literal(placed.device.label)
    badge = say(f"badge.{ref.objective}", size=size, steps=steps, device=device)
    place.caption(f"{badge}  \n{literal(placed.reason)}" if placed.why else badge)


def _text_box() -> None:
    session.sync_text()
    st.text_area(
        say("text"),
        key="text",
        height=110,
        persist_state="session",
        help=say("text_help"),
    )
    if session.repaired():
        st.caption(say("repaired", n=session.repaired()))
