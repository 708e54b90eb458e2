"""The numbers of a figure as a tidy table: one row for every bar, cell or point that is drawn."""

import html
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.theme import MONO
from wording import words

say = words("viz.tables")

_TAG = re.compile(r"<[^>]+>")
_NUMBER = re.compile(r"[-−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?$")


def plain(text: Any) -> str:
    """What a text of a figure says: its markup taken away, its entities read.

    >>> plain("<b>◀ came</b> &lt;b&gt;<br>&#36;x&#36;")
    '◀ came <b> $x$'
    """
    return html.unescape(_TAG.sub("", str(text).replace("<br>", " ")))


def table_of(fig: go.Figure) -> pd.DataFrame:
    """Every value that a figure draws.

    Columns: the trace's name if there are several; the axes by their titles (those without one are "token" or
    "label"), with the written labels where places have some; for heat maps the colour bar's title or "value";
    the note at a point, without what stands in the other columns, if there is one.
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
        columns[plain(bar) if bar else say("value")] = z.reshape(-1)
        notes = _notes(trace, columns, z.shape[0], z.shape[1])
    else:
        y_given = trace.y if trace.y is not None else ()
        xs = np.asarray(trace.x) if trace.x is not None else np.arange(len(y_given))
        ys = np.asarray(y_given)
        if len(xs) == 1 and xs[0] is None:
            return pd.DataFrame()
        columns = {**_labelled(x_name, xs, x_axis), **_labelled(y_name, ys, y_axis)}
        notes = _notes(trace, columns, len(ys))
    if notes is not None:
        columns[say("note")] = notes
    return _table(columns, trace, named)


def _rows_in_space(fig: go.Figure, trace: Any, named: bool) -> pd.DataFrame:
    """The points of a 3-D trace."""
    scene = fig.layout[trace.scene or "scene"]
    columns = {
        _title(scene[f"{letter}axis"], letter): np.asarray(trace[letter])
        for letter in "xyz"
        if trace[letter] is not None
    }
    notes = _notes(trace, columns, len(next(iter(columns.values()), ())))
    if notes is not None:
        columns[say("note")] = np.asarray(notes, dtype=object)
    return _table(columns, trace, named)


def _table(columns: dict[str, Any], trace: Any, named: bool) -> pd.DataFrame:
    table = pd.DataFrame(columns)
    if named:
        table.insert(0, say("series"), plain(trace.name or ""))
    return table


def _axis(fig: go.Figure, trace: Any, letter: str) -> Any:
    number = (getattr(trace, f"{letter}axis", None) or letter)[1:]
    return fig.layout[f"{letter}axis{number}"]


def _title(axis: Any, otherwise: str) -> str:
    if axis.title and axis.title.text:
        return plain(axis.title.text)
    if not axis.ticktext:
        return otherwise
    return (
        say("token") if axis.tickfont.family == MONO else say("label")
    )  # tokens have a typeface of their own


def _labelled(name: str, values: np.ndarray, axis: Any) -> dict[str, Any]:
    """The labels of an axis as a column; with their places where labels repeat or some have none."""
    places, texts = axis.tickvals, axis.ticktext
    if places is None or texts is None or axis.type == "log":  # there they are numbers, and between them more
        return {name: values}
    label_at = {float(place): plain(text) for place, text in zip(places, texts, strict=False)}
    labels = [label_at.get(float(value), "") for value in values]
    if not any(labels):
        return {name: values}
    alone = "" not in labels and len(set(label_at.values())) == len(label_at)
    return {name: labels} if alone else {name: labels, say("place", name=name): values}


def _notes(trace: Any, columns: dict[str, Any], *shape: int) -> Sequence[str] | None:
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
    written = zip(*(list(values) for values in columns.values()), strict=True)
    notes = [_note(row, beside) for row, beside in zip(rows, written, strict=True)]
    return notes if any(notes) else None


def _note(parts: Iterable[Any], beside: Sequence[Any]) -> str:
    """What the pointer says and the row does not: neither its labels again nor its numbers, shorter."""
    said = [plain(line).replace("\n", " ") for part in parts for line in str(part).split("<br>")]
    labels = {value for value in beside if isinstance(value, str)}
    numbers = [float(value) for value in beside if isinstance(value, (int, float, np.number))]
    return "; ".join(line for line in said if line not in labels and not _repeats(line, numbers))


def _repeats(line: str, numbers: Sequence[float]) -> bool:
    """Whether a line ends with one of these numbers, or one so near that only its digits are fewer."""
    found = _NUMBER.search(line.removesuffix(" nats").removesuffix(" bits").removesuffix(" %"))
    if not found:
        return False
    value = float(found[0].replace(",", "").replace("−", "-"))
    return any(math.isclose(value, x, rel_tol=1e-5, abs_tol=1e-9) for x in numbers)
