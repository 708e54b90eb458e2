"""The second model of a comparison: any other causal model, or an earlier moment of the first one."""

import streamlit as st

from ui import address, model_refs, nav, resources, session
from ui.model_refs import ModelRef
from ui.words import literal
from viz import format_count
from wording import words

say = words("ui.compare_models")

EARLY = 0.035  # share of the training after which the moment lies that is offered first: names still slip


def choices(ref: ModelRef) -> dict[str, ModelRef]:
    """By names in the address: the other causal models, then earlier moments of `ref`, the oldest first."""
    others = [
        m for m in model_refs.available_models(session.owner()) if m.id != ref.id and m.objective == "clm"
    ]
    earlier = [moment for moment in model_refs.history(ref) if moment.identity != ref.identity]
    return {other.id: other for other in others} | {f"{ref.id}-at-{m.step}": m for m in earlier}


def label_of(ref: ModelRef, other: ModelRef) -> str:
    """How one of `choices` is shown."""
    if other.id != ref.id:
        return other.label
    return say("moment", label=ref.label, step=format_count(other.step))


def first_offer(ref: ModelRef, found: dict[str, ModelRef]) -> str:
    """Name in `choices` of an early moment of the same model, else of the first one there is."""
    moments = [name for name, m in found.items() if m.id == ref.id] or list(found)[:1]
    return min(moments, key=lambda name: abs(found[name].step - EARLY * ref.step))


def has_early_moment(ref: ModelRef) -> bool:
    """Whether an earlier moment of a model was kept: of some only the end is here."""
    return any(moment.id == ref.id for moment in choices(ref).values())


def early_moment(ref: ModelRef) -> None:
    """Choose the early moment of `ref` as the second model, if one was kept. For `on_click`."""
    if has_early_moment(ref):
        st.session_state["other"] = first_offer(ref, choices(ref))


def second_model(ref: ModelRef) -> ModelRef:
    """Ask for the second model; gives it, opened. Ends the page where there is none."""
    found = choices(ref)
    if not found:
        st.info(say("alone"))
        nav.link("training", say("train"))
        nav.end_page()
    labels = {name: label_of(ref, other) for name, other in found.items()}
    chosen = address.choose(
        st.selectbox, say("second"), labels, key="other", default=first_offer(ref, found),
        help=say("second_help"),
    )  # fmt: skip
    try:
        resources.load(found[chosen])
    except ValueError as error:
        st.error(f"**{literal(labels[chosen])}**: {literal(str(error))}")
        nav.end_page()
    return found[chosen]


def explain_masked() -> None:
    """If a masked model is chosen, why it can't be compared here; `require_model` offers the way out."""
    ref = session.model()
    if ref is not None and ref.objective == "mlm":
        st.info(say("masked"))
