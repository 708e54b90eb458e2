"""What can't be compared and why: two perplexities, and two scores of a whole text."""

import math
from collections.abc import Sequence

import numpy as np
import streamlit as st

import viz
from engine.gaps import mean_surprisal
from engine.mask_draws import UNSCORED
from engine.metrics import next_token_scores, perplexity
from ui import gap_strip, hiding, lesson, masking_orders, resources, worked_masking
from ui.components import token_strip
from ui.components.token_strip import TokenLike
from ui.hiding import Both
from ui.words import counted
from viz.masking import fate_color

LIMIT = "masking_limit"
SCROLLS = 40  # tokens
PARTS = ("One number each", "Two orders", "By hand")
TRY = "Once upon a time, there was a princess called Lily. She"


def draw(both: Both) -> None:
    """Draw the view."""
    st.session_state.setdefault(LIMIT, PARTS[0])
    part = st.segmented_control(
        "Why", PARTS, required=True, key=LIMIT, persist_state="session", label_visibility="collapsed"
    )
    place = None if part == PARTS[2] else gap_strip.draw(both)  # the tables by hand are of no text
    if part == PARTS[0]:
        _two_numbers(both)
        _one_text(both)
    elif part == PARTS[1]:
        masking_orders.two_orders(both, place)
        masking_orders.every_filling(both, place)
    else:
        masking_orders.hand_made()
    lesson.try_this(
        lesson.Step(
            "Everything hidden: the masked-token perplexity jumps.", "Hide every token", _hide_all, (both,)
        ),
        lesson.Step(
            "Two words that know of each other: the name tells whether it was a princess.",
            "Princess and Lily", _both_words,
        ),
        lesson.Step(
            "Tables that a joint has: both orders agree, and still the sum is not 1.",
            "A real joint", _choose_table, ("A joint has these",),
        ),
        key="limits_try",
    )  # fmt: skip


def _hide_all(both: Both) -> None:
    st.session_state[LIMIT] = PARTS[0]
    hiding.hide(range(len(both.text.seen)))


def _both_words() -> None:
    st.session_state[LIMIT] = PARTS[1]
    hiding.story(TRY, "princess", True)
    st.session_state.pop(masking_orders.SECOND, None)


def _choose_table(name: str) -> None:
    st.session_state[LIMIT] = PARTS[2]
    st.session_state[masking_orders.TABLE] = name


def _two_numbers(both: Both) -> None:
    """Perplexity and masked-token perplexity of this text, side by side and never in one column."""
    text, n = both.text, len(both.text.seen)
    left, right = st.columns(2, gap="medium")
    n_numbers = 0
    if both.causal is not None and not text.typed:
        trace = resources.traced(both.causal, both.whole)
        if len(trace.tokens) > 1:
            loss = next_token_scores(trace.logits, [token.id for token in trace.tokens]).loss
            left.metric("Perplexity (causal model)", viz.format_perplexity(perplexity(loss)), border=True)
            n_numbers += 1
            m = len(trace.tokens)
            left.caption(f"{m - 1:,} of {m:,} positions scored, each from its left.")
    known = [i for i in both.hidden if i not in text.typed]
    if known:
        n_numbers += 1
        logits = hiding.from_both_sides(both.masked, tuple(text.ids), tuple(both.hidden))
        loss = mean_surprisal(logits, text.ids, known)
        right.metric(
            "Masked-token perplexity (masked model)", viz.format_perplexity(perplexity(loss)), border=True
        )
        right.caption(
            f"{len(known):,} of {n:,} positions scored ({len(known) / n:.0%}), each from all that is shown. "
            "It depends on which tokens are hidden: hide others, and it is another number."
        )
    if n_numbers == 2:
        st.write(
            "Both are e to the mean surprise, and that is all they share. They ask other questions with "
            "other help, so the smaller one says nothing about which model is better."
        )


# ---- one text: the chain rule against masking each token in turn ----


def _one_text(both: Both) -> None:
    """Log probability of the text beside its pseudo-log-likelihood."""
    st.subheader("A score for the whole text")
    text = both.text
    in_turn = hiding.in_turn(both.masked, tuple(text.ids), text.typed)
    known = int(np.isfinite(in_turn).sum())
    pseudo = float(np.nansum(in_turn))
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Causal: a probability, by the chain rule**")
        if both.causal is None or text.typed:
            st.caption("A causal model scores a text without gaps.")
        else:
            trace = resources.traced(both.causal, both.whole)
            if len(trace.tokens) < 2:
                st.caption("At least 2 tokens are needed: nothing predicts the first.")
            else:
                found = next_token_scores(trace.logits, [token.id for token in trace.tokens])
                surprise = [math.nan, *(-found.log_probs).tolist()]
                label = "Surprise of each token, given what stands left of it"
                _strip(trace.tokens, surprise, "masking_from_left", label, trace.logits.shape[-1])
                st.latex(worked_masking.log_probability(found.total, len(trace.tokens) - 1))
                st.caption(
                    "Under each token: its surprise in nats, given the left. Over all texts of this length "
                    "that begin with this token, P adds up to 1."
                )
    with right:
        st.markdown("**Masked: a pseudo-log-likelihood**")
        if known:
            label = "Surprise of each token, given all others"
            n_ids = resources.load(both.masked).model.config.vocab_size
            _strip(text.seen, (-in_turn).tolist(), "masking_in_turn", label, n_ids)
            st.latex(worked_masking.pseudo(pseudo))
            st.caption(
                f"Each of {counted(known, 'token')} in turn is masked, in a pass of its own (Salazar and "
                "others 2020, arXiv:1910.14659). "
                + (
                    "Each token helps to guess the others and is guessed with their help, so the text is "
                    "counted over and over: e to the PLL is no probability."
                    if known > 1
                    else "With a single token this is its probability given the rest; with more, tokens help "
                    "to guess each other, and e to the PLL is no probability."
                )
            )
        else:
            st.caption("There is no token whose answer is known.")


def _strip(tokens: Sequence[TokenLike], surprise: list[float], key: str, label: str, vocab_size: int) -> None:
    """A text with the surprise of each token under it; – where there is none."""
    most, pale = math.log(vocab_size), fate_color(UNSCORED)
    with st.container(height=170 if len(tokens) > SCROLLS else "content", border=len(tokens) > SCROLLS):
        token_strip(
            [[token] for token in tokens],
            key=key,
            values=["–" if x != x else lesson.brief(x) for x in surprise],
            colors=[pale if x != x else viz.surprisal_color(x, most) for x in surprise],
            label=label,
        )
