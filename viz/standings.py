"""How the runs of a class stand."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from viz.kept import kept
from viz.put import put, put_xaxes, put_yaxes
from viz.text import clip, escape, format_number
from viz.theme import INK, MODEL, NEUTRAL, TRUE, finish
from wording import words

say = words("viz.standings")


@kept
def standing_dots(
    names: Sequence[str],
    values: Sequence[float],
    *,
    unit: str,
    floor: float | None = None,
    mine: Sequence[int] = (),
    places: Sequence[int] | None = None,
    size: int = 18,
) -> go.Figure:
    """How runs stand, the best on top: a dot for each, large enough to be read from the back of a room.

    Args:
        names: of the runs, the best first; any characters.
        values: their numbers, the lower the better.
        unit: names the axis.
        floor: what no model can get below, or None.
        mine: indices of one's own runs; they have a diamond and the word "mine".
        places: of the runs, from 1; equal numbers may share one. By default 1, 2, 3 ...
        size: of the letters in pixels.
    """
    n, own = len(names), set(mine)
    places = range(1, n + 1) if places is None else places
    y = np.arange(n, dtype=np.int32)
    best = min(values, default=0.0) if floor is None else floor
    fig = go.Figure()
    for i, value in enumerate(values):  # how far each is from the best that there can be, or is
        fig.add_shape(type="line", x0=best, x1=value, y0=i, y1=i, layer="below",
                      line={"color": NEUTRAL, "width": 3})  # fmt: skip
    fig.add_trace(
        go.Scatter(
            x=np.asarray(values, np.float64),
            y=y,
            mode="markers+text",
            marker={
                "size": size,
                "color": MODEL,
                "symbol": ["diamond" if i in own else "circle" for i in range(n)],
                "line": {"color": INK, "width": [2 if i in own else 0 for i in range(n)]},
            },
            text=[f"  {format_number(v)}" for v in values],
            textposition="middle right",
            textfont={"size": size, "color": INK},
            cliponaxis=False,
            customdata=[
                f"{place}. {escape(name)}: {v:.6g} {escape(unit)}"
                for place, name, v in zip(places, names, values, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
            name=escape(unit),
        )
    )
    seen = [*values, *([] if floor is None else [floor])]
    low, high = min(seen, default=0.0), max(seen, default=1.0)
    pad = (high - low) or 0.1
    # Few ticks, never turned: on a phone there is little room, and every dot has its number anyway.
    put_xaxes(fig, title_text=unit, range=[low - 0.06 * pad, high + 0.04 * pad], nticks=4, tickangle=0)
    labels = [  # of one length with and without "(mine)", so that a phone doesn't cut them off
        say("mine", place=place, name=escape(clip(name, 11)))
        if i in own
        else f"{place} {escape(clip(name, 18))}"
        for i, (place, name) in enumerate(zip(places, names, strict=True))
    ]
    put_yaxes(
        fig, tickvals=y, ticktext=labels, range=[n - 0.4, -0.6 - 0.5 * (floor is not None)], showgrid=False
    )
    if floor is not None:
        fig.add_vline(x=floor, line={"color": TRUE, "width": 2, "dash": "dash"})
        fig.add_annotation(x=floor, y=1, yref="y domain", xanchor="left", yanchor="top", xshift=6,
                           text=say("floor", floor=format_number(floor)), showarrow=False)  # fmt: skip
    leader = " " + say("best", name=names[0], value=format_number(values[0])) if n else ""
    rows = n + 0.5 * (floor is not None)
    alt = say("alt", n=n, unit=unit) + leader
    finish(fig, height=70 + round(rows * 1.9 * size), alt=alt, showlegend=False)
    put(fig, margin_r=round(4.2 * size))  # the number of the last dot
    put_yaxes(fig, tickfont_size=size)
    put_xaxes(fig, tickfont_size=max(13, size - 4), title_font_size=max(13, size - 4))
    fig.update_annotations(font_size=max(13, size - 4))
    return fig
