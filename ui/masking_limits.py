"""What can't be compared and why: two perplexities, and two scores of a whole text."""

import math
from collections.abc import Sequence

import numpy as np
import streamlit as st

import viz
from engine.gaps import mean_surprisal
from engine.mask_draws import UNSCORED
from engine.metrics import next_token_scores, perplexity
from ui import gap_strip, hiding, lesson, masking_orders, passes, resources, worked_masking
from ui.components import token_strip
from ui.components.token_strip import TokenLike
from ui.hiding import Both
from ui.words import counted
from viz.masking import fate_color
from wording import words

say = words("ui.masking_limits")

LIMIT = "masking_limit"
SCROLLS = 40  # tokens
PARTS = ("one-number-each", "two-orders", "by-hand")
TRY = "Once upon a time, there was a princess called Lily. She"


def draw(both: Both) -> None:
    """Draw the view."""
    st.session_state.setdefault(LIMIT, PARTS[0])
    parts = say.table("parts")
    part = st.segmented_control(
        say("why"), PARTS, required=True, key=LIMIT, persist_state="session", format_func=parts.__getitem__,
        label_visibility="collapsed",
    )  # fmt: skip
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
            say("everything_hidden_masked_token"), say("hide_every_token"), _hide_all, (both,)
        ),
        lesson.Step(
            say("two_words_know_each"),
            say("princess_lily"), _both_words,
        ),
        lesson.Step(
            say("tables_joint_has_both"),
            say("real_joint"), _choose_table, ("joint",),
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
        trace = passes.traced(both.causal, both.whole)
        if len(trace.tokens) > 1:
            loss = next_token_scores(trace.logits, [token.id for token in trace.tokens]).loss
            left.metric(say("perplexity_causal_model"), viz.format_perplexity(perplexity(loss)), border=True)
            n_numbers += 1
            m = len(trace.tokens)
            left.caption(say("positions_scored_each_left", scored=m - 1, n=m))
    known = [i for i in both.hidden if i not in text.typed]
    if known:
        n_numbers += 1
        logits = hiding.from_both_sides(both.masked, tuple(text.ids), tuple(both.hidden))
        loss = mean_surprisal(logits, text.ids, known)
        right.metric(
            say("masked_token_perplexity_masked"), viz.format_perplexity(perplexity(loss)), border=True
        )
        right.caption(say("positions_scored_each_all", scored=len(known), n=n, share=len(known) / n))
    if n_numbers == 2:
        st.write(say("both_e_mean_surprise"))


# ---- one text: the chain rule against masking each token in turn ----


def _one_text(both: Both) -> None:
    """Log probability of the text beside its pseudo-log-likelihood."""
    st.subheader(say("score_whole_text"))
    text = both.text
    in_turn = hiding.in_turn(both.masked, tuple(text.ids), text.typed)
    known = int(np.isfinite(in_turn).sum())
    pseudo = float(np.nansum(in_turn))
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown(say("causal_probability_chain_rule"))
        if both.causal is None or text.typed:
            st.caption(say("causal_model_scores_text"))
        else:
            trace = passes.traced(both.causal, both.whole)
            if len(trace.tokens) < 2:
                st.caption(say("least_2_tokens_needed"))
            else:
                found = next_token_scores(trace.logits, [token.id for token in trace.tokens])
                surprise = [math.nan, *(-found.log_probs).tolist()]
                label = say("surprise_each_token_given")
                _strip(trace.tokens, surprise, "masking_from_left", label, trace.logits.shape[-1])
                st.latex(worked_masking.log_probability(found.total, len(trace.tokens) - 1))
                st.caption(say("under_each_token_surprise"))
    with right:
        st.markdown(say("masked_pseudo_log_likelihood"))
        if known:
            label = say("surprise_each_token_given_2")
            n_ids = resources.load(both.masked).model.config.vocab_size
            _strip(text.seen, (-in_turn).tolist(), "masking_in_turn", label, n_ids)
            st.latex(worked_masking.pseudo(pseudo))
            st.caption(
                say("each_turn_masked_pass", known=counted(known, "token"))
                + " "
                + (say("each_token_helps_guess") if known > 1 else say("single_token_probability_given"))
            )
        else:
            st.caption(say("there_no_token_whose"))


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
