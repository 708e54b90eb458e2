"""Distributions over tokens: bars, stages of sampling, the best guesses at every position."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import clip, escape, format_count, format_number, format_prob
from viz.theme import (
    BESIDE_BAR,
    CAUSAL,
    MODEL,
    MONO,
    NEUTRAL,
    TRUE,
    cell_texts,
    color_bar,
    finish,
    frame_cells,
    frame_each,
    probability_cells,
)
from wording import words

say = words("viz.distributions")

_ROW = 26  # pixels for one bar
_GUESSES = 680  # pixels of the best guesses: narrower, long tokens would lie over each other


def _tail_label(n_tail: int) -> str:
    return say("rest", n=format_count(n_tail))


def _ticks(top: float) -> list[float]:
    """A few round places from 0 to the largest bar; the axis runs on for the labels, where no bar can be.

    >>> _ticks(0.9999), _ticks(0.32)
    ([0.0, 0.5, 1.0], [0.0, 0.1, 0.2, 0.3])
    """
    if top <= 0:
        return [0.0]
    power = 10.0 ** math.floor(math.log10(top / 3))
    step = next(m * power for m in (1, 2, 5, 10) if top / (m * power) < 3.5)
    n = int(top / step + 0.25)  # a place just past the longest bar counts
    return [round(i * step, 12) for i in range(n + 1)]


def _check_total(probs: np.ndarray, tail: float, name: str) -> None:
    total = float(probs.sum()) + tail
    if abs(total - 1) > 1e-3:
        raise ValueError(say("not_one", name=name, total=total))


def _label_axis(fig: go.Figure, labels: Sequence[str]) -> None:
    """Puts token labels on the y axis by place, first on top: equal labels stay apart."""
    put_yaxes(
        fig,
        tickvals=list(range(len(labels))),
        ticktext=["<br>".join(escape(clip(line, 22)) for line in label.split("\n")) for label in labels],
        tickfont_family=MONO,
        range=[len(labels) - 0.5, -0.5],
        showgrid=False,
    )


def _bars(values: np.ndarray, labels: Sequence[str], texts: Sequence[str], name: str, **style: Any) -> go.Bar:
    """One horizontal bar a row; the exact value shows on hover."""
    return go.Bar(
        y=np.arange(len(values), dtype=np.int32),
        x=values.astype(np.float32),
        orientation="h",
        name=name,
        text=list(texts),
        customdata=[
            [escape(label), repr(round(float(v), 9))] for label, v in zip(labels, values, strict=True)
        ],
        hovertemplate="%{customdata[0]}<br>" + escape(name) + ": %{customdata[1]}<extra></extra>",
        **style,
        **BESIDE_BAR,
    )


@kept
def distribution_bars(
    labels: Sequence[str],
    probs: ArrayLike,
    *,
    tail: float,
    n_tail: int,
    true_index: int | None = None,
    true_note: str = "",
    second: ArrayLike | None = None,
    second_tail: float | None = None,
    names: tuple[str, str] | None = None,
    unit: str = "",
    colors: tuple[str, str] = (MODEL, TRUE),
) -> go.Figure:
    """Horizontal bars of the tokens shown, then one bar for all the others: together they are 1.

    Args:
        labels: (K,) visible token texts, in the order in which they are drawn, top to bottom; not escaped.
        probs: (K,) their probabilities over the full vocabulary.
        tail: probability of all tokens not shown.
        n_tail: how many these are; 0 draws no such bar.
        true_index: the row of the token that really came, marked with an arrow and `true_note`.
        true_note: the words of that mark; without any, that it came next.
        second: (K,) another distribution over the same rows, for instance the true one.
        second_tail: its probability outside the rows shown.
        names: what the two are called; the model and the true distribution if not given.
        unit: title of the value axis; probability if not given.
        colors: of the two distributions.

    Raises:
        ValueError: shown bars and tail don't add up to 1.
    """
    names = names or (say("model"), say("truth"))
    true_note, unit = true_note or say("came_next"), unit or say("probability")
    given = [np.asarray(probs, dtype=np.float64)]
    tails = [float(tail)]
    if second is not None:
        given.append(np.asarray(second, dtype=np.float64))
        tails.append(1 - float(given[1].sum()) if second_tail is None else float(second_tail))
    rows = list(labels) + ([_tail_label(n_tail)] if n_tail else [])
    fig = go.Figure()
    for k, (values, rest) in enumerate(zip(given, tails, strict=True)):
        _check_total(values, rest, names[k])
        full = np.append(values, rest) if n_tail else values
        texts = [format_prob(v) for v in full]
        if k == 0 and true_index is not None:
            texts[true_index] += f"  <b>◀ {escape(true_note)}</b>"
        style: dict[str, Any] = {"marker_color": colors[k]}
        if n_tail:  # the rest is not one token: another look
            style = {"marker": {"color": [colors[k]] * len(values) + [NEUTRAL]}}
        if k == 1:  # not by colour alone
            style["marker"] = {"color": colors[k], "pattern": {"shape": "/", "size": 5, "solidity": 0.5}}
        fig.add_trace(_bars(full, rows, texts, names[k], **style))
    _label_axis(fig, rows)
    top = max(float(t.x.max()) for t in fig.data) if rows else 1.0
    room = 1.3
    if true_index is not None:  # beside a long bar the mark needs more room, also on a telephone
        room = 2.2 if given[0][true_index] > 0.6 * top else 1.75
    put_xaxes(fig, title_text=escape(unit), range=[0, max(top, 1e-9) * room], tickvals=_ticks(top))
    alt = [say("bars", unit=unit, n=len(labels))]
    if len(labels):
        alt.append(say("most_likely", token=labels[0], prob=format_prob(given[0][0])))
    if true_index is not None:
        alt.append(say("marked", note=true_note, token=labels[true_index]))
    both = second is not None
    return finish(
        fig,
        height=len(rows) * (_ROW + 14 * both) + 62 + 30 * both,
        alt=" ".join(alt),
        barmode="group",
        showlegend=both,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
    )


def _set_off(fig: go.Figure, row: int, k: int) -> None:
    """Frame a row of the best guesses and write its label bold."""
    frame_cells(fig, (0, k - 1), (row, row), CAUSAL, width=2)
    labels = list(fig.layout.yaxis.ticktext)
    labels[row] = f"<b>{labels[row]}</b>"
    put_yaxes(fig, ticktext=labels)


@kept
def position_heatmap(
    tokens: Sequence[str],
    top_labels: Sequence[Sequence[str]],
    top_probs: ArrayLike,
    *,
    true_rank: Sequence[int | None] | None = None,
    selected: int | None = None,
) -> go.Figure:
    """The best guesses after every position: rows are positions, columns ranks, colour is probability.

    Args:
        tokens: (T,) visible token texts, row labels from top to bottom; not escaped.
        top_labels: (T, K) visible texts of the best guesses.
        top_probs: (T, K) their probabilities.
        true_rank: (T,) rank (from 1) of the token that came next, or None; its cell is framed if shown.
        selected: a row to set off.
    """
    probs = np.asarray(top_probs, dtype=np.float32)
    n, k = probs.shape if probs.ndim == 2 else (0, 0)
    right = {(t, r - 1) for t, r in enumerate(true_rank or ()) if r is not None and r <= k}
    cells = [[escape(clip(label, 9)) for label in row] for row in top_labels]
    hover = [
        [
            say(
                "guess_that_came" if (t, j) in right else "guess",
                position=t,
                token=escape(tokens[t]),
                rank=j + 1,
                guess=escape(label),
                prob=float(probs[t, j]),
            )
            for j, label in enumerate(row)
        ]
        for t, row in enumerate(top_labels)
    ]
    fig = go.Figure(probability_cells(probs, hover, key=color_bar(say("probability"))))
    fig.add_trace(cell_texts(cells, probs))
    frame_each(fig, sorted(right), TRUE, width=3)
    _label_axis(fig, [f"{t} {clip(token, 9)}" for t, token in enumerate(tokens)])
    if selected is not None and selected < n:
        _set_off(fig, selected, k)
    put_yaxes(fig, title_text=say("after"))
    put_xaxes(
        fig,
        title_text=say("rank_framed" if right else "rank"),
        tickvals=list(range(k)),
        ticktext=[str(j + 1) for j in range(k)],
        side="top",
        range=[-0.5, k - 0.5],
        showgrid=False,
    )
    alt = say("guesses", k=k, n=n)
    if n and k:
        best = {"guess": top_labels[-1][0], "prob": format_number(float(probs[-1, 0]))}
        alt += " " + say("best_guess", token=tokens[-1], **best)
    return finish(fig, height=max(n, 4) * 30 + 120, alt=alt, width=_GUESSES)  # on a telephone it scrolls
