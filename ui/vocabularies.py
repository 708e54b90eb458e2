"""Vocabularies to cut a text with: the model's own, bytes, characters, the published ones."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from ui import resources
from ui.resources import ModelRef

if TYPE_CHECKING:
    from engine.tokenizers import Token, Tokenizer

OWN, BYTES, CHARACTERS = "model", "bytes", "characters"
PUBLISHED = ("gpt2", "cl100k_base", "o200k_base")
_LABELS = {BYTES: "bytes", CHARACTERS: "characters"}


@dataclass(frozen=True, eq=False)
class Cut:
    """A text in the pieces of one vocabulary.

    Attributes:
        tokenizer: the vocabulary.
        ids: of the whole text, as it was read.
        other_ids: of the other reading (names of control tokens as one token, or as plain text); None if it
            is the same.
        segments: the first tokens, in whole graphemes.
    """

    tokenizer: "Tokenizer"
    ids: list[int]
    other_ids: list[int] | None
    segments: "list[list[Token]]"

    @property
    def tokens(self) -> "list[Token]":
        """The first tokens."""
        return [token for segment in self.segments for token in segment]


def options(ref: ModelRef | None) -> list[str]:
    """What can be chosen, the model's own vocabulary first if there is a model."""
    return [*([OWN] if ref else []), BYTES, CHARACTERS, *PUBLISHED]


def label(option: str, ref: ModelRef | None) -> str:
    """How an option is called on the screen."""
    if option == OWN and ref:
        return f"the model’s: {resources.tokenizer(ref).name}"
    return _LABELS.get(option, option)


@st.cache_resource(max_entries=8, show_spinner="Reading the vocabulary …")
def _published(name: str) -> "Tokenizer":
    from engine.tokenizers import load_vocabulary

    return load_vocabulary(name)


def find(option: str, ref: ModelRef | None, text: str) -> "Tokenizer":
    """The tokenizer of an option.

    Args:
        option: one of `options`.
        ref: the chosen model.
        text: what the characters vocabulary is made from.

    Raises:
        ValueError: if a published vocabulary is not on this machine; the sentence says how to add it.
    """
    from engine.tokenizers import byte_tokenizer, char_tokenizer

    if option == OWN and ref:
        return resources.tokenizer(ref)
    if option == BYTES:
        return byte_tokenizer()
    if option == CHARACTERS:
        return char_tokenizer(text)
    return _published(option)


@st.cache_resource(max_entries=6, show_spinner="Cutting the text …")
def cut(option: str, ref: ModelRef | None, text: str, special: bool, most: int) -> Cut:
    """Cut a text that is not empty.

    Args:
        option: one of `options`.
        ref: the chosen model.
        text: the whole text.
        special: whether control words such as <|endoftext|> are one token.
        most: how many tokens to keep with their places.

    Raises:
        ValueError: if the vocabulary is missing, or does not know a character of the text.
    """
    tokenizer = find(option, ref, text)
    ids = tokenizer.encode(text, special=special)
    controls = "<|" in text or "[MASK]" in text
    other = tokenizer.encode(text, special=not special) if controls else ids
    head = tokenizer.segments(text, special=special, most=most)
    return Cut(tokenizer, ids, other if other != ids else None, head)
