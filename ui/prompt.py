"""The sidebar's text as a causal model is given it: its own ids around it, or as a message in a chat."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import streamlit as st

from engine.chat import ChatForm, Message, chat_form, chat_ids, end_ids
from engine.view import first_seen
from ui import resources
from ui.components import token_strip
from ui.model_refs import ModelRef
from wording import words

if TYPE_CHECKING:
    from engine.tokenizers import Token

say = words("ui.prompt")

CHAT = "generation_chat"
_SHOWN = 60  # tokens of a framed prompt that are drawn on each side of a gap


@dataclass(frozen=True, eq=False)
class Prompt:
    """A text before which and behind which a model's own tokens may stand.

    Attributes:
        text: as it was typed.
        ids: all that the model is given.
        starts: for each of them, the character of `text` at which it begins.
        chat: whether it is a message.
    """

    text: str
    ids: list[int]
    starts: list[int]
    chat: bool

    def cut(self, ref: ModelRef, n_more: int) -> int:
        """The character at which the model's view begins when so many tokens stand behind the prompt."""
        unused = first_seen(len(self.ids) + n_more, ref.context_length, ref.jump)
        return self.starts[unused] if unused < len(self.ids) else len(self.text)


@lru_cache(maxsize=16)
def form_of(ref: ModelRef) -> ChatForm | None:
    """How the model's chats look; None if it has none that we know."""
    if ref.kind != "hub" or ref.objective != "clm":
        return None
    return chat_form(ref.folder, resources.tokenizer(ref))


@lru_cache(maxsize=16)
def ends(ref: ModelRef) -> frozenset[int]:
    """The ids with which the model ends a text; none for one that knows lines alone."""
    return end_ids(ref.folder if ref.kind == "hub" else None, resources.tokenizer(ref))


def chat_is_on(ref: ModelRef) -> bool:
    """Whether the text is a message now."""
    return bool(st.session_state.get(CHAT)) and form_of(ref) is not None


def chat_switch(ref: ModelRef) -> None:
    """The switch, where the model has a form for chats."""
    if form_of(ref) is not None:
        st.toggle(say("chat"), key=CHAT, persist_state="session", help=say("chat_help"))
    elif CHAT in st.session_state:  # a widget that is not drawn would be forgotten
        st.session_state[CHAT] = st.session_state[CHAT]


def prompt_of(ref: ModelRef, text: str) -> Prompt:
    """What the model is given for a text.

    Raises:
        ValueError: one sentence, if the vocabulary can't spell it.
    """
    return _prompt(ref, text, chat_is_on(ref))


@lru_cache(maxsize=16)
def _prompt(ref: ModelRef, text: str, chat: bool) -> Prompt:
    tokenizer, form = resources.tokenizer(ref), form_of(ref)
    if chat and form is not None:
        ids = chat_ids(tokenizer, [Message("user", text)], form)
        if len(ids) > ref.context_length:
            raise ValueError(say("too_long", n=len(ids), most=ref.context_length))
        return Prompt(text, ids, _chat_starts(ids, tokenizer.tokens(text), form, len(text)), True)
    before, _ = tokenizer.frame
    tokens = tokenizer.tokens(text)
    starts = [0] * len(before) + [token.start for token in tokens]
    return Prompt(text, [*before, *(token.id for token in tokens)], starts, False)


def _chat_starts(ids: Sequence[int], tokens: "Sequence[Token]", form: ChatForm, length: int) -> list[int]:
    """The message's tokens lie between the last but one beginning and its end.

    What was merged with the line end before it counts to its beginning.
    """
    begins = [i for i, token in enumerate(ids) if token == form.begin]
    end = max(i for i, token in enumerate(ids) if token == form.end)
    own = min(len(tokens), end - begins[-2] - 1)
    last = [token.start for token in tokens[len(tokens) - own :]]
    return [0] * (end - own) + last + [length] * (len(ids) - end)


def framed_tokens(ref: ModelRef, prompt: Prompt) -> None:
    """A chat's prompt, token by token, with the control tokens that no typed text can give."""
    if not prompt.chat:
        return
    data_of = resources.tokenizer(ref).token_bytes
    shown = prompt.ids
    with st.expander(say("reads", n=len(prompt.ids)), expanded=False):
        if len(shown) > 2 * _SHOWN:
            st.caption(say("some", n=_SHOWN))
            shown = [*shown[:_SHOWN], *shown[-_SHOWN:]]
        token_strip(
            [[_Shown(i, data_of(i))] for i in shown], key="generation_framed", label=say("strip"),
        )  # fmt: skip
        st.caption(say("control"))


@dataclass(frozen=True)
class _Shown:
    """A token for the strip."""

    id: int
    data: bytes
