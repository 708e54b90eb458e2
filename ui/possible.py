"""Whether a text is one that the story source can tell."""

import streamlit as st

from ui import resources
from ui.lesson import literal
from ui.model_refs import ModelRef
from viz import clip, format_prob, visible
from wording import words

say = words("ui.possible")

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
        st.caption(say("too_long", most=LONGEST))
        return False
    found = oracle.legal_prefix(text, n_expected=_WORDS)
    expected = ", ".join(
        f"**{literal(visible(word))}** {format_prob(share)}" for word, share in found.expected
    )
    if found.complete:
        st.caption(say("possible", expected=expected))
        return False
    begin = max(text.rfind(" ", 0, found.n_chars + 1), text.rfind("\n", 0, found.n_chars), 0)
    word = literal(visible(clip(text[begin:].split("\n")[0].strip().partition(" ")[0] or text[begin:], 24)))
    st.caption(say("impossible", word=word, at=found.n_chars, expected=expected))
    return True
