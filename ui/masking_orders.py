"""Products of masked conditionals: two orders of filling, the same by hand, and every filling added up."""

from fractions import Fraction

import streamlit as st

import viz
from engine import pseudo
from engine.pair_table import HAND_MADE, PairTable
from engine.pseudo import LARGEST_TOTAL, Totals, TwoOrders, n_passes
from ui import hiding, resources, worked_masking
from ui.hiding import Both
from ui.model_refs import ModelRef
from ui.words import literal
from wording import words

say = words("ui.masking_orders")

SECOND, TABLE = "masking_second", "masking_table"
_ADDED = "_masking_added_up"


# ---- two gaps, two orders ----


def _partner(both: Both, place: int) -> int | None:
    """The second gap: one that is hidden too, else the token that is hardest to guess; or as chosen."""
    text = both.text
    options = [i for i in range(len(text.seen)) if i != place and i not in text.typed]
    if not options:
        return None
    in_turn = hiding.in_turn(both.masked, tuple(text.ids), text.typed)
    hidden = [i for i in both.hidden if i in options]
    first = hidden[0] if hidden else min(options, key=lambda i: float(in_turn[i]))
    if st.session_state.get(SECOND) not in options:
        st.session_state[SECOND] = first
    return int(
        st.selectbox(
            say("second_gap_b"),
            options,
            format_func=both.name,
            key=SECOND,
            width=220,
            persist_state="session",
        )
    )


@st.cache_data(max_entries=64, show_spinner=False)
def _orders(both_key: tuple[object, ...], _both: Both, pair: tuple[int, int]) -> TwoOrders:
    model = resources.load(_both.masked).model
    others = [i for i in _both.hidden if i not in pair]
    return pseudo.two_orders(model, _both.text.ids, pair, _both.mask_id, others, _both.frame)


def two_orders(both: Both, place: int | None) -> None:
    """Two hidden tokens filled in both orders by the model at hand, and by the truth."""
    st.subheader(say("two_gaps_two_orders"))
    if place is None or place in both.text.typed or (second := _partner(both, place)) is None:
        st.info(say("hide_token_whose_answer"))
        return
    pair = (place, second)
    found = _orders((both.masked, tuple(both.text.ids), tuple(both.hidden)), both, pair)
    a, b = (literal(viz.visible(both.text.seen[i].data)) for i in pair)
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown(say("masked_model_b", a=a, b=b))
        st.latex(worked_masking.orders(found.a, found.b_after_a, found.b, found.a_after_b))
        st.caption(say("fill_then_b_b"))
    with right:
        st.markdown(say("true_source"))
        true = _true_orders(both, pair)
        if isinstance(true, str):
            st.caption(literal(true))
        else:
            st.latex(worked_masking.orders(true.a, true.b_after_a, true.b, true.a_after_b, star=True))
            st.caption(say("joint_distribution_gives_one"))


def _true_orders(both: Both, pair: tuple[int, int]) -> TwoOrders | str:
    """The exact conditionals, or why there are none."""
    text = both.text
    ids = tuple(token.id for token in text.tokens)
    others = [text.unused + i for i in both.hidden if i not in pair]
    i, j = (text.unused + at for at in pair)

    def exact(hidden: set[int], at: int) -> float:
        where = tuple(sorted({*others, *hidden}))
        return float(hiding.true_in_gap(both.masked, ids, where, at)[ids[at]])

    try:
        return TwoOrders(exact({i, j}, i), exact({j}, j), exact({i, j}, j), exact({i}, i))
    except ValueError as error:
        return str(error)


# ---- a table by hand ----


def hand_made() -> None:
    """Conditionals as fractions: once of no joint distribution, once of one."""
    st.subheader(say("same_hand"))
    st.session_state.setdefault(TABLE, next(iter(HAND_MADE)))
    names = say.table("table")
    name = st.segmented_control(
        say("tables"), list(HAND_MADE), format_func=names.__getitem__, required=True, key=TABLE,
        persist_state="session", label_visibility="collapsed",
    )  # fmt: skip
    table = HAND_MADE[str(name)]
    st.write(say("mask_mask_suppose_masked"))
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.table(_conditionals(table), hide_index=True)
        pull_a, pull_b = table.pulls
        verdict = say("they_agree_one_joint") if pull_a == pull_b else say("they_disagree_no_joint")
        st.caption(f"{say('how_strongly_cat_goes', pull_a=pull_a, pull_b=pull_b)} {verdict}")
    with right:
        st.table(_products(table), hide_index=True)
        total = [table.pseudo(a, b) for a, b in table.cells]
        st.latex(worked_masking.pseudo_total(total))
        st.caption(say("two_orders_add_up"))


