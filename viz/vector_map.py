"""Token vectors on a map: points in two or three principal components, and the way of one of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.kept import kept
from viz.names import name_sides
from viz.put import put_xaxes, put_yaxes
from viz.text import clip, escape, format_count, format_number
from viz.theme import CAUSAL, FONT_SIZE, GRID, INK, MODEL, MONO, NEUTRAL, finish
from wording import words

say = words("viz.vector_map")

_MAP = 520  # pixels for the height of a map
_NAMED_3D = 8  # in depth names can't be kept apart, so only a few are written


def _axis_title(i: int, share: float, k: int, fitted: str) -> str:
    """`PC 1, 4.4 % of the variance`; `PC 1 (4.4 %)` in a 3-D scene, which cuts long ones."""
    part = f"{format_number(100 * share, 2)} %"
    if k == 3:
        return f"PC {i + 1} ({part})"
    return say("axis_at_step" if fitted else "axis", i=i + 1, share=part, step=fitted)


@kept
def token_map(
    points: ArrayLike,
    names: Sequence[str],
    *,
    limits: ArrayLike,
    shares: ArrayLike,
    labelled: Sequence[int] = (),
    chosen: int | None = None,
    trail: ArrayLike | None = None,
    at: int = 0,
    color: str = CAUSAL,
    fitted: str = "",
) -> go.Figure:
    """Tokens as points in two or three principal components.

    Args:
        points: (N,K) coordinates now; K is 2 or 3.
        names: (N,) visible texts; not escaped.
        limits: (K,2) ends of the axes, the same at every step.
        shares: (K,) share of the variance along each axis.
        labelled: rows of `points` that are coloured and named, the tokens of the text for instance.
        chosen: a row drawn larger.
        trail: (S,K) where the chosen one was at each step, oldest first.
        at: which point of the trail is now.
        color: of the chosen token.
        fitted: the step that the axes come from, said in their titles.
    """
    spots = np.asarray(points, dtype=np.float32)
    k = spots.shape[1]
    fig = go.Figure()
    ends, parts = np.asarray(limits, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    marked = [i for i in labelled if i != chosen]
    one = [] if chosen is None else [chosen]
    rest = np.setdiff1d(np.arange(len(spots)), [*marked, *one])
    size = 5 if k == 3 else 9
    faint = {"color": NEUTRAL, "size": 3 if k == 3 else 6, "opacity": 0.55}
    sides = (
        dict.fromkeys([*one, *marked][:_NAMED_3D], "top center")
        if k == 3
        else _sides_on_map(spots, [*one, *marked], names, ends)
    )
    _add_points(fig, spots, names, rest, say("tokens"), faint, None)
    if trail is not None and chosen is not None:
        _add_trail(fig, np.asarray(trail, dtype=np.float32), at, color)
    _add_points(fig, spots, names, marked, say("named"), {"color": MODEL, "size": size}, sides)
    mark = {"color": color, "size": size + 5, "symbol": "diamond-open", "line": {"color": color, "width": 3}}
    _add_points(fig, spots, names, one, say("chosen"), mark, sides)
    titles = [_axis_title(i, float(parts[i]), k, fitted) for i in range(k)]
    alt = say("map", n=format_count(len(spots)), k=k)
    if chosen is not None:
        place = ", ".join(format_number(float(v)) for v in spots[chosen])
        alt += " " + say("chosen_at", name=names[chosen], place=place)
    if k == 3:
        return finish(
            fig, height=_MAP - 140, alt=alt, showlegend=False, scene=_scene(ends, titles), dragmode="orbit"
        )
    put_xaxes(fig, title_text=titles[0], range=ends[0].tolist(), zeroline=True, zerolinecolor=GRID)
    put_yaxes(
        fig, title_text=titles[1], range=ends[1].tolist(), scaleanchor="x", zeroline=True, zerolinecolor=GRID
    )
    return finish(fig, height=_MAP, alt=alt, showlegend=False)


def _sides_on_map(
    spots: np.ndarray, rows: Sequence[int], names: Sequence[str], ends: np.ndarray
) -> dict[int, str]:
    """See `name_sides`; on a map both axes have the same scale."""
    scale = min((_MAP - 80) / float(np.ptp(ends[1])), 400 / float(np.ptp(ends[0])))
    return name_sides([(r, *(spots[r] * scale).tolist(), clip(names[r], 16)) for r in rows])


def _scene(ends: np.ndarray, titles: list[str]) -> dict[str, Any]:
    """Axes of the 3-D map: fixed ends, the same scale on all, and seen from where every name fits in."""
    font = {"size": FONT_SIZE, "color": INK}
    axes = {
        f"{letter}axis": {"title": {"text": titles[i], "font": font}, "range": ends[i].tolist(), "nticks": 4,
                          "tickfont": font, "backgroundcolor": "rgba(0,0,0,0)", "gridcolor": GRID,
                          "color": INK, "zerolinecolor": GRID, "showspikes": False}
        for i, letter in enumerate("xyz")
    }  # fmt: skip
    spans = (
        np.ptp(ends, axis=1) / np.ptp(ends, axis=1).max()
    )  # the longest axis is 1: nothing leaves the view
    return {
        **axes,
        "aspectmode": "manual",
        "aspectratio": dict(zip("xyz", spans.tolist(), strict=True)),
        "camera": {"eye": {"x": 1.5, "y": 1.5, "z": 0.85}, "center": {"x": 0.1, "y": -0.1, "z": -0.15}},
    }


def _add_points(
    fig: go.Figure, spots: np.ndarray, names: Sequence[str], rows: ArrayLike, name: str,
    marker: dict[str, Any], sides: dict[int, str] | None,
) -> None:  # fmt: skip
    """One group of points, also if empty: the groups keep their places. `sides`: see `name_sides`."""
    rows = np.asarray(rows, dtype=np.int64)
    part = spots[rows]
    common: dict[str, Any] = {
        "mode": "markers" if sides is None else "markers+text",
        "marker": marker,
        "name": name,
        "customdata": [escape(clip(names[i], 24)) for i in rows],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    if sides is not None:
        common |= {
            "text": [escape(clip(names[i], 16)) if i in sides else "" for i in rows],
            "textposition": [sides.get(i, "top center") for i in rows.tolist()] or "top center",
            "textfont": {"family": MONO, "size": FONT_SIZE, "color": INK},
        }
    if spots.shape[1] == 3:
        fig.add_trace(go.Scatter3d(x=part[:, 0], y=part[:, 1], z=part[:, 2], **common))
    else:
        fig.add_trace(go.Scatter(x=part[:, 0], y=part[:, 1], cliponaxis=sides is None, **common))


def _add_trail(fig: go.Figure, trail: np.ndarray, at: int, color: str) -> None:
    """Where it was: what lies behind solid, what is still to come dotted."""
    parts = ((say("way_so_far"), trail[: at + 1], "solid"), (say("way_to_come"), trail[at:], "dot"))
    for name, part, dash in parts:
        style: dict[str, Any] = {"mode": "lines", "line": {"color": color, "width": 2, "dash": dash},
                                 "name": name, "hoverinfo": "skip"}  # fmt: skip
        if trail.shape[1] == 3:
            fig.add_trace(go.Scatter3d(x=part[:, 0], y=part[:, 1], z=part[:, 2], **style))
        else:
            fig.add_trace(go.Scatter(x=part[:, 0], y=part[:, 1], **style))
