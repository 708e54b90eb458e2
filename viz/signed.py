"""Bars to the left and to the right of 0: parts that add up, some of them against each other."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.cells import Scale, scale_of
from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import clip, escape, format_number
from viz.theme import (
    BESIDE_BAR,
    MONO,
    NEUTRAL,
    finish,
)

_ROW = 26  # pixels for a bar


@kept
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
            customdata=[
                [escape(label), repr(round(float(v), 9))] for label, v in zip(rows, numbers, strict=True)
            ],
            hovertemplate="%{customdata[0]}<br>" + escape(unit) + ": %{customdata[1]}<extra></extra>",
            name=unit,
            **BESIDE_BAR,
        )
    )
    low, high = min(float(numbers.min(initial=0)), 0.0), max(float(numbers.max(initial=0)), 0.0)
    letters = max((len(text) for text in fig.data[0].text), default=0)
    room = (0.1 + 0.055 * letters) * max(high - low, 1e-9)  # for the numbers beside the bars
    put_xaxes(
        fig,
        title_text=escape(unit),
        range=[low - (room if low < 0 else 0.02 * room), high + (room if high > 0 else 0.02 * room)],
        nticks=5,
        exponentformat="power",
    )
    put_yaxes(
        fig,
        tickvals=list(range(len(rows))),
        ticktext=[escape(clip(row, 18)) for row in rows],
        range=[len(rows) - 0.5, -0.5],
        showgrid=False,
    )
    if mono:
        put_yaxes(fig, tickfont_family=MONO)
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
