"""How a token's vector is found, how a position is added to it, and how rotary positions turn instead."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike
from plotly.subplots import make_subplots

from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import clip, escape, format_count, format_number
from viz.theme import (
    CAUSAL,
    DIVERGING_SCALE,
    FONT_SIZE,
    GRID,
    INK,
    MODEL,
    MONO,
    NEUTRAL,
    color_bar,
    finish,
)
from wording import words

say = words("viz.positions")


def _diverging(values: np.ndarray, *, bar: bool, reach: float = 1.0, **more: Any) -> go.Heatmap:
    """A heat map with 0 in the middle of its colours; the share `reach` of the cells lies within them."""
    most = float(np.quantile(np.abs(values), reach)) or float(np.abs(values).max()) or 1.0
    key = color_bar(say("value")) | {"tickvals": [-most, 0, most], "len": 0.5}
    key["ticktext"] = [format_number(-most, 2), "0", format_number(most, 2)]
    return go.Heatmap(
        z=values.astype(np.float32),
        zmin=-most,
        zmax=most,
        colorscale=DIVERGING_SCALE,
        showscale=bar,
        colorbar=key if bar else None,
        **more,
    )


def _frame(
    fig: go.Figure, x0: float, x1: float, y0: float, y1: float, color: str = CAUSAL, **where: int
) -> None:
    """A frame in a colour that no cell has: the text's colour would be lost on pale cells in the dark."""
    fig.add_shape(
        type="rect", x0=x0, x1=x1, y0=y0, y1=y1, line={"color": color, "width": 3}, layer="above", **where
    )  # fmt: skip


def _dimension_bars(values: np.ndarray, dim: int, name: str, color: str) -> go.Bar:
    colors = np.full(len(values), MODEL, dtype=object)
    colors[dim] = color
    return go.Bar(
        x=np.arange(len(values), dtype=np.int32),
        y=values.astype(np.float32),
        marker={"color": colors.tolist(), "line_width": 0},
        name=name,
        showlegend=False,
        hovertemplate=say("bar_hover"),
    )


@kept
def lookup_picture(
    row_ids: Sequence[int], row_names: Sequence[str], rows: ArrayLike, *, token_id: int, vocab_size: int,
    dim: int, color: str = CAUSAL,
) -> go.Figure:  # fmt: skip
    """One-hot vector, some rows of the embedding matrix, and the row that their product is.

    Args:
        row_ids: (R,) ids of the rows drawn, `token_id` among them.
        row_names: (R,) visible texts of those tokens; not escaped.
        rows: (R,C) their vectors.
        token_id: the one that is looked up.
        vocab_size: cells of the one-hot vector.
        dim: a dimension to set off.
        color: of what is set off.
    """
    values = np.asarray(rows, dtype=np.float32)
    at = list(row_ids).index(token_id)
    n_rows, width = values.shape
    high = 20 * n_rows
    fig = make_subplots(rows=3, cols=1)
    lit = np.zeros((1, vocab_size), dtype=np.uint8)
    lit[0, token_id] = 1
    fig.add_trace(
        go.Heatmap(z=lit, zmin=0, zmax=1, colorscale=[[0, GRID], [1, color]], showscale=False,
                   hovertemplate="id %{x}: %{z}<extra></extra>"), 1, 1)  # fmt: skip
    fig.add_trace(
        go.Scatter(x=[token_id], y=[0], mode="markers", hoverinfo="skip", showlegend=False, cliponaxis=False,
                   marker={"symbol": "line-ns-open", "size": 26, "color": color, "line_width": 3}),
        1, 1)  # fmt: skip
    fig.add_trace(
        _diverging(values, bar=False, reach=0.99, y=np.arange(n_rows, dtype=np.int32), ygap=1,
                   customdata=np.repeat([[escape(f"id {i} {clip(n, 20)}")] for i, n in
                                         zip(row_ids, row_names, strict=True)], width, axis=1),
                   hovertemplate="%{customdata}<br>" + say("cell_hover")),
        2, 1)  # fmt: skip
    _frame(fig, -0.5, width - 0.5, at - 0.5, at + 0.5, color, row=2, col=1)
    fig.add_trace(_dimension_bars(values[at], dim, say("row"), color), 3, 1)
    labels = [escape(f"{i} {clip(name, 9)}") for i, name in zip(row_ids, row_names, strict=True)]
    labels[at] = f"<b>{labels[at]}</b>"
    one_hot, matrix, bars = (1, 1), (2, 1), (3, 1)
    put_yaxes(fig, matrix, tickvals=list(range(n_rows)), ticktext=labels, tickfont_family=MONO, ticks="",
              range=[n_rows - 0.5, -0.5], showgrid=False)  # fmt: skip
    put_xaxes(fig, matrix, showticklabels=False, range=[-0.5, width - 0.5], showgrid=False)
    put_yaxes(fig, one_hot, tickvals=[0], ticktext=["one-hot"], range=[-0.5, 0.5], showgrid=False)
    put_xaxes(fig, one_hot, range=[-0.5, vocab_size - 0.5], showgrid=False,
              title_text=say("ids", last=format_count(vocab_size - 1)), nticks=6)  # fmt: skip
    put_xaxes(fig, bars, title_text=say("dimension"), range=[-0.5, width - 0.5])
    put_yaxes(fig, bars, title_text=say("value"), nticks=5)
    alt = say(
        "lookup",
        vocab_size=vocab_size,
        token_id=token_id,
        rows=n_rows,
        width=width,
        dim=dim,
        value=format_number(float(values[at, dim])),
    )
    whole = 26 + 62 + high + 14 + 130  # pixels: strip, its axis, matrix, gap, bars
    for axis, low, up in (("yaxis", whole - 26, whole), ("yaxis2", 144, 144 + high), ("yaxis3", 0, 130)):
        fig.layout[axis].domain = (low / whole, up / whole)
    return finish(fig, height=whole + 60, alt=alt, bargap=0.1)


