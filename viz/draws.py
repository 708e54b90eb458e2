"""How chance picks a token: the line from 0 to 1, where the number fell, and how often each token comes."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.distributions import _ROW, _label_axis, _tail_label, _ticks
from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import clip, escape, format_number
from viz.theme import FONT_SIZE, HATCH, INK, MODEL, NEUTRAL, TRUE, finish
from wording import words

say = words("viz.draws")

_WORDED = 0.045  # a stretch shorter than this has no room for its label


@kept
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
        raise ValueError(say("outside", u=u, low=low, high=high, label=labels[chosen]))
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
                say("stretch", label=escape(label), low=low, high=high, p=high - low)
                for label, (low, high) in zip(labels, stretches, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    fig.add_shape(type="line", x0=u, x1=u, y0=-0.62, y1=0.5, line={"color": MODEL, "width": 3})
    side = "left" if u < 0.15 else "right" if u > 0.85 else "center"
    fig.add_annotation(x=u, y=0.5, text=f"<b>u = {u:.4f}</b>", showarrow=False, yshift=12, xanchor=side)
    put_xaxes(fig, range=[0, 1], title_text=say("axis.line"), nticks=6)
    put_yaxes(fig, visible=False, range=[-0.62, 1.0])
    alt = say("alt.line", u=format_number(u, 4), label=labels[chosen])
    return finish(fig, height=132, alt=alt, showlegend=False)


def _label(label: str, length: float, several: bool) -> str:
    room = int(length * 90)
    return escape(clip(label, max(room, 3))) if length >= (_WORDED * 2 if several else _WORDED) else ""


@kept
def count_bars(
    labels: Sequence[str],
    counts: ArrayLike,
    expected: ArrayLike,
    errors: ArrayLike,
    *,
    n: int,
    n_tail: int,
    n_sd: int = 2,
) -> go.Figure:
    """How often each token came in n draws, beside how often it should.

    Args:
        labels: (K,) visible token texts, top to bottom; not escaped.
        counts: (K,) how often each came; if `n_tail`, (K + 1,): the last is that of all other tokens.
        expected: n times the probability, like `counts`.
        errors: standard deviations of the counts, like `counts`.
        n: draws in all.
        n_tail: how many tokens have no bar of their own; 0 draws no bar for them.
        n_sd: how many standard deviations the whiskers reach to either side.

    Raises:
        ValueError: counts or expected counts don't add up to n.
    """
    came, due, sd = (np.asarray(values, np.float64) for values in (counts, expected, errors))
    for values, what in ((came, "counts"), (due, "expected")):
        if abs(values.sum() - n) > 1e-3 * n:
            raise ValueError(say(f"sum.{what}", n=n, total=values.sum()))
    rows = [*labels, *([_tail_label(n_tail)] if n_tail else [])]
    y = np.arange(len(rows), dtype=np.int32)
    reach = np.minimum(n_sd * sd, due), n_sd * sd  # no count lies below 0
    never = say("never")
    numbers = [
        f"{c:,.0f}  ({format_number(e)} ± {format_number(n_sd * s)})" if e else f"{c:,.0f}  ({never})"
        for c, e, s in zip(came, due, sd, strict=True)
    ]
    fig = go.Figure(
        go.Bar(
            x=came.astype(np.float32),
            y=y,
            orientation="h",
            name=say("came"),
            marker_color=[MODEL] * len(labels) + [NEUTRAL] * (len(rows) - len(labels)),
            hovertemplate="%{customdata}<extra></extra>",
            customdata=[f"{escape(row)}<br>{word}" for row, word in zip(rows, numbers, strict=True)],
        )
    )
    fig.add_trace(
        go.Scatter(
            x=due.astype(np.float32),
            y=y,
            mode="markers",
            name=say("expected", n_sd=n_sd),
            marker={"symbol": "diamond", "size": 9, "color": TRUE},
            error_x={"type": "data", "array": reach[1], "arrayminus": reach[0], "color": TRUE,
                     "thickness": 2, "width": 6},
            hoverinfo="skip",
        )
    )  # fmt: skip
    right = np.maximum(came, due + reach[1])
    fig.add_trace(
        go.Scatter(
            x=right.astype(np.float32), y=y, mode="text", text=[f" {word}" for word in numbers],
            textposition="middle right", textfont={"size": FONT_SIZE, "color": INK}, showlegend=False,
            cliponaxis=False, hoverinfo="skip", name="counts",
        )
    )  # fmt: skip
    _label_axis(fig, rows)
    top = float(right.max(initial=1.0))
    put_xaxes(fig, title_text=say("axis.counts", n=n), range=[0, top * 1.9], tickvals=_ticks(top))
    outside = int((np.abs(came - due) > n_sd * sd + 1e-9).sum())
    alt = say("alt.counts", n=n, bars=len(rows), outside=outside, n_sd=n_sd)
    return finish(
        fig,
        height=len(rows) * _ROW + 110,
        alt=alt,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
    )
