"""One model: what it is, where its parameters and its weights are, and what can be done with it."""

import streamlit as st

import viz.models
from engine.memory import give_back
from engine.parameter_parts import parameter_parts
from engine.trace_size import MOST_BYTES, STEP, trace_bytes
from ui import (
    cards,
    model_facts,
    model_shelf,
    passes,
    resources,
    session,
    worked_models,
    writing_weights,
)
from ui.components import show
from ui.model_facts import Facts
from ui.model_list import megabytes
from ui.model_refs import ModelRef
from ui.words import literal
from wording import words

say = words("ui.model_card")

DEVICE = "models_device"  # key of the choice of a device


def draw(ref: ModelRef) -> None:
    """Draw everything that is known of a model."""
    try:
        found = model_facts.facts(ref)
    except ValueError as error:
        st.error(literal(str(error)))
        return
    st.subheader(literal(ref.label))
    _buttons(ref)
    try:
        resources.tokenizer(ref)
    except ValueError as error:  # it may need a package that isn't here
        st.warning(literal(str(error)))
    about, parts = st.columns(2, gap="large")
    with about:
        st.markdown(_table(ref, found))
        cards.popover(ref)
    with parts:
        st.markdown(say("parts_title"))
        counts = {name: n for name, n in parameter_parts(found.config).items() if n}
        labels = say.table("part")
        bars = viz.models.part_bars([labels[name] for name in counts], list(counts.values()))
        show(bars, key="models_parts")
        st.caption(say("tied") if found.config.tie_head else say("own_head"))
        st.latex(worked_models.memory(ref.n_params))


def _buttons(ref: ModelRef) -> None:
    current = session.model()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            say("use"), type="primary", key="models_use", on_click=session.choose_model, args=(ref.id,),
            disabled=current is not None and current.id == ref.id, icon=":material/check:",
        )  # fmt: skip
        if model_shelf.where(ref) is not None:
            _let_go(ref)
        _device(ref)
    if writing_weights.offered(ref):
        writing_weights.on_card(ref)


def _let_go(ref: ModelRef) -> None:
    others = model_shelf.others(ref)
    freed = megabytes(ref)
    if not others:
        st.button(
            say("let_go"), key="models_let_go", on_click=_drop, args=(ref,), help=say("frees", freed=freed)
        )
        return
    with st.popover(say("let_go"), key="models_let_go_of_shared"):
        st.markdown(say("others", n=others))
        st.button(say("let_go_anyway"), key="models_let_go", on_click=_drop, args=(ref,))


def _drop(ref: ModelRef) -> None:
    model_shelf.let_go(ref)
    if ref.large:
        passes.let_go()
    give_back()


def _device(ref: ModelRef) -> None:
    """The choice of a device, where there is one to choose."""
    from engine.devices import AUTO, devices

    there = devices()
    if len(there) == 1:
        st.caption(say("only_cpu"))
        return
    names = {AUTO: say("auto"), **{device.id: device.label for device in there}}
    key = f"{DEVICE}_{ref.id}"
    st.session_state[key] = ref.device if ref.device in names else AUTO
    st.selectbox(
        say("device"), list(names), format_func=lambda name: names.get(name, name), key=key, width=260,
        on_change=lambda: model_shelf.choose_device(session.owner(), ref.id, st.session_state[key]),
        help=say("device_help"),
    )  # fmt: skip


def _table(ref: ModelRef, found: Facts) -> str:
    """The facts, a row each; Markdown."""
    config, kv = found.config, found.config.kv_heads
    shared = config.n_head != kv
    heads = say("shared_heads" if shared else "heads", layers=config.n_layer, heads=config.n_head, kv=kv)
    values = {
        "family": literal(found.family),
        "task": say(f"task.{ref.objective}"),
        "parameters": f"{ref.n_params:,}",
        "memory": say("memory", memory=megabytes(ref), disk=found.n_bytes / 1e6),
        "shape": heads,
        "width": say("width", width=config.d_model, inner=config.ff_width),
        "vocabulary": say("ids", n=config.vocab_size),
        "context": say("tokens", n=ref.context_length),
        "pictures": _pictures(ref, found),
        "licence": literal(found.licence) or say(f"licence.{ref.kind}"),
        "weights": _weights(ref),
    }
    names = say.table("row")
    first, *rest = (f"| {names[name]} | {value} |" for name, value in values.items())
    return "\n".join([first, "| --- | --- |", *rest])


def _pictures(ref: ModelRef, found: Facts) -> str:
    """How many tokens pictures of the inside read at once, and why no more."""
    n, most = ref.window_length, MOST_BYTES / 1e6
    now = trace_bytes(found.config, n) / 1e6
    if n == ref.context_length:
        return say("pictures_all", n=n, now=now)
    then = trace_bytes(found.config, n + STEP) / 1e6
    return say("pictures_some", n=n, now=now, more=n + STEP, then=then, most=most)


def _weights(ref: ModelRef) -> str:
    placed = model_shelf.where(ref)
    if placed is None:
        return say("not_loaded")
    where = say("on", device=literal(placed.device.label))
    return f"{where}. {literal(placed.reason)}" if placed.why else where
