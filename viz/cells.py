"""Tables of coloured cells: rows and columns by place, a word or a number in each, and scales of colours."""

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import clip, escape, format_number
from viz.theme import (
    DIVERGING_COLORS,
    INK,
    MODEL,
    MONO,
    NEUTRAL,
    PROBABILITY_COLORS,
    SIZE_COLORS,
    TRUE,
    cell_points,
    cell_texts,
    color_bar,
    finish,
    frame_cells,
    frame_each,
    sample_scale,
)

_ROW = 26  # pixels for a row of a map or a bar
_THOUSANDS = 10_000  # from here on a cell counts in thousands: five digits run into the next cell
_LABELS = 200  # pixels that labels of rows and the column aside may take
_PHONE = 230  # pixels that a telephone has for all cells of a row
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


@kept
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
    width: int | None = None,
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
        width: pixels of the whole map; None is as wide as its place, on a telephone too, so that cells hold
            few letters. A map with a width scrolls where there is less room.
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
    letters = _letters(k + (aside is not None), _PHONE if width is None else width - _LABELS)
    words = [[escape(text if _is_number(text) else clip(text, letters)) for text in row] for row in texts]
    fig.add_trace(cell_texts(words, shown, colors.color))
    frame_each(fig, framed, TRUE, width=2)
    _mark(fig, chosen, k, color)
    if n * k <= MOST_PRESSED:
        fig.add_trace(cell_points(said))
    _table_axes(fig, rows, columns, aside, x_title, y_title, letters)
    return finish(
        fig, height=max(n, 3) * _ROW + 128, alt=alt, hovermode="closest", hoverdistance=-1, showlegend=False,
        width=width,
    )  # fmt: skip


def cell_numbers(values: ArrayLike) -> list[list[str]]:
    """Numbers short enough for cells, all with the same decimals: as many as the largest leaves room for.

    >>> cell_numbers([[0.694, -0.0042], [-0.12, float("nan")]])
    [['0.69', '0.00'], ['−0.12', '']]
    >>> cell_numbers([[22143.0, 730.4, 1049.6]])
    [['22k', '730', '1050']]
    """
    array = np.asarray(values, dtype=np.float64)
    finite = abs(array[np.isfinite(array)])
    most = float(finite.max()) if finite.size else 0.0
    power = math.floor(math.log10(most)) if most > 0 else 0
    decimals = max(0, 2 - power) if power > 0 else max(2, 1 - power)
    if decimals > 4:
        return [["" if np.isnan(v) else format_number(v, 1) for v in row] for row in array]

    def written(value: float) -> str:
        size = abs(value)
        text = f"{size / 1000:.0f}k" if size >= _THOUSANDS else f"{size:.{decimals}f}"
        return "" if np.isnan(value) else f"−{text}" if value < 0 and float(text) else text

    return [[written(float(v)) for v in row] for row in array]


def _letters(columns: int, room: int = _PHONE) -> int:
    """How many letters fit into a cell: a letter is 7.2 pixels wide.

    >>> [_letters(n) for n in (2, 6, 8, 14)]
    [6, 5, 3, 2]
    """
    return min(6, max(2, int(room / columns / 7.2)))


def _is_number(text: str) -> bool:
    """Whether a cell holds a number, which loses its sense when it is cut."""
    return text.removesuffix("k").replace("−", "").replace(".", "").replace(",", "").isdecimal()


def _key(unit: str, scale: Scale) -> dict[str, Any]:
    """The colour key below the picture, with the ends and the middle written out."""
    ticks = [scale.low, (scale.low + scale.high) / 2, scale.high]
    return {
        **color_bar(escape(unit)),
        "tickvals": ticks,
        "ticktext": [format_number(t, 2) for t in ticks],
    }


def _mark(fig: go.Figure, chosen: tuple[int | None, int | None], k: int, color: str) -> None:
    """Outline the row that is looked at thinly and the cell boldly."""
    row, column = chosen
    if row is None:
        return
    frame_cells(fig, (0, k - 1), (row, row), color, width=2)
    if column is not None:
        frame_cells(fig, (column, column), (row, row), color, width=4)


def _table_axes(
    fig: go.Figure,
    rows: Sequence[str],
    columns: Sequence[str],
    aside: tuple[str, Sequence[str]] | None,
    x_title: str,
    y_title: str,
    letters: int,
) -> None:
    """Labels by place, so that equal ones stay apart; the column at the side, if there is one."""
    heads = list(columns)
    if aside is not None:
        title, texts = aside
        fig.add_trace(
            go.Scatter(
                x=[len(columns)] * len(texts),
                y=list(range(len(texts))),
                text=[escape(clip(text, letters)) for text in texts],
                mode="text",
                textfont={"size": 12, "family": MONO, "color": INK},
                hoverinfo="skip",
                showlegend=False,
                name=title,
            )
        )
        heads.append(title)
    put_xaxes(
        fig,
        tickvals=list(range(len(heads))),
        ticktext=[escape(head) for head in heads],
        title_text=escape(x_title),
        side="top",
        range=[-0.5, len(heads) - 0.5],
        showgrid=False,
        ticks="",
    )
    put_yaxes(
        fig,
        tickvals=list(range(len(rows))),
        ticktext=[escape(clip(row, 10)) for row in rows],
        tickfont_family=MONO,
        title_text=escape(y_title),
        range=[len(rows) - 0.5, -0.5],
        showgrid=False,
        ticks="",
    )
