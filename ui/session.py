"""What is true for one person on every page: the text, the chosen model, and who they are."""

from urllib.parse import quote

import streamlit as st

from engine.tokens import repair_text
from ui import address, model_refs, nav, resources
from ui.components.owner import owner_token
from ui.model_refs import ModelRef
from ui.words import literal
from wording import words

DEFAULT_TEXT = "Once upon a time, there was a princess called Lily. She"
_LONGEST_LINK = 4000  # percent-encoded characters; proxies and chat programs cut longer addresses
_MODEL, _REPAIRED = "_model", "_repaired"
say = words("ui.session")


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


def sync_text() -> None:
    """Take the text from the address and write it there. The sidebar calls this before it draws the text box.

    A text that would make the address too long stays out of it.
    """
    state = st.session_state
    is_news, linked = address.news("text")
    if is_news:
        state["text"] = DEFAULT_TEXT if linked is None else linked
    value, n_repaired = repair_text(text())
    if n_repaired:
        state[_REPAIRED] = (value, n_repaired)
    if value != state.get("text"):
        state["text"] = value
    address.write("text", value if value != DEFAULT_TEXT and len(quote(value)) <= _LONGEST_LINK else None)


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
    if ref is not None and ref.kind == "run":
        resources.run_store().opened(ref.id.removeprefix("run:"))


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
        st.info(say("no_model"))
        nav.link("training", say("train_one"))
        nav.end_page()
    if objective and ref.objective != objective:
        _offer_other(objective)
    try:
        resources.load(ref)
    except ValueError as error:
        st.error(literal(str(error)))
        nav.end_page()
    return ref


def require_trained() -> ModelRef:
    """The chosen model, opened, if it learned here; else a sentence, others to choose, and the page ends."""
    ref = model()
    if ref is not None and ref.kind == "hub":
        st.info(say("needs.training"))
        _offer([other for other in model_refs.available_models(owner()) if other.kind != "hub"])
    return require_model()


def _offer_other(objective: str) -> None:
    st.info(say(f"needs.{objective}"))
    _offer([ref for ref in model_refs.available_models(owner()) if ref.objective == objective])


def _offer(fitting: list[ModelRef]) -> None:
    """Buttons that choose one of these models instead; the page ends there."""
    for ref in fitting[:3]:
        name = literal(ref.label)
        st.button(say("use", model=name), key=f"use_{ref.id}", on_click=choose_model, args=(ref.id,))
    nav.end_page()
