"""Properties of a figure set quickly: Plotly's own `update_…` go property by property, ten times as slow.

A figure of the app took 15 ms of processor time for its common layout alone, which thirty people feel.
"""

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

_WHOLE = ("meta",)  # what stands in it is the caller's, no properties of Plotly
_ONE_WORD = ("paper_bgcolor", "plot_bgcolor")  # their underscore parts nothing


def put(fig: go.Figure, **layout: Any) -> None:
    """What `fig.update_layout(**layout)` does: nested properties by underscores, the rest stays.

    Lists, such as shapes, are replaced as a whole.

    >>> fig = go.Figure(layout={"margin": {"l": 8}})
    >>> put(fig, margin_r=16, xaxis={"title_text": "loss"})
    >>> fig.layout.margin.l, fig.layout.margin.r, fig.layout.xaxis.title.text
    (8, 16, 'loss')
    """
    for name, value in nested(layout).items():
        if isinstance(value, dict) and name not in _WHOLE and name in fig.layout:
            value = merged(fig.layout[name].to_plotly_json(), value)
        fig.layout[name] = value


def put_xaxes(fig: go.Figure, at: tuple[int, int] | None = None, /, **properties: Any) -> None:
    """What `fig.update_xaxes(**properties)` does, to every x axis or that of one subplot (row, column)."""
    _put_axes(fig, "xaxis", at, properties)


def put_yaxes(fig: go.Figure, at: tuple[int, int] | None = None, /, **properties: Any) -> None:
    """What `fig.update_yaxes(**properties)` does, to every y axis or that of one subplot (row, column)."""
    _put_axes(fig, "yaxis", at, properties)


def _put_axes(fig: go.Figure, kind: str, at: tuple[int, int] | None, properties: dict[str, Any]) -> None:
    if at is None:
        names = [name for name in fig.layout if name.startswith(kind)]
    else:
        names = [getattr(fig.get_subplot(*at), kind).plotly_name]
    put(fig, **dict.fromkeys(names, properties))


def nested(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties named with underscores, as dicts within dicts.

    >>> nested({"title_font": {"size": 13}, "title_text": "p"})
    {'title': {'font': {'size': 13}, 'text': 'p'}}
    """
    found: dict[str, Any] = {}
    for name, value in properties.items():
        first, _, rest = (name, "", "") if name in _ONE_WORD else name.partition("_")
        if rest:
            value = nested({rest: value})
        elif isinstance(value, Mapping) and name not in _WHOLE:
            value = nested(value)
        found = merged(found, {first: value})
    return found


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Both, with the new values where they differ; neither is changed.

    >>> merged({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}})
    {'a': {'x': 1, 'y': 3}}
    """
    found = dict(old)
    for name, value in new.items():
        both = isinstance(value, Mapping) and isinstance(found.get(name), Mapping) and name not in _WHOLE
        found[name] = merged(found[name], value) if both else value
    return found
