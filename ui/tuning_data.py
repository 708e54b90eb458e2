"""What is computed of models before and after they learned further: once for all people, bounded."""

from typing import TYPE_CHECKING

import streamlit as st

from engine import corpus as texts
from ui import resources
from ui.resources import ModelRef
from wording import words

if TYPE_CHECKING:
    from engine.run_info import RunInfo

say = words("ui.tuning_data")

WRITTEN = 60  # tokens of a sample


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
