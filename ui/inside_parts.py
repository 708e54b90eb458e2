"""Contributions on the screen: a logit as the sum of what each part of the model adds to it."""

from typing import NamedTuple

import numpy as np
import streamlit as st

import viz
from engine.contributions import Contributions, contributions
from ui import inside_text, worked_inside
from ui.components import show
from ui.inside_text import Looked
from ui.lesson import literal
from ui.words import counted
from wording import words

say = words("ui.inside_parts")

TOKEN, AGAINST = "inside_token", "inside_against"
CHOICES = 12  # tokens to choose from
NOTHING = -1
MOST_BARS, STRONGEST = 27, 16  # where there would be more bars than these, only the strongest are drawn


def draw(looked: Looked) -> None:
    """The whole view."""
    token_id, against = _choose(looked)
    found = contributions(looked.model, looked.trace, looked.position, token_id, against)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _bars(looked, found, token_id, against)
        _heads(looked, found)
    with right:
        _sum(looked, found, against)


def _choose(looked: Looked) -> tuple[int, int | None]:
    """Whose logit, and minus whose."""
    logits = looked.trace.logits[looked.position]
    ids = np.argsort(-logits, kind="stable")[:CHOICES].tolist()
    if looked.target is not None:
        ids = [looked.target, *(i for i in ids if i != looked.target)]
    others = [NOTHING, *ids]
    about = (looked.ref.id, looked.text, looked.position)
    if st.session_state.get("_inside_about", about) != about:  # another place has another truth
        st.session_state[TOKEN], st.session_state[AGAINST] = ids[0], NOTHING
    st.session_state["_inside_about"] = about  # what stands there at first is a link's
    inside_text.allowed(TOKEN, ids, ids[0])
    inside_text.allowed(AGAINST, others, NOTHING)

    def name(token_id: int) -> str:
        if token_id == NOTHING:
            return say("nothing")
        token = looked.name_of(token_id)
        return f"{token} ({looked.truth_note})" if token_id == looked.target else token

    with st.container(horizontal=True, vertical_alignment="bottom"):
        token_id = st.selectbox(
            say("of"), ids, format_func=name, key=TOKEN, width=230, persist_state="session"
        )
        against = st.selectbox(
            say("minus"), others, format_func=name, key=AGAINST, width=230, persist_state="session",
            help=say("minus_help"),
        )  # fmt: skip
    return int(token_id), None if against in (NOTHING, token_id) else int(against)


def _bars(looked: Looked, found: Contributions, token_id: int, against: int | None) -> None:
    bars = strongest(grouped(found))
    labels, values = [_label(bar) for bar in bars], [bar.value for bar in bars]
    token = looked.name_of(token_id)
    told = {"strongest": labels[int(np.abs(values).argmax())], "total": found.total}
    if against is None:
        st.markdown(say("logit", token=literal(token), place=looked.place()))
        alt = say("alt.logit", token=token, **told)
    else:
        other = looked.name_of(against)
        st.markdown(say("difference", token=literal(token), other=literal(other), place=looked.place()))
        alt = say("alt.difference", token=token, other=other, **told)
    fig = viz.signed_bars(
        labels,
        values,
        unit=say("unit.logit") if against is None else say("unit.difference"),
        alt=alt,
        total=(say("sum"), float(np.sum(values))),
    )
    show(fig, key="inside_parts")


class Bar(NamedTuple):
    """A part of the model and what it adds.

    Attributes:
        group: what it is: embedding, previous, position, attention, mlp, bias, head-bias, or others together.
        value: added to the logit.
        block: counted from 1; 0 for what belongs to none. Of others how many these are.
    """

    group: str
    value: float
    block: int = 0


def grouped(found: Contributions) -> list[Bar]:
    """Bars in the order of the model: what enters it, each block's two halves, all norms' biases."""
    kinds = {part.kind for part in found.parts}
    bars = [Bar("embedding", found.of("token"))]
    bars += [Bar(kind, found.of(kind)) for kind in ("previous", "position") if kind in kinds]
    for layer in range(max(part.layer for part in found.parts) + 1):
        bars.append(Bar("attention", found.of("attention", layer), layer + 1))
        bars.append(Bar("mlp", found.of("mlp", layer), layer + 1))
    if "norm bias" in kinds:
        biases = (v for p, v in zip(found.parts, found.values, strict=True) if p.kind == "norm bias")
        bars.append(Bar("bias", float(sum(biases))))
    if "head bias" in kinds:
        bars.append(Bar("head-bias", found.of("head bias", -1)))
    return bars


def strongest(bars: list[Bar]) -> list[Bar]:
    """All bars, or of too many the strongest in their order and all others as one."""
    if len(bars) <= MOST_BARS:
        return bars
    order = sorted(range(len(bars)), key=lambda i: -abs(bars[i].value))
    drawn, others = sorted(order[:STRONGEST]), order[STRONGEST:]
    rest = Bar("others", float(sum(bars[i].value for i in others)), len(others))
    return [*(bars[i] for i in drawn), rest]


def _label(bar: Bar) -> str:
    return say(f"bar.{bar.group}", n=bar.block)


def _sum(looked: Looked, found: Contributions, against: int | None) -> None:
    groups: dict[str, float] = {}
    for bar in grouped(found):
        name = say(f"group.{bar.group}")
        groups[name] = groups.get(name, 0.0) + bar.value
    left = "z" if against is None else r"\Delta z"
    st.latex(worked_inside.logit_sum(list(groups), list(groups.values()), left=left))
    config = looked.model.config
    if len(found.divisors) == 1 and not config.head_transform:
        st.latex(worked_inside.frozen_norm(config.norm, float(found.divisors[0])))
        st.caption(say("held.layernorm") if config.norm == "layernorm" else say("held.rmsnorm"))
        return
    low, high = float(found.divisors.min()), float(found.divisors.max())
    held = {"n": len(found.divisors), "low": viz.format_number(low), "high": viz.format_number(high)}
    if config.head_transform:
        st.latex(worked_inside.frozen_gate())
        st.caption(say("held.transform", n_gates=len(found.gates), **held))
    else:
        plain = config.norm_place == "post" and not config.embedding_norm
        st.caption(say("held.post", **held) if plain else say("held.norms", **held))


def _heads(looked: Looked, found: Contributions) -> None:
    """Every head by itself, and the biases of attention."""
    n_layer, n_head = looked.model.config.n_layer, looked.model.config.n_head
    biased = any(part.kind == "attention bias" for part in found.parts)
    grid = np.zeros((n_layer, n_head + biased))
    for part, value in zip(found.parts, found.values, strict=True):
        if part.kind == "head":
            grid[part.layer, part.head] = value
        elif part.kind == "attention bias":
            grid[part.layer, n_head] = value
    columns = [*(str(h + 1) for h in range(n_head)), *([say("bias")] if biased else [])]
    st.markdown(say("by_head"))
    fig = viz.cell_map(
        [str(layer + 1) for layer in range(n_layer)],
        columns,
        grid,
        texts=viz.cell_numbers(grid),
        hover=[
            [
                say("hover.head", block=i, head=h, value=v)
                if h <= n_head
                else say("hover.bias", block=i, value=v)
                for h, v in enumerate(row, start=1)
            ]
            for i, row in enumerate(grid, start=1)
        ],
        scale="signed",
        unit=say("unit.logit"),
        x_title=say("axis.head"),
        y_title=say("axis.block"),
        alt=say("alt.heads", heads=counted(n_layer * n_head, "head")),
    )
    with st.container(key="inside_by_head_place"):  # frame.css lets it scroll
        show(fig, key="inside_by_head")
