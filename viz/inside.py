"""The inside of one pass: maps of positions and layers, signed bars of what adds, lengths of the stream."""

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.text import clip, escape, format_number
from viz.theme import (
    DIVERGING_COLORS,
    FONT_SIZE,
    INK,
    MODEL,
    MONO,
    NEUTRAL,
    PROBABILITY_COLORS,
    SIZE_COLORS,
    TRUE,
    cell_points,
    cell_texts,
    finish,
    sample_scale,
)
from wording import words

say = words("viz.inside")

_ROW = 26  # pixels for a row of a map or a bar
MOST_PRESSED = 2000  # cells: so many can be pressed, more would be slow


class Scale(NamedTuple):
    """How values become colours: the two ends, and the colours between them.

    Attributes:
        low, high: values at the ends; others take the nearer end's colour.
        colors: evenly spaced.
    """

    low: float
    high: float
    colors: tuple[str, ...]

    def color(self, value: float) -> str:
        """The colour of a value, as `#RRGGBB`; not a number is the neutral colour."""
        if math.isnan(value):
            return NEUTRAL
        return sample_scale(self.colors, (value - self.low) / (self.high - self.low))


def scale_of(kind: str, values: ArrayLike) -> Scale:
    """The scale for values: "probability" 0 to 1, "signed" with 0 in the middle, "size" from 0 upwards."""
    if kind == "probability":
        return Scale(0.0, 1.0, PROBABILITY_COLORS)
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    most = float(abs(finite).max()) if finite.size and abs(finite).max() > 0 else 1.0
    return Scale(-most, most, DIVERGING_COLORS) if kind == "signed" else Scale(0.0, most, SIZE_COLORS)


def cell_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: ArrayLike,
    *,
    texts: Sequence[Sequence[str]],
    hover: Sequence[Sequence[str]],
    scale: str,
    unit: str,
    x_title: str,
    y_title: str,
    alt: str,
    chosen: tuple[int | None, int | None] = (None, None),
    framed: Collection[tuple[int, int]] = (),
    aside: tuple[str, Sequence[str]] | None = None,
    color: str = MODEL,
) -> go.Figure:
    """A table of coloured cells, row 0 on top, each with a word or a number in it; a cell can be pressed.

    Args:
        rows: labels from top to bottom, equal ones stay apart; not escaped.
        columns: labels from left to right; not escaped.
        values: (rows, columns) that colour the cells; NaN leaves a cell empty.
        texts: (rows, columns) what stands in them; not escaped.
        hover: (rows, columns) what is said of them; not escaped, a new line for each line.
        scale: "probability", "signed" or "size".
        unit: title of the colour key.
        x_title: of the columns.
        y_title: of the rows.
        alt: one sentence for those who can't see it.
        chosen: row and column that are looked at: the row is outlined, the cell boldly; None for none.
        framed: cells that came true.
        aside: title and texts of one more column at the right, without a colour.
        color: of the outlines.
    """
    shown = np.asarray(values, dtype=np.float32)
    n, k = len(rows), len(columns)
    colors = scale_of(scale, shown)
    said = [[escape(text).replace("\n", "<br>") for text in row] for row in hover]
    fig = go.Figure(
        go.Heatmap(
            z=shown,
            x=np.arange(k, dtype=np.int32),
            y=np.arange(n, dtype=np.int32),
            zmin=colors.low,
            zmax=colors.high,
            colorscale=[[i / (len(colors.colors) - 1), c] for i, c in enumerate(colors.colors)],
            xgap=2,
            ygap=2,
            customdata=said,
            hovertemplate="%{customdata}<extra></extra>",
            colorbar=_key(unit, colors),
        )
    )
    room = _letters(k + (aside is not None))
    words = [[escape(text if _is_number(text) else clip(text, room)) for text in row] for row in texts]
    fig.add_trace(cell_texts(words, shown, colors.color))
    for r, c in framed:
        _outline(fig, (c - 0.5, c + 0.5), (r - 0.5, r + 0.5), TRUE, 2)
    _mark(fig, chosen, k, color)
    if n * k <= MOST_PRESSED:
        fig.add_trace(cell_points(said))
    _table_axes(fig, rows, columns, aside, x_title, y_title)
    return finish(
        fig, height=max(n, 3) * _ROW + 128, alt=alt, hovermode="closest", hoverdistance=-1, showlegend=False
    )


