"""How a bet is placed: one choice and how sure, or chips on any tokens."""

from collections.abc import Mapping

import streamlit as st

from engine import guess
from engine.guess import CHIPS
from ui import address, guess_data, resources, token_choice
from ui.model_refs import ModelRef
from ui.words import literal
from viz import format_count, format_number, visible
from wording import words

MOST_TOKENS = 6
LISTED = 3000  # tokens in the list; of a larger vocabulary the most frequent, any other can be typed
PERCENTS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)
say = words("ui.guess_bets")


def draw(ref: ModelRef, seed: int, at: int) -> None:
    """The bet on the token at a place of the round."""
    st.subheader(say("heading", n=at + 1, of=guess_data.round_of(ref, seed).n))
    way = address.choose(
        st.segmented_control, say("way_label"), say.table("way"), key="bet", required=True,
        label_visibility="collapsed",
    )  # fmt: skip
    name = f"guess_{guess_data.name_of(ref, seed)}_{at}"
    if way == "choose":
        _choose(ref, seed, at, name)
    else:
        _chips(ref, seed, at, name)


def _choose(ref: ModelRef, seed: int, at: int, name: str) -> None:
    part, tokenizer = guess_data.round_of(ref, seed), resources.tokenizer(ref)
    listed = guess.candidates(guess_data.counts(ref), part.before(at))
    labels = [literal(visible(tokenizer.token_bytes(i))) for i in listed] + [say("none_of_these")]
    place = st.radio(
        say("which"), range(len(labels)), format_func=lambda i: labels[i], index=None, horizontal=True,
        key=f"{name}_pick", persist_state="session", help=say("which_help"),
    )  # fmt: skip
    percent = st.select_slider(
        say("sure"), PERCENTS, value=50, format_func=lambda n: f"{n} %", key=f"{name}_sure",
        persist_state="session", help=say("sure_help"),
    )  # fmt: skip
    token = listed[place] if place is not None and place < len(listed) else None
    kept = {"pick": token, "listed": listed, "percent": int(percent)}
    _button(ref, seed, at, kept, off=place is None)


def _chips(ref: ModelRef, seed: int, at: int, name: str) -> None:
    chosen = _tokens(ref, name)
    placed: dict[int, int] = {}
    if chosen:
        known = token_choice.names(ref)
        with st.container(horizontal=True):
            for token in chosen:
                placed[token] = int(
                    st.number_input(
                        literal(known[token]),
                        1,
                        CHIPS - 1,
                        value=max(1, 60 // len(chosen)),
                        width=170,
                        key=f"{name}_chips_{token}",
                        persist_state="session",
                    )  # fmt: skip
                )
    left, v = CHIPS - sum(placed.values()), resources.tokenizer(ref).vocab_size
    if left < 1:
        st.warning(say("too_many", placed=CHIPS - left, most=CHIPS - 1))
    else:
        others = v - len(placed)
        st.caption(say("left", n=left, others=format_count(others), percent=format_number(left / others)))
    kept = {"chips": {str(token): n for token, n in placed.items()}}
    _button(ref, seed, at, kept, off=left < 1)


@st.cache_resource(max_entries=8, show_spinner=False)
def _frequent(ref: ModelRef) -> list[int]:
    """The most frequent tokens of the training text, most first."""
    probs = guess.counted(guess_data.counts(ref), [], 1)
    return [int(i) for i in (-probs).argsort(kind="stable")[:LISTED]]


def _tokens(ref: ModelRef, name: str) -> list[int]:
    """The tokens that chips go on: chosen from the list, or typed."""
    options, known = _frequent(ref), token_choice.names(ref)
    large = len(known) > len(options)
    chosen = st.multiselect(
        say("tokens"), options, key=f"{name}_tokens", persist_state="session",
        max_selections=MOST_TOKENS, accept_new_options=large, placeholder=say("tokens_placeholder"),
        select_all=False,  # else Enter takes all that the search found
        format_func=lambda i: known[i] if isinstance(i, int) else str(i), help=say("tokens_help"),
    )  # fmt: skip
    found: list[int] = []
    for one in chosen:
        ids = [one] if isinstance(one, int) else _typed(ref, str(one))
        found += [i for i in ids if i not in found]
    return found


def _typed(ref: ModelRef, text: str) -> list[int]:
    """The token that was typed, if it is one."""
    try:
        ids = resources.tokenizer(ref).encode(text.replace("·", " "))
    except ValueError:
        ids = []
    if len(ids) != 1:
        st.caption(say("not_one", text=literal(text), n=len(ids)))
    return ids if len(ids) == 1 else []


def _button(ref: ModelRef, seed: int, at: int, kept: Mapping[str, object], *, off: bool) -> None:
    st.button(
        say("bet"), key="guess_bet", type="primary", disabled=off, on_click=guess_data.place,
        args=(ref, seed, at, kept),
    )  # fmt: skip
