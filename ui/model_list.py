"""All models on this machine: how large they are, what they are, and folders that can't be opened."""

import streamlit as st

import viz.models
from engine.memory import memory
from engine.parameter_parts import memory_bytes
from ui import address, model_facts, model_refs, model_shelf, resources, session
from ui.components import show
from ui.model_refs import ModelRef
from ui.words import literal
from viz.models import ModelSize
from wording import words

say = words("ui.model_list")

LOOK = "look_at"  # key of the choice, and its name in the address
_FEW = 12  # models in the picture; the table has all


def megabytes(ref: ModelRef) -> float:
    """Millions of bytes that a model takes in memory."""
    return memory_bytes(ref.n_params) / 1e6


def choose() -> ModelRef | None:
    """The picture of all models, and the one that is looked at closely; None if there is none."""
    refs = model_refs.available_models(session.owner())
    if not refs:
        st.info(say("none"))
        return None
    picture = st.container()
    current = session.model()
    chosen = address.choose(
        st.selectbox,
        say("look_at"),
        {ref.id: ref.choice for ref in refs},
        key=LOOK,
        default=current.id if current else "",
    )
    with picture:
        _picture(refs, chosen)
    return next(ref for ref in refs if ref.id == chosen)


def _picture(refs: list[ModelRef], chosen: str) -> None:
    shown = _few(refs, chosen)
    free = memory().free
    sizes = [
        ModelSize(ref.label, ref.n_params, megabytes(ref), ref.objective, model_shelf.where(ref) is not None)
        for ref in shown
    ]
    at = next(i for i, ref in enumerate(shown) if ref.id == chosen)

    def press(_: int, row: int) -> None:
        st.session_state[LOOK] = shown[row].id

    room = float(f"{free / 1e6:.2g}") if free else None  # to two digits: it changes at every breath
    figure = viz.models.size_figure(sizes, free=room, chosen=at)
    show(figure, key="models_sizes", on_press=press)
    if len(shown) < len(refs):
        st.caption(say("only_few", n=len(shown), total=len(refs)))


def _few(refs: list[ModelRef], chosen: str) -> list[ModelRef]:
    """The first ones, and the chosen one wherever it stands."""
    first = refs[:_FEW]
    if any(ref.id == chosen for ref in first):
        return first
    return [*first[:-1], *(ref for ref in refs if ref.id == chosen)]


def table() -> None:
    """Every model in a row."""
    rows = [_row(ref) for ref in model_refs.available_models(session.owner())]
    titles = say.table("column")
    st.dataframe(
        [{titles[name]: value for name, value in row.items()} for row in rows],
        hide_index=True,
        key="models_table",
        column_config={
            titles["memory"]: st.column_config.NumberColumn(format="%.1f"),
            titles["parameters"]: st.column_config.NumberColumn(format="localized"),
            titles["vocabulary"]: st.column_config.NumberColumn(format="localized"),
        },
    )


def _row(ref: ModelRef) -> dict[str, object]:
    row: dict[str, object] = {"name": ref.label, "parameters": ref.n_params, "memory": megabytes(ref)}
    where = resources.loaded_on(ref) or say("not_loaded")
    try:
        found = model_facts.facts(ref)
    except ValueError:
        return row | {"where": where}
    config = found.config
    return row | {
        "where": where,
        "family": found.family,
        "kind": say(f"kind.{ref.objective}"),
        "shape": f"{config.n_layer} × {config.n_head}",
        "width": config.d_model,
        "vocabulary": config.vocab_size,
        "context": ref.context_length,
        "licence": found.licence,
    }


def broken() -> None:
    """The folders that can't be opened, each with the reason."""
    found = model_facts.broken()
    if not found:
        return
    st.subheader(say("broken"))
    for one in found:
        st.warning(f"**{literal(one.name)}**  \n{literal(one.why)}")
