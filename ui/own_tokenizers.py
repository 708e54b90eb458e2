"""The vocabularies that this person learned and kept, as choices for a training run."""

from collections import Counter
from typing import TYPE_CHECKING

import streamlit as st

from engine import own_vocabularies
from engine.own_vocabularies import OwnVocabulary
from ui import session
from wording import words

if TYPE_CHECKING:
    from engine.tokenizers import Tokenizer

say = words("ui.own_tokenizers")

_PREFIX = "own:"


def option(vocabulary_hash: str) -> str:
    """How a kept vocabulary stands among the choices of tokenizers."""
    return _PREFIX + vocabulary_hash


def is_own(choice: str) -> bool:
    """Whether a choice of tokenizer is a kept one."""
    return choice.startswith(_PREFIX)


def names() -> dict[str, str]:
    """Choices and what they are called, newest first; no two alike."""
    called = {
        option(kept.hash): say("called", name=kept.name, learned_from=kept.learned_from)
        for kept in listed()[0]
    }
    often = Counter(called.values())
    return {
        choice: f"{name} ({choice.removeprefix(_PREFIX)[:4]})" if often[name] > 1 else name
        for choice, name in called.items()
    }


def listed() -> tuple[list[OwnVocabulary], list[str]]:
    """This person's vocabularies, newest first, and a sentence for each that can't be read."""
    owner = session.owner()
    return _listed(owner, own_vocabularies.stamp(owner))


@st.cache_resource(max_entries=64, show_spinner=False)
def _listed(owner: str, stamp: tuple[tuple[str, int], ...]) -> tuple[list[OwnVocabulary], list[str]]:
    return own_vocabularies.listed(owner)


def load(choice: str) -> "Tokenizer":
    """The vocabulary of a choice.

    Raises:
        ValueError: one sentence, if it is gone or damaged.
    """
    owner = session.owner()
    return _load(owner, choice.removeprefix(_PREFIX), own_vocabularies.stamp(owner))


@st.cache_resource(max_entries=16, show_spinner=False)
def _load(owner: str, vocabulary_hash: str, stamp: tuple[tuple[str, int], ...]) -> "Tokenizer":
    return own_vocabularies.load(owner, vocabulary_hash)