def cell_numbers(values: ArrayLike) -> list[list[str]]:
    """Numbers short enough for cells, all with the same decimals: as many as the largest leaves room for.

    >>> cell_numbers([[0.694, -0.0042], [-0.12, float("nan")]])
    [['0.69', '0.00'], ['−0.12', '']]
    """
    array = np.asarray(values, dtype=np.float64)
    finite = abs(array[np.isfinite(array)])
    most = float(finite.max()) if finite.size else 0.0
    power = math.floor(math.log10(most)) if most > 0 else 0
    decimals = max(0, 2 - power) if power > 0 else max(2, 1 - power)
    if decimals > 4:
        return [["" if np.isnan(v) else format_number(v, 1) for v in row] for row in array]

    def written(value: float) -> str:
        text = f"{abs(value):.{decimals}f}"
        return "" if np.isnan(value) else f"−{text}" if value < 0 and float(text) else text

    return [[written(float(v)) for v in row] for row in array]


def _letters(columns: int) -> int:
    """How many letters fit into a cell: a letter is 7.2 pixels wide, and a telephone has 230 for all cells.

    >>> [_letters(n) for n in (2, 6, 8, 14)]
    [6, 5, 3, 2]
    """
    return min(6, max(2, int(230 / columns / 7.2)))


def _is_number(text: str) -> bool:
    """Whether a cell holds a number, which loses its sense when it is cut."""
    return text.replace("−", "").replace(".", "").replace(",", "").isdecimal()


def _key(unit: str, scale: Scale) -> dict[str, Any]:
    """The colour key below the picture, with the ends and the middle written out."""
    ticks = [scale.low, (scale.low + scale.high) / 2, scale.high]
    return {
        "title": {"text": escape(unit), "side": "top"},
        "orientation": "h",
        "x": 0.5,
        "y": 0,
        "yanchor": "top",
        "len": 0.7,
        "thickness": 10,
        "outlinewidth": 0,
        "tickvals": ticks,
        "ticktext": [format_number(t, 2) for t in ticks],
    }


def _outline(
    fig: go.Figure, x: tuple[float, float], y: tuple[float, float], color: str, width: float
) -> None:
    fig.add_shape(type="rect", x0=x[0], x1=x[1], y0=y[0], y1=y[1], line={"color": color, "width": width})


def _mark(fig: go.Figure, chosen: tuple[int | None, int | None], k: int, color: str) -> None:
    """Outline the row that is looked at thinly and the cell boldly."""
    row, column = chosen
    if row is None:
        return
    _outline(fig, (-0.5, k - 0.5), (row - 0.5, row + 0.5), color, 2)
    if column is not None:
        _outline(fig, (column - 0.5, column + 0.5), (row - 0.5, row + 0.5), color, 4)


def _table_axes(
    fig: go.Figure,
    rows: Sequence[str],
    columns: Sequence[str],
    aside: tuple[str, Sequence[str]] | None,
    x_title: str,
    y_title: str,
) -> None:
    """Labels by place, so that equal ones stay apart; the column at the side, if there is one."""
    heads = list(columns)
    if aside is not None:
        title, texts = aside
        fig.add_trace(
            go.Scatter(
                x=[len(columns)] * len(texts),
                y=list(range(len(texts))),
                text=[escape(clip(text, _letters(len(columns) + 1))) for text in texts],
                mode="text",
                textfont={"size": 12, "family": MONO, "color": INK},
                hoverinfo="skip",
                showlegend=False,
                name=title,
            )
        )
        heads.append(title)
    fig.update_xaxes(
        tickvals=list(range(len(heads))),
        ticktext=[escape(head) for head in heads],
        title_text=escape(x_title),
        side="top",
        range=[-0.5, len(heads) - 0.5],
        showgrid=False,
        ticks="",
    )
    fig.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=[escape(clip(row, 10)) for row in rows],
        tickfont_family=MONO,
        title_text=escape(y_title),
        range=[len(rows) - 0.5, -0.5],
        showgrid=False,
        ticks="",
    )


