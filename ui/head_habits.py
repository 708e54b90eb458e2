"""The habits of all heads in one text, as a table to sort and to choose from."""

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from engine.heads import head_measures
from engine.trace import Trace
from ui import passes
from ui.cells import table_csv
from ui.components import select
from ui.model_refs import ModelRef
from wording import words

say = words("ui.head_habits")

TABLE = "attention_habits"
COLUMNS = ("entropy", "effective", "distance", "previous", "next", "first", "same", "induction")


@st.cache_resource(max_entries=32, show_spinner=False)
def _measures(ref: ModelRef, text: str) -> dict[str, NDArray[Any]]:
    found = head_measures(passes.traced(ref, text))
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
    title = say.table("title")
    every = [name for name in COLUMNS if name != "next" or trace.objective == "mlm"]
    shown = [name for name in every if not np.isnan(found[name]).all()]
    if "entropy" not in shown:
        st.info(say("one_token"))
        return
    st.caption(say("press"))
    n = found["entropy"].size
    columns: dict[str, Any] = {
        say("column.layer"): [i // n_head + 1 for i in range(n)],
        say("column.head"): [i % n_head + 1 for i in range(n)],
        **{title[name]: found[name].ravel().tolist() for name in shown},
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
            title[name]: st.column_config.NumberColumn(format="%.3g", help=meaning(name, trace.objective))
            for name in shown
        },
        key=TABLE,
        on_select=pressed,
        selection_mode="single-row-required",
    )
    missing = [title[name] for name in every if name not in shown]
    if missing:
        listed = ", ".join(missing[:-1])
        listed = say("and", first=listed, last=missing[-1]) if listed else missing[-1]
        st.caption(say("left_out", listed=listed))
    with st.expander(say("meanings")):
        st.markdown("\n".join(f"- **{title[name]}**: {meaning(name, trace.objective)}" for name in shown))
        st.caption(say("means") if trace.objective == "mlm" else say("means_but_first"))


def meaning(name: str, objective: str) -> str:
    """What a measure is, in one or two short sentences."""
    masked = say.table("masked")  # what is the same for both stands under "causal"
    return masked[name] if objective == "mlm" and name in masked else say(f"causal.{name}")


def weights_csv(trace: Trace, names: list[str], begin: int, end: int, layers: range) -> str:
    """The weights of these layers' heads between the drawn positions as CSV, a row for each that is seen."""
    seen = [trace.visible(layer)[begin:end, begin:end] for layer in layers]
    query, key = np.nonzero(np.logical_or.reduce(seen))
    weights = trace.attentions[layers.start : layers.stop, :, begin:end, begin:end][:, :, query, key]
    kept = np.broadcast_to(np.stack([mask[query, key] for mask in seen])[:, None], weights.shape)
    layer, head, pair = np.nonzero(kept)  # of (L,H,pairs)
    texts = np.array(names, dtype=object)
    return table_csv(
        pd.DataFrame(
            {
                say("column.layer"): layers.start + layer + 1,
                say("column.head"): head + 1,
                say("column.query"): begin + query[pair],
                say("column.query_token"): texts[begin + query[pair]],
                say("column.key"): begin + key[pair],
                say("column.key_token"): texts[begin + key[pair]],
                say("column.weight"): weights[kept],
            }
        )
    )
