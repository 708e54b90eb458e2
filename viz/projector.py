"""A figure for the back of a room: all its letters larger, and room for them."""

from typing import Any

import plotly.graph_objects as go

FACTOR = 1.35  # of letters
TALLER = 1.3  # of the figure, so that rows keep their distance
LEANING, UPRIGHT = -45, -90  # degrees of labels below or above columns
LEAN = 10  # columns: in more than these, larger letters that lean would run into each other
_LETTER = 10  # pixels of a larger one


def enlarge(fig: go.Figure) -> go.Figure:
    """A copy with larger letters; the figure itself is not changed.

    >>> made = enlarge(go.Figure(layout={"font": {"size": 20}, "height": 200}))
    >>> made.layout.font.size, made.layout.height
    (27.0, 260)
    """
    made = go.Figure(_larger(fig.to_plotly_json()))
    margin, before = made.layout.margin, fig.layout.margin
    for side in ("l", "r", "t", "b"):
        if margin[side]:
            margin[side] = round(margin[side] * FACTOR)
    if not made.layout.yaxis.scaleanchor:
        for name in ("height", "width"):
            if made.layout[name]:
                made.layout[name] = round(made.layout[name] * TALLER)
    elif made.layout.height:  # the screen's width bounds such a picture: it needs room for its letters alone
        made.layout.height += sum((margin[side] or 0) - (before[side] or 0) for side in ("t", "b"))
    for axis in made.select_xaxes({"tickangle": LEANING}):
        if len(axis.ticktext or ()) > LEAN:
            axis.tickangle = UPRIGHT
            if made.layout.height:  # they were 0.7 of their length high
                made.layout.height += round(0.3 * _LETTER * max(map(len, axis.ticktext)))
    return made


def _larger(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _font(value) if key.endswith("font") else _larger(value) for key, value in part.items()}
    if isinstance(part, list | tuple) and part and isinstance(part[0], dict):
        return [_larger(each) for each in part]
    return part


def _font(font: Any) -> Any:
    size = font.get("size") if isinstance(font, dict) else None
    return {**font, "size": round(size * FACTOR, 1)} if isinstance(size, int | float) else font
