"""Contributions on the screen: a logit as the sum of what each part of the model adds to it."""

import numpy as np
import streamlit as st

import viz
from engine.inside import Contributions, contributions
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
    if st.session_state.get("_inside_about") != about:  # another place has another truth
        st.session_state["_inside_about"] = about
        st.session_state[TOKEN], st.session_state[AGAINST] = ids[0], NOTHING
    inside_text.allowed(TOKEN, ids, ids[0])
    inside_text.allowed(AGAINST, others, NOTHING)

    def name(token_id: int) -> str:
        if token_id == NOTHING:
            return "nothing"
        note = f" ({looked.truth_note})" if token_id == looked.target else ""
        return f"{looked.name_of(token_id)}{note}"

    with st.container(horizontal=True, vertical_alignment="bottom"):
        token_id = st.selectbox(
            say("logit"), ids, format_func=name, key=TOKEN, width=230, persist_state="session"
        )
        against = st.selectbox(
            say("minus_logit"), others, format_func=name, key=AGAINST, width=230, persist_state="session",
            help=say("difference_two_logits_logarithm"),
        )  # fmt: skip
    return int(token_id), None if against in (NOTHING, token_id) else int(against)


def _bars(looked: Looked, found: Contributions, token_id: int, against: int | None) -> None:
    labels, values = grouped(found)
    what = say("logit_2", name_of=looked.name_of(token_id))
    if against is not None:
        what += say("minus_logit_2", name_of=looked.name_of(against))
    st.markdown(f"**{literal(what[0].upper() + what[1:])}**, {looked.place()}")
    strongest = labels[int(np.abs(values).argmax())]
    fig = viz.signed_bars(
        labels,
        values,
        unit=say("added_logit") if against is None else say("added_difference_logits"),
        alt=say("what_each_part_adds", what=what, strongest=strongest, total=found.total),
        total=("sum", float(np.sum(values))),
    )
    show(fig, key="inside_parts")


def grouped(found: Contributions) -> tuple[list[str], list[float]]:
    """Bars in the order of the model: embedding, position, each block's two halves, all norms' biases."""
    kinds = {part.kind for part in found.parts}
    labels, values = ["embedding"], [found.of("token")]
    if "position" in kinds:
        labels, values = [*labels, "position"], [*values, found.of("position")]
    for layer in range(max(part.layer for part in found.parts) + 1):
        labels += [f"attention {layer + 1}", f"MLP {layer + 1}"]
        values += [found.of("attention", layer), found.of("mlp", layer)]
    if "norm bias" in kinds:
        biases = (v for p, v in zip(found.parts, found.values, strict=True) if p.kind == "norm bias")
        labels, values = [*labels, "norm’s bias"], [*values, float(sum(biases))]
    return labels, values


def _sum(looked: Looked, found: Contributions, against: int | None) -> None:
    labels, values = grouped(found)
    groups: dict[str, float] = {}
    for label, value in zip(labels, values, strict=True):
        group = "MLPs" if label.startswith("MLP") else label.rstrip("0123456789 ")
        groups[group] = groups.get(group, 0.0) + value
    left = "z" if against is None else r"\Delta z"
    st.latex(worked_inside.logit_sum(list(groups), list(groups.values()), left=left))
    config = looked.model.config
    if config.norm_place == "pre":
        st.latex(worked_inside.frozen_norm(config.norm, float(found.divisors[0])))
        mean = say("taking_off_mean_linear") if config.norm == "layernorm" else "Only"
        st.caption(say("u_tokens_row_output", mean=mean))
    else:
        low, high = float(found.divisors.min()), float(found.divisors.max())
        st.caption(
            say(
                "model_has_norms_stream",
                n_divisors=len(found.divisors),
                low=viz.format_number(low),
                high=viz.format_number(high),
            )
        )


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
    columns = [*(str(h + 1) for h in range(n_head)), *(["bias"] if biased else [])]
    st.markdown(say("attention_head_head"))
    fig = viz.cell_map(
        [str(layer + 1) for layer in range(n_layer)],
        columns,
        grid,
        texts=viz.cell_numbers(grid),
        hover=[
            [
                f"block {i + 1}, {'bias' if c == 'bias' else 'head ' + c}\nadds {v:.6g}"
                for c, v in zip(columns, row, strict=True)
            ]
            for i, row in enumerate(grid)
        ],  # fmt: skip
        scale="signed",
        unit=say("added_logit"),
        x_title="head",
        y_title="block",
        alt=say("what_each_adds_logit", n_layer=counted(n_layer * n_head, "head")),
    )
    show(fig, key="inside_by_head")
