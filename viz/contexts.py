"""A word in two contexts, layer by layer, and a map of its uses."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import clip, escape, format_number
from viz.theme import FONT_SIZE, INK, NEUTRAL, finish, objective_color
from wording import words

say = words("viz.contexts")

_LOOK = {"clm": ("circle", "solid"), "mlm": ("diamond", "dash")}
# Okabe & Ito's colours without yellow, and shapes: groups differ in both.
GROUPS = (
    ("#0072B2", "circle"), ("#D55E00", "square"), ("#009E73", "diamond"), ("#CC79A7", "triangle-up"),
    ("#8A6FD1", "cross"),
)  # fmt: skip


@kept
def similarity_lines(cosines: Mapping[str, ArrayLike], *, layer: int | None = None) -> go.Figure:
    """How alike a word's two vectors are after every block, one line for each model.

    Args:
        cosines: objective ("clm", "mlm") -> (L+1,) cosines, the embedding first.
        layer: a place to mark.
    """
    fig = go.Figure()
    n = max(len(np.asarray(values)) for values in cosines.values())
    low = 0.0
    for kind, values in cosines.items():
        y = np.asarray(values, np.float64)
        low = min(low, float(np.nanmin(y, initial=0.0)))
        symbol, dash = _LOOK[kind]
        fig.add_trace(
            go.Scatter(
                x=np.arange(len(y), dtype=np.int32),
                y=y,
                name=say(f"model.{kind}"),
                mode="lines+markers",
                line={"color": objective_color(kind), "width": 2.5, "dash": dash},
                marker={"symbol": symbol, "size": 10},
                customdata=[
                    say("point", model=say(f"model.{kind}"), place=_place(i), cosine=float(v))
                    for i, v in enumerate(y)
                ],
                hovertemplate="%{customdata}<extra></extra>",
                cliponaxis=False,
            )
        )
    if layer is not None:
        fig.add_vline(x=layer, line={"color": NEUTRAL, "width": 1, "dash": "dot"})
    put_xaxes(
        fig,
        title_text=say("after_block"),
        tickvals=list(range(n)),
        ticktext=[say("embedding"), *(str(i) for i in range(1, n))],
        range=[-0.3, n - 0.7],
    )
    put_yaxes(fig, title_text=say("cosine_two_vectors"), range=[low - 0.05, 1.08])
    ends = ", ".join(
        f"{say(f'kind.{kind}')} {format_number(float(np.asarray(values)[-1]))}"
        for kind, values in cosines.items()
    )
    legend = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}
    return finish(
        fig, height=330, alt=say("cosine_words_two_vectors", ends=ends),
        showlegend=True, legend=legend,
    )  # fmt: skip


def _place(layer: int) -> str:
    return say("after_nth_block", layer=layer) if layer else say("embedding")


@kept
def use_map(
    points: ArrayLike,
    groups: Sequence[str],
    said: Sequence[str],
    *,
    shares: tuple[float, float],
    chosen: int | None = None,
    near: Sequence[int] = (),
) -> go.Figure:
    """Uses of one word as points; those that go on alike share colour and shape.

    Args:
        points: (N,2) coordinates.
        groups: (N,) what each use belongs to; the five most frequent have a look of their own.
        said: (N,) what the pointer says of each; not escaped.
        shares: of the variance, along the two axes.
        chosen: a use to ring.
        near: uses that are joined to it by lines.
    """
    xy = np.asarray(points, np.float64)
    names, counts = np.unique(np.array(groups), return_counts=True)
    order = [str(names[i]) for i in np.argsort(-counts, kind="stable")]
    fig = go.Figure()
    for other in near if chosen is not None else ():
        fig.add_shape(
            type="line", x0=xy[chosen, 0], y0=xy[chosen, 1], x1=xy[other, 0], y1=xy[other, 1],
            line={"color": INK, "width": 1},
        )  # fmt: skip
    looks = dict(zip(order, GROUPS, strict=False))
    rest = [i for i, group in enumerate(groups) if group not in looks]
    parts = [(group, [i for i, g in enumerate(groups) if g == group], look) for group, look in looks.items()]
    if rest:
        parts.append((say("other"), rest, (NEUTRAL, "x")))
    for name, members, (color, symbol) in parts:
        fig.add_trace(
            go.Scatter(
                x=xy[members, 0].astype(np.float32),
                y=xy[members, 1].astype(np.float32),
                mode="markers",
                name=escape(clip(name, 12)),
                marker={"color": color, "symbol": symbol, "size": 10, "opacity": 0.85},
                customdata=[escape(said[i]) for i in members],
                hovertemplate="%{customdata}<extra></extra>",
            )
        )
    if chosen is not None:
        fig.add_trace(
            go.Scatter(
                x=xy[[chosen], 0], y=xy[[chosen], 1], mode="markers", name=say("chosen"),
                marker={"symbol": "circle-open", "size": 19, "color": INK, "line_width": 2}, hoverinfo="skip",
                showlegend=False,
            )
        )  # fmt: skip
    first, second = (100 * share for share in shares)
    put_xaxes(fig, title_text=say("first_direction", share=first), showticklabels=False, showgrid=False)
    put_yaxes(fig, title_text=say("second_direction", share=second), showticklabels=False, showgrid=False)
    alt = say("map_of_uses", n=len(groups), most=order[0]) if order else say("map_of_no_use")
    legend = {"orientation": "h", "y": -0.14, "yanchor": "top", "x": 0, "font": {"size": FONT_SIZE}}
    return finish(fig, height=400, alt=alt, showlegend=True, legend=legend)
