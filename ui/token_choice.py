"""One token of the whole vocabulary, found by typing: to work it out, or to force it."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from ui import resources
from ui.model_refs import ModelRef
from viz import clip, visible
from wording import words

say = words("ui.token_choice")

MOST = 3000  # listed; of a larger vocabulary the likeliest, and any other can be typed
KEY, _ABOUT = "generation_token", "_generation_token_about"


@lru_cache(maxsize=8)
def names(ref: ModelRef) -> list[str]:
    """Every token of the vocabulary as it is listed; the id keeps equal looks apart."""
    tokenizer = resources.tokenizer(ref)
    return [f"{clip(visible(tokenizer.token_bytes(i)), 30)}  (id {i})" for i in range(tokenizer.vocab_size)]


def begin(ref: ModelRef, ids: Sequence[int]) -> None:
    """Forget the choice if the place is another one. Before anything that shows it."""
    about = (ref.id, ref.identity, tuple(ids))
    if st.session_state.setdefault(_ABOUT, about) != about:  # at first it may come from a link
        st.session_state[_ABOUT] = about
        st.session_state.pop(KEY, None)


def token_choice(ref: ModelRef, ids: Sequence[int], probs: NDArray[Any], label: str) -> int:
    """Draw the list, the likeliest first; gives the id of the chosen token, in a new place the likeliest.

    Args:
        ref: the model.
        ids: the tokens after which it comes.
        probs: (V,) that order the list.
        label: of the list.
    """
    order = np.argsort(-probs, kind="stable")[:MOST].tolist()
    known, large = names(ref), len(probs) > MOST
    begin(ref, ids)
    kept = st.session_state.get(KEY)
    if kept not in order and not (large and isinstance(kept, int) and 0 <= kept < len(probs)):
        st.session_state[KEY] = order[0]
    elif kept not in order:
        order.append(kept)
    chosen = st.selectbox(
        label,
        order,
        format_func=lambda i: known[i] if isinstance(i, int) and i < len(known) else str(i),
        key=KEY,
        persist_state="session",
        accept_new_options=large,
        help=say("help"),
    )
    return chosen if isinstance(chosen, int) else _typed(ref, str(chosen), order[0])


def _typed(ref: ModelRef, text: str, otherwise: int) -> int:
    """The id of a token that was typed because the list does not hold it."""
    ids = resources.tokenizer(ref).encode(text.replace("·", " "))
    if len(ids) == 1:
        return ids[0]
    st.caption(say("not_one", n=len(ids)))
    return otherwise
