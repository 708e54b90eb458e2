"""Models by their size: one against the other, and the parts of one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import clip, escape, format_number, format_tick
from viz.theme import BESIDE_BAR, FONT_SIZE, INK, MODEL, NEUTRAL, finish, objective_color
from wording import words

say = words("viz.models")

_ROW = 46  # pixels for one model
_BAR = 34


@dataclass(frozen=True)
class ModelSize:
    """One model of a picture of several.

    Attributes:
        name: not escaped.
        n_params: numbers that were learned.
        megabytes: that they take in memory.
        objective: "clm" or "mlm".
        loaded: whether it is in memory.
    """

    name: str
    n_params: int
    megabytes: float
    objective: str
    loaded: bool


@kept
def size_figure(models: Sequence[ModelSize], *, free: float | None, chosen: int | None = None) -> go.Figure:
    """A line for each model as long as its memory, on a logarithmic axis, and where the memory ends.

    A point can be pressed: its row is the model's place.

    Args:
        models: top to bottom.
        free: MB of memory that are free, None if unknown.
        chosen: the row that stands out.
    """
    sizes = np.array([max(one.megabytes, 1e-3) for one in models])
    seen = [*sizes, *([free] if free else [])]
    low, high = 10 ** np.floor(np.log10(min(seen))), max(seen)
    fig = go.Figure()
    for objective in ("clm", "mlm"):
        rows = [i for i, one in enumerate(models) if one.objective == objective]
        if rows:
            fig.add_trace(_kind(objective))
            fig.add_trace(_lines(rows, sizes, float(low), objective))
            fig.add_trace(_points(rows, models, sizes, objective, chosen))
    _names(fig, models, chosen)
    if free:
        _free(fig, free)
    for loaded in (True, False):
        fig.add_trace(_key(loaded))
    span = np.log10(high / low)
    ticks = [10.0**k for k in range(-3, 9) if span < 4 or k % 2 == 0]
    put_xaxes(
        fig,
        type="log", title_text=say("memory"), range=[np.log10(low), np.log10(high) + 0.2 * span + 0.1],
        tickvals=ticks, ticktext=[format_tick(x) for x in ticks], tickangle=0,
    )  # fmt: skip
    put_yaxes(fig, showticklabels=False, showgrid=False, range=[len(models) - 0.4, -0.75])
    listed = "; ".join(f"{one.name}: {_size(one.megabytes)}" for one in models)
    alt = say("alt", listed=listed) if free is None else say("alt_free", listed=listed, free=_size(free))
    legend = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}
    return finish(fig, height=len(models) * _ROW + 110, alt=alt, showlegend=True, legend=legend)


def _size(megabytes: float) -> str:
    shown = f"{megabytes:,.0f}" if megabytes >= 100 else format_number(megabytes)
    return f"{shown} MB"


def _kind(objective: str) -> go.Scatter:
    """What a colour means, for the legend: a line, as points are full or hollow for another reason."""
    line = {"color": objective_color(objective), "width": 4}
    return go.Scatter(
        x=[None], y=[None], mode="lines", name=say(f"kind.{objective}"), hoverinfo="skip", line=line
    )


def _lines(rows: list[int], sizes: np.ndarray, low: float, objective: str) -> go.Scatter:
    x, y = [], []
    for i in rows:
        x += [low, float(sizes[i]), None]
        y += [i, i, None]
    return go.Scatter(
        x=x, y=y, mode="lines", hoverinfo="skip", showlegend=False, name=f"{objective}:lines",
        line={"color": objective_color(objective), "width": 4},
    )  # fmt: skip


def _points(
    rows: list[int], models: Sequence[ModelSize], sizes: np.ndarray, objective: str, chosen: int | None
) -> go.Scatter:
    """The ends of the lines: full where the model is in memory, hollow where it is not."""
    color, symbols = objective_color(objective), []
    texts, hovers = [], []
    for i in rows:
        one = models[i]
        symbols.append("circle" if one.loaded else "circle-open")
        text = _size(one.megabytes)
        texts.append(f"<b>{text} ◀</b>" if i == chosen else text)
        there = say("loaded" if one.loaded else "not_loaded")
        hovers.append(f"{escape(one.name)}<br>{say('hover', n=one.n_params)}<br>{there}")
    return go.Scatter(
        x=sizes[rows], y=rows, mode="markers+text", text=texts, textposition="middle right",
        textfont={"size": FONT_SIZE, "color": INK}, cliponaxis=False, customdata=hovers,
        hovertemplate="%{customdata}<extra></extra>", name=say(f"kind.{objective}"),
        showlegend=False,
        marker={"symbol": symbols, "size": 14, "color": color, "line": {"color": color, "width": 3}},
    )  # fmt: skip


def _key(loaded: bool) -> go.Scatter:
    """What a full and what a hollow point means, for the legend."""
    return go.Scatter(
        x=[None], y=[None], mode="markers", name=say("loaded" if loaded else "not_loaded"), hoverinfo="skip",
        marker={"symbol": "circle" if loaded else "circle-open", "size": 12, "color": NEUTRAL,
                "line": {"color": NEUTRAL, "width": 3}},
    )  # fmt: skip


def _names(fig: go.Figure, models: Sequence[ModelSize], chosen: int | None) -> None:
    """Each name over its line, so that a narrow screen keeps its width for the lines."""
    for i, one in enumerate(models):
        millions = say("millions", n=format_number(one.n_params / 1e6))
        name = f"{escape(clip(one.name, 28))} · {millions}"
        fig.add_annotation(
            xref="paper", x=0, xanchor="left", y=i, yshift=9, yanchor="bottom", showarrow=False,
            text=f"<b>{name}</b>" if i == chosen else name,
        )  # fmt: skip


def _free(fig: go.Figure, free: float) -> None:
    line = {"color": NEUTRAL, "dash": "dash", "width": 2}
    fig.add_shape(type="line", x0=free, x1=free, y0=0, y1=1, yref="paper", line=line)
    fig.add_annotation(
        x=np.log10(free), y=0, yref="paper", yanchor="bottom", xanchor="right", showarrow=False,
        text=say("free", size=_size(free)), xshift=-4,
    )  # fmt: skip


@kept
def part_bars(labels: Sequence[str], counts: Sequence[int]) -> go.Figure:
    """How many parameters stand in each part of a model, in full digits, with their share of all.

    Args:
        labels: of the parts, top to bottom.
        counts: parameters in each.
    """
    total = sum(counts)
    shares = [n / total if total else 0.0 for n in counts]
    fig = go.Figure(
        go.Bar(
            x=np.asarray(counts, dtype=np.float64),
            y=np.arange(len(counts), dtype=np.int32),
            orientation="h",
            marker_color=MODEL,
            text=[f"{n:,} · {_percent(share)}" for n, share in zip(counts, shares, strict=True)],
            customdata=[[escape(label), f"{n:,}"] for label, n in zip(labels, counts, strict=True)],
            hovertemplate="%{customdata[0]}: %{customdata[1]}<extra></extra>",
            name=say("parameters"),
            **BESIDE_BAR,
        )
    )
    put_yaxes(
        fig,
        tickvals=list(range(len(labels))), ticktext=[escape(label) for label in labels],
        range=[len(labels) - 0.5, -0.5], showgrid=False,
    )  # fmt: skip
    put_xaxes(fig, title_text=say("parameters"), range=[0, max([*counts, 1]) * 1.75], nticks=4)
    listed = "; ".join(f"{label}: {n:,}" for label, n in zip(labels, counts, strict=True))
    alt = say("alt_parts", listed=listed, total=total)
    return finish(fig, height=len(labels) * _BAR + 60, alt=alt, showlegend=False)


def _percent(share: float) -> str:
    return "<0.1%" if 0 < share < 0.001 else f"{share:.1%}"
