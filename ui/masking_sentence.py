"""One sentence, two models: a gap guessed from the left and from both sides, and which guess is better."""

import math
from collections.abc import Sequence

import streamlit as st

import viz
from engine.gaps import Guess, lead_of
from engine.tokenizers import Token
from ui import gap_strip, gap_view, hiding, lesson, resources, session, worked_masking
from ui.components import show, token_strip
from ui.gap_view import Side
from ui.hiding import Both
from ui.possible import possible_story
from ui.words import counted, literal
from wording import words

say = words("ui.masking_sentence")

NEAR = 16  # tokens in the small pictures around the gap
TWICE = (
    "There was once a brave dragon called Max. He would read all night long. One cold night, Max heard a "
    "loud noise in the garden."
)
TYPED = "Once upon a time, there was a [MASK] called Nora. She"


def _try() -> list[lesson.Step]:
    return [
        lesson.Step(say("hide_once"), say("max_once"), hiding.story, (TWICE, "Max", True)),
        lesson.Step(say("hide_twice"), say("max_twice"), hiding.story, (TWICE, "Max", False)),
        lesson.Step(say("type_it_yourself"), say("type_a_gap"), hiding.story, (TYPED, "", False)),
    ]


def draw(both: Both) -> None:
    """Draw the view."""
    place = gap_strip.draw(both)
    if place is None:
        st.info(say("nothing_hidden_press_token"))
    else:
        _guesses(both, place)
    lesson.try_this(*_try())


def _guesses(both: Both, place: int) -> None:
    """The picture: one gap, two models, and the truth where it is known. Then why, and who sees what."""
    masked, why_not = gap_view.both_sides(both, place)
    causal = gap_view.left_side(both, place)
    left, right = st.columns(2, gap="medium")
    with right:
        found = gap_view.bars(masked, "masking_both")
    found_left = None
    with left:
        if isinstance(causal, str):
            st.info(causal)
        else:
            found_left = gap_view.bars(causal, "masking_left")
    if not isinstance(causal, str):
        _winner(both, place, masked, causal)
    if why_not:
        said = not both.text.typed and possible_story(both.masked, session.text())
        if not said:  # the same again, told by positions
            st.caption(literal(why_not))
    _who_sees_whom(both, place)
    with st.expander(say("work_out_these_probabilities")):
        _formulas(causal, found_left, masked, found)


def _formulas(causal: Side | str, found_left: Guess | None, masked: Side, found: Guess) -> None:
    left, right = st.columns(2, gap="medium")
    if found_left is not None and not isinstance(causal, str):
        with left:
            gap_view.formulas(causal, found_left)
    with right:
        gap_view.formulas(masked, found)


def _winner(both: Both, place: int, masked: Side, causal: Side) -> None:
    """Which model gives the hidden token more, and what makes the difference."""
    if masked.log_prob is None or causal.log_prob is None:
        st.caption(say("nobody_knows_what_stands"))
        return
    gap = masked.log_prob - causal.log_prob
    name = literal(viz.visible(both.text.seen[place].data))
    with st.container(border=True):
        if abs(gap) < 5e-4:
            st.markdown(say("tie_both_models_give", name=name))
        else:
            by = {
                "name": name,
                "times": viz.format_number(math.exp(min(abs(gap), 700))),
                "nats": viz.format_nats(abs(gap)),
            }
            st.markdown(say("masked_wins", **by) if gap > 0 else say("causal_wins", **by))
        if both.same_tokens:
            _why(both, place, masked, causal)
        else:
            st.caption(say("two_vocabularies_differ_two"))


def _why(both: Both, place: int, masked: Side, causal: Side) -> None:
    """What the contexts tell, by the exact answers, and what is left to learning."""
    assert masked.log_prob is not None and causal.log_prob is not None
    p_m, p_c = math.exp(masked.log_prob), math.exp(causal.log_prob)
    true_m, true_c = masked.true_prob, causal.true_prob
    n_right = len(both.text.seen) - 1 - place
    n_gaps = sum(i != place for i in both.hidden)
    right, gaps = counted(n_right, "token"), counted(n_gaps, "other token")
    sees = say("reads_but_hidden", n=n_gaps, right=right, gaps=gaps) if n_gaps else say("reads", right=right)
    if not (p_m and p_c):
        st.caption(sees)
        return
    why = lead_of(p_m, p_c, true_m, true_c)
    if why.tells is None or why.learned is None or true_m is None or true_c is None:
        st.caption(say("exact_answers_not_known", sees=sees))  # fmt: skip
    else:
        if abs(why.tells) < 5e-4:
            told = say("exact_reader_makes_no")
        else:
            probs = {"left": viz.format_prob(true_c), "shown": viz.format_prob(true_m)}
            told = say("exact_grows", **probs) if why.tells > 0 else say("exact_falls", **probs)
        st.markdown(say("why", sees=sees, told=told))
    st.latex(worked_masking.lead(p_m, p_c, true_m, true_c))


def _around(n: int, place: int) -> tuple[int, int]:
    """Where the small pictures begin and end."""
    begin = max(0, min(place - NEAR // 2, n - NEAR))
    return begin, min(n, begin + NEAR)


def _given(tokens: Sequence[Token], key: str, hidden: Sequence[int], label: str) -> None:
    token_strip([[token] for token in tokens], key=key, hidden=hidden, label=label)


def _who_sees_whom(both: Both, place: int) -> None:
    """What each model is given, and both attention masks, around the gap; the gap's row is framed."""
    text = both.text
    begin, end = _around(len(text.seen), place)
    near = text.seen[begin:end]
    tokenizer = resources.tokenizer(both.masked)
    gaps = [i - begin for i in both.hidden if begin <= i < end]
    st.subheader(say("what_each_model_given"))
    if len(near) < len(text.seen):
        st.caption(say("drawn_tokens_those_around", n_near=len(near), n_seen=len(text.seen)))
    left, right = st.columns(2, gap="medium")
    with right:
        mask = tokenizer.mask_id
        shown = [
            Token(mask, tokenizer.token_bytes(mask), "", 0, 0, 0) if i in gaps else token
            for i, token in enumerate(near)
        ]
        _given(shown, "masking_given_both", gaps, say("input_masked_model"))
        names = [viz.visible(token.data) for token in shown]
        show(viz.mask_matrix(names, "mlm", hidden=gaps, query=place - begin), key="masking_matrix_mlm")
        st.caption(say("every_position_looks_every"))
    with left:
        _causal_side(both, place, begin)


def _causal_side(both: Both, place: int, begin: int) -> None:
    """The tokens left of the gap in the causal model's own vocabulary, and its mask."""
    ids = hiding.left_ids(both.causal, both.masked, both.text, place) if both.causal else None
    if not ids or both.causal is None:
        st.info(say("here_causal_model_has"))
        return
    tokenizer = resources.tokenizer(both.causal)
    n = place - begin if both.same_tokens else NEAR
    last = [Token(i, tokenizer.token_bytes(i), "", 0, 0, 0) for i in ids[-max(n, 1) :]]
    _given(last, "masking_given_left", [], say("input_causal_model"))
    names = [viz.visible(token.data) for token in last]
    show(viz.mask_matrix(names, "clm", query=len(last) - 1), key="masking_matrix_clm")
    st.caption(say("each_position_looks_itself"))
