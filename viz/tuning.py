"""Pictures of fine-tuning: what learns, losses and shares before and after, reward margins."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import clip, escape, format_count, format_number
from viz.theme import (
    BESIDE_BAR,
    DIVERGING_COLORS,
    HATCH,
    INK,
    MODEL,
    NEUTRAL,
    TRUE,
    finish,
)
from wording import words

say = words("viz.tuning")

_ROW = 30  # pixels of a bar
WANTED, UNWANTED = DIVERGING_COLORS[8], DIVERGING_COLORS[1]  # a margin above 0, and one below
_HATCHED = {"shape": "/", "size": 5, "solidity": 0.4}


class Part(NamedTuple):
    """A part of a model: its name, how many numbers it has, and whether training changes them."""

    name: str
    size: int
    learns: bool


@kept
def block_stack(parts: Sequence[Part]) -> go.Figure:
    """The parts of a model, one upon the other: which learn and which are frozen, and how large each is.

    Args:
        parts: from the first, which reads the ids, to the last; drawn from the bottom to the top.
    """
    rows = list(reversed(parts))
    most = max((part.size for part in rows), default=1)
    texts = [
        say("learns" if part.learns else "frozen", count=format_count(part.size)) if part.size
        else say("shared")
        for part in rows
    ]  # fmt: skip
    fig = go.Figure(
        go.Bar(
            x=[part.size for part in rows],
            y=np.arange(len(rows), dtype=np.int32),
            orientation="h",
            name=say("numbers"),
            text=texts,
            marker={
                "color": [MODEL if part.learns else HATCH for part in rows],
                "pattern": {**_HATCHED, "shape": ["" if part.learns else "/" for part in rows]},
            },
            customdata=[[escape(part.name), text] for part, text in zip(rows, texts, strict=True)],
            hovertemplate="%{customdata[0]}: %{customdata[1]}<extra></extra>",
            **BESIDE_BAR,
        )
    )
    _names(fig, [part.name for part in rows])
    put_xaxes(fig, title_text=say("numbers"), range=[0, 2.0 * most], showticklabels=False, nticks=5)
    learning = [part for part in rows if part.learns and part.size]
    alt = say(
        "alt.stack", n=len(rows), learning=", ".join(part.name for part in reversed(learning)),
        count=format_count(sum(part.size for part in learning)),
        total=format_count(sum(part.size for part in rows)),
    )  # fmt: skip
    return finish(fig, height=len(rows) * _ROW + 62, alt=alt, showlegend=False)


@kept
def before_and_after(
    names: Sequence[str],
    before: Sequence[float],
    after: Sequence[float],
    *,
    unit: str,
    floors: Sequence[float | None] = (),
) -> go.Figure:
    """A number of each text under the model before and after, as a pair of bars; its floor as a mark.

    Args:
        names: of the texts, from top to bottom; not escaped.
        before: of the start.
        after: of the fine-tuned model.
        unit: title of the value axis.
        floors: what no model can be below, None where it is unknown; () for no text.
    """
    looks: list[tuple[str, Sequence[float], dict[str, Any]]] = [
        (say("before"), before, {"color": NEUTRAL, "pattern": _HATCHED}),
        (say("after"), after, {"color": MODEL}),
    ]
    y = np.arange(len(names), dtype=np.int32)
    fig = go.Figure()
    for name, values, look in looks:
        fig.add_trace(
            go.Bar(
                x=list(values),
                y=y,
                orientation="h",
                name=name,
                marker=look,
                text=[f"{name} {format_number(v)}" for v in values],
                customdata=[[escape(text), f"{v:.6g}"] for text, v in zip(names, values, strict=True)],
                hovertemplate="%{customdata[0]}<br>" + name + ": %{customdata[1]}<extra></extra>",
                **BESIDE_BAR,
            )
        )
    marks = [(i, floor) for i, floor in enumerate(floors) if floor is not None]
    if marks:
        fig.add_trace(
            go.Scatter(
                x=[floor for _, floor in marks],
                y=[i for i, _ in marks],
                mode="markers",
                name=say("floor"),
                marker={"color": TRUE, "symbol": "line-ns-open", "size": 46, "line_width": 3},
                hovertemplate=say("floor") + ": %{x:.4f}<extra></extra>",
            )
        )
    good = [v for v in (*before, *after) if np.isfinite(v)]
    _names(fig, names)
    put_xaxes(fig, title_text=escape(unit), range=[0, 1.45 * max([*good, 1e-9])], nticks=5)
    told = [
        say("alt.pair", name=name, before=format_number(a), after=format_number(b))
        for name, a, b in zip(names, before, after, strict=True)
    ]
    told += [say("alt.floor", name=names[i], floor=format_number(floor)) for i, floor in marks]
    legend = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"}
    alt = " ".join([say("alt.before_and_after", unit=unit), *told])
    return finish(
        fig, height=len(names) * 76 + 92, alt=alt, barmode="group", showlegend=True, legend=legend,
        bargap=0.3,
    )  # fmt: skip


@kept
def share_bars(names: Sequence[str], shares: ArrayLike, errors: ArrayLike, *, unit: str) -> go.Figure:
    """Shares of samples with their standard errors, as bars; the first is the one to compare with.

    Args:
        names: from top to bottom; not escaped.
        shares: 0 to 1.
        errors: one standard error of each.
        unit: title of the value axis.
    """
    values, spread = np.asarray(shares, np.float64), np.asarray(errors, np.float64)
    texts = [
        say("share", share=100 * float(v), error=100 * float(e)) for v, e in zip(values, spread, strict=True)
    ]
    fig = go.Figure(
        go.Bar(
            x=values,
            y=np.arange(len(values), dtype=np.int32),
            orientation="h",
            name=escape(unit),
            marker={
                "color": [NEUTRAL if i == 0 else MODEL for i in range(len(values))],
                "pattern": {**_HATCHED, "shape": ["/" if i == 0 else "" for i in range(len(values))]},
            },
            error_x={"type": "data", "array": spread, "color": INK, "thickness": 2, "width": 6},
            customdata=[[escape(name), text] for name, text in zip(names, texts, strict=True)],
            hovertemplate="%{customdata[0]}<br>" + escape(unit) + ": %{customdata[1]}<extra></extra>",
        )
    )
    for i, (v, e, text) in enumerate(zip(values, spread, texts, strict=True)):  # right of the error's end
        fig.add_annotation(
            x=min(float(v + e), 1.0), y=i, text=text, showarrow=False, xanchor="left", xshift=8, align="left"
        )
    _names(fig, names)
    put_xaxes(
        fig,
        title_text=escape(unit), range=[0, 1.55], tickvals=[0, 0.25, 0.5, 0.75, 1],
        ticktext=[f"{x}%" for x in (0, 25, 50, 75, 100)],
    )  # fmt: skip
    told = "; ".join(f"{name}: {text}" for name, text in zip(names, texts, strict=True))
    return finish(fig, height=len(values) * 44 + 66, alt=say("alt.shares", unit=unit, told=told),
                  showlegend=False)  # fmt: skip


@kept
def reward_margins(
    margins: ArrayLike, *, trained: bool, chosen: int | None = None, height: int = 300
) -> go.Figure:
    """The reward margin of each pair as a bar up or down from 0; before training all of them are 0.

    Args:
        margins: (N,) in the order in which they are drawn, nats.
        trained: whether these are of a model that has learned; else a mark at 0 stands for each pair.
        chosen: a pair that is marked.
        height: pixels.
    """
    y = np.asarray(margins, np.float64)
    x = np.arange(len(y), dtype=np.int32)
    low, high = float(np.nanmin(y, initial=0.0)), float(np.nanmax(y, initial=0.0))
    span = max(high - low, 1e-3 if trained else 1.0)
    fig = go.Figure()
    if trained:
        fig.add_trace(
            go.Bar(
                x=x,
                y=y,
                name=say("after"),
                marker={
                    "color": [WANTED if v >= 0 else UNWANTED for v in y],
                    "pattern": {**_HATCHED, "shape": ["" if v >= 0 else "/" for v in y]},
                    "line": {"color": INK, "width": [2.5 if i == chosen else 0 for i in range(len(y))]},
                },
                hovertemplate=say("pair") + " %{x}: %{y:.4f}<extra></extra>",
            )
        )
    fig.add_trace(
        go.Scatter(
            x=x,
            y=np.zeros(len(y)),
            name=say("before_all_zero"),
            mode="markers",
            marker={"color": NEUTRAL, "symbol": "circle-open", "size": 6, "line_width": 2},
            hovertemplate=say("pair") + " %{x}: 0<extra></extra>",
        )
    )
    fig.add_hline(y=0, line={"color": INK, "width": 1.5})
    if chosen is not None and chosen < len(y):
        at = float(y[chosen])
        fig.add_annotation(
            x=chosen, y=at, text=f"{'▼' if at >= 0 else '▲'}", showarrow=False,
            yshift=12 if at >= 0 else -12,
        )  # fmt: skip
    put_xaxes(fig, title_text=say("pairs"), showgrid=False, nticks=8, range=[-0.8, len(y) - 0.2])
    put_yaxes(fig, title_text=say("margin"), range=[low - 0.14 * span, high + 0.14 * span], nticks=6)
    right = int((y > 0).sum())
    alt = say("alt.margins" if trained else "alt.margins_before", n=len(y), right=right)
    legend = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"}
    return finish(fig, height=height, alt=alt, showlegend=True, legend=legend, bargap=0.15)


def _names(fig: go.Figure, names: Sequence[str]) -> None:
    """Names by place on the y axis, first on top."""
    put_yaxes(
        fig,
        tickvals=list(range(len(names))),
        ticktext=[escape(clip(name, 22)) for name in names],
        range=[len(names) - 0.5, -0.5],
        showgrid=False,
    )
