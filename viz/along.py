"""Numbers along a text: surprise, running perplexity, and how far the model is from the truth."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.attention import tick_labels
from viz.curves import Reference, finite_or_gap, reference_line, round_ticks
from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import escape, format_count, format_number, format_tick
from viz.theme import (
    BESIDE_BAR,
    FONT_SIZE,
    INK,
    MODEL,
    MONO,
    NEUTRAL,
    SURPRISAL_SCALE,
    TRUE,
    finish,
    objective_color,
    perplexity_name,
)
from wording import words

say = words("viz.along")


def token_axis(fig: go.Figure, tokens: Sequence[str]) -> None:
    """Tokens along x at their positions; thinned when there are many."""
    n = len(tokens)
    places, names = tick_labels(tokens)
    put_xaxes(
        fig,
        title_text=say("axis.token"),
        tickmode="array",
        tickvals=places,
        ticktext=names,
        tickangle=-90 if n > 16 else -45,
        tickfont_family=MONO,
        range=[-0.6, n - 0.4],
        showgrid=False,
    )


def point_hover(
    tokens: Sequence[str], values: np.ndarray, what: str, first: int = 0, place: str = "position"
) -> list[str]:
    """What the pointer says of each value: its token, its place from `first` on, and `what` it is.

    `place` is what the place is called: "position" or "piece".
    """
    return [
        say(f"at.{place}", n=i, token=escape(token))
        + f"<br>{what} "
        + (f"{float(v):.6g}" if np.isfinite(v) else say("not_scored"))
        for i, (token, v) in enumerate(zip(tokens, values, strict=True), first)
    ]


def small_number(x: float) -> str:
    """A number of 0 or more over a bar: none so small that it needs a power of ten, and a wide label."""
    return "<0.001" if 0 < x < 0.001 else format_number(x)


def _surprisal_look(y: np.ndarray, top: float, beside_another: bool) -> dict[str, Any]:
    """Bars coloured by their size; beside another distribution all in the model's colour, for the legend."""
    if beside_another:
        return {"color": MODEL}
    return {"color": np.nan_to_num(y), "colorscale": SURPRISAL_SCALE, "cmin": 0, "cmax": max(top, 1e-6)}


@kept
def surprisal_bars(
    tokens: Sequence[str],
    surprisal: ArrayLike,
    *,
    unit: str = "nats",
    mean: float | None = None,
    second: ArrayLike | None = None,
    second_name: str = "",
    selected: int | None = None,
) -> go.Figure:
    """How surprised the model was by each token: -log p of the token that came.

    Args:
        tokens: (T,) visible token texts; not escaped.
        surprisal: (T,) in `unit`; NaN where nothing was predicted (the first token): a gap.
        unit: `"nats"` or `"bits"`, part of the axis title.
        mean: their mean (the loss), drawn as a line.
        second: (T,) the same under another distribution, drawn as markers.
        second_name: its name; without one the true distribution.
        selected: a token whose bar is framed.
    """
    second_name = second_name or say("true")
    y = finite_or_gap(surprisal)
    z = np.full(len(y), np.nan) if second is None else finite_or_gap(second)
    known = np.concatenate([y, z])
    top = float(known[np.isfinite(known)].max(initial=0.0)) or 1.0
    numbers = [small_number(v) if np.isfinite(v) else "" for v in y] if len(tokens) <= 16 else None
    close = (z >= y) & (z - y < 0.1 * top)  # there the mark would lie on the number: it goes above both
    texts = numbers and ["" if up else number for up, number in zip(close, numbers, strict=True)]
    fig = go.Figure(
        go.Bar(
            x=np.arange(len(tokens), dtype=np.int32),
            y=y,
            name=say("model"),
            marker=_surprisal_look(y, top, second is not None)
            | {"line": {"color": INK, "width": [2 if i == selected else 0 for i in range(len(y))]}},
            customdata=point_hover(tokens, y, say("hover.surprisal", unit=unit)),
            hovertemplate="%{customdata}<extra></extra>",
            text=texts,
            **BESIDE_BAR,
        )
    )
    if second is not None:
        over = numbers and [number if up else "" for up, number in zip(close, numbers, strict=True)]
        fig.add_trace(
            go.Scatter(
                x=np.arange(len(tokens), dtype=np.int32), y=z, name=escape(second_name),
                mode="markers+text" if over else "markers", text=over, textposition="top center",
                textfont={"size": FONT_SIZE, "color": INK}, cliponaxis=False,
                marker={"color": TRUE, "symbol": "line-ew-open", "size": 14, "line_width": 3},
                customdata=point_hover(tokens, z, say("hover.second", name=escape(second_name), unit=unit)),
                hovertemplate="%{customdata}<extra></extra>",
            )
        )  # fmt: skip
    if mean is not None:
        fig.add_hline(y=mean, line={"color": NEUTRAL, "width": 2, "dash": "dash"})
        fig.add_annotation(  # beside the plot: over it, the words would lie on a bar
            x=1,
            xref="paper",
            xanchor="left",
            y=mean,
            text=say("mean", mean=format_number(mean)),
            showarrow=False,
            align="left",
        )
    token_axis(fig, tokens)
    put_yaxes(fig, title_text=say("axis.surprisal", unit=unit), rangemode="tozero", range=[0, top * 1.15])
    worst = int(np.nanargmax(y)) if np.isfinite(y).any() else None
    alt = say("alt.surprisal", tokens=len(tokens), unit=unit)
    if worst is not None:
        most = format_number(float(y[worst]))
        alt += " " + say("alt.worst", token=tokens[worst], position=worst, surprisal=most, unit=unit)
    legend = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}
    side = {"margin_r": 56} if mean is not None else {}
    return finish(fig, height=340, alt=alt, showlegend=second is not None, legend=legend, **side)


