"""All layers and heads at once: a small attention map each, to choose from."""

import base64
import zlib
from collections.abc import Sequence

import numpy as np
import streamlit as st
from numpy.typing import ArrayLike

from ui.components._shared import asset, current, told
from viz.theme import PROBABILITY_COLORS, probability_scale
from wording import words

say = words("ui.component_head_grid")

_COMPONENT = st.components.v2.component(
    "loupe_head_grid",
    html=asset("head_grid.html"),
    css=asset("head_grid.css"),
    js=asset("fill.js") + asset("head_grid.js"),
)


def to_bytes(attentions: ArrayLike) -> np.ndarray:
    """Weights 0..1 as uint8 0..255, rounded; uint8 passes as it is."""
    array = np.asarray(attentions)
    if array.dtype == np.uint8:
        return array
    return np.rint(np.clip(array.astype(np.float32), 0, 1) * 255).astype(np.uint8)


def pack(attentions: ArrayLike, *, causal: bool) -> str:
    """Weights (L,H,T,T) as the browser unpacks them: a byte each, deflated, in base64.

    Of a causal model only what it can see, column by column: there lie the longest runs of nothing, which
    cost next to no bytes. A text of 128 tokens in 270 heads is 0.7 MB instead of 3.
    """
    weights = to_bytes(attentions)
    n = weights.shape[-1]
    if causal:
        keys, queries = np.triu_indices(n)
        weights = weights[:, :, queries, keys]
    data = zlib.compress(np.ascontiguousarray(weights).tobytes(), 6)
    return base64.b64encode(data).decode("ascii")


def head_grid(
    attentions: ArrayLike,
    tokens: Sequence[str],
    *,
    objective: str,
    key: str,
    selected: tuple[int, int] = (0, 0),
    first: int = 0,
    windows: Sequence[int] = (),
    packed: str | None = None,
    bright: bool = False,
) -> tuple[int, int]:
    """Draws every head small, row 0 (the first query) on top; returns the chosen (layer, head), from 0.

    Args:
        attentions: (L, H, T, T) weights, 0 to 1, or uint8 0 to 255; rows are queries, columns keys.
        tokens: (T,) visible token texts, for the line under the picture.
        objective: `"clm"` leaves out what a causal model can't see.
        key: of the component.
        selected: (layer, head) chosen at first.
        first: position of the first token, for that line too.
        windows: (L,) how many tokens a query sees, itself among them; 0: all before it. () is 0 everywhere.
        packed: what `pack` made of these weights before, so that it need not be done again.
        bright: whether colours go by the square root, so that small weights show.
    """
    n_layer, n_head, n, _ = np.shape(attentions)
    causal = objective == "clm"
    layer, head = current(key, selected)
    start = {"layer": selected[0], "head": selected[1]}
    data = {
        "weights": pack(attentions, causal=causal) if packed is None else packed,
        "shape": [n_layer, n_head, n],
        "causal": causal,
        "windows": list(windows),
        "tokens": list(tokens),
        "first": first,
        "words": say.table("words"),
        "colors": list(PROBABILITY_COLORS),
        "stops": [place for place, _ in probability_scale(bright)],
        **told(key, start, valid=layer < n_layer and head < n_head),
    }
    _COMPONENT(key=key, data=data, on_selected_change=lambda: None)
    chosen: tuple[int, int] = current(key, selected)
    return chosen
