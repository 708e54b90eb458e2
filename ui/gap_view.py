"""A gap on the screen: what the causal and the masked model expect in it, and what is true."""

from typing import Any, NamedTuple

import numpy as np
import streamlit as st
from numpy.typing import NDArray

import viz
from engine.gaps import Guess, guess
from engine.metrics import log_softmax, softmax_parts
from ui import hiding, resources, worked
from ui.components import show
from ui.hiding import Both
from ui.lesson import literal
from ui.model_refs import ModelRef
from ui.words import counted
from ui.writing import truth_after
from wording import words

say = words("ui.gap_view")

SHOWN = 6  # bars a side; all other tokens together are one bar more


class Side(NamedTuple):
    """One model's view of a gap.

    Attributes:
        logits: (V,) that it has for the gap.
        true_id: what stands there, in its vocabulary; None if nobody knows, or it has no such token.
        truth: (V,) the exact distribution, if known.
        log_prob: of what stands there, natural; None if nobody knows.
        n_pieces: in how many of its own tokens the model spells what stands there.
    """

    ref: ModelRef
    logits: NDArray[Any]
    true_id: int | None
    truth: NDArray[Any] | None
    log_prob: float | None
    n_pieces: int = 1

    @property
    def true_prob(self) -> float | None:
        """The exact probability of what stands there; None if it is not known."""
        if self.truth is None or self.true_id is None:
            return None
        found = float(self.truth[self.true_id])
        return found if np.isfinite(found) else None


def left_side(both: Both, place: int) -> Side | str:
    """The causal model's view, or a sentence that says why it has none."""
    ref = both.causal
    if ref is None:
        return say("there_no_causal_model")
    ids = hiding.left_ids(ref, both.masked, both.text, place)
    if ids is None:
        return say("causal_model_does_not")
    if not ids:
        return say("nothing_stands_left_first")
    logits, truth = hiding.from_the_left(ref, ids), truth_after(ref, ids)
    if place in both.text.typed:
        return Side(ref, logits, None, truth, None)
    if both.same_tokens:
        true_id = both.text.ids[place]
        return Side(ref, logits, true_id, truth, float(log_softmax(logits)[true_id]))
    before = b"".join(token.data for token in both.text.tokens[: both.text.unused + place])
    word = both.text.seen[place].data
    found = hiding.spelled_word(ref, before.decode("utf-8", "ignore"), word.decode("utf-8", "ignore"))
    return Side(ref, logits, None, truth, *(found or (None, 1)))


def both_sides(both: Both, place: int) -> tuple[Side, str]:
    """The masked model's view, and a sentence that says why the truth is not known, if it is not."""
    ref, text, hidden = both.masked, both.text, both.hidden
    logits = hiding.from_both_sides(ref, tuple(text.ids), tuple(hidden))[place]
    true_id = None if place in text.typed else text.ids[place]
    log_prob = None if true_id is None else float(log_softmax(logits)[true_id])
    ids = tuple(token.id for token in text.tokens)
    where = tuple(text.unused + i for i in hidden)
    try:
        truth = hiding.true_in_gap(ref, ids, where, text.unused + place)
    except ValueError as error:
        return Side(ref, logits, true_id, None, log_prob), str(error)
    return Side(ref, logits, true_id, truth, log_prob), ""


def bars(side: Side, key: str) -> Guess:
    """Draw one side."""
    found = guess(side.logits, SHOWN, true_id=side.true_id, true=side.truth)
    ids = found.top.ids.tolist()
    data_of = resources.tokenizer(side.ref).token_bytes
    st.markdown(f"**{say(f'side.{side.ref.objective}')}**")
    fig = viz.distribution_bars(
        [viz.visible(data_of(i)) for i in ids],
        found.top.probs,
        tail=found.top.tail,
        n_tail=found.top.n_tail,
        true_index=None if side.true_id is None else ids.index(side.true_id),
        true_note=say("hidden"),
        second=found.true_probs,
        names=(say("model"), say("true_distribution")),
        colors=(viz.objective_color(side.ref.objective), viz.TRUE),
    )
    show(fig, key=key)
    st.caption(_facts(side, found))
    return found


def _facts(side: Side, found: Guess) -> str:
    """Rank, probability and surprisal of what stands there, and the distance from the truth."""
    facts = []
    if found.rank is not None and side.log_prob is not None:
        p, nats = viz.format_prob(float(np.exp(side.log_prob))), viz.format_nats(-side.log_prob)
        facts.append(say("hidden_token_guess_probability", rank=found.rank, p=p, nats=nats))
    elif side.log_prob is not None:
        pieces = counted(side.n_pieces, "token")
        facts.append(
            say(
                "models_own_vocabulary_hidden",
                pieces=pieces,
                p=viz.format_prob(float(np.exp(side.log_prob))),
                nats=viz.format_nats(-side.log_prob),
            )
        )
    if found.cost is not None:
        facts.append(say("kl_truth", nats=viz.format_nats(found.cost)))
    return " ".join(facts)


def formulas(side: Side, found: Guess) -> None:
    """The probability of the hidden token (else of the likeliest one) worked out."""
    target = int(found.top.ids[0]) if side.true_id is None else side.true_id
    name = viz.visible(resources.tokenizer(side.ref).token_bytes(target))
    st.markdown(f"{say(f'side.{side.ref.objective}')}: **{literal(name)}**")
    z, log_sum, _ = softmax_parts(side.logits, target)
    st.latex(worked.softmax(z, log_sum, len(side.logits)))
    if found.cost is not None:
        st.latex(worked.divergence(found.cost))
