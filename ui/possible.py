"""Whether a text is one that the story source can tell."""

import streamlit as st

from ui import resources
from ui.lesson import literal
from ui.resources import ModelRef
from viz import clip, format_prob, visible

LONGEST = 20_000  # characters that are checked
_WORDS = 5


def possible_story(ref: ModelRef, text: str) -> bool:
    """Say how far a text is a possible story, where it breaks first, and what could have come there.

    Gives whether it said that the text is none.
    """
    oracle = resources.oracle_for(ref)
    if oracle is None or not text:
        return False
    if len(text) > LONGEST:
        st.caption(f"Only texts of up to {LONGEST:,} characters are checked for being a possible story.")
        return False
    found = oracle.legal_prefix(text, n_expected=_WORDS)
    words = ", ".join(f"**{literal(visible(word))}** {format_prob(share)}" for word, share in found.expected)
    if found.complete:
        st.caption(f"✓ The stories can go like this. After the whole text could come: {words}.")
        return False
    begin = max(text.rfind(" ", 0, found.n_chars + 1), text.rfind("\n", 0, found.n_chars), 0)
    word = literal(visible(clip(text[begin:].split("\n")[0].strip().partition(" ")[0] or text[begin:], 24)))
    st.caption(
        f"✗ No story goes like this: it breaks at **{word}** (character {found.n_chars}, counted from 0). "
        f"Possible there: {words}."
    )
    return True