def signed_bars(
    labels: Sequence[str],
    values: ArrayLike,
    *,
    unit: str,
    alt: str,
    mono: bool = False,
    total: tuple[str, float] | None = None,
) -> go.Figure:
    """Bars to the left and to the right of 0, with their values; the first on top.

    Args:
        labels: (K,) of the bars; not escaped, equal ones stay apart.
        values: (K,) signed.
        unit: title of the value axis.
        alt: one sentence for those who can't see it.
        mono: whether the labels are tokens.
        total: name and value of one more bar, set apart: what all bars add up to.
    """
    numbers = np.asarray(values, dtype=np.float64)
    scale = scale_of("signed", numbers)
    rows, colors = list(labels), [_bar_color(scale, v) for v in numbers]
    if total is not None:
        rows, numbers, colors = [*rows, total[0]], np.append(numbers, total[1]), [*colors, NEUTRAL]
    fig = go.Figure(
        go.Bar(
            x=numbers.astype(np.float32),
            y=np.arange(len(rows), dtype=np.int32),
            orientation="h",
            marker={"color": colors},
            text=[_signed(float(v)) for v in numbers],
            textposition="outside",
            constraintext="none",
            cliponaxis=False,
            textangle=0,
            textfont={"size": FONT_SIZE, "color": INK},
            customdata=[
                [escape(label), repr(round(float(v), 9))] for label, v in zip(rows, numbers, strict=True)
            ],
            hovertemplate="%{customdata[0]}<br>" + escape(unit) + ": %{customdata[1]}<extra></extra>",
            name=unit,
        )
    )
    low, high = min(float(numbers.min(initial=0)), 0.0), max(float(numbers.max(initial=0)), 0.0)
    letters = max((len(text) for text in fig.data[0].text), default=0)
    room = (0.1 + 0.055 * letters) * max(high - low, 1e-9)  # for the numbers beside the bars
    fig.update_xaxes(
        title_text=escape(unit),
        range=[low - (room if low < 0 else 0.02 * room), high + (room if high > 0 else 0.02 * room)],
        nticks=5,
        exponentformat="power",
    )
    fig.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=[escape(clip(row, 18)) for row in rows],
        range=[len(rows) - 0.5, -0.5],
        showgrid=False,
    )
    if mono:
        fig.update_yaxes(tickfont_family=MONO)
    fig.add_shape(type="line", x0=0, x1=0, y0=-0.5, y1=len(rows) - 0.5, line={"color": NEUTRAL, "width": 1})
    if total is not None:
        y = len(rows) - 1.5
        edge = {"color": NEUTRAL, "width": 1, "dash": "dot"}
        fig.add_shape(type="line", xref="paper", x0=0, x1=1, y0=y, y1=y, line=edge)
    return finish(fig, height=len(rows) * _ROW + 62, alt=alt, showlegend=False)


def _bar_color(scale: Scale, value: float) -> str:
    """On the diverging scale, but never so near to its middle that a bar could not be seen."""
    share = value / scale.high
    strong = max(abs(share), 0.55)
    return scale.color((strong if share >= 0 else -strong) * scale.high)


def _signed(value: float) -> str:
    """A number with its sign: `+0.12`, `−1.5`."""
    text = format_number(value)
    return text if text.startswith("−") or value == 0 or np.isnan(value) else f"+{text}"


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
        (say("stream.attention"), attention, {"color": TRUE}),
        (say("stream.mlp"), mlp, {"color": MODEL, "pattern": {"shape": "/", "size": 5, "solidity": 0.5}}),
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
            name=say("stream.after"),
            line={"color": NEUTRAL, "width": 2},
            marker={"size": 8},
            hovertemplate="%{x}<br>" + say("stream.hover") + ": %{y:.6g}<extra></extra>",
        )
    )
    names = [f"<b>{escape(name)}</b>" if i == chosen else escape(name) for i, name in enumerate(layers)]
    fig.update_xaxes(tickvals=places, ticktext=names, title_text=say("stream.block"), showgrid=False)
    fig.update_yaxes(title_text=say("stream.length"), rangemode="tozero")
    ends = np.asarray(lengths, dtype=np.float64)
    alt = say("stream.alt", first=format_number(ends[0]), last=format_number(ends[-1]))
    return finish(
        fig,
        height=300,
        alt=alt,
        barmode="group",
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
    )
