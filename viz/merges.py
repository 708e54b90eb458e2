"""What merging bytes does to a text, and what vocabulary comes of it."""

from collections.abc import Callable, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.curves import round_ticks
from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import clip, escape, format_count, format_number, format_tick
from viz.theme import BESIDE_BAR, MODEL, NEUTRAL, TRUE, finish
from wording import words

say = words("viz.merges")

MAX_POINTS = 600  # of a line; more look the same
LONGEST = 24  # bytes that have a bar of their own


@kept
def corpus_length(lengths: ArrayLike, cursor: int | None = None) -> go.Figure:
    """How long a text is in tokens after each merge.

    Args:
        lengths: (M+1,) tokens after 0, 1, … M merges; `lengths[0]` are the bytes.
        cursor: a number of merges to mark; None marks nothing.

    Raises:
        ValueError: if there is no such number of merges.
    """
    y = np.asarray(lengths)
    last = len(y) - 1
    if cursor is not None and not 0 <= cursor <= last:
        raise ValueError(say("no_such_merge", cursor=cursor, last=last))
    x = np.unique(np.linspace(0, last, min(len(y), MAX_POINTS)).round().astype(np.int32))
    fig = go.Figure(
        go.Scatter(
            x=x,
            y=y[x].astype(np.int32),
            mode="lines+markers" if len(y) < 30 else "lines",
            line={"color": MODEL, "width": 2.5},
            customdata=(y[0] / np.maximum(y[x], 1)).astype(np.float32),
            hovertemplate=say("curve_hover"),
            name=say("tokens"),
        )
    )
    put_xaxes(fig, title_text=say("merges"), range=[-0.02 * max(last, 1), 1.02 * max(last, 1)])
    put_yaxes(fig, title_text=say("text_length"), rangemode="tozero", range=[0, 1.12 * y[0]])
    alt = say("curve", bytes=format_count(y[0]), merges=last, tokens=format_count(y[-1]))
    if cursor is not None:
        _mark(fig, cursor, int(y[cursor]), last, int(y[0]))
        alt += " " + say("at_cursor", merges=cursor, tokens=format_count(y[cursor]))
    return finish(fig, height=230, alt=alt, showlegend=False)


def _mark(fig: go.Figure, cursor: int, tokens: int, last: int, most: int) -> None:
    """A point on the curve and its numbers, where there is room: above the falling curve, or below it."""
    fig.add_vline(x=cursor, line={"color": NEUTRAL, "width": 1.5, "dash": "dash"})
    fig.add_trace(
        go.Scatter(
            x=[cursor], y=[tokens], mode="markers", name="here", hoverinfo="skip",
            marker={"color": TRUE, "size": 12, "line": {"color": "#FFFFFF", "width": 1.5}},
        )
    )  # fmt: skip
    left = cursor > last / 2
    below = left and tokens > 0.2 * most
    fig.add_annotation(
        x=cursor,
        y=tokens,
        text=say("count", tokens=format_count(tokens)),
        showarrow=False,
        xanchor="right" if left else "left",
        xshift=-10 if left else 10,
        yshift=-16 if below else 16,
    )


@kept
def token_lengths(sizes: ArrayLike) -> go.Figure:
    """How many tokens of a vocabulary have how many bytes.

    Args:
        sizes: (V,) bytes of each token. Those of more than 24 share the last bar.
    """
    all_sizes = np.asarray(sizes)
    counts = np.bincount(np.minimum(all_sizes, LONGEST + 1), minlength=2)[1:]
    x = np.arange(1, len(counts) + 1, dtype=np.int32)
    names = [str(n) for n in x.tolist()]
    if len(counts) > LONGEST:
        names[-1] = say("or_more", longest=LONGEST + 1)
    fig = go.Figure(
        go.Bar(
            x=x,
            y=counts.astype(np.int32),
            marker={"color": MODEL},
            text=[format_count(n) if n else "" for n in counts] if len(counts) <= 16 else None,
            customdata=names,
            hovertemplate=say("length_hover"),
            **BESIDE_BAR,
        )
    )
    step = 1 if len(counts) <= 12 else 4
    shown = [n for n in x.tolist() if n == 1 or n % step == 0 and n <= LONGEST]
    put_xaxes(
        fig,
        title_text=say("token_length"),
        tickvals=shown,
        ticktext=[str(n) for n in shown],
        range=[0.4, len(counts) + 0.6],
        showgrid=False,
    )
    put_yaxes(fig, title_text=say("of_that_length"), range=[0, 1.15 * float(counts.max())])
    longest = format_count(all_sizes.max())
    alt = say("lengths", tokens=format_count(len(all_sizes)), longest=longest)
    return finish(fig, height=300, alt=alt, showlegend=False)


