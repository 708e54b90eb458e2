"""Numbers along a text: how far the model is from the truth at every position, and surprise by the page."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.curves import _point_hover, _token_axis, finite_or_gap, small_number
from viz.text import format_count, format_number
from viz.theme import FONT_SIZE, INK, MODEL, NEUTRAL, SURPRISAL_SCALE, finish


def kl_bars(
    tokens: Sequence[str], kl: ArrayLike, *, unit: str = "nats", selected: int | None = None
) -> go.Figure:
    """The distance from the true distribution to the model's after every token.

    Args:
        tokens: (T,) visible token texts; not escaped.
        kl: (T,) in `unit`; NaN where no true distribution is known: a gap.
        unit: `"nats"` or `"bits"`, part of the axis title.
        selected: a position to frame.
    """
    y = finite_or_gap(kl)
    known = np.isfinite(y)
    fig = go.Figure(
        go.Bar(
            x=np.arange(len(tokens), dtype=np.int32),
            y=y,
            name="KL",
            marker={
                "color": MODEL,
                "line": {"color": INK, "width": [2 if i == selected else 0 for i in range(len(tokens))]},
            },
            customdata=_point_hover(tokens, y, f"KL divergence after it, in {unit}:"),
            hovertemplate="%{customdata}<extra></extra>",
            text=[small_number(v) if ok else "" for v, ok in zip(y, known, strict=True)]
            if len(tokens) <= 16
            else None,
            textposition="outside",
            constraintext="none",
            textfont={"size": FONT_SIZE, "color": INK},
            textangle=0,
            cliponaxis=False,
        )
    )
    _token_axis(fig, tokens)
    top = float(y[known].max()) if known.any() else 1.0
    fig.update_xaxes(title_text="after this token (position)")
    fig.update_yaxes(nticks=5, title_text=f"KL from true ({unit})", range=[0, top * 1.2 or 1.0])
    alt = f"KL divergence from the true distribution after each of {int(known.sum())} tokens, in {unit}."
    if known.any():
        worst = int(np.nanargmax(y))
        alt += f" Largest: {format_number(top)} after {tokens[worst]} at position {worst}."
    return finish(fig, height=260, alt=alt, showlegend=False)


def block_means(values: ArrayLike, most: int = 200) -> tuple[np.ndarray, np.ndarray, int]:
    """Means over equal blocks of a long row, at most `most` of them.

    Args:
        values: (N,) one for each token.
        most: blocks.

    Returns:
        Index of each block's first value, its mean, and how many values a block has (the last: fewer).

    >>> begins, means, size = block_means([1, 3, 5, 7, 9], most=3)
    >>> begins.tolist(), means.tolist(), size
    ([0, 2, 4], [2.0, 6.0, 9.0], 2)
    """
    y = np.asarray(values, np.float64)
    size = max(1, -(-len(y) // most))
    begins = np.arange(0, len(y), size)
    counts = np.minimum(size, len(y) - begins)
    return begins, np.add.reduceat(y, begins) / counts, size


def surprisal_by_block(surprisal: ArrayLike, *, unit: str = "nats", first: int = 1) -> go.Figure:
    """Mean surprisal along a text of any length, in at most 200 blocks of equal length.

    Args:
        surprisal: (N,) of each scored token, in `unit`.
        unit: `"nats"` or `"bits"`.
        first: position of the first of them in the text.
    """
    y = np.asarray(surprisal, np.float64)
    begins, means, size = block_means(y)
    mean = float(y.mean())
    ends = np.minimum(begins + size, len(y)) - 1
    where = [
        f"tokens {format_count(a + first)} to {format_count(b + first)}"
        for a, b in zip(begins, ends, strict=True)
    ]
    fig = go.Figure(
        go.Bar(
            x=(begins + ends) / 2 + first,
            y=means.astype(np.float32),
            width=(ends - begins + 1) * 0.9,
            name="mean surprisal",
            marker={"color": means, "colorscale": SURPRISAL_SCALE, "cmin": 0, "cmax": max(means.max(), 1e-6)},
            customdata=[
                f"{place}<br>mean surprisal {m:.6g} {unit}" for place, m in zip(where, means, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    fig.add_hline(y=mean, line={"color": NEUTRAL, "width": 2, "dash": "dash"})
    fig.add_annotation(
        x=1, xref="paper", xanchor="left", y=mean, text=f"mean<br>{format_number(mean)}", showarrow=False,
        align="left",
    )  # fmt: skip
    each = f", mean of {format_count(size)} tokens each" if size > 1 else ""
    fig.update_xaxes(title_text=f"position of the token in the text{each}", nticks=8)
    fig.update_yaxes(title_text=f"surprisal ({unit})", rangemode="tozero")
    alt = f"Surprisal along {format_count(len(y))} tokens in {unit}; the mean is {format_number(mean)}."
    return finish(fig, height=300, alt=alt, showlegend=False, margin_r=56)
