"""The numbers of a figure as a tidy table: one row for every bar, cell or point that is drawn."""

import html
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

_TAG = re.compile(r"<[^>]+>")


def plain(text: Any) -> str:
    """What a text of a figure says: its markup taken away, its entities read.

    >>> plain("<b>◀ came</b> &lt;b&gt;<br>&#36;x&#36;")
    '◀ came <b> $x$'
    """
    return html.unescape(_TAG.sub("", str(text).replace("<br>", " ")))


def table_of(fig: go.Figure) -> pd.DataFrame:
    """Every value that a figure draws.

    Columns: the trace's name if there are several; the axes by their titles, with the written labels where
    places have some; for heat maps the colour bar's title or "value"; the note at a point, if it has one.
    """
    traces = [t for t in fig.data if t.hoverinfo != "skip" and not str(t.name or "").startswith("cells")]
    tables = [table for table in (_rows(fig, trace, len(traces) > 1) for trace in traces) if len(table)]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _rows(fig: go.Figure, trace: Any, named: bool) -> pd.DataFrame:
    """One trace as rows."""
    if trace.type == "scatter3d":
        return _rows_in_space(fig, trace, named)
    x_axis, y_axis = _axis(fig, trace, "x"), _axis(fig, trace, "y")
    x_name, y_name = _title(x_axis, "x"), _title(y_axis, "y")
    if x_name == y_name:
        x_name, y_name = f"{x_name} (x)", f"{y_name} (y)"
    if trace.type == "heatmap":
        z = np.asarray(trace.z)
        x = np.arange(z.shape[1]) if trace.x is None else np.asarray(trace.x)
        y = np.arange(z.shape[0]) if trace.y is None else np.asarray(trace.y)
        xs, ys = np.tile(x, len(y)), np.repeat(y, len(x))
        bar = trace.colorbar.title.text if trace.colorbar and trace.colorbar.title else None
        columns = {**_labelled(y_name, ys, y_axis), **_labelled(x_name, xs, x_axis)}
        columns[plain(bar) if bar else "value"] = z.reshape(-1)
        notes = _notes(trace, z.shape[0], z.shape[1])
    else:
        y_given = trace.y if trace.y is not None else ()
        xs = np.asarray(trace.x) if trace.x is not None else np.arange(len(y_given))
        ys = np.asarray(y_given)
        if len(xs) == 1 and xs[0] is None:
            return pd.DataFrame()
        columns = {**_labelled(x_name, xs, x_axis), **_labelled(y_name, ys, y_axis)}
        notes = _notes(trace, len(ys))
    if notes is not None:
        columns["note"] = notes
    return _table(columns, trace, named)


def _rows_in_space(fig: go.Figure, trace: Any, named: bool) -> pd.DataFrame:
    """The points of a 3-D trace."""
    scene = fig.layout[trace.scene or "scene"]
    columns = {
        _title(scene[f"{letter}axis"], letter): np.asarray(trace[letter])
        for letter in "xyz"
        if trace[letter] is not None
    }
    notes = _notes(trace, len(next(iter(columns.values()), ())))
    if notes is not None:
        columns["note"] = np.asarray(notes, dtype=object)
    return _table(columns, trace, named)


def _table(columns: dict[str, Any], trace: Any, named: bool) -> pd.DataFrame:
    table = pd.DataFrame(columns)
    if named:
        table.insert(0, "series", plain(trace.name or ""))
    return table


def _axis(fig: go.Figure, trace: Any, letter: str) -> Any:
    number = (getattr(trace, f"{letter}axis", None) or letter)[1:]
    return fig.layout[f"{letter}axis{number}"]


def _title(axis: Any, otherwise: str) -> str:
    return plain(axis.title.text) if axis.title and axis.title.text else otherwise


def _labelled(name: str, values: np.ndarray, axis: Any) -> dict[str, Any]:
    """The labels of an axis as a column; with their places where labels repeat or some have none."""
    places, texts = axis.tickvals, axis.ticktext
    if places is None or texts is None:
        return {name: values}
    label_at = {float(place): plain(text) for place, text in zip(places, texts, strict=False)}
    labels = [label_at.get(float(value), "") for value in values]
    if not any(labels):
        return {name: values}
    alone = "" not in labels and len(set(label_at.values())) == len(label_at)
    return {name: labels} if alone else {name: labels, f"{name}: place": values}


def _notes(trace: Any, *shape: int) -> Sequence[str] | None:
    """What the pointer says of each value, one line; None if it says nothing of its own."""
    data = trace.customdata
    if data is None:
        return None
    found = np.asarray(data, dtype=object)
    if found.shape[: len(shape)] != shape:
        return None
    rows = found.reshape(int(np.prod(shape)), -1)
    if not isinstance(rows[0, 0], str):
        return None
    return ["; ".join(plain(str(part).replace("<br>", "; ")) for part in row) for row in rows]
