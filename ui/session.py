"""What is true for one person on every page: the text, the chosen model, and who they are."""

import time
from typing import NamedTuple
from urllib.parse import quote

import streamlit as st

from engine.tokenizers import repair_text
from ui import nav, resources
from ui.components.owner import owner_token
from ui.resources import ModelRef
from ui.words import literal

DEFAULT_TEXT = "Once upon a time, there was a princess called Lily. She"
_LONGEST_LINK = 4000  # percent-encoded characters; proxies and chat programs cut longer addresses
_LATE = 2.0  # seconds in which a browser may still send the address from before our last change
_MODEL, _REPAIRED, _ADDRESS = "_model", "_repaired", "_text_in_address"


class _Address(NamedTuple):
    """What sync_text last wrote into the address, what stood there before, when, and on which page."""

    text: str | None = None
    before: str | None = None
    changed: float = 0.0
    page: str = ""


def text() -> str:
    """The text that all pages look at. Always valid Unicode; may be empty or very long."""
    return str(st.session_state.get("text", DEFAULT_TEXT))


def set_text(value: str) -> None:
    """Change the text of all pages. For `on_click`."""
    st.session_state["text"] = value


def repaired() -> int:
    """How many broken characters (halves of a surrogate pair) were replaced in the text."""
    fixed, n_repaired = st.session_state.get(_REPAIRED, ("", 0))
    return int(n_repaired) if fixed == text() else 0


def sync_text(page: str) -> None:
    """Take the text from the address and write it there. The sidebar calls this before it draws the text box.

    Not `bind="query-params"`: that would write a text of any length into the address.

    Args:
        page: name of the open page. Another page's address comes without a text: then the text is kept.
    """
    state, linked = st.session_state, st.query_params.get("text")
    last = _Address(*state.get(_ADDRESS, ()))
    late = linked == last.before and time.monotonic() - last.changed < _LATE
    if linked != last.text and not late and (linked is not None or page == last.page):
        state["text"] = DEFAULT_TEXT if linked is None else linked  # a link was opened, or Back was pressed
    value, n_repaired = repair_text(text())
    if n_repaired:
        state[_REPAIRED] = (value, n_repaired)
    if value != state.get("text"):
        state["text"] = value
    wanted = value if value != DEFAULT_TEXT and len(quote(value)) <= _LONGEST_LINK else None
    if wanted is None and linked is not None:
        del st.query_params["text"]
    elif wanted is not None and wanted != linked:
        st.query_params["text"] = wanted
    if wanted != last.text:
        last = last._replace(text=wanted, before=last.text, changed=time.monotonic())
    state[_ADDRESS] = tuple(last._replace(page=page))


def owner() -> str:
    """A random word that stays in this person's browser. It gives the right to stop or resume a run."""
    return owner_token()


def model() -> ModelRef | None:
    """The model chosen in the sidebar; None if there is no model at all."""
    ref: ModelRef | None = st.session_state.get(_MODEL)
    return ref


def remember_model(ref: ModelRef | None) -> None:
    """What the sidebar's picker shows, looked up anew in each script run. Only the sidebar calls this."""
    st.session_state[_MODEL] = ref


def choose_model(model_id: str) -> None:
    """Choose a model for all pages. For `on_click`."""
    st.session_state["model"] = model_id


def require_model(objective: str | None = None) -> ModelRef:
    """The chosen model, opened; or a sentence on how to get one, and the page ends there.

    Args:
        objective: "clm" or "mlm" if the page can only use such a model.
    """
    ref = model()
    if ref is None:
        st.info("There is no model yet. Train one: a first small one takes about a minute.")
        nav.link("training", "Train a model")
        st.stop()
    if objective and ref.objective != objective:
        _offer_other(objective)
    try:
        resources.load(ref)
    except ValueError as error:
        st.error(literal(str(error)))
        st.stop()
    return ref


_KINDS = {
    "clm": "a causal model, which predicts the next token",
    "mlm": "a masked model, which fills in hidden tokens",
}


def _offer_other(objective: str) -> None:
    st.info(f"This page needs {_KINDS[objective]}. The chosen model is of the other kind.")
    fitting = [ref for ref in resources.available_models(owner()) if ref.objective == objective]
    for ref in fitting[:3]:
        st.button(f"Use {literal(ref.label)}", key=f"use_{ref.id}", on_click=choose_model, args=(ref.id,))
    st.stop()
