"""Runs side by side: their curves, with bands over seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.curves import RUN_LOOKS, Reference, finite_or_gap, reference_line, round_ticks, thin
from viz.put import put_xaxes, put_yaxes
from viz.text import clip, escape, format_number, format_tick
from viz.theme import finish, rgb
from wording import words

say = words("viz.runs")

MOST_POINTS = 800  # of a line
HEIGHT = 410


@dataclass(frozen=True, eq=False)
class RunLine:
    """A run, or several of one kind together.

    Attributes:
        name: in the key; any characters.
        x, y: (N,) rising places and values, NaN or infinite where there is none.
        look: which of the looks, counted from 0; they repeat after the last.
        low, high: (N,) of a band around the line, or None.
        letter: written at the line's end.
        note: what the pointer says of the band, such as "5 seeds".
        faint: drawn thin and without a name: one run of a group.
    """

    name: str
    x: ArrayLike
    y: ArrayLike
    look: int
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    letter: str = ""
    note: str = ""
    faint: bool = False


def run_curves(
    lines: Sequence[RunLine],
    *,
    x_title: str,
    y_title: str,
    unit: str,
    floor: float | None = None,
    log_x: bool = False,
    log_y: bool = False,
    close_up: bool = False,
) -> go.Figure:
    """Several runs on the same axes, each with its letter at its end and its name in the key.

    Args:
        lines: as many as there are looks can be told apart.
        x_title: with its unit.
        y_title: with its unit.
        unit: of the values, for the pointer.
        floor: a horizontal line that no model can get below, or None.
        log_x: a logarithmic axis; what is not above 0 can't be drawn there.
        log_y: likewise.
        close_up: the upright axis holds what comes after the first quarter of each line; the rest is cut off.
    """
    fig = go.Figure()
    drawn = [_visible(line, log_x, log_y) for line in lines]
    for line, (x, y, low, high) in zip(lines, drawn, strict=True):
        if low is not None and high is not None:
            fig.add_trace(_band(x, low, high, line.look))
        fig.add_trace(_line(line, x, y, low, high, unit))
    shown = [_late(points) if close_up else points for points in drawn]
    bottom, top = _span([v for _, *values in shown for v in values if v is not None], floor, log_y)
    put_yaxes(fig, title_text=y_title, range=[bottom, top], type="log" if log_y else "linear")
    if log_y:
        put_yaxes(fig, **_log_ticks(10**bottom, 10**top))
    _x_axis(fig, x_title, [x for x, *_ in drawn], log_x)
    if floor is not None and (floor > 0 or not log_y):
        reference_line(fig, Reference(floor, say("floor"), "floor"), log_y)
    _letters(fig, lines, drawn, (bottom, top), (log_x, log_y))
    said = " ".join(
        _ending(line, y) for line, (_, y, _, _) in zip(lines, drawn, strict=True) if not line.faint
    )
    return finish(
        fig,
        height=HEIGHT,
        alt=f"{say('alt', y_title=y_title, x_title=x_title)} {said}".strip(),
        margin={"l": 8, "r": 34, "t": 8, "b": 8},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "itemwidth": 40},
        showlegend=True,
        hovermode="closest",
    )


Points = tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]


def _visible(line: RunLine, log_x: bool, log_y: bool) -> Points:
    """The points of a line that are drawn: thinned together with its band."""
    x = np.asarray(line.x, np.float64)
    rows = [None if v is None else np.asarray(v, np.float64) for v in (line.y, line.low, line.high)]
    keep = np.isfinite(x) & (x > 0 if log_x else True)
    x, rows = x[keep], [None if row is None else row[keep] for row in rows]
    if len(x) > MOST_POINTS:
        each = MOST_POINTS // sum(row is not None for row in rows)
        at = np.unique(np.concatenate([thin(np.arange(len(x)), r, each)[0] for r in rows if r is not None]))
        x, rows = x[at], [None if row is None else row[at] for row in rows]
    y, low, high = (None if row is None else _gaps(row, log_y) for row in rows)
    assert y is not None
    return x, y, low, high


def _late(points: Points) -> Points:
    """What comes after the first quarter of a line."""
    x, y, low, high = points
    keep = x >= x[0] + (x[-1] - x[0]) / 4 if len(x) else np.zeros(0, bool)
    return x[keep], y[keep], None if low is None else low[keep], None if high is None else high[keep]


def _gaps(values: np.ndarray, log_y: bool) -> np.ndarray:
    return finite_or_gap(np.where(values > 0, values, np.nan) if log_y else values)


def _band(x: np.ndarray, low: np.ndarray, high: np.ndarray, look: int) -> go.Scatter:
    """The area between two lines; a closed outline for each part between gaps."""
    good = np.isfinite(low) & np.isfinite(high)
    parts = np.split(np.arange(len(x)), np.flatnonzero(np.diff(good.astype(int))) + 1)
    xs: list[float | None] = []
    ys: list[float | None] = []
    for part in parts:
        if len(part) and good[part[0]]:
            xs += [*x[part].tolist(), *x[part][::-1].tolist(), None]
            ys += [*high[part].tolist(), *low[part][::-1].tolist(), None]
    r, g, b = rgb(RUN_LOOKS[look % len(RUN_LOOKS)][0])
    return go.Scatter(
        x=xs, y=ys, mode="lines", fill="toself", fillcolor=f"rgba({r}, {g}, {b}, 0.22)", line={"width": 0},
        hoverinfo="skip", showlegend=False, name="band",
    )  # fmt: skip


def _line(
    line: RunLine, x: np.ndarray, y: np.ndarray, low: np.ndarray | None, high: np.ndarray | None, unit: str
) -> go.Scatter:
    color, dash = RUN_LOOKS[line.look % len(RUN_LOOKS)]
    said = [f"{v:.6g} {unit}" for v in y]
    if low is not None and high is not None:
        said = [
            f"{text}<br>" + say("band", note=escape(line.note), low=a, high=b)
            for text, a, b in zip(said, low, high, strict=True)
        ]
    alone = int(np.isfinite(y).sum()) < 2
    return go.Scatter(
        x=x,
        y=y,
        name=escape(clip(line.name, 32)),
        mode="lines+markers" if alone else "lines",
        connectgaps=False,
        opacity=0.6 if line.faint else 1.0,
        showlegend=not line.faint,
        line={"color": color, "width": 1.2 if line.faint else 2.5, "dash": dash},
        customdata=said,
        hovertemplate=say("hover", name=escape(line.name)) + "<extra></extra>",
    )


def _span(rows: Sequence[np.ndarray], floor: float | None, log_y: bool) -> tuple[float, float]:
    """Range of the upright axis: in powers of ten if it is logarithmic."""
    extra = [] if floor is None or (log_y and floor <= 0) else [np.array([floor])]
    seen = np.concatenate([np.zeros(0), *rows, *extra])
    good = seen[np.isfinite(seen)]
    if not len(good):
        return 0.0, 1.0
    low, high = float(good.min()), float(good.max())
    if log_y:
        low, high = math.log10(low), math.log10(high)
    pad = 0.07 * (high - low) or 0.1
    return low - pad, high + pad


def _log_ticks(low: float, high: float) -> dict[str, Any]:
    ticks = round_ticks(low, high)
    return {"tickvals": ticks, "ticktext": [format_tick(v) for v in ticks]}


def _x_axis(fig: go.Figure, title: str, rows: Sequence[np.ndarray], log_x: bool) -> None:
    ends = [float(x[-1]) for x in rows if len(x)]
    begins = [float(x[0]) for x in rows if len(x)]
    low, high = min(begins, default=0.0), max(ends, default=1.0)
    if high <= low:
        high = low + 1
    put_xaxes(fig, title_text=title, range=[low, high], separatethousands=True)
    if log_x:
        low = max(low, 1e-6)
        put_xaxes(fig, type="log", range=[math.log10(low), math.log10(high)], **_log_ticks(low, high))


def _letters(
    fig: go.Figure,
    lines: Sequence[RunLine],
    drawn: Sequence[Points],
    span: tuple[float, float],
    log: tuple[bool, bool],
) -> None:
    """A letter for each line: over its end, or beside the picture as near to it as the others let it."""
    (bottom, top), (log_x, log_y) = span, log
    right = max((x[-1] for x, *_ in drawn if len(x)), default=0.0)
    beside: list[tuple[float, RunLine]] = []
    for line, (x, y, _, _) in zip(lines, drawn, strict=True):
        good = np.flatnonzero(np.isfinite(y))
        if not len(good) or line.faint:
            continue
        at, value = float(x[good[-1]]), float(y[good[-1]])
        height = math.log10(value) if log_y else value
        if at < 0.97 * right and bottom <= height <= top:
            fig.add_annotation(
                x=math.log10(at) if log_x else at, y=height, text=f"<b>{escape(line.letter)}</b>",
                yshift=9, showarrow=False,
            )  # fmt: skip
        else:
            beside.append(((height - bottom) / (top - bottom), line))
    beside.sort(key=lambda end: end[0])
    heights = spaced([min(max(height, 0.0), 1.0) for height, _ in beside], 17 / (HEIGHT - 90))
    for height, (_, line) in zip(heights, beside, strict=True):
        color = RUN_LOOKS[line.look % len(RUN_LOOKS)][0]
        fig.add_annotation(
            x=1, xref="x domain", xanchor="left", xshift=3, y=height, yref="y domain", yanchor="middle",
            text=f'<span style="color:{color}">■</span><b>{escape(line.letter)}</b>', showarrow=False,
        )  # fmt: skip


def spaced(heights: Sequence[float], least: float) -> list[float]:
    """Rising heights between 0 and 1, moved as little as it takes to be `least` apart.

    Example:
        >>> [round(h, 2) for h in spaced([0.2, 0.22, 0.9], 0.1)]
        [0.16, 0.26, 0.9]
    """
    groups: list[list[float]] = []  # middle, number
    for height in heights:
        groups.append([height, 1.0])
        while len(groups) > 1 and groups[-1][0] - groups[-2][0] < least * (groups[-1][1] + groups[-2][1]) / 2:
            (a, n), (b, m) = groups[-2], groups[-1]
            groups[-2:] = [[(a * n + b * m) / (n + m), n + m]]
    placed = [middle + least * (i - (n - 1) / 2) for middle, n in groups for i in range(int(n))]
    above, below = max(0.0, max(placed, default=0) - 1), max(0.0, -min(placed, default=0))
    return [h - above + below for h in placed]


def _ending(line: RunLine, y: np.ndarray) -> str:
    good = y[np.isfinite(y)]
    return say("ends", name=line.name, value=format_number(float(good[-1]))) if len(good) else ""
