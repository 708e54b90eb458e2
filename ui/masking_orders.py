"""Products of masked conditionals: two orders of filling, the same by hand, and every filling added up."""

from fractions import Fraction

import streamlit as st

import viz
from engine import pseudo
from engine.pseudo import HAND_MADE, LARGEST_TOTAL, PairTable, Totals, TwoOrders, n_passes
from ui import hiding, resources, worked_masking
from ui.hiding import Both
from ui.resources import ModelRef
from ui.words import literal

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
            "The second gap, b",
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
    return pseudo.two_orders(model, _both.text.ids, pair, _both.mask_id, others)


def two_orders(both: Both, place: int | None) -> None:
    """Two hidden tokens filled in both orders by the model at hand, and by the truth."""
    st.subheader("Two gaps, two orders, two products")
    if place is None or place in both.text.typed or (second := _partner(both, place)) is None:
        st.info("Hide a token whose answer is known, in a text of at least two tokens.")
        return
    pair = (place, second)
    found = _orders((both.masked, tuple(both.text.ids), tuple(both.hidden)), both, pair)
    a, b = (literal(viz.visible(both.text.seen[i].data)) for i in pair)
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown(f"**The masked model**, a = {a}, b = {b}")
        st.latex(worked_masking.orders(found.a, found.b_after_a, found.b, found.a_after_b))
        st.caption(
            "Fill a and then b, or b and then a: two products. Each order is a probability for itself. "
            "Nothing in the training makes them the same one."
        )
    with right:
        st.markdown("**The true source**")
        true = _true_orders(both, pair)
        if isinstance(true, str):
            st.caption(literal(true))
        else:
            st.latex(worked_masking.orders(true.a, true.b_after_a, true.b, true.a_after_b, star=True))
            st.caption("A joint distribution gives one product in both orders. This one is exact.")


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
    st.subheader("The same by hand")
    st.session_state.setdefault(TABLE, next(iter(HAND_MADE)))
    name = st.segmented_control(
        "Tables", list(HAND_MADE), required=True, key=TABLE, persist_state="session",
        label_visibility="collapsed",
    )  # fmt: skip
    table = HAND_MADE[str(name)]
    st.write(
        "“The \\[MASK\\] \\[MASK\\].” Suppose a masked model knows two words for each gap. It says what it "
        "expects in one gap for each word in the other: two tables, learned apart."
    )
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.table(_conditionals(table), hide_index=True)
        pull_a, pull_b = table.pulls
        verdict = (
            "They agree, so one joint distribution has both tables."
            if pull_a == pull_b
            else "They disagree, so no joint distribution has both tables."
        )
        st.caption(
            f"How strongly cat goes with slept (odds ratio): {pull_a} by the first table, {pull_b} by the "
            "second. " + verdict
        )
    with right:
        st.table(_products(table), hide_index=True)
        total = [table.pseudo(a, b) for a, b in table.cells]
        st.latex(worked_masking.pseudo_total(total))
        st.caption(
            "The two orders add up to 1 each. The product that the pseudo-log-likelihood is made of need "
            "not, even where there is a joint distribution."
        )


def _conditionals(table: PairTable) -> dict[str, list[str]]:
    """Both tables in words."""
    rows: dict[str, list[str]] = {"given": [], "word": [], "p": []}
    for b, b_word in enumerate(table.b):
        for a, a_word in enumerate(table.a):
            rows["given"].append(f"… {b_word}")
            rows["word"].append(a_word)
            rows["p"].append(str(table.a_given_b[b][a]))
    for a, a_word in enumerate(table.a):
        for b, b_word in enumerate(table.b):
            rows["given"].append(f"{a_word} …")
            rows["word"].append(b_word)
            rows["p"].append(str(table.b_given_a[a][b]))
    rows["given"] += ["… …", "… …"]
    rows["word"] += [table.a[0], table.b[0]]
    rows["p"] += [str(table.p_a[0]), str(table.p_b[0])]
    return rows


def _products(table: PairTable) -> dict[str, list[str]]:
    """The four fillings and their three products, and the sums."""
    cells = table.cells
    products = {
        "p(a) p(b | a)": [table.a_first(a, b) for a, b in cells],
        "p(b) p(a | b)": [table.b_first(a, b) for a, b in cells],
        "p(a | b) p(b | a)": [table.pseudo(a, b) for a, b in cells],
    }
    rows = {"filling": [f"{table.a[a]} {table.b[b]}" for a, b in cells] + ["sum"]}
    return rows | {name: [str(x) for x in (*row, sum(row, Fraction(0)))] for name, row in products.items()}


# ---- everything that could stand in the two gaps ----


@st.cache_data(max_entries=16, show_spinner="Filling both gaps in every way …")
def _totals(both_key: tuple[object, ...], _both: Both, pair: tuple[int, int]) -> Totals:
    text = _both.text
    ids = [_both.mask_id if i in _both.hidden and i not in pair else t for i, t in enumerate(text.ids)]
    return pseudo.totals(resources.load(_both.masked).model, ids, pair, _both.mask_id)


@st.cache_data(max_entries=16, show_spinner="Writing on in every way …")
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
    st.subheader("Every filling of the two gaps")
    vocab_size = resources.load(both.masked).model.config.vocab_size
    need = n_passes(len(both.text.seen), vocab_size)
    key = (both.masked, tuple(both.text.ids), tuple(both.hidden), place, second)
    if need > LARGEST_TOTAL:
        st.caption(
            f"{vocab_size:,} × {vocab_size:,} fillings of this text would mean reading {need:,} tokens; at "
            f"most {LARGEST_TOTAL:,} are read here. Use a shorter text, or a model with a smaller "
            "vocabulary."
        )
        return
    if st.session_state.get(_ADDED) != key:
        words = f"Add up all {vocab_size**2:,} fillings"
        st.button(words, key="masking_total", on_click=_add_up, args=(key,))
        st.caption("Takes some seconds.")
        return
    found = _totals(key, both, (place, second))
    left, right = st.columns(2, gap="medium")
    with right:
        st.markdown("**Masked model**")
        st.latex(
            r"\begin{aligned}\sum p(a)\,p(b \mid a) &= " + f"{found.a_first:.4f}"
            r"\\ \sum p(b)\,p(a \mid b) &= " + f"{found.b_first:.4f}"
            r"\\ \sum p(a \mid b)\,p(b \mid a) &= " + f"{found.pseudo:.4f}" + r"\end{aligned}\,"
        )  # fmt: skip
        st.caption(
            f"Over all {found.n_fillings:,} pairs of ids. The two orders are two distributions: "
            f"{viz.format_prob(found.half_sum)} of the probability lies elsewhere (their total variation "
            "distance)."
        )
    with left:
        st.markdown("**Causal model**")
        ids = hiding.left_ids(both.causal, both.masked, both.text, place) if both.causal else None
        if not ids or both.causal is None:
            st.caption("Here a causal model has nothing to its left.")
        else:
            total = _causal_total(both.causal, ids)
            st.latex(r"\sum_{a,b} p(a \mid \text{left})\,p(b \mid \text{left}, a) = " + f"{total:.4f}")
            st.caption(
                "The next two tokens after the left of the gap, in every way: the chain rule keeps it at 1."
            )