@kept
def sum_picture(parts: Sequence[tuple[str, ArrayLike]], *, dim: int) -> go.Figure:
    """Vectors one under the other, the last one their sum, on one scale of colours.

    Args:
        parts: (name, (C,) numbers), top to bottom.
        dim: a dimension to frame.
    """
    values = np.stack([np.asarray(row, dtype=np.float32) for _, row in parts])
    n, width = values.shape
    fig = go.Figure(
        _diverging(values, bar=True, y=np.arange(n, dtype=np.int32), ygap=6,
                   hovertemplate=say("cell_hover"))
    )  # fmt: skip
    _frame(fig, dim - 0.5, dim + 0.5, -0.5, n - 0.5)
    names = [escape(name) for name, _ in parts]
    put_yaxes(fig, tickvals=list(range(n)), ticktext=names, range=[n - 0.5, -0.5], showgrid=False)
    put_xaxes(fig, title_text=say("dimension"), range=[-0.5, width - 0.5], showgrid=False, side="top")
    shown = ", ".join(
        f"{name} {format_number(float(row[dim]))}" for (name, _), row in zip(parts, values, strict=True)
    )
    alt = say("vectors", width=width, dim=dim, shown=shown)
    return finish(fig, height=44 * n + 120, alt=alt)


@kept
def position_table(values: ArrayLike, *, position: int, dim: int, name: str) -> go.Figure:
    """What belongs to each position: rows are positions from top to bottom, columns dimensions.

    Args:
        values: (T,C).
        position: a row to frame.
        dim: a column to frame.
        name: what the numbers are, for the alt text.
    """
    shown = np.asarray(values, dtype=np.float32)
    n, width = shown.shape
    fig = go.Figure(
        _diverging(shown, bar=True,
                   hovertemplate=say("position_hover"))
    )  # fmt: skip
    row, column = max(0.5, n / 70), max(0.5, width / 90)  # a closer frame would hide a thin row
    _frame(fig, -0.5, width - 0.5, position - row, position + row)
    _frame(fig, dim - column, dim + column, -0.5, n - 0.5)
    put_yaxes(fig, title_text=say("position"), range=[n - 0.5, -0.5], showgrid=False)
    put_xaxes(fig, title_text=say("dimension"), range=[-0.5, width - 0.5], showgrid=False, side="top")
    value = format_number(float(shown[position, dim]))
    alt = say("table", name=name, n=n, width=width, position=position, dim=dim, value=value)
    return finish(fig, height=440, alt=alt)


