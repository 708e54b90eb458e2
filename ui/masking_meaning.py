"""Meaning in context: the vector of a word by both models, when what comes after it changes."""

from typing import Any

import numpy as np
import streamlit as st

from engine.contexts import TwoContexts, words_in
from ui import lesson, meaning_data, meaning_sets, resources, worked_vectors
from ui.components import show
from ui.hiding import Both
from ui.words import literal
from viz import format_number
from viz.contexts import similarity_lines
from wording import words

say = words("ui.masking_meaning")

PART, LAYER = "masking_meaning_part", "masking_meaning_layer"
FIRST, SECOND, WORD = "masking_meaning_a", "masking_meaning_b", "masking_meaning_word"
PAIR, USES, SENTENCES = "two-texts", "all-uses", "nearest-sentences"
KEEP: dict[str, Any] = {"persist_state": "session"}
USED = "masking_meaning_used"
SOME = ("cold", "orange", "golden", "her", "honey", "well")  # words with more than one use in the stories
LONGEST = 20_000  # characters of each text
COLD = (
    "Once upon a time, there was an owl who had a cold. “What would make you smile?” asked Lily.",
    "Once upon a time, there was an owl who had a cold house. She lived there all winter.",
    "cold",
)
HER = ("Lily saw her. She was sad.", "Lily saw her friend. She was sad.", "her")
LEFT = (
    "Once upon a time, there was a fox who lived near a well.",
    "Tom and a polite goat ran a race. The goat was well ahead.",
    "well",
)


def _take(a: str, b: str, word: str, part: str) -> None:
    """Put other texts in, and look at one part. For `on_click`."""
    state = st.session_state
    state[FIRST], state[SECOND], state[WORD], state[USED], state[PART] = a, b, word, word, part


def _try() -> list[lesson.Step]:
    return [
        lesson.Step(say("try_her"), say("compare", word=HER[2]), _take, (*HER, PAIR)),
        lesson.Step(say("try_well"), say("compare", word=LEFT[2]), _take, (*LEFT, PAIR)),
        lesson.Step(say("try_cold"), say("all_uses", word=COLD[2]), _take, (*COLD, USES)),
    ]


