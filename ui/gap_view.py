"""A gap on the screen: what the causal and the masked model expect in it, and what is true."""

from typing import Any, NamedTuple

import streamlit as st
from numpy.typing import NDArray

import viz
from engine.gaps import Guess, guess
from engine.metrics import softmax_parts
from ui import hiding, resources, worked
from ui.components import show
from ui.hiding import GapText
from ui.lesson import literal
from ui.resources import ModelRef
from ui.writing import truth_after

SHOWN = 6  # bars a side; all other tokens together are one bar more
KINDS = {"clm": "From the left only: causal model", "mlm": "From both sides: masked model"}


class Side(NamedTuple):
    """One model's view of a gap.

    Attributes:
        logits: (V,) that it has for the gap.
        true_id: the token that stands there, in its vocabulary; None if nobody knows.
        truth: (V,) the exact distribution, if known.
    """

    ref: ModelRef
    logits: NDArray[Any]
    true_id: int | None
    truth: NDArray[Any] | None


def left_side(ref: ModelRef, masked: ModelRef, text: GapText, place: int, true_id: int | None) -> Side | str:
    """The causal model's view, or a sentence that says why it has none."""
    ids = hiding.left_ids(ref, masked, text, place)
    if ids is None:
        return r"A causal model does not know \[MASK\], so it can’t read past the first one."
    if not ids:
        return "Nothing stands left of the first token: a causal model has nothing to guess from."
    same = resources.tokenizer(ref).hash == resources.tokenizer(masked).hash
    return Side(ref, hiding.from_the_left(ref, ids), true_id if same else None, truth_after(ref, ids))


def both_sides(
    ref: ModelRef, text: GapText, hidden: list[int], place: int, true_id: int | None
) -> tuple[Side, str]:
    """The masked model's view, and a sentence that says why the truth is not known, if it is not."""
    logits = hiding.from_both_sides(ref, tuple(text.ids), tuple(hidden))[place]
    ids = tuple(token.id for token in text.tokens)
    where = tuple(text.unused + i for i in hidden)
    try:
        return Side(ref, logits, true_id, hiding.true_in_gap(ref, ids, where, text.unused + place)), ""
    except ValueError as error:
        return Side(ref, logits, true_id, None), str(error)


def bars(side: Side, key: str) -> Guess:
    """Draw one side."""
    found = guess(side.logits, SHOWN, true_id=side.true_id, true=side.truth)
    ids = found.top.ids.tolist()
    data_of = resources.tokenizer(side.ref).token_bytes
    st.markdown(f"**{KINDS[side.ref.objective]}**")
    fig = viz.distribution_bars(
        [viz.visible(data_of(i)) for i in ids],
        found.top.probs,
        tail=found.top.tail,
        n_tail=found.top.n_tail,
        true_index=None if side.true_id is None else ids.index(side.true_id),
        true_note="hidden",
        second=found.true_probs,
        names=("model", "true distribution"),
        colors=(viz.objective_color(side.ref.objective), viz.TRUE),
    )
    show(fig, key=key)
    facts = []
    if found.rank is not None and found.surprisal is not None:
        facts.append(
            f"The hidden token is guess {found.rank:,}; surprisal {viz.format_nats(found.surprisal)}."
        )
    if found.cost is not None:
        facts.append(f"KL from the truth: {viz.format_nats(found.cost)}.")
    st.caption(" ".join(facts))
    return found


def formulas(side: Side, found: Guess) -> None:
    """The probability of the hidden token (else of the likeliest one) worked out."""
    target = int(found.top.ids[0]) if side.true_id is None else side.true_id
    name = viz.visible(resources.tokenizer(side.ref).token_bytes(target))
    st.markdown(f"{KINDS[side.ref.objective]}: **{literal(name)}**")
    z, log_sum, _ = softmax_parts(side.logits, target)
    st.latex(worked.softmax(z, log_sum, len(side.logits)))
    if found.cost is not None:
        st.latex(worked.divergence(found.cost))
