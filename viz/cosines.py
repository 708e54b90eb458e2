"""Which token vectors are most alike: bars of cosines."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import clip, escape, format_number
from viz.theme import BESIDE_BAR, CAUSAL, MODEL, MONO, NEUTRAL, finish
from wording import words

say = words("viz.cosines")

_ROW = 24  # pixels for one bar


@kept
def cosine_bars(
    near: Sequence[str],
    near_values: ArrayLike,
    far: Sequence[str],
    far_values: ArrayLike,
    *,
    chosen: int = 0,
    color: str = CAUSAL,
) -> go.Figure:
    """Bars from -1 to 1: the tokens most alike, a gap, and the most opposite ones.

    Args:
        near: (N,) visible texts, the most alike on top; not escaped.
        near_values: (N,) their cosines.
        far: (M,) the most opposite, the most opposite at the bottom.
        far_values: (M,).
        chosen: row to set off, counted over both groups.
        color: of that row.
    """
    names = [*near, *far]
    values = np.concatenate([np.asarray(near_values, np.float64), np.asarray(far_values, np.float64)])
    places = [i if i < len(near) else i + 1 for i in range(len(names))]  # one empty row between the groups
    fig = go.Figure(
        go.Bar(
            y=np.array(places, dtype=np.int32),
            x=values.astype(np.float32),
            orientation="h",
            marker_color=[color if i == chosen else MODEL for i in range(len(names))],
            text=[format_number(v) for v in values],
            customdata=[[escape(n), f"{v:.7g}"] for n, v in zip(names, values, strict=True)],
            hovertemplate=say("cosine_hover"),
            showlegend=False,
            **BESIDE_BAR,
        )
    )
    n = len(names) + bool(far)
    labels = [escape(clip(name, 16)) for name in names]
    if far:
        places, labels = [*places, len(near)], [*labels, "⋮"]
    put_yaxes(
        fig, tickvals=places, ticktext=labels, tickfont_family=MONO, range=[n - 0.5, -0.5], showgrid=False
    )
    low = float(values.min()) if len(values) else 0.0
    put_xaxes(
        fig,
        title_text=say("cosine"),
        range=[low - 0.22 if low < 0 else -0.1, 1.15],
        tickvals=[-1, -0.5, 0, 0.5, 1],
    )
    fig.add_vline(x=0, line={"color": NEUTRAL, "width": 1})
    alt = say("cosines", n=len(names))
    if names:
        alt += " " + say("most_alike", name=names[0], value=format_number(values[0]))
    return finish(fig, height=n * _ROW + 62, alt=alt)
