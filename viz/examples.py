"""Pictures of the worked examples: numbers in cells, windows in a text, a curve with a point on it."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.kept import kept
from viz.put import put, put_xaxes, put_yaxes
from viz.text import clip, escape, format_number
from viz.theme import (
    DIVERGING_COLORS,
    DIVERGING_SCALE,
    FONT_SIZE,
    INK,
    MODEL,
    MONO,
    NEUTRAL,
    TRUE,
    cell_texts,
    finish,
    frame_cells,
    sample_scale,
)
from wording import words

say = words("viz.examples")
_CELL = 40  # pixels of a row
_FLOAT32 = 3e38  # larger numbers can't be sent as float32
_WIDEST = 24  # columns of windows that get their numbers


@kept
def number_grid(
    values: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    alt: str,
    row: int | None = None,
    cells: Sequence[tuple[int, int]] = (),
    x_title: str = "",
    y_title: str = "",
) -> go.Figure:
    """A matrix with its numbers in its cells, coloured from below 0 to above 0.

    Args:
        values: (R,K); NaN and infinite ones stay without colour.
        rows: (R,) labels, top to bottom; not escaped.
        columns: (K,) labels; not escaped.
        alt: one sentence for those who can't see it.
        row: a row to frame.
        cells: cells (row, column) to frame.
        x_title: of the columns.
        y_title: of the rows.
    """
    z = np.asarray(values, np.float64)
    finite = np.where(np.isfinite(z), z, np.nan)
    largest = float(np.nanmax(np.abs(finite), initial=0.0)) or 1.0
    fig = go.Figure(
        go.Heatmap(
            z=np.clip(finite, -_FLOAT32, _FLOAT32).astype(np.float32), zmin=-largest, zmax=largest,
            x=np.arange(z.shape[1], dtype=np.int32), y=np.arange(z.shape[0], dtype=np.int32),
            colorscale=DIVERGING_SCALE, showscale=False, xgap=2, ygap=2, hoverinfo="skip",
        )
    )  # fmt: skip

    def color_of(value: float) -> str:
        return sample_scale(DIVERGING_COLORS, (value / largest + 1) / 2)

    shown = [[format_number(x) if np.isfinite(x) else "" for x in line] for line in z.tolist()]
    fig.add_trace(cell_texts(shown, np.nan_to_num(finite), color_of))
    frames = [(row, row, 0, z.shape[1] - 1)] if row is not None else []
    for top, bottom, left, right in [*frames, *((r, r, c, c) for r, c in cells)]:
        frame_cells(fig, (left, right), (top, bottom), TRUE)
    _labels(fig, rows, columns, x_title, y_title)
    return finish(fig, height=len(rows) * _CELL + 96, alt=alt)


def _labels(
    fig: go.Figure, rows: Sequence[str], columns: Sequence[str], x_title: str = "", y_title: str = ""
) -> None:
    put_xaxes(
        fig,
        tickvals=list(range(len(columns))), ticktext=[escape(clip(name, 12)) for name in columns],
        tickfont_family=MONO, side="top", showgrid=False, range=[-0.5, len(columns) - 0.5],
        title_text=escape(x_title),
    )  # fmt: skip
    put_yaxes(
        fig,
        tickvals=list(range(len(rows))), ticktext=[escape(clip(name, 14)) for name in rows],
        tickfont_family=MONO, showgrid=False, range=[len(rows) - 0.5, -0.5], title_text=escape(y_title),
    )  # fmt: skip


@kept
def window_map(ids: Sequence[str], starts: Sequence[int], length: int, *, last_start: int) -> go.Figure:
    """Windows on a text: a row for each, its inputs filled, its last target hatched.

    Args:
        ids: (N,) labels of the text's tokens; not escaped.
        starts: (B,) where the windows begin.
        length: T, inputs of a window; one more cell is its last target.
        last_start: the last place where a window may begin.
    """
    n, b = len(ids), len(starts)
    fig = go.Figure()
    for name, first, count, pattern in (("inputs", 0, length, ""), ("last_target", length, 1, "/")):
        fig.add_trace(
            go.Bar(
                base=[start + first - 0.46 for start in starts], x=[count - 0.08] * b,
                y=np.arange(b, dtype=np.int32), orientation="h", width=0.7,
                name=escape(say(f"window.{name}")),
                marker={"color": MODEL if not pattern else TRUE, "pattern": {"shape": pattern, "size": 5}},
                customdata=[[start + first] for start in starts],
                hovertemplate=escape(say(f"window.{name}")) + ": %{customdata[0]}<extra></extra>",
            )
        )  # fmt: skip
    fig.add_vline(x=last_start + 0.5, line={"color": NEUTRAL, "dash": "dot", "width": 2})
    step = max(1, -(-n // _WIDEST))
    put_xaxes(
        fig,
        tickvals=list(range(0, n, step)), ticktext=[escape(clip(ids[i], 6)) for i in range(0, n, step)],
        tickfont_family=MONO, range=[-0.6, n - 0.4], showgrid=False, title_text=escape(say("window.x")),
        tickangle=0 if max(map(len, ids), default=0) < 4 else -60,
    )  # fmt: skip
    put_yaxes(
        fig,
        tickvals=list(range(b)),
        ticktext=[escape(say("window.row", b=i, start=s)) for i, s in enumerate(starts)],
        range=[b - 0.5, -0.5], showgrid=False,
    )  # fmt: skip
    alt = say("window.alt", b=b, n=n, length=length, starts=", ".join(map(str, starts)))
    return finish(
        fig, height=b * 30 + 110, alt=alt, barmode="overlay",
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
    )  # fmt: skip


@kept
def curve_with_point(
    x: ArrayLike,
    y: ArrayLike,
    point: tuple[float, float],
    *,
    x_title: str,
    y_title: str,
    point_name: str,
    alt: str,
    log_x: bool = False,
    log_y: bool = False,
    level: tuple[float, str] | None = None,
    second: tuple[float, float, str] | None = None,
) -> go.Figure:
    """A curve and the place on it that the numbers stand for.

    Args:
        x: (K,) rising.
        y: (K,).
        point: today's place.
        x_title: with its unit.
        y_title: with its unit.
        point_name: written beside the point.
        alt: one sentence for those who can't see it.
        log_x: logarithmic axis.
        log_y: logarithmic axis.
        level: a height to mark, and its name.
        second: another place, and its name.
    """
    fig = go.Figure(
        go.Scatter(x=np.asarray(x, np.float64), y=np.asarray(y, np.float64), mode="lines",
                   line={"color": MODEL, "width": 2.5}, showlegend=False,
                   hovertemplate="%{x:.4g} · %{y:.4g}<extra></extra>")
    )  # fmt: skip
    marks = [(*point, point_name, TRUE, "circle", "top center")]
    marks += [(*second, NEUTRAL, "diamond", "bottom center")] if second else []
    for at_x, at_y, name, color, symbol, place in marks:
        fig.add_trace(
            go.Scatter(
                x=[at_x], y=[at_y], mode="markers+text",
                marker={"size": 12, "color": color, "symbol": symbol},
                text=[escape(name)], textposition=place, textfont={"size": FONT_SIZE, "color": INK},
                name=escape(name), showlegend=False, cliponaxis=False,
                hovertemplate="%{x:.4g} · %{y:.4g}<extra></extra>",
            )
        )  # fmt: skip
    if level is not None:
        fig.add_hline(y=level[0], line={"color": NEUTRAL, "dash": "dash", "width": 1.5})
        fig.add_annotation(
            x=0, xref="paper", xanchor="left", y=np.log10(level[0]) if log_y else level[0], yanchor="top",
            text=escape(level[1]), showarrow=False,
        )  # fmt: skip
    power = {"exponentformat": "power", "dtick": 1}
    put_xaxes(fig, title_text=escape(x_title), **({"type": "log", **power} if log_x else {}))
    put_yaxes(
        fig, title_text=escape(y_title), **({"type": "log", "exponentformat": "power"} if log_y else {})
    )
    fig = finish(fig, height=330, alt=alt)
    put(fig, margin={"t": 24, "r": 16})
    return fig


@kept
def power_bars(names: Sequence[str], exponents: Sequence[float], *, x_title: str, alt: str) -> go.Figure:
    """Numbers too unlike for one scale, by their powers of ten.

    Args:
        names: of the bars, top to bottom; not escaped.
        exponents: their logarithms to base 10.
        x_title: of the axis.
        alt: one sentence for those who can't see it.
    """
    n = len(names)
    fig = go.Figure(
        go.Bar(
            x=np.asarray(exponents, np.float64), y=np.arange(n, dtype=np.int32), orientation="h",
            marker={"color": [TRUE, MODEL][:n]}, text=[f"10<sup>{x:.1f}</sup>" for x in exponents],
            textposition="outside", cliponaxis=False, textfont={"size": FONT_SIZE + 1, "color": INK},
            hoverinfo="skip", showlegend=False,
        )
    )  # fmt: skip
    put_yaxes(
        fig,
        tickvals=list(range(n)), ticktext=[escape(name).replace("\n", "<br>") for name in names],
        range=[n - 0.5, -0.5], showgrid=False,
    )  # fmt: skip
    put_xaxes(fig, title_text=escape(x_title), range=[0, max(*exponents, 1.0) * 1.25])
    return finish(fig, height=n * 64 + 70, alt=alt)
