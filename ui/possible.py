"""Whether a text is one that the story source can tell."""

import streamlit as st

from ui import resources
from ui.lesson import literal
from ui.resources import ModelRef
from viz import format_prob, visible

LONGEST = 20_000  # characters that are checked
_BEFORE, _AFTER, _WORDS = 24, 12, 5


def possible_story(ref: ModelRef, text: str) -> None:
    """Say how far a text is a possible story, where it breaks first, and what could have come there."""
    oracle = resources.oracle_for(ref)
    if oracle is None or not text:
        return
    if len(text) > LONGEST:
        st.caption(f"Only texts of up to {LONGEST:,} characters are checked for being a possible story.")
        return
    found = oracle.legal_prefix(text, n_expected=_WORDS)
    words = ", ".join(f"**{literal(visible(word))}** {format_prob(share)}" for word, share in found.expected)
    if found.complete:
        st.caption(f"✓ The stories can go like this. Next could come: {words}.")
        return
    before = literal(visible(found.text[-_BEFORE:]))
    broke = literal(visible(text[found.n_chars :][:_AFTER]))
    where = f"after **{before}**" if found.text else "at the very start"
    st.caption(
        f"✗ No story goes like this: it breaks {where} (character {found.n_chars + 1}), at **{broke}**. "
        f"Possible there: {words}."
    )