@kept
def running_perplexity(
    tokens: Sequence[str], values: ArrayLike, *, objective: str = "clm", floor: float | None = None
) -> go.Figure:
    """Perplexity of the text up to each token: exp of the mean surprisal so far.

    Args:
        tokens: (T,) visible token texts; not escaped.
        values: (T,) running perplexity, 1 or more; NaN where nothing was predicted yet.
        objective: names it and gives its colour.
        floor: perplexity that no model can beat, drawn as a line.
    """
    y = finite_or_gap(values)
    name = perplexity_name(objective)
    layout: dict[str, Any] = {"color": objective_color(objective), "width": 2.5}
    fig = go.Figure(
        go.Scatter(
            x=np.arange(len(tokens), dtype=np.int32),
            y=y,
            mode="lines+markers",
            connectgaps=False,
            line=layout,
            marker_size=6,
            customdata=point_hover(tokens, y, say("hover.running", name=name)),
            hovertemplate="%{customdata}<extra></extra>",
            name=name,
        )
    )
    if floor is not None:
        reference_line(fig, Reference(floor, say("floor"), "floor"), log_y=True)
    good = y[np.isfinite(y)]
    seen = [*good.tolist(), *([floor] if floor is not None else []), 1.0]
    ticks = round_ticks(min(seen), max(seen) * 1.4)
    token_axis(fig, tokens)
    put_yaxes(
        fig,
        title_text=say("axis.running", name=name),
        type="log",
        range=[math.log10(min(seen) * 0.9), math.log10(max(seen) * 1.4)],
        tickvals=ticks,
        ticktext=[format_tick(p) for p in ticks],
    )
    alt = say("alt.running", name=name, tokens=len(tokens))
    if len(good):
        alt += " " + say("alt.end", perplexity=format_number(float(good[-1])))
    return finish(fig, height=340, alt=alt, showlegend=False)


@kept
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
            name=say("divergence"),
            marker={
                "color": MODEL,
                "line": {"color": INK, "width": [2 if i == selected else 0 for i in range(len(tokens))]},
            },
            customdata=point_hover(tokens, y, say("hover.divergence", unit=unit)),
            hovertemplate="%{customdata}<extra></extra>",
            text=[small_number(v) if ok else "" for v, ok in zip(y, known, strict=True)]
            if len(tokens) <= 16
            else None,
            **BESIDE_BAR,
        )
    )
    token_axis(fig, tokens)
    top = float(y[known].max()) if known.any() else 1.0
    put_xaxes(fig, title_text=say("axis.after"))
    put_yaxes(fig, nticks=5, title_text=say("axis.divergence", unit=unit), range=[0, top * 1.2 or 1.0])
    alt = say("alt.divergence", tokens=int(known.sum()), unit=unit)
    if known.any():
        worst = int(np.nanargmax(y))
        alt += " " + say("alt.largest", most=format_number(top), token=tokens[worst], position=worst)
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


@kept
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
        say("block", first=format_count(a + first), last=format_count(b + first))
        for a, b in zip(begins, ends, strict=True)
    ]
    fig = go.Figure(
        go.Bar(
            x=(begins + ends) / 2 + first,
            y=means.astype(np.float32),
            width=(ends - begins + 1) * 0.9,
            name=say("mean_surprisal"),
            marker={"color": means, "colorscale": SURPRISAL_SCALE, "cmin": 0, "cmax": max(means.max(), 1e-6)},
            customdata=[
                say("hover.block", tokens=place, mean=m, unit=unit)
                for place, m in zip(where, means, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    fig.add_hline(y=mean, line={"color": NEUTRAL, "width": 2, "dash": "dash"})
    fig.add_annotation(
        x=1, xref="paper", xanchor="left", y=mean, text=say("mean", mean=format_number(mean)),
        showarrow=False, align="left",
    )  # fmt: skip
    title = say("axis.blocks", size=format_count(size)) if size > 1 else say("axis.position")
    put_xaxes(fig, title_text=title, nticks=8)
    put_yaxes(fig, title_text=say("axis.surprisal", unit=unit), rangemode="tozero")
    alt = say("alt.along", tokens=format_count(len(y)), unit=unit, mean=format_number(mean))
    return finish(fig, height=300, alt=alt, showlegend=False, margin_r=56)
