"""How long token vectors are: how many of a vocabulary have which length, and where some of them stand."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import clip, escape, format_count, format_number
from viz.theme import CAUSAL, FONT_SIZE, INK, MODEL, MONO, NEUTRAL, finish
from wording import words

say = words("viz.length_spread")
BINS = 60


@kept
def length_spread(
    norms: ArrayLike, names: Sequence[str], *, marked: Sequence[int] = (), chosen: int, color: str = CAUSAL
) -> go.Figure:
    """A histogram of the lengths of all vectors; below it a mark for some tokens, and a line for one.

    Args:
        norms: (V,) lengths.
        names: (V,) visible texts; not escaped.
        marked: ids that get a mark.
        chosen: the id with the line.
        color: of that line.
    """
    sizes = np.asarray(norms, dtype=np.float64)
    counts, edges = np.histogram(sizes, BINS)
    centres, width = (edges[:-1] + edges[1:]) / 2, float(edges[1] - edges[0])
    ends = [
        f"{format_number(low)} – {format_number(high)}" for low, high in zip(edges, edges[1:], strict=False)
    ]
    fig = go.Figure(
        go.Bar(
            x=centres.astype(np.float32),
            y=counts.astype(np.int32),
            width=width,
            marker={"color": NEUTRAL, "line": {"width": 0}},
            customdata=ends,
            hovertemplate=say("bar_hover"),
            name=say("tokens"),
        )
    )
    others, most = [i for i in marked if i != chosen], max(int(counts.max(initial=0)), 1)
    fig.add_trace(
        go.Scatter(
            x=sizes[others].astype(np.float32),
            y=np.full(len(others), -0.05 * most, dtype=np.float32),
            mode="markers",
            marker={"symbol": "line-ns", "size": 12, "line": {"width": 2, "color": MODEL}},
            customdata=[[escape(names[i]), f"{sizes[i]:.6g}"] for i in others],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}<extra></extra>",
            name=say("marked"),
        )
    )
    at, label = float(sizes[chosen]), escape(clip(names[chosen], 14))
    fig.add_shape(type="line", x0=at, x1=at, y0=0, y1=1.06 * most, line={"color": color, "width": 3})
    fig.add_annotation(
        x=at, y=1.06 * most, text=label, showarrow=False, yanchor="bottom",
        font={"family": MONO, "size": FONT_SIZE, "color": INK},
    )  # fmt: skip
    put_xaxes(fig, title_text=say("length"))
    put_yaxes(fig, title_text=say("how_many"), range=[-0.1 * most, 1.2 * most], rangemode="normal")
    alt = say(
        "alt", n=format_count(len(sizes)), low=format_number(float(sizes.min())),
        high=format_number(float(sizes.max())), name=names[chosen], length=format_number(at),
    )  # fmt: skip
    return finish(fig, height=430, alt=alt, showlegend=False, bargap=0)
