"""How a token is drawn: the settings that a person turns, and their seed."""

import secrets
from typing import Any

import streamlit as st

DEFAULTS = {"temperature": 1.0, "generation_p": 0.9, "generation_k": 0, "generation_seed": 1}
KEEP: dict[str, Any] = {"persist_state": "session"}
HELP = {
    "temperature": "Logits are divided by it: below 1 the likely get likelier. 0 is exactly greedy.",
    "k": "Keep only the k likeliest tokens. 0 is off.",
    "p": "Keep the likeliest tokens until together they reach p, at least one. 1 is off.",
    "min_p": "Keep tokens with at least this share of the likeliest one’s probability. 0 is off.",
    "seed": "The same seed and the same settings give the same text, in one go or token by token.",
}


def _new_seed() -> None:
    st.session_state["generation_seed"] = secrets.randbelow(1_000_000)


def controls(vocab_size: int) -> tuple[dict[str, Any], int, int]:
    """The settings of a draw, the seed, and how many tokens to write."""
    for key, value in DEFAULTS.items():
        if key not in st.query_params:  # a link has said it
            st.session_state.setdefault(key, value)
    heat = st.slider(
        "Temperature", 0.0, 3.0, step=0.05, key="temperature", bind="query-params", help=HELP["temperature"]
    )
    k = st.number_input("Top-k", 0, step=1, key="generation_k", help=HELP["k"], **KEEP)
    if k > vocab_size:
        st.caption(f"The vocabulary has {vocab_size} tokens: all are kept.")
    p = st.slider("Top-p", 0.0, 1.0, step=0.01, key="generation_p", help=HELP["p"], **KEEP)
    with st.expander("More"):
        min_p = st.slider("Min-p", 0.0, 1.0, 0.0, 0.01, key="generation_min_p", help=HELP["min_p"], **KEEP)
        n = st.number_input("Tokens to write", 1, 1000, 60, key="generation_n", **KEEP)
        seed = st.number_input("Seed", 0, 2**31, key="generation_seed", help=HELP["seed"], **KEEP)
        st.button("New seed", key="generation_new_seed", on_click=_new_seed)
    settings = {"temperature": heat, "top_k": int(k) or None, "top_p": p, "min_p": min_p or None}
    return settings, int(seed), int(n)