def _conditionals(table: PairTable) -> dict[str, list[str]]:
    """Both tables in words."""
    rows: list[tuple[str, str, Fraction]] = []
    a_words, b_words = ([say(f"word.{word}") for word in words] for words in (table.a, table.b))
    for b, b_word in enumerate(b_words):
        rows += [(f"… {b_word}", a_word, table.a_given_b[b][a]) for a, a_word in enumerate(a_words)]
    for a, a_word in enumerate(a_words):
        rows += [(f"{a_word} …", b_word, table.b_given_a[a][b]) for b, b_word in enumerate(b_words)]
    rows += [("… …", a_words[0], table.p_a[0]), ("… …", b_words[0], table.p_b[0])]
    return {
        say("column.given"): [given for given, _, _ in rows],
        say("column.word"): [word for _, word, _ in rows],
        "p": [str(p) for _, _, p in rows],
    }


def _products(table: PairTable) -> dict[str, list[str]]:
    """The four fillings and their three products, and the sums."""
    cells = table.cells
    products = {
        "p(a) p(b | a)": [table.a_first(a, b) for a, b in cells],
        "p(b) p(a | b)": [table.b_first(a, b) for a, b in cells],
        "p(a | b) p(b | a)": [table.pseudo(a, b) for a, b in cells],
    }
    fillings = [f"{say(f'word.{table.a[a]}')} {say(f'word.{table.b[b]}')}" for a, b in cells]
    rows = {say("column.filling"): [*fillings, say("sum")]}
    return rows | {name: [str(x) for x in (*row, sum(row, Fraction(0)))] for name, row in products.items()}


# ---- everything that could stand in the two gaps ----


@st.cache_data(max_entries=16, show_spinner=say.later("filling_both"))
def _totals(both_key: tuple[object, ...], _both: Both, pair: tuple[int, int]) -> Totals:
    text = _both.text
    ids = [_both.mask_id if i in _both.hidden and i not in pair else t for i, t in enumerate(text.ids)]
    return pseudo.totals(resources.load(_both.masked).model, ids, pair, _both.mask_id, _both.frame)


@st.cache_data(max_entries=16, show_spinner=say.later("writing_on"))
def _causal_total(ref: ModelRef, before: tuple[int, ...]) -> float:
    return pseudo.causal_total(resources.load(ref).model, before)


def _add_up(key: tuple[object, ...]) -> None:
    """Remember that the sums over these fillings are wanted. For `on_click`."""
    st.session_state[_ADDED] = key


def every_filling(both: Both, place: int | None) -> None:
    """The sums over all fillings of the two gaps, by the models at hand."""
    second = st.session_state.get(SECOND)
    if place is None or place in both.text.typed or second is None or second == place:
        return
    st.subheader(say("every_filling_two_gaps"))
    vocab_size = resources.load(both.masked).model.config.vocab_size
    need = n_passes(len(both.text.seen), vocab_size)
    key = (both.masked, tuple(both.text.ids), tuple(both.hidden), place, second)
    if need > LARGEST_TOTAL:
        st.caption(say("fillings_text_would_mean", vocab_size=vocab_size, need=need, most=LARGEST_TOTAL))
        return
    if st.session_state.get(_ADDED) != key:
        words = say("add_up_all_fillings", n=vocab_size**2)
        st.button(words, key="masking_total", on_click=_add_up, args=(key,))
        st.caption(say("takes_some_seconds"))
        return
    found = _totals(key, both, (place, second))
    left, right = st.columns(2, gap="medium")
    with right:
        st.markdown(say("masked_model"))
        st.latex(worked_masking.totals(found.a_first, found.b_first, found.pseudo))
        st.caption(say("over_all_pairs_ids", n=found.n_fillings, elsewhere=viz.format_prob(found.half_sum)))
    with left:
        st.markdown(say("causal_model"))
        ids = hiding.left_ids(both.causal, both.masked, both.text, place) if both.causal else None
        if not ids or both.causal is None:
            st.caption(say("here_causal_model_has"))
        else:
            total = _causal_total(both.causal, ids)
            st.latex(worked_masking.causal_total(total))
            st.caption(say("next_two_tokens_after"))
