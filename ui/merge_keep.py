"""What to do with a vocabulary: train with it, keep it, take it away."""

import json

import streamlit as st

from engine import own_vocabularies
from engine.merges import History
from engine.tokenizers import Tokenizer
from ui import nav, own_tokenizers, session, training_settings
from ui.words import literal

_PROBLEM = "_merges_problem"


def draw(history: History, learned_from: str) -> None:
    """Draw the buttons, and what is kept already."""
    tokenizer = history.tokenizer
    st.subheader("Use it")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Use this tokenizer for my next run", key="merges_use", type="primary", on_click=_use,
            args=(tokenizer, learned_from),
        )  # fmt: skip
        st.download_button(
            "Download as JSON",
            lambda: json.dumps(tokenizer.to_json()),
            file_name=f"bpe-{tokenizer.vocab_size}.json",
            key="merges_json",
            on_click="ignore",
        )
        st.download_button(
            "Download as .tiktoken",
            lambda: own_vocabularies.ranks_file(tokenizer),
            file_name=f"bpe-{tokenizer.vocab_size}.tiktoken",
            key="merges_tiktoken",
            on_click="ignore",
        )
    problem = st.session_state.pop(_PROBLEM, None)
    if problem:
        st.warning(literal(problem))
    _kept(tokenizer)


def _use(tokenizer: Tokenizer, learned_from: str) -> None:
    try:
        kept = own_vocabularies.save(session.owner(), tokenizer, learned_from)
    except ValueError as error:
        st.session_state[_PROBLEM] = str(error)
        return
    training_settings.fill(tokenizer=own_tokenizers.option(kept.hash))


def _kept(tokenizer: Tokenizer) -> None:
    """That this one is kept, and the others."""
    found, problems = own_tokenizers.listed()
    if any(kept.hash == tokenizer.hash for kept in found):
        chosen = training_settings.value("tokenizer") == own_tokenizers.option(tokenizer.hash)
        words = "Your next run will use it." if chosen else "Choose it under “Tokenizer” there."
        st.success(f"{tokenizer.name} is kept for you on the Training page. {words}")
        nav.link("training", "Train with it")
    for problem in problems:
        st.warning(literal(problem))
    if not found:
        return
    with st.expander(f"My tokenizers ({len(found)})"):
        for kept in found:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.text(f"{kept.name}, learned from {kept.learned_from}")
                st.button(
                    "Remove", key=f"merges_remove_{kept.hash}", on_click=own_vocabularies.remove,
                    args=(session.owner(), kept.hash),
                )  # fmt: skip
