"""How long the token vectors are, against how often their tokens occur."""

import math

import numpy as np
import streamlit as st

from engine import embeddings
from ui import worked_vectors
from ui.components import show
from ui.embedding_data import MOST_POINTS, Chosen, fate_of_unseen, frequency, names, unseen
from ui.lesson import literal
from ui.words import counted
from viz import format_count, format_number, norm_scatter, objective_color
from wording import words

say = words("ui.embedding_norms")


def rarest(chosen: Chosen) -> int:
    """The id that occurs least among those that occur."""
    counts = frequency(chosen).counts
    order = embeddings.most_frequent(counts, max(int((counts > 0).sum()), 1))
    return int(order[-1])


def draw(chosen: Chosen) -> None:
    """Draw lengths by frequency and say how far the two go together."""
    found, lengths = frequency(chosen), embeddings.norms(chosen.matrix)
    order = embeddings.most_frequent(found.counts, MOST_POINTS).tolist()
    drawn = list(dict.fromkeys([*order, *chosen.text_ids, chosen.token_id]))
    called, top = names(chosen.ref), order[0]
    labelled = [i for i in dict.fromkeys([top, *chosen.text_ids]) if i != chosen.token_id]
    left, right = st.columns([4, 3], gap="large")
    with left:
        fig = norm_scatter(
            found.counts[drawn],
            lengths[drawn],
            [called[i] for i in drawn],
            labelled=[drawn.index(i) for i in labelled],
            chosen=drawn.index(chosen.token_id),
            color=objective_color(chosen.ref.objective),
        )
        show(fig, key="embeddings_norms")
        st.caption(
            say("counted_tokens", source=found.source, n_tokens=format_count(found.n_tokens))
            + (say("drawn_tokens", n_drawn=format_count(len(drawn)), n_lengths=format_count(len(lengths))) if
               len(drawn) < len(lengths) else say("drawn_all_tokens", n_lengths=format_count(len(lengths))))
        )  # fmt: skip
    with right:
        st.markdown(say("how_long", name=literal(chosen.name)))
        vector = chosen.matrix[chosen.token_id].astype(np.float64)
        st.latex(worked_vectors.length(float(vector @ vector), len(vector)))
        _compare(chosen, top, found.counts, lengths)
        _relation(found.counts, lengths)
        if len(unseen(chosen)):
            st.caption(fate_of_unseen(chosen))


def _times(n: int) -> str:
    return {0: "never", 1: "once"}.get(n, f"{format_count(n)} ×")


def _compare(chosen: Chosen, top: int, counts: np.ndarray, lengths: np.ndarray) -> None:
    called = names(chosen.ref)
    st.dataframe(
        {
            "token": [f"{called[i]}" for i in (chosen.token_id, top)],
            "": ["chosen", say("most_frequent")],
            "occurs": [_times(int(counts[i])) for i in (chosen.token_id, top)],
            "length": [float(lengths[i]) for i in (chosen.token_id, top)],
        },
        hide_index=True,
        column_config={"length": st.column_config.NumberColumn(format="%.4g")},
        key="embeddings_lengths",
    )


def _relation(counts: np.ndarray, lengths: np.ndarray) -> None:
    found = embeddings.relation(counts, lengths)
    never = lengths[counts == 0]
    lines = []
    if math.isnan(found.pearson):
        lines.append(
            say("only_count_all_alike", n=counted(found.n, 'token'))
        )
    else:
        strength = abs(found.spearman)
        words = say("go_together_closely") if strength >= 0.6 else say("go_together_loosely")
        which = "longer" if found.spearman > 0 else "shorter"
        words += say("frequent_ones", which=which)
        words = words if strength >= 0.2 else say("hardly_go_together")
        lines.append(
            say("over_tokens_occur_length", n=format_count(found.n), words=words, pearson=format_number(found.pearson), spearman=format_number(found.spearman))
        )
    if len(never):
        seen = lengths[counts > 0]
        beside = say("those_occur", mean=format_number(float(seen.mean()))) if len(seen) else ""
        lines.append(
            say("never_occur_mean_length", n_never=counted(len(never), 'token'), mean=format_number(float(never.mean())), beside=beside)
        )
    st.caption(" ".join(lines))
