"""Who guessed best: totals of all players in bits, and how they came about token by token."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import clip, escape, format_number
from viz.theme import BESIDE_BAR, MODEL, NEUTRAL, TRUE, finish
from wording import words

say = words("viz.guess")

YOU = "#158488"  # the person who plays
COLORS = {"you": YOU, "model": MODEL, "truth": TRUE}
DASHES = {
    "you": "solid", "model": "solid", "truth": "solid",
    "uniform": "dot", "unigram": "dash", "bigram": "dashdot", "trigram": "longdash",
}  # fmt: skip
MARKS = {"you": "diamond", "model": "circle", "truth": "square"}


@kept
def total_bars(kinds: Sequence[str], names: Sequence[str], totals: Sequence[float]) -> go.Figure:
    """Bits of all players so far, the best on top.

    Args:
        kinds: "you", "model", "truth" or a baseline: gives the colour.
        names: as they are shown.
        totals: bits.
    """
    y = np.arange(len(names), dtype=np.int32)
    fig = go.Figure(
        go.Bar(
            x=np.asarray(totals, np.float64),
            y=y,
            orientation="h",
            marker={"color": [COLORS.get(kind, NEUTRAL) for kind in kinds],
                    "pattern": {"shape": ["/" if kind == "you" else "" for kind in kinds]}},
            text=[format_number(x) for x in totals],
            customdata=[f"{escape(n)}: {x:.6g}" for n, x in zip(names, totals, strict=True)],
            hovertemplate="%{customdata}<extra></extra>",
            name=say("bits"),
            **BESIDE_BAR,
        )
    )  # fmt: skip
    top = max(totals, default=0.0) or 1.0
    put_xaxes(fig, title_text=say("total"), range=[0, 1.2 * top], nticks=5)
    put_yaxes(
        fig,
        tickvals=y,
        ticktext=[escape(name) for name in names],
        range=[len(names) - 0.5, -0.5],
        showgrid=False,
    )
    said = ", ".join(f"{name} {format_number(x)}" for name, x in zip(names, totals, strict=True))
    return finish(fig, height=70 + 34 * len(names), alt=say("total_alt", said=said))


@kept
def running_lines(
    kinds: Sequence[str], names: Sequence[str], costs: Sequence[Sequence[float]], tokens: Sequence[str]
) -> go.Figure:
    """Bits added up token by token, a line for each player.

    Args:
        kinds: as of `total_bars`.
        names: as they are shown.
        costs: of each player, bits for each token.
        tokens: that came.
    """
    x = np.arange(1, len(tokens) + 1, dtype=np.int32)
    fig = go.Figure()
    for kind, name, row in zip(kinds, names, costs, strict=True):
        sums = np.cumsum(row)
        fig.add_trace(
            go.Scatter(
                x=x,
                y=sums,
                mode="lines+markers",
                name=escape(name),
                line={"color": COLORS.get(kind, NEUTRAL), "dash": DASHES.get(kind, "solid"),
                      "width": 3 if kind in COLORS else 1.5},
                marker={"symbol": MARKS.get(kind, "circle-open"), "size": 8 if kind in COLORS else 5},
                customdata=[f"{escape(clip(t, 20))}: {c:.4g}, {s:.4g}"
                            for t, c, s in zip(tokens, row, sums, strict=True)],
                hovertemplate="%{customdata}<extra>%{fullData.name}</extra>",
            )
        )  # fmt: skip
    put_xaxes(
        fig,
        title_text=say("token"), tickvals=x, ticktext=[escape(clip(token, 8)) for token in tokens],
        range=[0.7, max(len(tokens), 2) + 0.3],
    )  # fmt: skip
    put_yaxes(fig, title_text=say("total"), rangemode="tozero")
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    return finish(fig, height=340, alt=say("lines_alt", n=len(tokens)), legend=legend)
