"""What stands beside every page: the model, where it computes, and the text."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ui import address, language, resources, session
from ui.components.owner import mount_owner
from ui.resources import ModelRef
from viz import format_count

_READS = {"clm": "causal", "mlm": "masked"}
_ASKED = "_model_asked_for"


def draw(page: str) -> DeltaGenerator:
    """Draw the sidebar beside a page.

    Args:
        page: name of the page's script.

    Returns:
        The place of the device badge, for `finish`.
    """
    address.begin(page)
    with st.sidebar:
        _model_picker()
        place = st.empty()
        ref = session.model()
        if ref and resources.loaded_on(ref):
            _badge(place, ref)
        _text_box()
        language.choose()
        mount_owner()
    return place


def finish(place: DeltaGenerator) -> None:
    """Say where the weights are, after the page has loaded them: the page does not wait for this."""
    ref = session.model()
    if ref and resources.loaded_on(ref):
        _badge(place, ref)


def _model_picker() -> None:
    refs = {ref.id: ref for ref in resources.available_models(session.owner())}
    _linked(refs)
    chosen = st.selectbox(
        "Model",
        list(refs),
        format_func=lambda model_id: refs[model_id].label if model_id in refs else str(model_id),
        key="model",
        bind="query-params",
        on_change=lambda: st.session_state.pop(_ASKED, None),
        disabled=not refs,
        placeholder="No model yet: train one",
        help="The model that all pages look into. Your own runs appear here with their first checkpoint.",
    )
    session.remember_model(refs.get(chosen or "") or next(iter(refs.values()), None))


def _linked(refs: dict[str, ModelRef]) -> None:
    """A reload or a link may name a run before this browser has said whose runs are its: choose it then."""
    state, ids = st.session_state, {ref.label: ref.id for ref in refs.values()}
    asked = st.query_params.get("model")
    if asked and asked not in ids and "model" not in state:
        state[_ASKED] = asked
    elif state.get(_ASKED) in ids:
        state["model"] = ids[state.pop(_ASKED)]


def _badge(place: DeltaGenerator, ref: ModelRef) -> None:
    size, steps = format_count(ref.n_params), format_count(ref.step)
    place.caption(
        f"{_READS[ref.objective]} · {size} parameters · {steps} steps · on {resources.loaded_on(ref)}"
    )


def _text_box() -> None:
    session.sync_text()
    st.text_area(
        "Text",
        key="text",
        height=110,
        persist_state="session",
        help="The text that all pages look at. Press Ctrl+Enter or click elsewhere to use it.",
    )
    if session.repaired():
        st.caption(f"{session.repaired()} broken characters were replaced by �.")
