"""One training step in pictures: how long each part's gradient is, and how far its weights move."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import escape, format_number
from viz.theme import BESIDE_BAR, MODEL, NEUTRAL, finish
from wording import words

say = words("viz.one_step")


@kept
def part_bars(
    names: Sequence[str], values: ArrayLike, *, title: str, second: ArrayLike | None = None,
    labels: tuple[str, str] = ("", ""),
) -> go.Figure:  # fmt: skip
    """A bar for each part of a model, the first on top.

    Args:
        names: (K,) of the parts; not escaped.
        values: (K,) of 0 or more.
        title: of the axis, with the unit.
        second: (K,) another number of each part, as paler bars.
        labels: what the two kinds of bars are, for the legend.
    """
    rows = [np.asarray(v, np.float64) for v in ([values] if second is None else [values, second])]
    fig = go.Figure()
    for k, row in enumerate(rows):
        fig.add_trace(
            go.Bar(
                y=np.arange(len(row), dtype=np.int32),
                x=row,
                orientation="h",
                name=escape(labels[k] or title),
                marker={"color": NEUTRAL, "pattern": {"shape": "/", "size": 5, "solidity": 0.5}}
                if k
                else {"color": MODEL},
                text=[format_number(v) for v in row],
                customdata=[[escape(name), repr(float(v))] for name, v in zip(names, row, strict=True)],
                hovertemplate="%{customdata[0]}<br>" + escape(labels[k] or title) + ": %{customdata[1]}"
                "<extra></extra>",
                **BESIDE_BAR,
            )
        )
    seen = np.concatenate(rows)
    top = float(seen.max(initial=0.0)) or 1.0
    put_xaxes(fig, title_text=escape(title), range=[0, top * 1.25], nticks=5)
    put_yaxes(
        fig,
        tickvals=list(range(len(names))), ticktext=[escape(name) for name in names],
        range=[len(names) - 0.5, -0.5], showgrid=False,
    )  # fmt: skip
    most = int(rows[0].argmax()) if len(names) else 0
    alt = say("alt", title=title, n=len(names))
    if len(names):
        alt += " " + say("largest", name=names[most], value=format_number(float(rows[0][most])))
    both = second is not None
    return finish(
        fig,
        height=len(names) * (24 + 14 * both) + 66 + 30 * both,
        alt=alt,
        barmode="group",
        showlegend=both,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
    )
