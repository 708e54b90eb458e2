"""The habits of all heads in one text, as a table to sort and to choose from."""

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from engine.heads import head_measures
from engine.trace import Trace
from ui import resources
from ui.cells import table_csv
from ui.components import select
from ui.resources import ModelRef

TABLE = "attention_habits"
# Measure -> (title, what it is for a causal model, what it is for a masked one)
COLUMNS = {
    "entropy": (
        "entropy (nats)",
        "How spread out a row of weights is: −Σ w ln w, mean over the rows. 0: all on one token.",
        "",
    ),
    "effective": (
        "effective tokens",
        "e to the power of the entropy: so many tokens, equally weighted, would be as spread out.",
        "",
    ),
    "distance": (
        "distance (tokens)",
        "How far back it looks: Σ weight · distance, mean over the rows.",
        "How far away it looks, back or ahead: Σ weight · distance, mean over the rows.",
    ),
    "previous": ("previous", "Weight on the token just before.", ""),
    "next": ("next", "", "Weight on the token just after."),
    "first": ("first", "Weight on the first token, where many heads rest.", ""),
    "same": (
        "duplicate",
        "Weight on earlier tokens that are equal to the one that looks.",
        "Weight on other tokens that are equal to the one that looks.",
    ),
    "induction": (
        "induction",
        "Weight on the token after an earlier equal one: “… A B … A” looks at B, to repeat what came next.",
        "Weight on the token after another equal one: “… A B … A” looks at B.",
    ),
}


@st.cache_resource(max_entries=32, show_spinner=False)
def _measures(ref: ModelRef, text: str) -> dict[str, NDArray[Any]]:
    found = head_measures(resources.traced(ref, text))
    return {**found, "effective": np.exp(found["entropy"])}


def table(ref: ModelRef, text: str, trace: Trace, chosen: tuple[int, int], grid: str) -> None:
    """Draw the table; a row that is pressed is the head that `grid` shows.

    Args:
        ref: the model.
        text: the text.
        trace: its pass.
        chosen: (layer, head), from 0.
        grid: key of the component that holds the choice.
    """
    found, n_head = _measures(ref, text), trace.attentions.shape[1]
    every = [name for name in COLUMNS if name != "next" or trace.objective == "mlm"]
    shown = [name for name in every if not np.isnan(found[name]).all()]
    if "entropy" not in shown:
        st.info("This text has one token, which looks at itself: there is no habit to see. Write more.")
        return
    st.caption("Press a column’s name to sort, a row to look at that head.")
    n = found["entropy"].size
    columns: dict[str, Any] = {
        "layer": [i // n_head + 1 for i in range(n)],
        "head": [i % n_head + 1 for i in range(n)],
        **{COLUMNS[name][0]: found[name].ravel().tolist() for name in shown},
    }
    rows = [chosen[0] * n_head + chosen[1]]
    if (st.session_state.get(TABLE) or {}).get("selection", {}).get("rows") != rows:
        st.session_state[TABLE] = {"selection": {"rows": rows}}

    def pressed() -> None:
        picked = st.session_state[TABLE].selection.rows
        if picked:
            select(grid, (picked[0] // n_head, picked[0] % n_head))

    st.dataframe(
        columns,
        hide_index=True,
        height=min(36 * (n + 1), 260),
        column_config={
            COLUMNS[name][0]: st.column_config.NumberColumn(
                format="%.3f", help=meaning(name, trace.objective)
            )
            for name in shown
        },
        key=TABLE,
        on_select=pressed,
        selection_mode="single-row-required",
    )
    missing = [COLUMNS[name][0] for name in every if name not in shown]
    if missing:
        st.caption(
            f"Left out: {' and '.join(missing)}. This text can’t show it: no token in it comes twice in the "
            "way it needs."
        )
    with st.expander("What the columns mean"):
        st.markdown(
            "\n".join(f"- **{COLUMNS[name][0]}**: {meaning(name, trace.objective)}" for name in shown)
        )
        first = "" if trace.objective == "mlm" else " The first token sees only itself and is left out."
        st.caption(
            "Each is a mean over the rows of this text that have a choice, so another text may show another "
            f"habit.{first} Duplicate: Wang et al. 2022, arXiv:2211.00593. Induction: Olsson et al. 2022, "
            "arXiv:2209.11895."
        )


def meaning(name: str, objective: str) -> str:
    """What a measure is, in one or two short sentences."""
    causal, masked = COLUMNS[name][1:]
    return masked if objective == "mlm" and masked else causal


def weights_csv(trace: Trace, names: list[str], begin: int, end: int) -> str:
    """The weights of all heads between the drawn positions as CSV, a row for each that the mask allows."""
    n_layer, n_head = trace.attentions.shape[:2]
    n = end - begin
    seen = np.tri(n, dtype=bool) if trace.objective == "clm" else np.ones((n, n), dtype=bool)
    query, key = np.nonzero(seen)
    weights = trace.attentions[:, :, begin:end, begin:end][:, :, query, key]  # (L,H,pairs)
    layer, head, pair = (a.ravel() for a in np.indices(weights.shape))
    texts = np.array(names, dtype=object)
    return table_csv(
        pd.DataFrame(
            {
                "layer": layer + 1,
                "head": head + 1,
                "query": begin + query[pair],
                "query token": texts[begin + query[pair]],
                "key": begin + key[pair],
                "key token": texts[begin + key[pair]],
                "weight": weights.ravel(),
            }
        )
    )
