"""How long token vectors are, by how often their tokens occur."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike
from plotly.subplots import make_subplots

from viz.kept import kept
from viz.names import name_sides
from viz.put import put_xaxes, put_yaxes
from viz.text import clip, escape, format_count
from viz.theme import CAUSAL, FONT_SIZE, INK, MODEL, MONO, NEUTRAL, finish
from wording import words

say = words("viz.vector_lengths")

_GOLDEN = 0.6180339887  # its multiples, without their whole part, spread evenly: no chance needed


@kept
def norm_scatter(
    counts: ArrayLike, norms: ArrayLike, names: Sequence[str], *, labelled: Sequence[int] = (),
    chosen: int | None = None, color: str = CAUSAL,
) -> go.Figure:  # fmt: skip
    """The length of each token's vector by how often the token occurs; those never seen stand apart.

    Args:
        counts: (V,) occurrences; the axis is logarithmic, so 0 has a panel of its own.
        norms: (V,) lengths.
        names: (V,) visible texts; not escaped.
        labelled: ids that are coloured and named.
        chosen: an id drawn larger.
        color: of the chosen token.
    """
    often, sizes = np.asarray(counts, dtype=np.int64), np.asarray(norms, dtype=np.float32)
    fig = make_subplots(
        rows=1, cols=2, column_widths=[0.14, 0.86], shared_yaxes=True, horizontal_spacing=0.02
    )
    marked = [i for i in labelled if i != chosen]
    one = [] if chosen is None else [chosen]
    rest = sorted(set(range(len(often))) - {*marked, *one})
    mark = {"color": color, "size": 14, "symbol": "diamond-open", "line": {"color": color, "width": 3}}
    groups: list[tuple[str, list[int], dict[str, Any]]] = [
        (say("tokens"), rest, {"color": NEUTRAL, "size": 6, "opacity": 0.55}),
        (say("named"), marked, {"color": MODEL, "size": 9}),
        (say("chosen"), one, mark),
    ]
    most = max(int(often.max(initial=0)), 1)
    sides = _sides_by_frequency([*one, *marked], often, sizes, names, most)
    for name, rows, marker in groups:
        for column, seen in ((1, False), (2, True)):
            places = np.array([i for i in rows if (often[i] > 0) == seen], dtype=np.int64)
            style: dict[str, Any] = {"name": name, "marker": marker, "mode": "markers"}
            if seen and rows is not rest:
                style |= {
                    "mode": "markers+text",
                    "text": [escape(clip(names[i], 12)) if i in sides else "" for i in places],
                    "textposition": [sides.get(i, "top center") for i in places.tolist()] or "top center",
                }
            fig.add_trace(_by_frequency(places, often, sizes, names, seen, style), 1, column)
    _frequency_axes(fig, most)
    n_seen = int((often > 0).sum())
    alt = say("lengths", seen=format_count(n_seen), never=format_count(len(often) - n_seen))
    return finish(fig, height=470, alt=alt)


def _sides_by_frequency(
    rows: Sequence[int], often: np.ndarray, sizes: np.ndarray, names: Sequence[str], most: int
) -> dict[int, str]:
    """See `name_sides`; only tokens that occur are named."""
    wide = 310 / (np.log10(most) + 0.32)
    high = 350 / (float(np.ptp(sizes)) or 1.0)
    return name_sides(
        [(r, float(np.log10(often[r])) * wide, float(sizes[r]) * high, clip(names[r], 12))
         for r in rows if often[r] > 0]
    )  # fmt: skip


def _by_frequency(
    rows: np.ndarray,
    often: np.ndarray,
    sizes: np.ndarray,
    names: Sequence[str],
    seen: bool,
    style: dict[str, Any],
) -> go.Scatter:
    """Points of one group; those never seen are spread over their panel, as their place says nothing."""
    x = often[rows] if seen else (rows * _GOLDEN) % 1
    hover = [[escape(names[i]), format_count(int(often[i])), f"{sizes[i]:.6g}"] for i in rows]
    return go.Scatter(
        x=x.astype(np.float32),
        y=sizes[rows],
        textfont={"family": MONO, "size": FONT_SIZE, "color": INK},
        customdata=hover,
        hovertemplate=say("length_hover"),
        showlegend=False,
        **style,
    )


def _frequency_axes(fig: go.Figure, most: int) -> None:
    powers = [10**p for p in range(len(str(most)))]
    put_xaxes(fig, (1, 1), range=[-0.3, 1.3], tickvals=[0.5], ticktext=[say("never")], showgrid=False)
    put_xaxes(
        fig,
        (1, 2),
        type="log",
        title_text=say("occurs"),
        range=[-0.12, float(np.log10(most)) + 0.2],
        tickvals=powers,
        ticktext=[format_count(p) for p in powers],
    )
    put_yaxes(fig, (1, 1), title_text=say("length"))
