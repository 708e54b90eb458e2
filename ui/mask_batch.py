"""How training hides tokens in a batch, on the text of the page, and what the two ways of training score."""

import secrets

import streamlit as st

import viz
from engine.gaps import MASK, UNSCORED, count_fates, draw_masks, mean_surprisal
from engine.metrics import next_token_scores
from engine.tokenizers import Token
from ui import hiding, resources
from ui.components import token_strip
from ui.hiding import GapText
from ui.resources import ModelRef

SEED = "masking_batch_seed"
SHARE = 0.15


def _again() -> None:
    st.session_state[SEED] = secrets.randbelow(1_000_000)


def batch(ref: ModelRef, text: GapText) -> None:
    """One row of a training batch: each token's fate, and how often each fate comes."""
    st.session_state.setdefault(SEED, 1)
    tokenizer, ids = resources.tokenizer(ref), text.ids
    st.write(
        "Each token is chosen with a chance of 15 %. Of the chosen, 80 % become the mask, 10 % a random "
        "token, and 10 % stay. The model must give back every chosen one; nothing else is scored."
    )
    if len(text.typed) == len(text.seen):
        st.info("Every token here is hidden already. Type a word to see what training would hide of it.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.number_input("Seed", 0, 2**31, key=SEED, persist_state="session", width=160)
        st.button("Draw again", key="masking_again", on_click=_again)
    seed = int(st.session_state[SEED])
    row = draw_masks(ids, mask_prob=SHARE, mask_id=tokenizer.mask_id, seed=seed)
    given = [Token(i, tokenizer.token_bytes(i), "", 0, 0, 0) for i in row.inputs]
    fates = [
        "–" if fate == UNSCORED else f"{fate} → {viz.clip(viz.visible(tokenizer.token_bytes(target)), 10)}"
        for fate, target in zip(row.fates, row.targets, strict=True)
    ]
    masked = [i for i, fate in enumerate(row.fates) if fate == MASK]
    token_strip(
        [[token] for token in given],
        key="masking_batch",
        values=fates,
        hidden=masked,
        label="Input of one training row",
    )
    st.caption(
        "Above: what the model is given. Below: its fate → the target. – is not scored: its target is −100."
    )
    counts = count_fates(ids, row, mask_prob=SHARE, mask_id=tokenizer.mask_id, seed=seed)
    st.table(
        {
            "fate": [count.fate for count in counts],
            "in this draw": [str(count.here) for count in counts],
            "mean of 1,000 draws": [f"{count.mean:.2f}" for count in counts],
            "expected": [f"{count.expected:.2f}" for count in counts],
        },
        hide_index=True,
    )
    st.caption("If chance picks no token at all, one is picked, so that every row teaches something.")


def paid(causal: ModelRef | None, masked: ModelRef, text: GapText, hidden: list[int], whole: str) -> None:
    """Which positions each way of training scores, and its loss on this text. Never one scale for both."""
    left, right = st.columns(2)
    n = len(text.seen)
    with left:
        st.markdown("**Causal: every token but the first is a question**")
        if causal is not None and n > 1 and not text.typed:
            trace = resources.traced(causal, whole)
            loss = next_token_scores(trace.logits, [token.id for token in trace.tokens]).loss
            st.metric("Loss, nats per token", viz.format_number(loss), border=True)
        st.write(f"{max(0, n - 1):,} of {n:,} positions are scored, each guessed from its left.")
    with right:
        st.markdown("**Masked: only the hidden tokens are questions**")
        known = [i for i in hidden if i not in text.typed]
        if known:
            logits = hiding.from_both_sides(masked, tuple(text.ids), tuple(hidden))
            st.metric(
                "Masked-token loss, nats per hidden token",
                viz.format_number(mean_surprisal(logits, text.ids, known)),
                border=True,
            )
        st.write(
            f"{len(known):,} of {n:,} positions are scored, each guessed from everything that is not hidden."
        )
    st.caption(
        "The two losses average over different questions, asked with different help: a smaller one is no "
        "better model. A masked model gives no probability to a whole text, so it has no perplexity."
    )
