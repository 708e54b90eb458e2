"""The card of a model that comes with the app: what it is, how it was made, how good it is."""

from pathlib import Path

import streamlit as st

import wording
from ui.model_refs import ModelRef
from ui.words import literal
from wording import words

say = words("ui.cards")


def popover(ref: ModelRef) -> None:
    """A button that opens the card of a model; nothing where there is none."""
    card = _card(ref)
    if ref.kind == "shipped" and card.is_file():
        with st.popover(say("read_card", label=literal(ref.label))):
            st.markdown(card.read_text("utf-8").partition("\n")[2])


def _card(ref: ModelRef) -> Path:
    """The card in the language spoken; the English one if there is no other."""
    folder, spoken = Path(ref.folder), wording.language()
    own = folder / f"CARD.{spoken}.md"
    return own if spoken != wording.SOURCE and own.is_file() else folder / "CARD.md"
