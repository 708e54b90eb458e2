"""What is computed of models before and after they learned further: once for all people, bounded."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine import corpus as texts
from engine.pair_files import Pair
from ui import resources
from ui.model_refs import ModelRef
from wording import words

if TYPE_CHECKING:  # some of these import torch
    from engine.framing import Framing
    from engine.run_info import RunInfo
    from engine.tuning_view import Answer, PairToken

say = words("ui.tuning_data")

WRITTEN = 60  # tokens of a sample
AT_ONCE = {False: 8, True: 2}  # preferences read by a small and by a large model


class Chip(NamedTuple):
    """A token for `token_strip`."""

    id: int
    data: bytes


@st.cache_resource(max_entries=128, show_spinner=say.later("writing"))
def continued(ref: ModelRef, prompt: str, seed: int) -> str:
    """What a model writes after a prompt, drawn at temperature 1."""
    from engine.moments import write_on

    checkpoint = resources.load(ref)
    ids = checkpoint.tokenizer.encode(prompt)
    return write_on(checkpoint.model, checkpoint.tokenizer, ids, n_tokens=WRITTEN, seed=seed)


def floor_of(after: ModelRef, info: "RunInfo", name: str) -> float | None:
    """The floor under the loss of a text that was known before; None where it is unknown."""
    if name != texts.NAMES["stories"]:
        return None
    vocabulary = resources.tokenizer(after).hash
    return _floor(vocabulary, info.train.longest_row(info.model.context_length), after, info)


@st.cache_data(max_entries=16, show_spinner=say.later("asking_grammar"))
def _floor(vocabulary: str, length: int, _after: ModelRef, _info: "RunInfo") -> float | None:
    from engine.run_measures import floor_of_stories

    checkpoint = resources.load(_after)
    text = texts.stories().val_text or ""
    return floor_of_stories(text, checkpoint.tokenizer, checkpoint.model, _info.train)


# ---- pairs


def framing(ref: ModelRef, kind: str) -> "Framing":
    """How prompts and answers become rows for a model."""
    from engine.framing import framing_for

    return framing_for(resources.tokenizer(ref), kind)


@dataclass(frozen=True, eq=False)
class Read:
    """A pair as two models read it.

    Attributes:
        tokens: with what each of them makes of it.
        chips: the same for `token_strip`.
    """

    tokens: "list[PairToken]"
    chips: list[Chip]

    @property
    def n_counted(self) -> int:
        """Tokens of the answer."""
        return sum(token.counted for token in self.tokens)

    def loss(self, which: str) -> float:
        """Of this pair, nats per counted token; `which` is "before" or "after"."""
        from engine.tuning_view import answer_loss

        return answer_loss(self.tokens, which)


@st.cache_resource(max_entries=64, show_spinner=say.later("reading"))
def read(before: ModelRef, after: ModelRef, pair: Pair, kind: str) -> Read:
    """What two models make of a pair; without an after, both are the same.

    Raises:
        ValueError: if the answer doesn't fit the context, or these tokens.
    """
    from engine.instructions import encode_pairs
    from engine.tuning_view import pair_tokens

    way = framing(before, kind)
    models = [resources.load(ref).model for ref in (before, after)]
    ids = encode_pairs([pair], way, before.context_length).rows[0].tolist()
    chips = [Chip(token_id, way.tokenizer.token_bytes(token_id)) for token_id in ids]
    return Read(pair_tokens(pair, way, *models), chips)


class Answers:
    """Answers of one model to the prompts of some pairs, written one after the other when asked for.

    Args:
        ref: the model.
        pairs: whose prompts are used.
        kind: of framing.
        judge: whether an answer is good; None where nobody can tell.
        seed: of the dice.
    """

    def __init__(self, ref: ModelRef, pairs: Sequence[Any], kind: str, judge: Any, seed: int) -> None:
        from engine.tuning_view import write_answers

        self.n = len(pairs)
        self.done: list[Answer] = []
        self._lock = threading.Lock()
        model = resources.load(ref).model
        self._rest = write_answers(model, framing(ref, kind), pairs, judge, seed=seed)

    def work(self, n: int) -> None:
        """Write until there are `n`, or all."""
        while len(self.done) < min(n, self.n):
            with self._lock:
                if len(self.done) < min(n, self.n):
                    self.done.append(next(self._rest))


def answers(ref: ModelRef, aim: str, pairs: Any, kind: str, seed: int, *, judged: bool) -> Answers:
    """The answers of a model, begun or not; shared by all people.

    Args:
        ref: the model.
        aim: "answers" or "preferences".
        pairs: whose prompts are used.
        kind: of framing.
        seed: of the dice.
        judged: whether it can be told if an answer is good: for the built-in pairs.
    """
    return _answers(ref, aim, tuple(pairs), kind, seed, judged)


@st.cache_resource(max_entries=64, show_spinner=False)
def _answers(ref: ModelRef, aim: str, pairs: Any, kind: str, seed: int, judged: bool) -> Answers:
    from engine.story_pairs import follows, wanted

    judge = follows if aim == "answers" else lambda _, text: wanted(text)
    return Answers(ref, pairs, kind, judge if judged else None, seed)


def log_probs(ref: ModelRef, preferences: Any, kind: str) -> NDArray[np.float64]:
    """(N,2) log probability of the chosen and the rejected answers under a model, nats; can't be changed.

    Raises:
        ValueError: if an answer doesn't fit the context.
    """
    return _log_probs(ref, tuple(preferences), kind)


@st.cache_resource(max_entries=64, show_spinner=say.later("reading"))
def _log_probs(ref: ModelRef, preferences: Any, kind: str) -> NDArray[np.float64]:
    import torch

    from engine.aims import log_probs_of
    from engine.preferences import encode_preferences

    rows = encode_preferences(preferences, framing(ref, kind), ref.context_length)
    batch = rows.batch(range(len(rows)), torch.zeros(len(rows), 2))
    found: NDArray[np.float64] = log_probs_of(
        resources.load(ref).model, batch.inputs, batch.targets, AT_ONCE[ref.large]
    ).numpy()
    found.setflags(write=False)
    return found
