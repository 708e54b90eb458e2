"""The curve of a run that is still learning: zoom, cursor and legend outlive every update."""

import base64
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

import viz
from ui.components._shared import Lasting, asset
from viz.curves import FAINT, REFERENCE_LOOKS, SERIES_LOOKS
from wording import words

say = words("ui.component_live_curve")

_PARTS = ("", "_scale", "_labels", "_draw", "_save")
_CODE = Lasting("code_of_lines", "liveCurve", *(f"live_curve{part}.js" for part in _PARTS))
_COMPONENT = st.components.v2.component(
    "loupe_live_curve",
    html=asset("live_curve.html"),
    css=asset("live_curve.css"),
    js=_CODE.js,
)
_DASHES = {"solid": [], "dash": [8, 5], "dot": [2, 4], "longdash": [14, 5], "dashdot": [9, 4, 2, 4]}
MAX_POINTS = 400  # a line; more would cost every viewer at every update and look the same


def live_curve(
    series: Sequence[viz.Series],
    references: Sequence[viz.Reference] = (),
    *,
    key: str,
    objective: str = "clm",
    x_title: str | None = None,
    y_title: str | None = None,
    unit: str | None = None,
    perplexity_axis: bool = True,
    log_x: bool = False,
    log_y: bool = False,
    height: int = 360,
    cursor: int | None = None,
    marks: Sequence[int] = (),
    on_point: Callable[[int], None] | None = None,
    with_code: bool = True,
) -> int | None:
    """Draws lines that grow.

    Args:
        series: lines; each is thinned to 400 points. NaN and infinite values are gaps, marked below the axis.
        references: named horizontal lines: where guessing starts, baselines, the floor.
        key: of the component.
        objective: names the perplexity.
        x_title: title of the steps.
        y_title: title of the values, with the unit; nats per token if not given.
        unit: of the values, said with a value that is read off; nats if not given.
        perplexity_axis: whether exp(value) is shown on the right; only losses in nats have one.
        log_x: steps on a logarithmic axis, which has no step 0.
        log_y: values on a logarithmic axis, which has none at or below 0.
        height: of the plot, pixels.
        cursor: step of a line across the plot. It moves when this value changes, and to what is pressed.
        marks: kept steps, drawn as ticks on the axis.
        on_point: called with the step of the mark nearest to where the curve was pressed, with the mouse, or
            with Enter, PageUp and PageDown. Without marks any step can be pressed.
        with_code: False in a part of the page that is drawn anew each second: there `curve_code` stands
            before that part, and what comes each second is the lines alone.

    Returns:
        The step that was pressed, in the run of the page which that has caused; else None.
    """
    if with_code:
        curve_code(key)
    perplexity = viz.perplexity_name(objective) if perplexity_axis else ""
    data = {
        "series": [_line(line) for line in series],
        "references": [
            {"value": r.value, "label": r.label, "role": r.role, "color": REFERENCE_LOOKS[r.role][0],
             "dash": _DASHES[REFERENCE_LOOKS[r.role][1]], "width": 2 if r.role in ("start", "floor") else 1.5}
            for r in references
            if np.isfinite(r.value)
        ],
        "words": say.table("words"),
        "xTitle": say("step") if x_title is None else x_title,
        "yTitle": say("loss") if y_title is None else y_title,
        "perplexity": perplexity,
        "perplexityTitle": say("perplexity_axis", name=perplexity) if perplexity else "",
        "unit": say("nats") if unit is None else unit,
        "logX": log_x,
        "logY": log_y,
        "height": height,
        "cursor": cursor,
        "marks": [int(step) for step in marks],
        "presses": on_point is not None,
    }  # fmt: skip

    def pressed() -> None:
        step = st.session_state[key].pressed
        if on_point is not None and isinstance(step, int):
            on_point(step)

    step = _COMPONENT(key=key, data=data, on_pressed_change=pressed).pressed
    return step if isinstance(step, int) else None


def curve_code(key: str) -> None:
    """Put on the page what draws the curve with this key; see `live_curve`'s `with_code`."""
    _CODE.bring(key)


def _line(line: viz.Series) -> dict[str, Any]:
    """One line as JSON, its steps as int32 and its values as float32, NaN where there is no number."""
    x, y = viz.thin(line.steps, line.values, MAX_POINTS)
    color, width, dash = SERIES_LOOKS[line.role]
    return {
        "name": line.name,
        "color": color,
        "width": width,
        "dash": _DASHES[dash],
        "alpha": FAINT.get(line.role, 1.0),
        "x": _packed(np.asarray(x, "<i4")),
        "y": _packed(np.where(np.isfinite(y), y, np.nan).astype("<f4")),
    }


def _packed(numbers: NDArray[Any]) -> str:
    return base64.b64encode(numbers.tobytes()).decode("ascii")