@kept
def token_uses(labels: Sequence[str], uses: ArrayLike, *, chosen: int | None = None) -> go.Figure:
    """How often each token is used, against its place in that order; both axes in powers of ten.

    Tokens that are never used have no point: on such an axis 0 lies infinitely far down. The title says how
    many these are.

    Args:
        labels: (V,) visible token texts, by id; not escaped.
        uses: (V,) how often each is in the text, by id.
        chosen: id of a token to mark.
    """
    counts = np.asarray(uses)
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    # Evenly spaced on an axis of factors, so that the line looks the same as with every place.
    ranks = np.unique(np.geomspace(1, max(len(order), 1), MAX_POINTS).round().astype(np.int32))[: len(order)]
    drawn = order[ranks - 1]
    fig = go.Figure(
        go.Scatter(
            x=ranks,
            y=counts[drawn].astype(np.int32),
            mode="lines+markers",
            line={"color": MODEL, "width": 1.5},
            marker={"size": 4, "color": MODEL},
            customdata=[f"{escape(clip(labels[i], 24))}<br>id {i}" for i in drawn.tolist()],
            hovertemplate=say("use_hover"),
            name=say("tokens"),
        )
    )
    never = len(counts) - len(order)
    if chosen is not None and counts[chosen] > 0:
        place = int(np.flatnonzero(order == chosen)[0]) + 1
        _name_point(fig, place, int(counts[chosen]), labels[chosen], len(order))
    for axis, top, title in (
        (put_xaxes, len(order), say("place")),
        (put_yaxes, int(counts.max(initial=1)), say("uses_in_text")),
    ):
        ticks = round_ticks(1, max(top, 2), 6)
        axis(
            fig,
            type="log",
            title_text=title,
            tickvals=ticks,
            ticktext=[format_tick(t) for t in ticks],
            range=[-0.08, np.log10(max(top, 2)) * 1.08 + 0.05],
        )
    told = {"used": format_count(len(order)), "never": format_count(never)}
    if len(order):
        told |= {"most": format_number(counts[order[0]]), "least": format_number(counts[order[-1]])}
    alt = say("uses" if len(order) else "no_uses", **told)
    return finish(fig, height=300, alt=alt, showlegend=False)


def _name_point(fig: go.Figure, place: int, count: int, label: str, n: int) -> None:
    fig.add_trace(
        go.Scatter(
            x=[place], y=[count], mode="markers", name="chosen", hoverinfo="skip",
            marker={"color": TRUE, "size": 12, "line": {"color": "#FFFFFF", "width": 1.5}},
        )
    )  # fmt: skip
    left = place > n**0.8  # near the right end of an axis on which factors are even steps
    fig.add_annotation(
        x=float(np.log10(place)),
        y=float(np.log10(count)),
        text=escape(clip(label, 16)),
        showarrow=False,
        xanchor="right" if left else "left",
        xshift=-10 if left else 10,
        yshift=-14 if left else 14,
    )


def merge_tree(
    root: int,
    parts: Callable[[int], tuple[int, int] | None],
    label: Callable[[int], str],
    *,
    most: int = 40,
) -> str:
    """How a token was built, down to its bytes, as text: what it is made of stands below it, further right.

    Args:
        root: id of the token.
        parts: id to its left and right id; None for a byte.
        label: id to its visible text.
        most: lines; the rest is counted in words.

    Example:
        >>> parts = {256: (97, 98), 257: (256, 99)}.get
        >>> print(merge_tree(257, parts, lambda i: {257: "abc", 256: "ab"}.get(i) or chr(i)))
        257  abc
        ├─ 256  ab
        │  ├─ 97  a
        │  └─ 98  b
        └─ 99  c
    """
    lines: list[str] = []
    waiting = [(root, "", "")]  # (id, what stands before it, what stands before those below it)
    while waiting and len(lines) < most:
        token, before, below = waiting.pop()
        lines.append(f"{before}{token}  {clip(label(token), 40)}")
        halves = parts(token)
        if halves:
            waiting.append((halves[1], f"{below}└─ ", f"{below}   "))
            waiting.append((halves[0], f"{below}├─ ", f"{below}│  "))
    if waiting:
        lines.append(say("and_so_on"))
    return "\n".join(lines)
