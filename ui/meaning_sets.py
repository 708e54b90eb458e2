"""All uses of a word, and the nearest sentences: what is alike for each of the two models."""

from typing import Any

import numpy as np
import streamlit as st

import viz
from engine import contexts
from ui import meaning_data
from ui.components import show
from ui.hiding import Both
from ui.words import literal
from viz import format_number
from viz.contexts import use_map
from wording import words

say = words("ui.meaning_sets")

CHOSEN, OWN, SENTENCE, POOLING = (
    "masking_meaning_use", "masking_meaning_own", "masking_meaning_sentence", "masking_meaning_pooling",
)  # fmt: skip
NEAR = 5
EXAMPLE = "She found a blue hat."  # in the language of the stories
KEEP: dict[str, Any] = {"persist_state": "session"}


def uses(both: Both, word: str, layer: int) -> None:
    """A map of a word's uses by each model, and how often near ones go on alike."""
    found = meaning_data.uses(both.masked, word)
    if len(found) < 2:
        st.info(say("too_few", word=literal(word), n=len(found)))
        return
    if st.session_state.get(CHOSEN) not in range(len(found)):
        st.session_state[CHOSEN] = 0
    chosen = st.selectbox(
        say("look_one_use"), range(len(found)), key=CHOSEN, format_func=lambda i: found[i].sentence, **KEEP
    )
    for ref in meaning_data.models(both).values():
        meaning_data.read_uses(ref, word)
    _what_it_buys(both, word, layer)
    columns = st.columns(len(meaning_data.models(both)), gap="medium")
    for column, (kind, ref) in zip(columns, meaning_data.models(both).items(), strict=True):
        with column:
            _uses_of(kind, ref, word, layer, int(chosen))
    st.caption(say("what_the_map_shows", n=len(found), seed=meaning_data.SEED))


def _what_it_buys(both: Both, word: str, layer: int) -> None:
    """One computed sentence."""
    rows = []
    for kind, ref in meaning_data.models(both).items():
        try:
            rows.append((kind, meaning_data.use_agreement(ref, word, layer)))
        except ValueError:
            continue
    if not rows:
        return
    told = ", ".join(say(f"agree.{kind}", same=found.n_same, all=found.n) for kind, found in rows)
    chance = format_number(100 * rows[-1][1].chance)
    st.write(say("nearest_agree", word=literal(word), told=told, chance=chance))


def _uses_of(kind: str, ref: Any, word: str, layer: int, chosen: int) -> None:
    """One model's map, and the uses nearest to the chosen one."""
    found = meaning_data.uses(ref, word)
    st.markdown(f"**{meaning_data.name_of(kind)}**")
    if chosen >= len(found) or len(found) < 2:
        st.info(say("too_few_for_model"))
        return
    vectors = meaning_data.use_vectors(ref, word)[:, layer].astype(np.float64)
    basis = meaning_data.use_basis(ref, word, layer)
    near = contexts.nearest(vectors, vectors[chosen], NEAR, leave_out=chosen)
    after = [use.after for use in found]
    fig = use_map(
        basis.project(vectors),
        after,
        [
            say("use_then", sentence=viz.clip(use.sentence, 60), follows=follows)
            for use, follows in zip(found, after, strict=True)
        ],
        shares=(float(basis.shares[0]), float(basis.shares[1])),
        chosen=chosen,
        near=[each.index for each in near],
    )
    show(fig, key=f"masking_meaning_map_{kind}")
    st.table(
        {
            say("column.cosine"): [f"{each.cosine:.3f}" for each in near],
            say("column.sentence"): [literal(found[each.index].sentence) for each in near],
            say("column.then"): [literal(after[each.index]) for each in near],
        },
        hide_index=True,
    )


def sentences(both: Both, layer: int) -> None:
    """The sentences of a small set that are nearest to one sentence, for both models side by side."""
    known = meaning_data.sentences()
    st.session_state.setdefault(OWN, "")
    if st.session_state.get(SENTENCE) not in range(len(known)):
        st.session_state[SENTENCE] = 3
    left, right = st.columns(2)
    with left:
        number = st.selectbox(
            say("sentence_set"), range(len(known)), key=SENTENCE, format_func=known.__getitem__, **KEEP
        )
    with right:
        own = st.text_input(say("your_own"), key=OWN, max_chars=1000, placeholder=EXAMPLE, **KEEP)
    st.session_state.setdefault(POOLING, "mean")
    pooled = say.table("pooled")
    pooling = str(
        st.segmented_control(
            say("vector_sentence"), list(pooled), format_func=pooled.__getitem__, key=POOLING,
            required=True, **KEEP,
        )
    )  # fmt: skip
    query = own.strip() or known[int(number)]
    st.text(say("nearest", query=query))
    columns = st.columns(len(meaning_data.models(both)), gap="medium")
    for column, (kind, ref) in zip(columns, meaning_data.models(both).items(), strict=True):
        with column:
            _near_sentences(kind, ref, query, pooling, layer)
    the_set = say("the_set", n=len(known), seed=meaning_data.SEED)
    st.caption(f"{the_set} {say(f'vector.{pooling}')} {say('mean_taken_off')}")


def _near_sentences(kind: str, ref: Any, query: str, pooling: str, layer: int) -> None:
    st.markdown(f"**{meaning_data.name_of(kind)}**")
    known = meaning_data.sentences()
    try:
        meaning_data.read_sentences(ref, pooling)
        vectors = meaning_data.sentence_vectors(ref, pooling)[:, layer]
        own = meaning_data.own_sentence(ref, query, pooling)[layer]
    except ValueError as error:
        st.warning(literal(str(error)))
        return
    itself = known.index(query) if query in known else None
    near = contexts.nearest(vectors, own, NEAR, leave_out=itself)
    st.table(
        {
            say("column.cosine"): [f"{each.cosine:.3f}" for each in near],
            say("column.sentence"): [literal(known[each.index]) for each in near],
        },
        hide_index=True,
    )
