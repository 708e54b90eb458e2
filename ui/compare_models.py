"""The second model of a comparison: any other causal model, or an earlier moment of the first one."""

import streamlit as st

from ui import nav, resources, session
from ui.resources import ModelRef
from ui.words import literal
from viz import format_count

EARLY = 0.035  # share of the training after which the moment lies that is offered first: names still slip


def choices(ref: ModelRef) -> dict[str, ModelRef]:
    """Label -> model: the other causal models, then the earlier moments of `ref`, the oldest first."""
    others = [
        m for m in resources.available_models(session.owner()) if m.id != ref.id and m.objective == "clm"
    ]
    earlier = [moment for moment in resources.history(ref) if moment.identity != ref.identity]
    found = {other.label: other for other in others}
    return found | {f"{ref.label} at step {format_count(m.step)}": m for m in earlier}


def first_offer(ref: ModelRef, found: dict[str, ModelRef]) -> int:
    """Place in `choices` of an early moment of the same model, else of the first one there is."""
    moments = [i for i, m in enumerate(found.values()) if m.id == ref.id]
    steps = [m.step for m in found.values()]
    return min(moments, key=lambda i: abs(steps[i] - EARLY * ref.step), default=0)


def early_moment(ref: ModelRef) -> None:
    """Choose the early moment of `ref` as the second model, if one was kept. For `on_click`."""
    found = choices(ref)
    if any(moment.id == ref.id for moment in found.values()):
        st.session_state["other"] = list(found)[first_offer(ref, found)]


def second_model(ref: ModelRef) -> tuple[str, ModelRef]:
    """Ask for the second model; gives its label and it, opened. Ends the page where there is none."""
    found = choices(ref)
    if not found:
        st.info(
            "There is nothing to compare with yet: this is the only causal model, and no earlier moment of "
            "its training was kept. Train one of your own: it can be compared from its first checkpoint on."
        )
        nav.link("training", "Train a model")
        st.stop()
    labels = list(found)
    chosen = st.selectbox(
        "B, the second model", labels, index=first_offer(ref, found), key="other", bind="query-params",
        help="Another causal model, or this one at an earlier step of its training. A is the model of the "
        "sidebar. Masked models see both sides of a token, so their numbers can’t be compared with these.",
    )  # fmt: skip
    label = chosen if chosen in found else labels[first_offer(ref, found)]
    try:
        resources.load(found[label])
    except ValueError as error:
        st.error(f"**{literal(label)}**: {literal(str(error))}")
        st.stop()
    return label, found[label]


def explain_masked() -> None:
    """If a masked model is chosen, why it can't be compared here; `require_model` offers the way out."""
    ref = session.model()
    if ref is not None and ref.objective == "mlm":
        st.info(
            "A masked model sees both sides of a hidden token and gives no probability to a text from left "
            "to right. Its masked-token loss is another measure, and the two can’t be compared."
        )
