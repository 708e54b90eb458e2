"""One-hot vector times embedding matrix is a row of the matrix."""

import numpy as np
import streamlit as st

from engine import embeddings
from ui import worked_vectors
from ui.components import show
from ui.embedding_data import Chosen, fate_of_unseen, frequency, names, unseen, untold, vector_csv
from ui.lesson import literal
from viz import format_count, format_number, lookup_picture, objective_color
from wording import words

say = words("ui.embedding_lookup")

ROWS = 9  # of the matrix, drawn around the token's


def draw(chosen: Chosen) -> None:
    """Draw the product, prove it for one dimension, and give the numbers away."""
    matrix, token_id = chosen.matrix, chosen.token_id
    vocab_size, width = matrix.shape
    row = embeddings.look_up(matrix, token_id)
    left, right = st.columns([4, 3], gap="large")
    key = f"embeddings_dim_{width}"
    if not 0 <= st.session_state.get(key, 0) < width:  # out of a link
        st.session_state[key] = 0
    with right:
        st.markdown(say("id", name=literal(chosen.name), token_id=token_id))
        dim = int(
            st.number_input(
                say("work_out"), 0, width - 1, 0, key=key,
                persist_state="session",
            )
        )  # fmt: skip
        ends = {v: float(matrix[v, dim]) for v in {0, token_id, vocab_size - 1}}
        st.latex(worked_vectors.look_up(ends, token_id, vocab_size, dim))
        st.caption(say("one_hot"))
        st.dataframe(
            {"dimension": range(width), "value": row.tolist()},
            hide_index=True,
            height=215,
            column_config={
                "dimension": say("dimension"),
                "value": st.column_config.NumberColumn(say("value"), format="%.6g"),
            },
            key="embeddings_row",
        )
        st.download_button(
            say("download"),
            lambda: vector_csv(row),
            file_name=f"token-{token_id}.csv",
            mime="text/csv",
            key="embeddings_download",
            on_click="ignore",
        )
    with left:
        around = embeddings.rows_around(matrix, token_id, ROWS)
        ids = around.ids.tolist()
        fig = lookup_picture(
            ids,
            [names(chosen.ref)[i] for i in ids],
            around.values,
            token_id=token_id,
            vocab_size=vocab_size,
            dim=dim,
            color=objective_color(chosen.ref.objective),
        )
        show(fig, key="embeddings_lookup")
        drawn = say(
            "drawn",
            vocab_size=format_count(vocab_size),
            width=width,
            rows=len(ids),
            token_id=token_id,
            most=format_number(float(fig.data[2].zmax), 2),
        )
        st.caption(f"{drawn} {_how_learned(chosen, ids)}")
        if chosen.config.tie_head:
            st.caption(say("used_again_bias" if chosen.config.head_bias else "used_again"))
        if chosen.config.mix_previous:
            st.caption(say("mixed"))


def _how_learned(chosen: Chosen, ids: list[int]) -> str:
    """Which of the rows drawn were learned from text, and what became of the others."""
    if untold(chosen.ref):
        return say("untold")
    n = int(np.isin(ids, unseen(chosen)).sum())
    if not n:
        return say("all_learned")
    return say("never", n=n, source=frequency(chosen).source) + " " + fate_of_unseen(chosen)
