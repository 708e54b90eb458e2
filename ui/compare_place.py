"""One place of the text: what each of two models expected there, and how far apart that is."""

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine import metrics
from engine.compare import js_divergence
from ui import resources, worked_text
from ui.compare_text import Both
from ui.components import show
from ui.words import literal
from viz import MODEL, NEUTRAL, distribution_bars, visible
from wording import words

say = words("ui.compare_place")

SHOWN = 6  # bars


def place(both: Both, index: int, unit: str) -> None:
    """Draw what both expected in place of a piece, and the surprise that followed."""
    span = both.found.spans[index]
    piece = literal(visible(both.data(span)))
    st.subheader(say(f"in_place.{both.place}", text=piece, n=index + both.first))
    if both.traces is not None and not both.same_tokens:
        _apart(both, index)
    together = both.traces is not None and both.same_tokens
    left, right = st.columns([4, 3], gap="large")
    with right if together else left:
        st.latex(worked_text.pieces(both.parts(span, unit), unit))
        st.caption(say("sum"))
    if both.traces is None:
        right.caption(say("windows", scope=words("pages.compare")("scope.context")))
    elif not both.same_tokens:
        right.caption(say("apart"))
    else:
        with left:
            _together(both, index)
        p, q = _expected(both, index)
        kl_ab, kl_ba, js = (
            float(metrics.surprisal(-x, unit))
            for x in (metrics.kl_divergence(p, q), metrics.kl_divergence(q, p), js_divergence(p, q))
        )
        right.latex(worked_text.distances(kl_ab, kl_ba, js, unit))
        right.caption(say("distances"))


def _expected(both: Both, index: int) -> list[NDArray[np.float64]]:
    """(V,) each model's distribution for its first token of the piece."""
    first = both.found.spans[index].first
    assert both.traces is not None
    return [metrics.softmax(both.traces[side].logits[first[side] - 1]) for side in (0, 1)]


def _came(both: Both, index: int, side: int) -> int:
    return both.tokens[side][both.found.spans[index].first[side]].id


def _together(both: Both, index: int) -> None:
    """One vocabulary: both distributions over the same tokens."""
    (p, q), came, tokenizer = _expected(both, index), _came(both, index, 0), resources.tokenizer(both.refs[0])
    top = metrics.most_likely((p + q) / 2, SHOWN, also=came)
    ids = top.ids.tolist()
    fig = distribution_bars(
        [visible(tokenizer.token_bytes(i)) for i in ids],
        p[ids],
        tail=metrics.tail_of(p, ids),
        n_tail=top.n_tail,
        true_index=ids.index(came),
        second=q[ids],
        second_tail=metrics.tail_of(q, ids),
        names=("A", "B"),
        colors=(MODEL, NEUTRAL),
    )
    show(fig, key="compare_bars")


def _apart(both: Both, index: int) -> None:
    """Two vocabularies: each model's own tokens."""
    for side, (name, column) in enumerate(zip("AB", st.columns(2), strict=True)):
        probs, came = _expected(both, index)[side], _came(both, index, side)
        tokenizer = resources.tokenizer(both.refs[side])
        top = metrics.most_likely(probs, SHOWN - 1, also=came)
        ids = top.ids.tolist()
        column.markdown(say("own_tokens", name=name))
        fig = distribution_bars(
            [visible(tokenizer.token_bytes(i)) for i in ids],
            top.probs,
            tail=top.tail,
            n_tail=top.n_tail,
            true_index=ids.index(came),
        )
        with column:
            show(fig, key=f"compare_bars_{name.lower()}")
