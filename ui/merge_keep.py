"""What to do with a vocabulary: train with it, keep it, take it away."""

import json

import streamlit as st

from engine import own_vocabularies
from engine.merges import History
from engine.tokenizers import Tokenizer
from ui import nav, own_tokenizers, people, session, training_settings
from ui.words import literal
from wording import words

say = words("ui.merge_keep")

_PROBLEM = "_merges_problem"


def draw(history: History, learned_from: str) -> None:
    """Draw the buttons, and what is kept already."""
    tokenizer = history.tokenizer
    st.subheader(say("title"))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            say("use"), key="merges_use", type="primary", on_click=_use,
            args=(tokenizer, learned_from),
        )  # fmt: skip
        st.download_button(
            say("download_json"),
            lambda: json.dumps(tokenizer.to_json()),
            file_name=f"bpe-{tokenizer.vocab_size}.json",
            key="merges_json",
            on_click="ignore",
        )
        st.download_button(
            say("download_tiktoken"),
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


def _remove(vocabulary_hash: str) -> None:
    with people.keeping():
        own_vocabularies.remove(session.owner(), vocabulary_hash)


def _kept(tokenizer: Tokenizer) -> None:
    """That this one is kept, and the others."""
    found, problems = own_tokenizers.listed()
    if any(kept.hash == tokenizer.hash for kept in found):
        chosen = training_settings.value("tokenizer") == own_tokenizers.option(tokenizer.hash)
        st.success(say("kept_and_chosen" if chosen else "kept", name=tokenizer.name))
        nav.link("training", say("train"))
    for problem in problems:
        st.warning(literal(problem))
    if not found:
        return
    with st.expander(say("kept_ones", n=len(found))):
        for kept in found:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.text(say("kept_one", name=kept.name, learned_from=kept.learned_from))
                st.button(
                    say("remove"), key=f"merges_remove_{kept.hash}", on_click=_remove,
                    args=(kept.hash,),
                )  # fmt: skip
