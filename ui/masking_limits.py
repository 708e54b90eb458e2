"""What can't be compared and why: perplexities, pseudo-log-likelihood, products that are no probability."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import streamlit as st

import viz
from engine.gaps import mean_surprisal
from engine.mask_draws import UNSCORED
from engine.metrics import next_token_scores, perplexity
from engine.pseudo import HAND_MADE, LARGEST_TOTAL, PairTable, Totals, TwoOrders, n_passes
from ui import gap_strip, hiding, lesson, resources, worked_masking
from ui.components import token_strip
from ui.components.token_strip import TokenLike
from ui.hiding import Both
from ui.resources import ModelRef
from ui.words import counted, literal
from viz.masking import fate_color

SECOND, LIMIT = "masking_second", "masking_limit"
_ADDED = "_masking_added_up"
SCROLLS = 40  # tokens
PARTS = ("One number each", "Two orders", "By hand")
TRY = "Once upon a time, there was a princess called Lily. She"


def draw(both: Both) -> None:
    """Draw the view."""
    place = gap_strip.draw(both)
    st.session_state.setdefault(LIMIT, PARTS[0])
    part = st.segmented_control(
        "Why", PARTS, required=True, key=LIMIT, persist_state="session", label_visibility="collapsed"
    )
    if part == PARTS[0]:
        _two_numbers(both)
        _one_text(both)
    elif part == PARTS[1]:
        _two_orders(both, place)
        _everything(both, place)
    else:
        _hand_made()
    lesson.try_this(
        lesson.Step(
            "Everything hidden: the masked-token perplexity jumps.", "Hide every token", _hide_all, (both,)
        ),
        lesson.Step(
            "Two words that know of each other: the name tells whether it was a princess.",
            "Princess and Lily", _both_words,
        ),
        lesson.Step(
            "Tables that a joint has: both orders agree, and still the sum is not 1.",
            "A real joint", _choose_table, ("A joint has these",),
        ),
        key="limits_try",
    )  # fmt: skip


def _hide_all(both: Both) -> None:
    st.session_state[LIMIT] = PARTS[0]
    hiding.hide(range(len(both.text.seen)))


def _both_words() -> None:
    st.session_state[LIMIT] = PARTS[1]
    hiding.story(TRY, "princess", True)
    st.session_state.pop(SECOND, None)


def _choose_table(name: str) -> None:
    st.session_state[LIMIT] = PARTS[2]
    st.session_state["masking_table"] = name


def _two_numbers(both: Both) -> None:
    """Perplexity and masked-token perplexity of this text, side by side and never in one column."""
    text, n = both.text, len(both.text.seen)
    left, right = st.columns(2, gap="medium")
    if both.causal is not None and not text.typed:
        trace = resources.traced(both.causal, both.whole)
        if len(trace.tokens) > 1:
            loss = next_token_scores(trace.logits, [token.id for token in trace.tokens]).loss
            left.metric("Perplexity (causal model)", viz.format_perplexity(perplexity(loss)), border=True)
            m = len(trace.tokens)
            left.caption(f"{m - 1:,} of {m:,} positions scored, each from its left.")
    known = [i for i in both.hidden if i not in text.typed]
    if known:
        logits = hiding.from_both_sides(both.masked, tuple(text.ids), tuple(both.hidden))
        loss = mean_surprisal(logits, text.ids, known)
        right.metric(
            "Masked-token perplexity (masked model)", viz.format_perplexity(perplexity(loss)), border=True
        )
        right.caption(
            f"{len(known):,} of {n:,} positions scored ({len(known) / n:.0%}), each from all that is shown. "
            "It depends on which tokens are hidden: hide others, and it is another number."
        )
    st.write(
        "Both are e to the mean surprise, and that is all they share. They ask other questions with other "
        "help, so the smaller one says nothing about which model is better."
    )


# ---- one text: the chain rule against masking each token in turn ----


def _one_text(both: Both) -> None:
    """Log probability of the text beside its pseudo-log-likelihood."""
    st.subheader("A score for the whole text")
    text = both.text
    in_turn = hiding.in_turn(both.masked, tuple(text.ids), text.typed)
    known = int(np.isfinite(in_turn).sum())
    pseudo = float(np.nansum(in_turn))
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Causal: a probability, by the chain rule**")
        if both.causal is None or text.typed:
            st.caption("A causal model scores a text without gaps.")
        else:
            trace = resources.traced(both.causal, both.whole)
            if len(trace.tokens) < 2:
                st.caption("At least 2 tokens are needed: nothing predicts the first.")
            else:
                found = next_token_scores(trace.logits, [token.id for token in trace.tokens])
                surprise = [math.nan, *(-found.log_probs).tolist()]
                label = "Surprise of each token, given what stands left of it"
                _strip(trace.tokens, surprise, "masking_from_left", label, trace.logits.shape[-1])
                st.latex(worked_masking.log_probability(found.total, len(trace.tokens) - 1))
                st.caption(
                    "Under each token: its surprise in nats, given the left. Over all texts of this length "
                    "that begin with this token, P adds up to 1."
                )
    with right:
        st.markdown("**Masked: a pseudo-log-likelihood**")
        if known:
            label = "Surprise of each token, given all others"
            n_ids = resources.load(both.masked).model.config.vocab_size
            _strip(text.seen, (-in_turn).tolist(), "masking_in_turn", label, n_ids)
            st.latex(worked_masking.pseudo(pseudo))
            st.caption(
                f"Each of {counted(known, 'token')} in turn is masked, in a pass of its own (Salazar and "
                "others 2020, arXiv:1910.14659). Each token helps to guess the others and is guessed with "
                "their help, so the text is counted over and over: e to the PLL is no probability."
            )
        else:
            st.caption("There is no token whose answer is known.")


def _strip(tokens: Sequence[TokenLike], surprise: list[float], key: str, label: str, vocab_size: int) -> None:
    """A text with the surprise of each token under it; – where there is none."""
    most, pale = math.log(vocab_size), fate_color(UNSCORED)
    with st.container(height=170 if len(tokens) > SCROLLS else "content", border=len(tokens) > SCROLLS):
        token_strip(
            [[token] for token in tokens],
            key=key,
            values=["–" if x != x else lesson.brief(x) for x in surprise],
            colors=[pale if x != x else viz.surprisal_color(x, most) for x in surprise],
            label=label,
        )


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
    from engine.pseudo import two_orders

    model = resources.load(_both.masked).model
    others = [i for i in _both.hidden if i not in pair]
    return two_orders(model, _both.text.ids, pair, _both.mask_id, others)


def _two_orders(both: Both, place: int | None) -> None:
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
            "Fill a and then b, or b and then a: the two products differ by "
            f"{viz.format_nats(abs(found.apart))}. Each order is a probability for itself. Nothing in the "
            "training makes them the same one."
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


def _hand_made() -> None:
    """Conditionals as fractions: once of no joint distribution, once of one."""
    st.subheader("The same by hand")
    st.session_state.setdefault("masking_table", next(iter(HAND_MADE)))
    name = st.segmented_control(
        "Tables", list(HAND_MADE), required=True, key="masking_table", persist_state="session",
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
        st.latex(
            r"\sum_{a,b} p(a \mid b)\,p(b \mid a) = " + worked_masking.fractions_sum(total)
            + (r" \neq 1" if sum(total, Fraction(0)) != 1 else "")
        )  # fmt: skip
        st.caption(
            "The two orders add up to 1 each. The product that the pseudo-log-likelihood is made of does "
            "not, with a joint distribution or without one."
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
    from engine.pseudo import totals

    text = _both.text
    ids = [_both.mask_id if i in _both.hidden and i not in pair else t for i, t in enumerate(text.ids)]
    return totals(resources.load(_both.masked).model, ids, pair, _both.mask_id)


@st.cache_data(max_entries=16, show_spinner="Writing on in every way …")
def _causal_total(ref: ModelRef, before: tuple[int, ...]) -> float:
    from engine.pseudo import causal_total

    return causal_total(resources.load(ref).model, before)


def _add_up(key: tuple[object, ...]) -> None:
    """Remember that the sums over these fillings are wanted. For `on_click`."""
    st.session_state[_ADDED] = key


def _everything(both: Both, place: int | None) -> None:
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
