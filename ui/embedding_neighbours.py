"""Which tokens have vectors that point the same way, and which the opposite way."""

import numpy as np
import streamlit as st

from engine import embeddings
from ui import worked_vectors
from ui.components import show
from ui.embedding_data import Chosen, names, neighbours
from ui.lesson import literal
from viz import cosine_bars, format_count, format_number, objective_color
from wording import words

say = words("ui.embedding_neighbours")


def draw(chosen: Chosen) -> None:
    """Draw the nearest and the most opposite tokens, and work one pair out."""
    try:
        found = neighbours(chosen.ref, chosen.token_id)
    except ValueError as error:
        st.warning(literal(str(error)))
        return
    shown = [*found.near.tolist(), *found.far.tolist()]
    if not shown:
        st.info(say("single"))
        return
    called = names(chosen.ref)
    left, right = st.columns([4, 3], gap="large")
    with right:
        st.markdown(say("how_alike", name=literal(chosen.name)))
        other = st.selectbox(
            say("compared"), shown, format_func=lambda i: f"{called[i]} (id {i})",
            key=f"embeddings_pair_{chosen.ref.id}_{chosen.token_id}", label_visibility="collapsed",
        )  # fmt: skip
        other = shown[0] if other is None else int(other)
        _work_out(chosen, other)
        n, mean, spread = (
            format_count(len(called) - 1),
            format_number(found.mean),
            format_number(found.spread),
        )
        st.caption(say("scale", n=n, mean=mean, spread=spread))
    with left:
        fig = cosine_bars(
            [called[i] for i in found.near],
            found.cosines[found.near],
            [called[i] for i in found.far],
            found.cosines[found.far],
            chosen=shown.index(other),
            color=objective_color(chosen.ref.objective),
        )
        show(fig, key="embeddings_neighbours")
        n, near, far = format_count(len(called)), len(found.near), len(found.far)
        st.caption(say("shown_both" if far else "shown", all=n, near=near, far=far))


def _work_out(chosen: Chosen, other: int) -> None:
    pair = chosen.matrix[[chosen.token_id, other]].astype(np.float64)
    first, second = embeddings.norms(pair).tolist()
    st.latex(worked_vectors.cosine(float(pair[0] @ pair[1]), first, second, pair.shape[1]))
    st.caption(say("formula", name=literal(chosen.name), other=literal(names(chosen.ref)[other])))
