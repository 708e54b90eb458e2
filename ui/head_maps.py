"""How much of the attention of all heads is drawn, and that part packed for the browser."""

import io

import numpy as np
import streamlit as st

from ui import passes
from ui.components.head_grid import pack
from ui.head_habits import weights_csv
from ui.model_refs import ModelRef
from viz import visible
from wording import words

say = words("ui.head_maps")

MOST_WEIGHTS = 2_400_000  # weights that are sent: deflated, less than a megabyte
DRAWN = (128, 96, 64, 48, 32)  # tokens
DEEP = 12  # layers; the maps of more take the whole width
MOST_ROWS = 300_000  # of a table to download; that of more heads is of one layer


def most_drawn(n_layer: int, n_head: int, causal: bool) -> int:
    """How many tokens are drawn of a long text: maps of more could not be read, or would be megabytes."""

    def weights(n: int) -> int:
        return n_layer * n_head * (n * (n + 1) // 2 if causal else n * n)

    return next((n for n in DRAWN if weights(n) <= MOST_WEIGHTS), DRAWN[-1])


@st.cache_resource(max_entries=16, show_spinner=False)
def packed(ref: ModelRef, text: str, begin: int, end: int) -> str:
    """The weights between two positions, see `head_grid.pack`."""
    trace = passes.traced(ref, text)
    return pack(trace.attentions[:, :, begin:end, begin:end], causal=trace.objective == "clm")


def downloads(ref: ModelRef, text: str, begin: int, end: int, layer: int) -> None:
    """Buttons for the weights: a table of what is drawn, of many heads one layer's, and all as arrays."""
    trace = passes.traced(ref, text)
    names = [visible(token.data) for token in trace.tokens]
    n_layer, n_head = trace.attentions.shape[:2]
    n = end - begin
    whole = n_layer * n_head * (n * (n + 1) // 2 if trace.objective == "clm" else n * n) <= MOST_ROWS
    layers = range(n_layer) if whole else range(layer, layer + 1)
    with st.container(horizontal=True):
        st.download_button(
            say("all") if whole else say("layer", layer=layer + 1),
            lambda: weights_csv(trace, names, begin, end, layers),
            file_name="attention-all-heads.csv" if whole else f"attention-layer-{layer + 1}.csv",
            mime="text/csv", key="attention_download", on_click="ignore",
        )  # fmt: skip
        if not whole:
            st.download_button(
                say("arrays"), lambda: arrays(ref, text), file_name="attention.npz",
                mime="application/octet-stream", key="attention_arrays", on_click="ignore",
                help=say("arrays_help"),
            )  # fmt: skip


def arrays(ref: ModelRef, text: str) -> bytes:
    """All weights of a pass as a NumPy file: "weights" (L,H,T,T) float32, "ids" (T,)."""
    trace, out = passes.traced(ref, text), io.BytesIO()
    np.savez_compressed(out, weights=trace.attentions, ids=trace.ids)
    return out.getvalue()
