"""How the position gets in: a row added from a learned or a fixed table, or queries and keys turned."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine import positions
from engine.config import ModelConfig
from ui import embedding_previous, model_refs, nav, resources, session, worked_vectors
from ui.components import show
from ui.embedding_data import Chosen, names
from ui.lesson import literal
from ui.model_refs import ModelRef
from viz import (
    format_count,
    format_number,
    objective_color,
    position_table,
    rotation_plane,
    sum_picture,
    turn_lengths,
    visible,
)
from wording import words

say = words("ui.embedding_position")

KINDS = ("rotary", "learned", "sinusoidal")
SHIFTS = (0, 1, 2, 5, 10, 50, 100)


def draw(chosen: Chosen) -> None:
    """Draw what the model at hand does, or what another kind of position would be."""
    own = chosen.config.positions
    kind = st.segmented_control(
        say("kinds"), sorted(KINDS, key=lambda name: name != own), default=own, required=True,
        key=f"embeddings_kind_{own}", persist_state="session", label_visibility="collapsed",
        format_func=lambda name: say(f"own_kind.{name}" if name == own else f"kind.{name}"),
    )  # fmt: skip
    {"rotary": _rotary, "learned": _learned, "sinusoidal": _sinusoidal}[str(kind)](chosen)


def _inside(chosen: Chosen) -> str:
    """What the positions of the model at hand are, inside a sentence."""
    own = chosen.config.positions
    return say(f"inside.{own}") if own in KINDS else own


def _number(label: str, last: int, key: str, first: int = 0) -> int:
    """A whole number from `first` to `last`, kept for as long as that range stays the same."""
    name = f"embeddings_{key}_{last}"
    if not first <= st.session_state.get(name, first) <= last:  # out of a link
        st.session_state[name] = first
    return int(st.number_input(label, first, last, first, key=name, persist_state="session"))


def _others(chosen: Chosen, kind: str) -> list[ModelRef]:
    """Other models at hand whose positions are of that kind."""
    refs = [ref for ref in model_refs.available_models(session.owner()) if ref.id != chosen.ref.id]
    return [ref for ref in refs if _kind_of(ref) == kind]


@st.cache_data(max_entries=64, show_spinner=False)
def _kind_of(ref: ModelRef) -> str:
    from engine.checkpoint_files import read_description
    from engine.hub_plan import look

    try:
        if ref.kind == "hub":
            return look(ref.folder).config.positions
        return str(read_description(Path(ref.folder))["model"]["positions"])
    except ValueError:
        return ""


def _offer(chosen: Chosen, kind: str) -> bool:
    """Buttons for models of that kind; whether there is one."""
    others = _others(chosen, kind)[:3]
    for ref in others:
        st.button(
            say("use", label=literal(ref.label)), key=f"embeddings_use_{ref.id}",
            on_click=session.choose_model, args=(ref.id,),
        )  # fmt: skip
    return bool(others)


def _learned(chosen: Chosen) -> None:
    table = positions.added_positions(resources.load(chosen.ref).model)
    if chosen.config.positions == "learned" and table is not None:
        st.write(say("learned"))
        _added(chosen, table, 1.0)
        return
    st.info(say("no_learned", positions=_inside(chosen)))
    token_id = int(chosen.trace.ids[chosen.position])
    st.latex(rf"x = E_{{{token_id}}} + P_{{{chosen.position}}}")
    st.caption(say("row_plus_row", name=literal(names(chosen.ref)[token_id]), position=chosen.position))
    if not _offer(chosen, "learned"):
        st.write(say("no_other"))
        nav.link("training", say("train"))


def _sinusoidal(chosen: Chosen) -> None:
    config = chosen.config
    if config.positions == "sinusoidal":
        table = positions.added_positions(resources.load(chosen.ref).model)
        assert table is not None
        st.write(say("sinusoidal"))
        _added(chosen, table, positions.token_scale(resources.load(chosen.ref).model))
        return
    st.info(say("no_sinusoidal", positions=_inside(chosen)))
    _offer(chosen, "sinusoidal")
    left, right = st.columns([4, 3], gap="large")
    with right:
        dim = _number(say("work_out"), config.d_model - 1, "dim")
        _fixed(chosen, dim)
    with left:
        table = positions.sinusoid(config.context_length, config.d_model)
        fig = position_table(table, position=chosen.position, dim=dim, name=say("sines_cosines"))
        show(fig, key="embeddings_table")


def _fixed(chosen: Chosen, dim: int) -> None:
    st.markdown(say("place", position=chosen.position, dimension=dim))
    st.latex(worked_vectors.sinusoid(chosen.position, dim, chosen.config.d_model))
    st.caption(say("waves"))


def _added(chosen: Chosen, table: NDArray[np.float32], scale: float) -> None:
    """Token, position and their sum, then the whole table."""
    t, token_id, config = chosen.position, int(chosen.trace.ids[chosen.position]), chosen.config
    token, position = chosen.matrix[token_id] * np.float32(scale), table[t]
    mixed = embedding_previous.mixed(chosen)
    left, right = st.columns([4, 3], gap="large")
    with right:
        dim = _number(say("work_out"), config.d_model - 1, "dim")
        st.latex(
            worked_vectors.addition(
                float(chosen.matrix[token_id, dim]), float(position[dim]), token_id, t, dim, scale=scale,
                d_model=config.d_model, previous=None if mixed is None else mixed.at(dim),
            )
        )  # fmt: skip
        embedding_previous.explain(chosen, mixed)
        if scale != 1:
            st.caption(say("scaled"))
            _fixed(chosen, dim)
    with left:
        name, normed = names(chosen.ref)[token_id], config.embedding_norm
        parts = [
            (say("scaled_token", d_model=config.d_model) if scale != 1 else say("token"), token),
            *embedding_previous.part(mixed),
            (say("plus_position", position=t), position),
        ]
        parts.append((say("sum"), np.sum([row for _, row in parts], axis=0)))
        show(sum_picture(parts, dim=dim), key="embeddings_sum")
        st.caption(say("where_then_norm" if normed else "where", name=literal(name), position=t))
    st.markdown(say("all_positions"))
    show(position_table(table, position=t, dim=dim, name=say("table")), key="embeddings_table")


def _rotary(chosen: Chosen) -> None:
    config = chosen.config
    if config.positions == "rotary":
        st.write(say("rotary_mixed" if config.mix_previous else "rotary"))
        if config.mix_previous:
            embedding_previous.draw(chosen, lambda: _number(say("work_out"), config.d_model - 1, "dim"))
        _turned(chosen)
        return
    st.info(say("no_rotary", positions=_inside(chosen)))
    _offer(chosen, "rotary")
    left, right = st.columns([2, 3], gap="large")
    width = config.d_head - config.d_head % 2
    if not width:
        st.write(say("no_pair"))
        return
    with left:
        pair = _number(say("pair"), width // 2 - 1, "pair")
        st.latex(worked_vectors.angle(chosen.position, pair, width))
    with right:
        speeds = positions.speeds(width)
        fig = turn_lengths(speeds, pair=pair, context_length=config.context_length,
                           color=objective_color(config.objective))  # fmt: skip
        show(fig, key="embeddings_speeds")


def _turned(chosen: Chosen) -> None:
    config, trace, t = chosen.config, chosen.trace, chosen.position
    rotary, width = config.rotary, config.rotary.width(config.d_head)
    columns = st.columns(3)
    with columns[0]:
        layer = _number(say("layer"), config.n_layer, "layer", 1) - 1
    with columns[1]:
        head = _number(say("head"), config.n_head, "head", 1) - 1
    with columns[2]:
        pair = _number(say("pair"), width // 2 - 1, "pair")
    after = trace.q[layer, head, t].astype(np.float64)
    before = positions.turn(after, -t, rotary)
    speeds = positions.speeds(width, rotary)
    angle = t * float(speeds[pair])
    part = slice(2 * pair, 2 * pair + 2)
    color = objective_color(config.objective)
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown(say("query", token=literal(visible(trace.tokens[t].data)), position=t))
        fig = rotation_plane(before[part], after[part], angle=angle, pair=pair, color=color)
        show(fig, key="embeddings_turn")
    with right:
        st.latex(worked_vectors.angle(t, pair, width, rotary))
        first, second = before[part].tolist()
        st.latex(worked_vectors.rotation(first, second, angle, pair))
        st.caption(
            " ".join([say("dotted_full" if angle >= 2 * np.pi else "dotted"), *_of_this_model(config)])
        )
    st.subheader(say("distance"))
    left, right = st.columns(2, gap="large")
    with left:
        _distance(chosen, layer, head)
    with right:
        st.markdown(say("speeds"))
        fig = turn_lengths(speeds, pair=pair, context_length=config.context_length, color=color)
        show(fig, key="embeddings_speeds")
        st.caption(say("speeds_why"))


def _of_this_model(config: ModelConfig) -> list[str]:
    """What this model does otherwise than most, in sentences."""
    rotary, width = config.rotary, config.rotary.width(config.d_head)
    said = []
    if width < config.d_head:
        said.append(say("part_turns", n=width, d_head=config.d_head))
    if rotary.stretch > 1:
        slow = say("slow.some" if rotary.first_length else "slow.all", times=f"{rotary.stretch:g}")
        said.append(slow)
    return said


def _distance(chosen: Chosen, layer: int, head: int) -> None:
    """Only the distance counts: both moved, and for contrast the query alone."""
    trace, t = chosen.trace, chosen.position
    keys = range(t + 1) if trace.objective == "clm" else range(len(trace.tokens))
    s = _key(keys, t, [visible(token.data) for token in trace.tokens])
    q, k = trace.q[layer, head, t], trace.k[layer, head, s]
    own = float(q.astype(np.float64) @ k.astype(np.float64))
    score = format_number(own, 5)
    st.write(say("pair_of", query=t, key_position=s, score=score, layer=layer + 1, head=head + 1))
    rotary = chosen.config.rotary
    back = positions.turn(q, -t, rotary), positions.turn(k, -s, rotary)
    found = positions.shifted_scores(*back, t, s, SHIFTS, rotary)
    st.dataframe(
        {
            "both": [f"{t + n}, {s + n}" for n in SHIFTS],
            "together": found.together.tolist(),
            "query": [f"{t + n}" for n in SHIFTS],
            "alone": found.alone.tolist(),
        },
        hide_index=True,
        column_config={
            "both": say("column.both"),
            "together": st.column_config.NumberColumn(say("column.together"), format="%.5g"),
            "query": say("column.query"),
            "alone": st.column_config.NumberColumn(say("column.alone"), format="%.5g"),
        },
        key="embeddings_shifts",
    )
    st.caption(say("moved"))


def _key(keys: Sequence[int], t: int, called: list[str]) -> int:
    """The position whose key is compared, at first the one before."""
    chosen = st.selectbox(
        say("key"), keys, index=max(t - 1, 0), key=f"embeddings_key_{t}_{len(called)}",
        format_func=lambda s: say("key_at", position=format_count(s), token=called[s]),
    )  # fmt: skip
    return int(chosen or 0)
