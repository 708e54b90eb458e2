"""Two models on one text: which of them is the more surprised, piece by piece."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.along import block_means, point_hover, token_axis
from viz.attention import tick_positions
from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import clip, escape, format_count, format_number
from viz.theme import (
    BESIDE_BAR,
    DIVERGING_COLORS,
    DIVERGING_SCALE,
    INK,
    NEUTRAL,
    finish,
    sample_scale,
)
from wording import words

say = words("viz.compare")

PIECES = 256  # up to so many have a bar each


def difference_color(x: float, most: float) -> str:
    """`#RRGGBB` of a difference between -most and most; 0 is the middle of the scale."""
    return sample_scale(DIVERGING_COLORS, 0.5 + 0.5 * x / most if most > 0 else 0.5)


def _piece_axis(fig: go.Figure, pieces: Sequence[str], first: int) -> None:
    """Pieces along x, numbered from `first` on; the number stands beside the name if some are left out."""
    token_axis(fig, pieces)
    places = tick_positions(len(pieces))
    if len(places) < len(pieces):
        put_xaxes(fig, ticktext=[escape(f"{i + first} {clip(pieces[i], 9)}") for i in places])
    put_xaxes(fig, tickvals=[i + first for i in places], range=[first - 0.6, first + len(pieces) - 0.4])


@kept
def difference_bars(
    pieces: Sequence[str],
    difference: ArrayLike,
    *,
    unit: str = "nats",
    names: tuple[str, str] = ("A", "B"),
    selected: int | None = None,
    first: int = 0,
    place: str = "piece",
) -> go.Figure:
    """Surprisal of the first model minus that of the second, for every piece of the text.

    Args:
        pieces: (S,) visible texts; not escaped.
        difference: (S,) in `unit`; below 0 the first model was less surprised.
        unit: `"nats"` or `"bits"`, part of the axis title.
        names: of the models.
        selected: a piece to frame, counted from 0.
        first: the number that the first piece has on the axis.
        place: what that number is called: "position" or "piece".
    """
    y = np.asarray(difference, np.float64)
    size, begins = 1, np.arange(len(y))
    if len(y) > PIECES:
        begins, y, size = block_means(y)
    top = float(np.abs(y).max()) if len(y) else 1.0
    few = len(y) <= 8
    numbers = [format_count(int(b) + first) for b in begins]
    hover = (
        [say(f"block.{place}", n=n, mean=v, unit=unit) for n, v in zip(numbers, y, strict=True)]
        if size > 1
        else point_hover(pieces, y, say("hover", a=names[0], b=names[1], unit=unit), first, place)
    )
    fig = go.Figure(
        go.Bar(
            x=(begins + first).astype(np.int32),
            y=y.astype(np.float32),
            width=size * 0.8,
            name=escape(say("difference", a=names[0], b=names[1])),
            marker={
                "color": y,
                "colorscale": DIVERGING_SCALE,
                "cmin": -top or -1.0,
                "cmax": top or 1.0,
                "line": {"color": INK, "width": [2 if b == selected and size == 1 else 0 for b in begins]},
            },
            customdata=hover,
            hovertemplate="%{customdata}<extra></extra>",
            text=[format_number(v) for v in y] if few else None,
            **BESIDE_BAR,
        )
    )
    if size == 1:
        _piece_axis(fig, pieces, first)
        put_xaxes(fig, title_text=say(f"axis.{place}"))
    else:
        put_xaxes(fig, title_text=say(f"axis_of_means.{place}", size=format_count(size)), nticks=8)
    fig.add_hline(y=0, line={"color": NEUTRAL, "width": 1})
    for side, (name, edge) in enumerate(((names[1], "top"), (names[0], "bottom"))):
        fig.add_annotation(
            x=1, xref="x domain", xanchor="right", y=1 - side, yref="y domain", yanchor=edge,
            text=say("better", name=escape(name)), showarrow=False,
        )  # fmt: skip
    put_yaxes(
        fig,
        title_text=say("axis_of_difference", a=escape(names[0]), b=escape(names[1]), unit=unit),
        range=[-1.35 * top, 1.35 * top],
    )
    alt = say("alt", a=names[0], b=names[1], pieces=format_count(len(pieces)), unit=unit)
    if len(y):
        worst = int(np.abs(y).argmax())
        alt += " " + say(f"largest.{place}", most=format_number(float(y[worst])), n=numbers[worst])
    return finish(fig, height=300, alt=alt, showlegend=False)
