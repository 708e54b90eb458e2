"""Masking: the same gap guessed from both sides and from the left, and what each way of training pays for."""

from typing import Any

import streamlit as st

import viz
from ui import gap_view, hiding, lesson, mask_batch, nav, resources, session
from ui.components import show, token_strip
from ui.hiding import GapText
from ui.possible import possible_story
from ui.resources import ModelRef

nav.require_app()

MATRIX = 24  # tokens in a picture of who sees whom
KEEP: dict[str, Any] = {"persist_state": "session"}
TWICE = "There was once a brave dragon called Max. He would read all night long. Max"
TYPED = "Once upon a time, there was a [MASK] called Nora. She"
TRY = (
    ("Hide a name that comes back later: from both sides it is certain.", "Max once", TWICE, "Max", True),
    ("Hide it both times: only “He” still tells something about it.", "Max twice", TWICE, "Max", False),
    ("Type the gap yourself: on this page [MASK] is one hidden token.", "Type a gap", TYPED, "", False),
)


def chips(masked: ModelRef, text: GapText, hidden: list[int]) -> int | None:
    """The text, whose tokens can be pressed, and buttons that hide several; gives back the gap to look at."""
    if text.unused:
        st.caption(
            f"Using the last {len(text.seen):,} of {len(text.tokens):,} tokens: the model can’t see more."
        )
    place = hiding.look_at(hidden)
    label = "Press a token to hide it or to show it again"
    token_strip(text.segments, key=hiding.STRIP, hidden=hidden, on_press=hiding.press, label=label)
    st.session_state.setdefault(hiding.SEED, 1)
    chance: dict[str, Any] = {
        "args": (text.ids, resources.tokenizer(masked).mask_id),
        "disabled": len(text.typed) == len(text.seen),
    }
    names = {i: f"{i}: {viz.visible(text.seen[i].data)}" for i in hidden}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if hidden:
            st.selectbox(
                "Look at gap",
                hidden,
                format_func=lambda i: names.get(i, ""),
                key=hiding.PLACE,
                width=170,
                **KEEP,
            )
        st.button("Hide 15 % by chance", key="masking_chance", on_click=hiding.by_chance, **chance)
        st.number_input(
            "Seed", 0, 2**31, key=hiding.SEED, width=130, on_change=hiding.by_chance, **chance, **KEEP
        )
        st.button("Hide all", key="masking_all", on_click=hiding.hide, args=(range(len(text.seen)),))
        st.button("Show all", key="masking_none", on_click=hiding.hide, args=((),))
    return place


def guesses(causal: ModelRef | None, masked: ModelRef, text: GapText, hidden: list[int], place: int) -> None:
    """The picture: one gap, two models, and the truth where it is known. Then the numbers behind it."""
    true_id = None if place in text.typed else text.ids[place]
    left, right = st.columns(2, gap="medium")
    side, why = gap_view.both_sides(masked, text, hidden, place, true_id)
    with right:
        found = gap_view.bars(side, "masking_both")
    other: gap_view.Side | str = "There is no causal model to compare with. Train one on the Training page."
    if causal is not None:
        other = gap_view.left_side(causal, masked, text, place, true_id)
    with left:
        if isinstance(other, str):
            st.info(other)
        else:
            found_left = gap_view.bars(other, "masking_left")
    if why:
        st.caption(lesson.literal(why))
        if not text.typed:
            possible_story(masked, session.text())
    with st.expander("Work out these probabilities"):
        left, right = st.columns(2, gap="medium")
        if not isinstance(other, str):
            with left:
                gap_view.formulas(other, found_left)
        with right:
            gap_view.formulas(side, found)


def who_sees_whom(text: GapText, hidden: list[int], place: int) -> None:
    """Both attention masks, on at most 24 tokens around the gap."""
    begin = max(0, min(place - MATRIX // 2, len(text.seen) - MATRIX))
    near = text.seen[begin : begin + MATRIX]
    names = [viz.visible(token.data) for token in near]
    if len(near) < len(text.seen):
        st.caption(f"Drawn are {len(near)} of {len(text.seen):,} tokens, those around the gap.")
    left, right = st.columns(2)
    with left:
        st.markdown("**Causal:** each sees itself and the left.")
        show(viz.mask_matrix(names, "clm"), key="masking_matrix_clm")
    with right:
        st.markdown("**Masked:** each sees all; **?** is a mask.")
        gaps = [i - begin for i in hidden if begin <= i < begin + len(near)]
        show(viz.mask_matrix(names, "mlm", hidden=gaps), key="masking_matrix_mlm")


st.title("Masking")
st.write("Hide a token and let two models guess it: one sees both sides of the gap, the other only its left.")
ref, start = session.require_model(), session.text()
lesson.need_text(start)
clm, mlm = hiding.pair(ref)
try:
    if mlm is None:
        st.info(
            "There is no masked model yet. Train one on the Training page: choose the objective “masked”."
        )
        nav.link("training", "Train a masked model")
        st.stop()
    read = hiding.read(mlm, start)
    now = hiding.hidden(mlm, read, start)
    at = chips(mlm, read, now)
    if at is None:
        st.info("Nothing is hidden. Press a token above, or hide some by chance.")
    else:
        guesses(clm, mlm, read, now, at)
    sees, row, pays = st.tabs(
        ["Who sees whom", "How a training batch hides tokens", "What each training pays for"]
    )
    with sees:
        who_sees_whom(read, now, at or 0)
    with row:
        mask_batch.batch(mlm, read)
    with pays:
        mask_batch.paid(clm, mlm, read, now, start)
except ValueError as error:
    st.error(lesson.literal(str(error)))
lesson.try_this(
    *(lesson.Step(lesson.literal(words), label, hiding.story, tuple(args)) for words, label, *args in TRY)
)
