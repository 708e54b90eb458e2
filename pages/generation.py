"""Generation: the model writes one token after the other, and every draw can be seen."""

import secrets
import time
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import viz
from engine.metrics import kl_divergence, likeliest
from engine.sampling import sampling_stages, worked_out
from ui import lesson, nav, resources, session, worked
from ui.components import select, show
from ui.dice import dice, first_chip
from ui.possible import possible_story
from ui.resources import ModelRef
from ui.writing import Writing, logits_after, truth_after, writing, written

nav.require_app()

SHOWN = 9  # bars; all other tokens together are one bar more
VIEWS = ("Before and after", "Every stage", "Against the truth")
DEFAULTS = {"temperature": 1.0, "generation_p": 0.9, "generation_k": 0, "generation_seed": 1}
KEEP: dict[str, Any] = {"persist_state": "session"}
HELP = {
    "temperature": "Logits are divided by it: below 1 the likely get likelier. 0 is exactly greedy: always the likeliest.",
    "k": "Keep only the k likeliest tokens. 0 is off.",
    "p": "Keep the likeliest tokens until together they reach p, at least one. 1 is off.",
    "min_p": "Keep tokens with at least this share of the likeliest one’s probability. 0 is off.",
    "seed": "The same seed and the same settings give the same text, in one go or token by token.",
}


def new_seed() -> None:
    st.session_state["generation_seed"] = secrets.randbelow(1_000_000)


def controls(vocab_size: int) -> tuple[dict[str, Any], int, int]:
    """The settings of a draw, the seed, and how many tokens to write."""
    for key, value in DEFAULTS.items():
        st.session_state.setdefault(key, value)
    heat = st.slider(
        "Temperature", 0.0, 3.0, step=0.05, key="temperature", bind="query-params", help=HELP["temperature"]
    )
    k = st.number_input("Top-k", 0, step=1, key="generation_k", help=HELP["k"], **KEEP)
    if k > vocab_size:
        st.caption(f"The vocabulary has {vocab_size} tokens: all are kept.")
    p = st.slider("Top-p", 0.0, 1.0, step=0.01, key="generation_p", help=HELP["p"], **KEEP)
    with st.expander("More: min-p, length, seed"):
        min_p = st.slider("Min-p", 0.0, 1.0, 0.0, 0.01, key="generation_min_p", help=HELP["min_p"], **KEEP)
        n = st.number_input("Tokens to write", 1, 1000, 60, key="generation_n", **KEEP)
        seed = st.number_input("Seed", 0, 2**31, key="generation_seed", help=HELP["seed"], **KEEP)
        st.button("New seed", key="generation_new_seed", on_click=new_seed)
    settings = {"temperature": heat, "top_k": int(k) or None, "top_p": p, "min_p": min_p or None}
    return settings, int(seed), int(n)


def buttons(text: Writing, n: int) -> tuple[bool, bool]:
    """Whether to draw one token, and whether to write n of them."""
    with st.container(horizontal=True):
        one = st.button("Draw one token", key="generation_draw", type="primary")
        many = st.button(f"Write {n} tokens", key="generation_write")
        many = st.session_state.pop("_generation_go", False) or many
        st.button("Stop", key="generation_stop", disabled=not many)
        st.button("Undo", key="generation_undo", on_click=text.undo, disabled=not text.draws)
        st.button("Restart", key="generation_restart", on_click=text.restart, disabled=not text.draws)
    return one, many


def picture(ref: ModelRef, ids: tuple[int, ...], settings: dict[str, Any]) -> None:
    """What can come next: the model's distribution, and what temperature and cuts make of it."""
    logits = logits_after(ref, ids)
    stages = sampling_stages(logits, **settings)
    top = likeliest(stages[0].probs, SHOWN)
    labels = [viz.visible(resources.tokenizer(ref).token_bytes(i)) for i in top.ids]
    views = VIEWS if resources.oracle_for(ref) else VIEWS[:2]
    if st.session_state.get("generation_view") not in views:
        st.session_state["generation_view"] = VIEWS[0]
    view = st.segmented_control("What can come next", views, required=True, key="generation_view", **KEEP)
    if view == VIEWS[2]:
        truth = truth_after(ref, ids)
        second = None if truth is None else truth[top.ids]
        show(
            viz.distribution_bars(labels, top.probs, tail=top.tail, n_tail=top.n_tail, second=second),
            key="generation_truth",
        )
        if truth is not None:
            cost = viz.format_nats(float(kl_divergence(truth, stages[0].probs)))
            st.caption(
                f"To believe the model instead of the truth costs {cost} a token here (KL divergence)."
            )
        else:
            st.caption("No story goes on from here, so there is no true distribution.")
    else:
        both = [("The model", stages[0]), ("What is drawn from", stages[-1])]
        chain = both if view == VIEWS[0] else [(stage.name, stage) for stage in stages]
        panels = [(name, stage.probs[top.ids]) for name, stage in chain]
        show(viz.sampling_stages(labels, panels, n_tail=top.n_tail), key="generation_stages")
    cuts = [
        f"**{stage.name}** removed {viz.format_prob(stage.removed_mass)} of the probability and left {stage.n_kept:,} tokens"
        for stage in stages[2:]
    ]
    st.caption(
        "Order: temperature → top-k → top-p → min-p. " + ("; ".join(cuts) or "Nothing is cut away") + "."
    )
    names = dict(zip(top.ids, labels, strict=True))
    if st.session_state.get("generation_token") not in names:
        st.session_state["generation_token"] = top.ids[0]
    chosen = st.selectbox(
        "Work out", top.ids, format_func=lambda i: names.get(i, ""), key="generation_token", **KEEP
    )
    w = worked_out(logits, stages, chosen, settings["temperature"])
    for line in worked.sampling_lines(w.logit, w.top, settings["temperature"], w.total, w.kept, w.final == 0):
        st.latex(line)


def stream(panel: DeltaGenerator, parts: tuple[str, str], text: Writing, *how: Any) -> None:
    """Write into the page as the tokens come. Any click ends this run at the next token; what is there stays."""
    text.asked, text.done, began = how[2], 0, time.perf_counter()
    for _ in text.go_on(*how):
        text.done, text.seconds = text.done + 1, time.perf_counter() - began
        panel.html(written(*parts, text.text(ended=False)))


def experiment(**settings: float) -> None:
    """Set everything, go back to the prompt and write."""
    st.session_state.update({**DEFAULTS, **settings}, _generation_go=True, _writing=None)