@kept
def rotation_plane(
    before: ArrayLike, after: ArrayLike, *, angle: float, pair: int, color: str = CAUSAL
) -> go.Figure:
    """Two numbers of a query as an arrow in the plane, before and after it is turned.

    Args:
        before: (2,) numbers 2j and 2j + 1.
        after: (2,).
        angle: radians from the one to the other, whole turns included.
        pair: j.
        color: of the angle.
    """
    old, new = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    radius = float(np.hypot(*old)) or 1.0
    begin = math.atan2(old[1], old[0])
    along = begin + np.linspace(0, min(angle, 2 * math.pi), 90)
    fig = go.Figure()
    fig.add_shape(
        type="circle", x0=-radius, x1=radius, y0=-radius, y1=radius, line={"color": GRID, "width": 1.5}
    )
    fig.add_trace(
        go.Scatter(x=0.4 * radius * np.cos(along), y=0.4 * radius * np.sin(along), mode="lines",
                   name=say("angle"), line={"color": color, "width": 2, "dash": "dot"}, hoverinfo="skip")
    )  # fmt: skip
    for name, end, color, dash in (
        (say("before"), old, NEUTRAL, "dash"),
        (say("after"), new, MODEL, "solid"),
    ):
        fig.add_trace(
            go.Scatter(
                x=[0.0, end[0]], y=[0.0, end[1]], mode="lines+markers+text", name=name,
                text=["", name], textposition="top center" if end[1] >= 0 else "bottom center",
                textfont={"size": FONT_SIZE, "color": INK}, cliponaxis=False,
                line={"color": color, "width": 3, "dash": dash},
                marker={"size": [0, 11], "symbol": "arrow", "angleref": "previous", "color": color},
                hovertemplate=f"{name}<br>(%{{x:.6g}}, %{{y:.6g}})<extra></extra>",
            )
        )  # fmt: skip
    reach = [-1.25 * radius, 1.25 * radius]
    put_xaxes(fig, title_text=say("number_of_q", i=2 * pair), range=reach, nticks=5, constrain="domain")
    put_yaxes(fig, title_text=say("number_of_q", i=2 * pair + 1), range=reach, nticks=5, scaleanchor="x",
                     constrain="domain")  # fmt: skip
    from_, to = (", ".join(map(format_number, end)) for end in (old, new))
    numbers = {"first": 2 * pair, "second": 2 * pair + 1}
    alt = say("turn", angle=format_number(angle), before=from_, after=to, **numbers)
    return finish(fig, height=400, alt=alt, showlegend=False)


@kept
def turn_lengths(speeds: ArrayLike, *, pair: int, context_length: int, color: str = CAUSAL) -> go.Figure:
    """How many positions each pair of numbers needs for one whole turn, on a log axis.

    Args:
        speeds: (D/2,) radians that each pair turns per position.
        pair: one to set off.
        context_length: drawn as a line: slower pairs never come round.
        color: of the pair that is set off.
    """
    lengths = 2 * math.pi / np.asarray(speeds, dtype=np.float64)
    colors = [color if j == pair else MODEL for j in range(len(lengths))]
    fig = go.Figure(
        go.Bar(
            x=np.arange(len(lengths), dtype=np.int32), y=lengths.astype(np.float32), marker_color=colors,
            hovertemplate=say("pair_hover"), showlegend=False,
        )
    )  # fmt: skip
    fig.add_hline(y=context_length, line={"color": INK, "width": 1.5, "dash": "dash"})
    fig.add_annotation(
        x=0, xref="paper", xanchor="left", y=math.log10(context_length), yanchor="bottom", showarrow=False,
        text=say("context", n=format_count(context_length)),
    )  # fmt: skip
    top = math.ceil(math.log10(max(float(lengths.max()), context_length)) + 0.1)
    powers = [10**i for i in range(top + 1)]
    put_yaxes(fig, type="log", title_text=say("turn_positions"), range=[0, top], tickvals=powers,
                     ticktext=[format_count(p) for p in powers])  # fmt: skip
    put_xaxes(fig, title_text=say("pair_j"), range=[-0.6, len(lengths) - 0.4])
    takes = format_number(float(lengths[pair]))
    alt = say("one_turn", pair=pair, positions=takes, context=format_count(context_length))
    return finish(fig, height=400, alt=alt)
