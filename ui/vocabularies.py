"""Vocabularies to cut a text with: the model's own, bytes, characters, own BPE, published ones, uploads.

Published are the three that are downloaded here, and those of the models in the models folder.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine import vocabularies as files
from engine.token_costs import Cost, measure
from ui import model_refs, resources
from ui.model_refs import ModelRef
from wording import words

if TYPE_CHECKING:
    from engine.tokenizers import Token, Tokenizer

say = words("ui.vocabularies")

OWN, BYTES, CHARACTERS = "model", "bytes", "characters"
PUBLISHED = ("gpt2", "cl100k_base", "o200k_base")
LEARNED = {  # own BPE: from which text, and how many ids were asked for
    "stories-512": ("stories", 512),
    "stories-1024": ("stories", 1024),
    "stories-4096": ("stories", 4096),
    "docs-4096": ("python-docs", 4096),
}
MOST_MODELS = 4  # models of the models folder whose vocabularies are offered besides the chosen one's
HEAD = 40  # tokens of each vocabulary that a comparison draws
_BROUGHT = "_tokens_brought"  # session: option -> tokenizer of an uploaded file, None for a published name
_MOST_BROUGHT = 3


@dataclass(frozen=True, eq=False)
class Cut:
    """A text in the pieces of one vocabulary.

    Attributes:
        tokenizer: the vocabulary.
        ids: of the whole text, as it was read.
        segments: the first tokens, in whole graphemes.
        n_other: tokens of the whole text in the other reading (names of control tokens as one token, or as
            plain text); None if it is the same.
        other: the first tokens of that reading.
    """

    tokenizer: "Tokenizer"
    ids: NDArray[np.int32]
    segments: "list[list[Token]]"
    n_other: int | None
    other: "list[list[Token]]"

    @property
    def tokens(self) -> "list[Token]":
        """The first tokens."""
        return [token for segment in self.segments for token in segment]

    def segment_of(self, index: int) -> "list[Token]":
        """The whole grapheme, or graphemes, that a token belongs to."""
        for segment in self.segments:
            if index < len(segment):
                return segment
            index -= len(segment)
        raise IndexError(index)


@dataclass(frozen=True, eq=False)
class Compared:
    """One text in several vocabularies: their options, what it costs in each, and the first tokens.

    `left_out` names those that lack a byte or a character of the text.
    """

    options: tuple[str, ...]
    costs: tuple[Cost, ...]
    heads: "tuple[list[list[Token]], ...]"
    left_out: tuple[str, ...] = ()


def brought() -> "dict[str, Tokenizer | None]":
    """What this person has uploaded since the page was loaded."""
    found: dict[str, Tokenizer | None] = st.session_state.get(_BROUGHT, {})
    return found


def bring(option: str, tokenizer: "Tokenizer | None") -> None:
    """Add an uploaded vocabulary to the options; of many, the last few stay."""
    kept = {**{name: t for name, t in brought().items() if name != option}, option: tokenizer}
    st.session_state[_BROUGHT] = dict(list(kept.items())[-_MOST_BROUGHT:])


def options(ref: ModelRef | None, also: object = None) -> list[str]:
    """What can be chosen, the model's own vocabulary first if there is a model.

    Args:
        ref: the chosen model.
        also: an option of `LEARNED` to offer too.
    """
    extra = [str(also)] if also in LEARNED else []
    own = [OWN] if ref else []
    others = [n for n in brought() if n not in PUBLISHED]
    return [*own, BYTES, CHARACTERS, *extra, *PUBLISHED, *of_models(ref), *others]


def of_models(ref: ModelRef | None) -> dict[str, ModelRef]:
    """By option: the published models whose vocabulary is offered, without the chosen model."""
    found = [model for model in model_refs.hub_models() if ref is None or model.id != ref.id]
    return {model.id: model for model in found[:MOST_MODELS]}


def absent() -> list[str]:
    """Published vocabularies that are not on this machine."""
    return [name for name in PUBLISHED if files.find(name) is None]


def label(option: str, ref: ModelRef | None) -> str:
    """How an option is called on the screen; may hold any characters."""
    if option == OWN and ref:
        return say("own", name=called(resources.tokenizer(ref).name))
    if option in LEARNED:
        return say(f"learned.{LEARNED[option][0]}", name=_learned(option).name)
    models = of_models(ref)
    return models[option].name if option in models else called(option)


def called(name: str) -> str:
    """A vocabulary's own name; bytes and characters are words of the language spoken."""
    return say(f"called.{name}") if name in (BYTES, CHARACTERS) else name