def _first_texts(both: Both) -> tuple[str, str, str]:
    """Two texts and a word to begin with; of the text of all pages if a vocabulary can’t spell ours."""
    try:
        for ref in meaning_data.models(both).values():
            resources.tokenizer(ref).encode(COLD[0] + COLD[1])
    except ValueError:
        half = max(both.whole.rfind(" ", 0, len(both.whole) // 2 + 1), 0)
        return both.whole[:half].strip(), both.whole[half:].strip(), ""
    return COLD


def draw(both: Both) -> None:
    """Draw the view."""
    state = st.session_state
    for key, value in zip((FIRST, SECOND, WORD), _first_texts(both), strict=True):
        state.setdefault(key, value)
    state.setdefault(PART, PAIR)
    parts = say.table("parts")
    part = st.segmented_control(
        say("shown"), list(parts), format_func=parts.__getitem__, key=PART, required=True, wrap=True,
        label_visibility="collapsed", **KEEP,
    )  # fmt: skip
    if part == PAIR:
        _texts()
    else:  # a widget that is not drawn would lose its text
        state[FIRST], state[SECOND] = state[FIRST], state[SECOND]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        word = {PAIR: _common_word, USES: _any_word}.get(str(part), lambda: "")()
        layer = _layer(both)
    if both.causal is None:
        st.info(say("there_no_causal_model"))
    if part == SENTENCES:
        meaning_sets.sentences(both, layer)
    elif part == USES:
        meaning_sets.uses(both, word, layer)
    elif word:
        _pair(both, word, layer)
    else:
        st.info(say("two_texts_have_no"))
    lesson.try_this(*_try(), key="masking_meaning_try")


def _layer(both: Both) -> int:
    """After which block the stream is read: the last one at first."""
    n_layer = min(resources.load(ref).model.config.n_layer for ref in meaning_data.models(both).values())
    if st.session_state.get(LAYER) not in range(n_layer + 1):
        st.session_state[LAYER] = n_layer
    return int(
        st.select_slider(
            say("vectors_after_block"), range(n_layer + 1), key=LAYER, width=240,
            format_func=lambda n: str(n) if n else say("zeroth"), **KEEP,
        )
    )  # fmt: skip


def _texts() -> None:
    left, right = st.columns(2)
    with left:
        st.text_area(say("first_text"), key=FIRST, height=84, max_chars=LONGEST, **KEEP)
    with right:
        st.text_area(say("second_text"), key=SECOND, height=84, max_chars=LONGEST, **KEEP)


def _common_word() -> str:
    """A word that both texts have; empty if there is none."""
    state = st.session_state
    there = set(words_in(str(state[SECOND])))
    common = [word for word in words_in(str(state[FIRST])) if word in there]
    if state.get(WORD) not in common:
        state[WORD] = common[-1] if common else ""
    if common:
        st.selectbox(say("word_both_texts"), common, key=WORD, width=240, **KEEP)
    return str(state[WORD])


def _any_word() -> str:
    """A word of the stories: one of some, or typed."""
    words = list(dict.fromkeys([*SOME, str(st.session_state.setdefault(USED, SOME[0]))]))
    found = st.selectbox(
        say("word"), words, key=USED, width=240, accept_new_options=True,
        help=say("type_any_word_stories"), **KEEP,
    )  # fmt: skip
    return str(found or SOME[0]).strip()


def _pair(both: Both, word: str, layer: int) -> None:
    """The picture: how alike the word's two vectors are, layer by layer; then the cosine worked out."""
    a, b = str(st.session_state[FIRST]), str(st.session_state[SECOND])
    found = {}
    for kind, ref in meaning_data.models(both).items():
        try:
            found[kind] = meaning_data.pair(ref, a, b, word, 0, 0)
        except ValueError as error:
            st.warning(f"{meaning_data.name_of(kind)}: {literal(str(error))}")
    if not found:
        return
    left, right = st.columns([3, 2], gap="medium")
    with left:
        cosines = {kind: pair.found.cosines for kind, pair in found.items()}
        show(similarity_lines(cosines, layer=layer), key="masking_meaning_lines")
    with right:
        for kind, pair in found.items():
            _say(kind, pair, layer)
    with st.expander(say("work_out_these_cosines")):
        columns = st.columns(len(found))
        for column, (kind, pair) in zip(columns, found.items(), strict=True):
            with column:
                st.markdown(f"**{meaning_data.name_of(kind)}, {place(layer)}**")
                _formula(both, kind, pair, layer)


def place(layer: int) -> str:
    """Where in the model the vectors are taken from."""
    return say("after_block", layer=layer) if layer else say("embedding")


def _say(kind: str, pair: meaning_data.Pair, layer: int) -> None:
    """What one model's two vectors are like, in words."""
    found, cosine = pair.found, float(pair.found.cosines[layer])
    number = say("no_cosine") if not np.isfinite(cosine) else format_number(cosine, 4)
    if found.largest[layer] == 0 and np.isfinite(cosine):
        number = say("exactly_1")
    st.metric(say(f"cosine.{kind}", place=place(layer)), number, border=True)
    words = [_why(kind, found)]
    if max(found.n_tokens) > 1:
        a, b = found.n_tokens
        words.append(say("word_cut_alike", n=a) if a == b else say("word_cut_differently", a=a, b=b))
    if pair.unused:
        words.append(say("start_text_did_not"))
    st.caption(" ".join(words))


def _why(kind: str, found: TwoContexts) -> str:
    """Why the two vectors are the same or not."""
    gap = float(found.largest.max())
    if kind == "mlm":
        return say("reads_whole_text_what") if found.same_left and gap > 0 else say("reads_whole_text_both")
    if not found.same_left:
        return say("up_word_texts_differ")
    return say("same_left_same_numbers") if gap == 0 else say("same_left_small_gap", gap=gap)


def _formula(both: Both, kind: str, pair: meaning_data.Pair, layer: int) -> None:
    found = pair.found
    width = resources.load(meaning_data.models(both)[kind]).model.config.d_model
    if not np.isfinite(found.cosines[layer]):
        st.info(say("one_vectors_0_points"))
        return
    st.latex(
        worked_vectors.cosine(
            float(found.dots[layer]), float(found.lengths_a[layer]), float(found.lengths_b[layer]), width
        )
    )
