"""Token vectors among each other: the nearest, a map of them, and their lengths."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike
from plotly.subplots import make_subplots

from viz.text import clip, escape, format_count, format_number
from viz.theme import CAUSAL, FONT_SIZE, GRID, INK, MODEL, MONO, NEUTRAL, finish
from wording import words

say = words("viz.embeddings")

_ROW = 24  # pixels for one bar
_MAP = 520  # pixels for the height of a map
_NAMED_3D = 8  # in depth names can't be kept apart, so only a few are written
_GOLDEN = 0.6180339887  # its multiples, without their whole part, spread evenly: no chance needed


def cosine_bars(
    near: Sequence[str],
    near_values: ArrayLike,
    far: Sequence[str],
    far_values: ArrayLike,
    *,
    chosen: int = 0,
    color: str = CAUSAL,
) -> go.Figure:
    """Bars from -1 to 1: the tokens most alike, a gap, and the most opposite ones.

    Args:
        near: (N,) visible texts, the most alike on top; not escaped.
        near_values: (N,) their cosines.
        far: (M,) the most opposite, the most opposite at the bottom.
        far_values: (M,).
        chosen: row to set off, counted over both groups.
        color: of that row.
    """
    names = [*near, *far]
    values = np.concatenate([np.asarray(near_values, np.float64), np.asarray(far_values, np.float64)])
    places = [i if i < len(near) else i + 1 for i in range(len(names))]  # one empty row between the groups
    fig = go.Figure(
        go.Bar(
            y=np.array(places, dtype=np.int32),
            x=values.astype(np.float32),
            orientation="h",
            marker_color=[color if i == chosen else MODEL for i in range(len(names))],
            text=[format_number(v) for v in values],
            textposition="outside",
            constraintext="none",
            textfont={"size": FONT_SIZE, "color": INK},
            cliponaxis=False,
            customdata=[[escape(n), f"{v:.7g}"] for n, v in zip(names, values, strict=True)],
            hovertemplate=say("cosine_hover"),
            showlegend=False,
        )
    )
    n = len(names) + bool(far)
    labels = [escape(clip(name, 16)) for name in names]
    if far:
        places, labels = [*places, len(near)], [*labels, "⋮"]
    fig.update_yaxes(
        tickvals=places, ticktext=labels, tickfont_family=MONO, range=[n - 0.5, -0.5], showgrid=False
    )
    low = float(values.min()) if len(values) else 0.0
    fig.update_xaxes(
        title_text=say("cosine"),
        range=[low - 0.22 if low < 0 else -0.1, 1.15],
        tickvals=[-1, -0.5, 0, 0.5, 1],
    )
    fig.add_vline(x=0, line={"color": NEUTRAL, "width": 1})
    alt = say("cosines", n=len(names))
    if names:
        alt += " " + say("most_alike", name=names[0], value=format_number(values[0]))
    return finish(fig, height=n * _ROW + 62, alt=alt)


def _axis_title(i: int, share: float, k: int, fitted: str) -> str:
    """`PC 1, 4.4 % of the variance`; `PC 1 (4.4 %)` in a 3-D scene, which cuts long ones."""
    part = f"{format_number(100 * share, 2)} %"
    if k == 3:
        return f"PC {i + 1} ({part})"
    return say("axis_at_step" if fitted else "axis", i=i + 1, share=part, step=fitted)


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
    fig.update_xaxes(title_text=titles[0], range=ends[0].tolist(), zeroline=True, zerolinecolor=GRID)
    fig.update_yaxes(
        title_text=titles[1], range=ends[1].tolist(), scaleanchor="x", zeroline=True, zerolinecolor=GRID
    )
    return finish(fig, height=_MAP, alt=alt, showlegend=False)


def _sides_on_map(
    spots: np.ndarray, rows: Sequence[int], names: Sequence[str], ends: np.ndarray
) -> dict[int, str]:
    """See `name_sides`; on a map both axes have the same scale."""
    scale = min((_MAP - 80) / float(np.ptp(ends[1])), 400 / float(np.ptp(ends[0])))
    return name_sides([(r, *(spots[r] * scale).tolist(), clip(names[r], 16)) for r in rows])


def name_sides(points: Sequence[tuple[int, float, float, str]]) -> dict[int, str]:
    """On which side of its point each name is written; the first ones come first.

    No two names meet, and none lies on one of the points; but the first one is always written.

    Args:
        points: (row, x, y, name), in pixels as far as they can be known.

    Returns:
        Row -> Plotly's `textposition`. A name for which there is no room is left out: hovering tells it.

    >>> name_sides([(0, 0, 0, "cat"), (1, 5, 0, "dog"), (2, 2, 0, "owl"), (3, 3, 1, "ox"), (4, 4, 0, "bee")])
    {0: 'top center', 1: 'bottom center', 2: 'middle left', 3: 'middle right'}
    """
    taken = [(x - 7.0, y - 7.0, x + 7.0, y + 7.0) for _, x, y, _ in points]
    found = {}
    for i, (row, x, y, name) in enumerate(points):
        wide, high = 8.0 * len(name), 16.0
        for side, left, low in (
            ("top center", x - wide / 2, y + 8),
            ("bottom center", x - wide / 2, y - 8 - high),
            ("middle left", x - 9 - wide, y - high / 2),
            ("middle right", x + 9, y - high / 2),
        ):
            box = (left, low, left + wide, low + high)
            if not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
                taken.append(box)
                found[row] = side
                break
        else:
            if i == 0:  # the first one is the one that is looked at
                found[row] = "middle left"
                taken.append((x - 9 - wide, y - high / 2, x - 9, y + high / 2))
    return found


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
    fig.update_xaxes(range=[-0.3, 1.3], tickvals=[0.5], ticktext=[say("never")], showgrid=False, row=1, col=1)
    fig.update_xaxes(
        type="log",
        title_text=say("occurs"),
        range=[-0.12, float(np.log10(most)) + 0.2],
        tickvals=powers,
        ticktext=[format_count(p) for p in powers],
        row=1,
        col=2,
    )
    fig.update_yaxes(title_text=say("length"), row=1, col=1)
