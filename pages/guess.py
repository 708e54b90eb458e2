"""Guess the token: bets on an unseen text, scored in bits against models and the truth."""

import streamlit as st

from ui import guess_bets, lesson, nav, session
from ui.guess_board import Board
from wording import words

nav.require_app()

SEED = "seed"  # in the address: a class that shares it plays the same text
FIRST, LAST = 1, 999_999
say = words("pages.guess")

st.title(nav.title("guess"))
st.write(say("opening"))

ref = session.require_model("clm")


def another() -> None:
    """Go on to the next text. For `on_click`."""
    st.session_state[SEED] = (int(st.session_state.get(SEED, FIRST)) + 1) % (LAST + 1)


if SEED not in st.query_params:  # a link has said it
    st.session_state.setdefault(SEED, FIRST)
with st.container(horizontal=True, vertical_alignment="bottom"):
    seed = int(
        st.number_input(
            say("seed"), 0, LAST, FIRST, key=SEED, bind="query-params", width=220, help=say("seed_help")
        )  # fmt: skip
    )
    st.button(say("another"), key="guess_another", icon=":material/casino:", on_click=another)

try:
    board = Board(ref, seed)
except ValueError as error:
    lesson.explain(error)

left, right = st.columns([3, 2], gap="large")
with left:
    board.text()
    if board.n:
        board.last()
    if board.over:
        st.info(say("over"), icon=":material/flag:")
        st.button(say("next_round"), key="guess_next", type="primary", on_click=another)
    else:
        guess_bets.draw(ref, seed, board.n)
with right:
    if board.n:
        board.totals()
    else:
        st.markdown(say("rules"))
        if ref.corpus == "stories":
            st.caption(say("text_stories"))
        else:
            st.caption(say("text_validation") if ref.kind == "run" else say("text_published"))
if board.n:
    left, right = st.columns([3, 2], gap="large")
    with left:
        board.way()
    with right:
        board.thought()