@st.cache_resource(max_entries=8, show_spinner=say.later("reading"))
def _published(name: str) -> "Tokenizer":
    from engine.tokenizers import load_vocabulary

    return load_vocabulary(name)


@st.cache_resource(max_entries=2, show_spinner=say.later("learning"))
def _largest(kind: str) -> "Tokenizer":
    from engine.corpus import python_docs, stories
    from engine.tokenizers import train_bpe

    text = stories(2000).text if kind == "stories" else python_docs().text
    return train_bpe(text, max(size for k, size in LEARNED.values() if k == kind))


@st.cache_resource(max_entries=8, show_spinner=False)
def _learned(option: str) -> "Tokenizer":
    """An own BPE: the first merges of the largest one are what a smaller one learns."""
    from engine.merges import truncated

    kind, size = LEARNED[option]
    largest = _largest(kind)
    return truncated(largest, min(size, largest.vocab_size) - 256)


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
    if option in LEARNED:
        return _learned(option)
    models = of_models(ref)
    if option in models:
        return resources.tokenizer(models[option])
    return brought().get(option) or _published(option)


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
    return _cut(tokenizer, tokenizer.hash, text, special, most)


@st.cache_resource(max_entries=6, show_spinner=say.later("cutting"))
def _cut(_tokenizer: "Tokenizer", identity: str, text: str, special: bool, most: int) -> Cut:
    from engine.tokens import whole_graphemes

    def first(ids: "list[int]") -> "list[list[Token]]":
        return whole_graphemes(_tokenizer.locate(ids[:most], text), _tokenizer.normal(text))

    ids = _tokenizer.encode(text, special=special)
    try:
        other = _tokenizer.encode(text, special=not special) if "<" in text or "[" in text else ids
    except ValueError:  # there is no other reading
        other = ids
    n_other, rest = (None, []) if other == ids else (len(other), first(other))
    return Cut(_tokenizer, np.array(ids, dtype=np.int32), first(ids), n_other, rest)


def comparable(ref: ModelRef | None) -> list[str]:
    """What a comparison holds, from the finest pieces to the largest vocabulary, without what is absent."""
    learned = [name for name in LEARNED if not _is_the_model_s(name, ref)] + ([OWN] if ref else [])
    learned.sort(key=lambda name: find(name, ref, "a").vocab_size)
    missing = absent()
    there = [name for name in PUBLISHED if name not in missing]
    models = [name for name in of_models(ref) if _can_be_read(name, ref)]
    return [BYTES, CHARACTERS, *learned, *there, *models, *(n for n in brought() if n not in PUBLISHED)]


def _can_be_read(option: str, ref: ModelRef | None) -> bool:
    """Whether a model's vocabulary can be read: one of another kind may need a package that is not here."""
    try:
        find(option, ref, "a")
    except ValueError:
        return False
    return True


def _is_the_model_s(option: str, ref: ModelRef | None) -> bool:
    """Whether the model's own vocabulary already stands for an own BPE of the same text and size."""
    if ref is None or ref.corpus != LEARNED[option][0]:
        return False
    return resources.tokenizer(ref).vocab_size == LEARNED[option][1]


def compare(ref: ModelRef | None, text: str) -> Compared:
    """Cut a text that is not empty with every vocabulary of `comparable`, leaving out those that can't."""
    names = comparable(ref)
    tokenizers = [find(name, ref, text) for name in names]
    labels = tuple(label(name, ref) for name in names)
    return _compare(tokenizers, tuple(t.hash for t in tokenizers), tuple(names), labels, text)


@st.cache_resource(max_entries=3, show_spinner=say.later("comparing"))
def _compare(
    _tokenizers: "list[Tokenizer]",
    hashes: tuple[str, ...],
    names: tuple[str, ...],
    labels: tuple[str, ...],
    text: str,
) -> Compared:
    from engine.tokens import whole_graphemes

    size, rows, left_out = measure(text), [], []
    for tokenizer, name, called in zip(_tokenizers, names, labels, strict=True):
        try:
            ids = tokenizer.encode(text)
        except ValueError:  # a model of characters that its text did not have, or bytes without a token
            left_out.append(called)
            continue
        head = whole_graphemes(tokenizer.locate(ids[:HEAD], text), tokenizer.normal(text))
        rows.append((name, Cost(called, tokenizer.vocab_size, len(ids), size), head))
    options, costs, heads = zip(*rows, strict=True)
    return Compared(options, costs, heads, tuple(left_out))
