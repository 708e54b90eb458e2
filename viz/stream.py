"""The residual stream at one position: how long it is, and what each block added."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import escape, format_number
from viz.theme import (
    MODEL,
    NEUTRAL,
    TRUE,
    finish,
)
from wording import words

say = words("viz.stream")
_NAMES = 11  # layers that are named on the axis; more would stand upright


@kept
def stream_lengths(
    layers: Sequence[str], lengths: ArrayLike, attention: ArrayLike, mlp: ArrayLike, *, chosen: int
) -> go.Figure:
    """At one position: how long the stream is after each layer, and how long what each block added.

    Args:
        layers: (L+1,) names; the first is the embedding.
        lengths: (L+1,) of the stream (L2 norm).
        attention: (L,) of what each block's attention added.
        mlp: (L,) of what its MLP added.
        chosen: the layer that is looked at, marked on its axis.
    """
    places = np.arange(len(layers), dtype=np.int32)
    fig = go.Figure()
    for name, values, look in (
        (say("attention"), attention, {"color": TRUE}),
        (say("mlp"), mlp, {"color": MODEL, "pattern": {"shape": "/", "size": 5, "solidity": 0.5}}),
    ):
        fig.add_trace(
            go.Bar(
                x=places[1:],
                y=np.asarray(values, dtype=np.float32),
                name=name,
                marker=look,
                hovertemplate="%{x}<br>" + name + ": %{y:.6g}<extra></extra>",
            )
        )
    fig.add_trace(
        go.Scatter(
            x=places,
            y=np.asarray(lengths, dtype=np.float32),
            mode="lines+markers",
            name=say("after"),
            line={"color": NEUTRAL, "width": 2},
            marker={"size": 8},
            hovertemplate="%{x}<br>" + say("hover") + ": %{y:.6g}<extra></extra>",
        )
    )
    apart = -(-len(layers) // _NAMES)
    named = [
        i for i in range(len(layers)) if i == chosen or (i % apart == 0 and abs(i - chosen) >= apart / 2)
    ]
    names = [f"<b>{escape(layers[i])}</b>" if i == chosen else escape(layers[i]) for i in named]
    put_xaxes(fig, tickvals=named, ticktext=names, title_text=say("block"), showgrid=False)
    put_yaxes(fig, title_text=say("length"), rangemode="tozero")
    ends = np.asarray(lengths, dtype=np.float64)
    alt = say("alt", first=format_number(ends[0]), last=format_number(ends[-1]))
    return finish(
        fig,
        height=300,
        alt=alt,
        barmode="group",
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
    )
