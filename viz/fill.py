"""Filled blanks: what each way put where, and how often each is right."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import clip, escape, format_number, format_prob
from viz.theme import (
    BESIDE_BAR,
    MONO,
    TRUE,
    cell_texts,
    color_bar,
    finish,
    frame_cells,
    objective_color,
    probability_cells,
)
from wording import words

say = words("viz.fill")

_CELL = 7  # characters in a cell: four columns fit a telephone


@kept
def fill_grid(
    places: Sequence[int],
    hidden: Sequence[str],
    ways: Sequence[str],
    tokens: Sequence[Sequence[str]],
    probs: ArrayLike,
    right: Sequence[Sequence[bool]],
) -> go.Figure:
    """Rows are the blanks, columns the ways of filling; colour is the probability when it was filled.

    Args:
        places: (K,) positions of the blanks.
        hidden: (K,) visible texts of what is hidden; "?" where nobody knows.
        ways: (W,) names of the ways; a line break stays one.
        tokens: (K,W) visible texts of the fillers; not escaped.
        probs: (K,W) their probabilities.
        right: (K,W) whether the filler is the hidden token: such a cell is framed.
    """
    z = np.asarray(probs, np.float32).reshape(len(places), len(ways))
    hover = [
        [
            say(
                "cell",
                place=place,
                hidden=escape(true),
                way=escape(_plain(way)),
                text=escape(text),
                p=float(p),
            )
            + (f"<br>{say('is_hidden_token')}" if ok else "")
            for way, text, p, ok in zip(ways, tokens[k], z[k], right[k], strict=True)
        ]
        for k, (place, true) in enumerate(zip(places, hidden, strict=True))
    ]
    bar = color_bar(say("probability_when_filled")) | {"tickvals": [0, 0.5, 1]}
    fig = go.Figure(probability_cells(z, hover, key=bar, gap=5))
    fig.add_trace(cell_texts([[escape(clip(text, _CELL)) for text in row] for row in tokens], z))
    for k, row in enumerate(right):
        for w, ok in enumerate(row):
            if ok:
                frame_cells(fig, (w, w), (k, k), TRUE)
    put_xaxes(
        fig,
        tickvals=list(range(len(ways))),
        ticktext=[escape(way).replace("\n", "<br>") for way in ways],
        tickangle=0,
        side="top",
        range=[-0.55, len(ways) - 0.45],
        showgrid=False,
    )
    put_yaxes(
        fig,
        title_text=say("blank"),
        tickvals=list(range(len(places))),
        ticktext=[escape(f"{place} {clip(true, 8)}") for place, true in zip(places, hidden, strict=True)],
        tickfont_family=MONO,
        range=[len(places) - 0.45, -0.55],
        showgrid=False,
    )
    counts = ", ".join(f"{_plain(way)} {sum(row[w] for row in right)}" for w, way in enumerate(ways))
    alt = say("blanks_filled", n=len(places), ways=len(ways), counts=counts)
    return finish(fig, height=max(len(places), 2) * 34 + 150, alt=alt)


def _plain(way: str) -> str:
    return way.replace("\n", " ")


@kept
def right_shares(
    ways: Sequence[str],
    objectives: Sequence[str],
    right: ArrayLike,
    possible: ArrayLike,
    *,
    best: float | None = None,
) -> go.Figure:
    """How often each way is right, with intervals: a disc for tokens, an open square for whole texts.

    Args:
        ways: (W,) names, top to bottom.
        objectives: (W,) "clm", "mlm" or "" for the exact answer: gives the colour.
        right: (W,3) share of right tokens, and the ends of its interval.
        possible: (W,3) the same of texts that can be.
        best: the share of tokens that nobody can beat on average, drawn as a line.
    """
    fig = go.Figure()
    colors = [objective_color(kind) if kind else TRUE for kind in objectives]
    kinds = (
        (say("tokens_right"), right, "circle", -0.16),
        (say("whole_text_possible"), possible, "square-open", 0.16),
    )
    for name, values, symbol, shift in kinds:
        share, low, high = np.asarray(values, np.float64).reshape(len(ways), 3).T
        for w, color in enumerate(colors):
            ends = float(share[w]), float(low[w]), float(high[w])
            fig.add_trace(_mark(ways[w], name, ends, w + shift, symbol, color, first=w == 0))
    if best is not None:
        fig.add_vline(x=best, line={"color": TRUE, "width": 2, "dash": "dash"})
        fig.add_annotation(
            x=best, y=1, yref="paper", yanchor="bottom", xanchor="right",
            text=say("best_possible", share=format_number(best)), showarrow=False,
        )  # fmt: skip
    put_yaxes(
        fig,
        tickvals=list(range(len(ways))),
        ticktext=[escape(way).replace("\n", "<br>") for way in ways],
        range=[len(ways) - 0.5, -0.5],
        showgrid=False,
    )
    put_xaxes(
        fig, title_text=say("share_with_interval"), range=[-0.02, 1.04], tickvals=[0, 0.25, 0.5, 0.75, 1]
    )
    shares = np.asarray(right, np.float64).reshape(len(ways), 3)[:, 0]
    told = ", ".join(f"{_plain(way)} {format_prob(float(s))}" for way, s in zip(ways, shares, strict=True))
    legend = {"orientation": "h", "y": -0.16, "yanchor": "top", "x": 0}
    return finish(
        fig,
        height=len(ways) * 46 + 120,
        alt=say("shares_of_right", shares=told),
        legend=legend,
        margin={"l": 8, "r": 8, "t": 28, "b": 8},
    )


def _mark(
    way: str, name: str, ends: tuple[float, float, float], y: float, symbol: str, color: str, *, first: bool
) -> go.Scatter:
    """One share and its interval; the legend has each kind once, in the colour of text."""
    share, low, high = ends
    marker: dict[str, Any] = {"color": color, "symbol": symbol, "size": 11, "line_width": 2}
    said = say("mark", way=escape(_plain(way)), name=name, share=share, low=low, high=high)
    return go.Scatter(
        x=[share],
        y=[y],
        name=name,
        legendgroup=name,
        showlegend=first,
        mode="markers",
        marker=marker,
        error_x={"type": "data", "symmetric": False, "array": [high - share], "arrayminus": [share - low],
                 "color": color, "thickness": 2, "width": 4},
        customdata=[said],
        hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip


@kept
def gibbs_shares(
    labels: Sequence[str], drawn: ArrayLike, n: int, *, exact: ArrayLike | None = None
) -> go.Figure:
    """How often each token was drawn in one place, beside the share that it should have.

    Args:
        labels: (M,) visible texts of the tokens, the most drawn first; not escaped.
        drawn: (M,) shares of the draws.
        n: how many draws these are.
        exact: (M,) the exact posterior, if it is known.
    """
    fig = go.Figure()
    rows: list[tuple[str, Any, str, str]] = [(say("drawn", n=n), drawn, objective_color("mlm"), "")]
    if exact is not None:
        rows.append((say("exact_posterior"), exact, TRUE, "/"))
    for name, values, color, shape in rows:
        v = np.asarray(values, np.float64)
        fig.add_trace(
            go.Bar(
                y=np.arange(len(v), dtype=np.int32),
                x=v.astype(np.float32),
                orientation="h",
                name=name,
                marker={"color": color, "pattern": {"shape": shape, "size": 5, "solidity": 0.5}},
                text=[format_prob(x) for x in v],
                customdata=[
                    f"{escape(label)}<br>{name}: {x:.6g}" for label, x in zip(labels, v, strict=True)
                ],
                hovertemplate="%{customdata}<extra></extra>",
                **BESIDE_BAR,
            )
        )
    put_yaxes(
        fig,
        tickvals=list(range(len(labels))), ticktext=[escape(clip(label, 14)) for label in labels],
        tickfont_family=MONO, range=[len(labels) - 0.5, -0.5], showgrid=False,
    )  # fmt: skip
    put_xaxes(fig, title_text=say("share"), range=[0, 1.25], tickvals=[0, 0.5, 1])
    told = ", ".join(
        f"{label} {format_prob(float(x))}" for label, x in zip(labels, np.asarray(drawn), strict=True)
    )
    legend = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"}
    return finish(
        fig,
        height=len(labels) * 26 * len(rows) + 92,
        alt=say("drawn_in_one_place", n=n, shares=told),
        barmode="group",
        showlegend=True,
        legend=legend,
    )
