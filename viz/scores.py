"""Logits and log-probabilities of the tokens shown: quantities of which there is no rest to draw."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.distributions import _ROW, _label_axis
from viz.kept import kept
from viz.put import put_xaxes
from viz.text import escape, format_count, format_number
from viz.theme import BESIDE_BAR, FONT_SIZE, INK, MODEL, TRUE, finish
from wording import words

say = words("viz.scores")


@kept
def score_bars(
    labels: Sequence[str],
    values: ArrayLike,
    *,
    title: str,
    n_left: int,
    true_index: int | None = None,
    true_note: str = "",
    second: ArrayLike | None = None,
    names: tuple[str, str] | None = None,
) -> go.Figure:
    """Horizontal bars from 0, to the left where a value is negative; what is left out is counted in words.

    Args:
        labels: (K,) visible token texts, top to bottom; not escaped.
        values: (K,) logits or log-probabilities.
        title: of the value axis, with the unit if there is one.
        n_left: how many tokens of the vocabulary are not drawn.
        true_index: the row of the token that really came, marked with `true_note`.
        true_note: the words of that mark; without any, that it came next.
        second: (K,) the same quantity of another distribution; where it is -∞, words stand for the bar.
        names: what the two are called; without names the model and the true distribution.
    """
    names, true_note = names or (say("model"), say("true")), true_note or say("came")
    given = [np.asarray(v, np.float64) for v in (values, second) if v is not None]
    fig = go.Figure()
    for k, row in enumerate(given):
        finite = np.isfinite(row)
        texts = [format_number(v, 4) if ok else "" for v, ok in zip(row, finite, strict=True)]
        if k == 0 and true_index is not None:
            texts[true_index] += f"  <b>{escape(true_note)}</b>"
        marker: dict[str, Any] = {"color": (MODEL, TRUE)[k]}
        if k:  # not by colour alone
            marker["pattern"] = {"shape": "/", "size": 5, "solidity": 0.5}
        fig.add_trace(
            go.Bar(
                y=np.arange(len(row), dtype=np.int32),
                x=np.where(finite, row, np.nan).astype(np.float32),
                orientation="h",
                name=escape(names[k]),
                marker=marker,
                text=texts,
                customdata=[[escape(t), f"{v:.9g}"] for t, v in zip(labels, row, strict=True)],
                hovertemplate=f"%{{customdata[0]}}<br>{escape(names[k])}: %{{customdata[1]}}<extra></extra>",
                **BESIDE_BAR,
            )
        )
        if not finite.all():
            _say_never(fig, np.flatnonzero(~finite), 0.19 * k, names[k])
    drawn = np.concatenate([v[np.isfinite(v)] for v in given] + [np.zeros(1)])
    low, high = float(drawn.min()), float(drawn.max())
    span = high - low or 1.0
    note = 0.7 if true_index is not None else 0.0
    room = [(0.3 + note) * span if low < 0 else 0, (0.3 + note) * span if high > 0 else 0.02 * span]
    _label_axis(fig, labels)
    left_out = "<br>" + say("left_out", n=format_count(n_left)) if n_left else ""
    put_xaxes(fig, title_text=escape(title) + left_out, range=[low - room[0], high + room[1]])
    put_xaxes(fig, nticks=6, zeroline=True)
    both = second is not None
    alt = say("alt", title=title, tokens=len(labels))
    if len(labels):
        alt += " " + say("alt_highest", token=labels[0], value=format_number(float(given[0][0])))
    return finish(
        fig,
        height=len(labels) * (_ROW + 14 * both) + 80 + 30 * both,
        alt=alt,
        barmode="group",
        showlegend=both,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
    )


def _say_never(fig: go.Figure, rows: np.ndarray, down: float, name: str) -> None:
    """Words where a bar would begin: to the left of 0, as to the right there is no room.

    Args:
        fig: changed in place.
        rows: of the tokens that never come.
        down: how far below the middle of a row this distribution's bars lie.
        name: of the distribution.
    """
    fig.add_trace(
        go.Scatter(
            x=np.zeros(len(rows), dtype=np.float32), y=rows + down, mode="text", name=escape(name),
            text=[say("never")] * len(rows), textposition="middle left", showlegend=False,
            textfont={"size": FONT_SIZE, "color": INK}, hoverinfo="skip", cliponaxis=False,
        )
    )  # fmt: skip
