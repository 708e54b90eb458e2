"""How long the token vectors are, against how often their tokens occur."""

import math

import numpy as np
import streamlit as st

from engine import embeddings
from ui import worked_vectors
from ui.components import show
from ui.embedding_data import MOST_POINTS, Chosen, fate_of_unseen, frequency, names, unseen, untold
from ui.embedding_data import lengths as vector_lengths
from ui.lesson import literal
from ui.words import counted
from viz import format_count, format_number, norm_scatter, objective_color
from viz.length_spread import length_spread
from wording import words

say = words("ui.embedding_norms")


def rarest(chosen: Chosen) -> int:
    """The id that occurs least among those that occur; where that is not known, the one of least length."""
    if untold(chosen.ref):
        return int(vector_lengths(chosen.ref).argmin())
    counts = frequency(chosen).counts
    order = embeddings.most_frequent(counts, max(int((counts > 0).sum()), 1))
    return int(order[-1])


def draw(chosen: Chosen) -> None:
    """Draw lengths by frequency and say how far the two go together."""
    if untold(chosen.ref):
        _spread(chosen)
        return
    found, lengths = frequency(chosen), vector_lengths(chosen.ref)
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
        n, all_tokens = format_count(len(drawn)), format_count(len(lengths))
        which = say("drawn" if len(drawn) < len(lengths) else "drawn_all", n=n, all=all_tokens)
        st.caption(f"{say('counted', source=found.source, n=format_count(found.n_tokens))} {which}")
    with right:
        st.markdown(say("how_long", name=literal(chosen.name)))
        vector = chosen.matrix[chosen.token_id].astype(np.float64)
        st.latex(worked_vectors.length(float(vector @ vector), len(vector)))
        _compare(chosen, top, found.counts, lengths)
        _relation(found.counts, lengths)
        if len(unseen(chosen)):
            st.caption(fate_of_unseen(chosen))


def _spread(chosen: Chosen) -> None:
    """Draw how many vectors have which length: how often their tokens occurred is not known."""
    lengths, called = vector_lengths(chosen.ref), names(chosen.ref)
    left, right = st.columns([4, 3], gap="large")
    with left:
        fig = length_spread(
            lengths, called, marked=chosen.text_ids, chosen=chosen.token_id,
            color=objective_color(chosen.ref.objective),
        )  # fmt: skip
        show(fig, key="embeddings_norms")
        st.caption(say("spread", n=format_count(len(lengths))))
    with right:
        st.markdown(say("how_long", name=literal(chosen.name)))
        vector = chosen.matrix[chosen.token_id].astype(np.float64)
        st.latex(worked_vectors.length(float(vector @ vector), len(vector)))
        ids = [chosen.token_id, int(lengths.argmax()), int(lengths.argmin())]
        st.dataframe(
            {
                "token": [called[i] for i in ids],
                "which": [say("chosen"), say("longest"), say("shortest")],
                "id": ids,
                "length": [float(lengths[i]) for i in ids],
            },
            hide_index=True,
            column_config={
                "token": say("token"),
                "which": "",
                "length": st.column_config.NumberColumn(say("length"), format="%.4g"),
            },
            key="embeddings_lengths",
        )
        longer = int((lengths > lengths[chosen.token_id]).sum())
        st.caption(say("place", n=longer, tokens=counted(longer, "token"), of=format_count(len(lengths))))
        st.caption(say("untold"))


def _times(n: int) -> str:
    return say("never") if n == 0 else say("once") if n == 1 else f"{format_count(n)} ×"


def _compare(chosen: Chosen, top: int, counts: np.ndarray, lengths: np.ndarray) -> None:
    called = names(chosen.ref)
    st.dataframe(
        {
            "token": [f"{called[i]}" for i in (chosen.token_id, top)],
            "which": [say("chosen"), say("most_frequent")],
            "occurs": [_times(int(counts[i])) for i in (chosen.token_id, top)],
            "length": [float(lengths[i]) for i in (chosen.token_id, top)],
        },
        hide_index=True,
        column_config={
            "token": say("token"),
            "which": "",
            "occurs": say("occurs"),
            "length": st.column_config.NumberColumn(say("length"), format="%.4g"),
        },
        key="embeddings_lengths",
    )


def _relation(counts: np.ndarray, lengths: np.ndarray) -> None:
    found = embeddings.relation(counts, lengths)
    never = lengths[counts == 0]
    lines = []
    if math.isnan(found.pearson):
        lines.append(say("too_few", tokens=counted(found.n, "token")))
    else:
        strength, way = abs(found.spearman), "longer" if found.spearman > 0 else "shorter"
        how = f"closely_{way}" if strength >= 0.6 else f"loosely_{way}" if strength >= 0.2 else "hardly"
        pearson, spearman = format_number(found.pearson), format_number(found.spearman)
        lines.append(say(f"relation.{how}", n=format_count(found.n), pearson=pearson, spearman=spearman))
    if len(never):
        seen = lengths[counts > 0]
        told = {"n": len(never), "tokens": counted(len(never), "token")}
        told |= {"mean": format_number(float(never.mean()))}
        told |= {"seen": format_number(float(seen.mean()))} if len(seen) else {}
        lines.append(say("never_beside" if len(seen) else "never_alone", **told))
    st.caption(" ".join(lines))
