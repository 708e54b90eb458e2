"""How chance picks a token: the line from 0 to 1, and where the random number fell."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from viz.text import clip, escape, format_number
from viz.theme import FONT_SIZE, HATCH, INK, MODEL, NEUTRAL, finish

_WORDED = 0.045  # a stretch shorter than this has no room for its label


def draw_line(
    labels: Sequence[str],
    stretches: Sequence[tuple[float, float]],
    *,
    u: float,
    chosen: int,
    colors: Sequence[str | None] = (),
) -> go.Figure:
    """All tokens on a line from 0 to 1, each as long as its probability, and the number that was thrown.

    Args:
        labels: (K,) what stands on each stretch, a token or "37 rare ones"; not escaped.
        stretches: (K,) where each begins and ends; together they fill 0 to 1.
        u: the number thrown, 0 to 1.
        chosen: the stretch in which it fell.
        colors: (K,) css backgrounds, the tokens' own; None is hatched: several tokens in one stretch.

    Raises:
        ValueError: u does not lie in the chosen stretch.
    """
    low, high = stretches[chosen]
    if not low - 1e-9 <= u <= high + 1e-9:
        raise ValueError(f"u = {u} does not lie between {low} and {high}, the stretch of {labels[chosen]!r}.")
    fills = [color or "rgba(0,0,0,0)" for color in (colors or [None] * len(labels))]
    several = [color is None for color in (colors or [None] * len(labels))]
    lengths = [high - low for low, high in stretches]
    fig = go.Figure(
        go.Bar(
            x=np.array(lengths, dtype=np.float32),
            base=[low for low, _ in stretches],
            y=np.zeros(len(labels), dtype=np.int32),
            orientation="h",
            width=0.8,
            marker={
                "color": fills,
                "line": {
                    "color": [MODEL if i == chosen else NEUTRAL for i in range(len(labels))],
                    "width": [3 if i == chosen else 0.5 for i in range(len(labels))],
                },
                "pattern": {"shape": ["/" if s else "" for s in several], "fgcolor": HATCH, "size": 6},
            },
            text=[
                _label(label, n, several[i]) for i, (label, n) in enumerate(zip(labels, lengths, strict=True))
            ],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            constraintext="none",
            textfont={"size": FONT_SIZE, "color": INK},
            customdata=[
                f"{escape(label)}<br>from {low:.6g} to {high:.6g}<br>probability {high - low:.6g}"
                for label, (low, high) in zip(labels, stretches, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    fig.add_shape(type="line", x0=u, x1=u, y0=-0.62, y1=0.5, line={"color": MODEL, "width": 3})
    side = "left" if u < 0.15 else "right" if u > 0.85 else "center"
    fig.add_annotation(x=u, y=0.5, text=f"<b>u = {u:.4f}</b>", showarrow=False, yshift=12, xanchor=side)
    fig.update_xaxes(range=[0, 1], title_text="probability, added up in the order of the ids", nticks=6)
    fig.update_yaxes(visible=False, range=[-0.62, 1.0])
    alt = f"A line from 0 to 1. The number {format_number(u, 4)} fell into the stretch of {labels[chosen]}."
    return finish(fig, height=132, alt=alt, showlegend=False)


def _label(label: str, length: float, several: bool) -> str:
    room = int(length * 90)
    return escape(clip(label, max(room, 3))) if length >= (_WORDED * 2 if several else _WORDED) else ""
