"""The loss curve of a run that is still learning: zoom, cursor and legend outlive every update."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

import viz
from ui.components._shared import asset
from viz.curves import REFERENCE_LOOKS, SERIES_LOOKS

_COMPONENT = st.components.v2.component(
    "loupe_live_curve", html=asset("live_curve.html"), css=asset("live_curve.css"), js=asset("live_curve.js")
)
_DASHES = {"solid": [], "dash": [8, 5], "dot": [2, 4]}
MAX_POINTS = 400  # a line; more would cost every viewer at every update and look the same


def live_curve(
    series: Sequence[viz.Series],
    references: Sequence[viz.Reference] = (),
    *,
    key: str,
    objective: str = "clm",
    x_title: str = "step",
    y_title: str = "loss (nats per token)",
    log_y: bool = False,
    height: int = 360,
) -> None:
    """Draws lines that grow, with loss on the left and its perplexity on the right.

    Args:
        series: lines; each is thinned to 400 points. NaN and infinite values are gaps, marked below the axis.
        references: named horizontal lines: where guessing starts, the floor.
        key: of the component.
        objective: names the perplexity.
        x_title: title of the steps.
        y_title: title of the losses, with the unit.
        log_y: loss on a logarithmic axis.
        height: of the plot, pixels.
    """
    data = {
        "series": [_line(line) for line in series],
        "references": [
            {"value": r.value, "label": r.label, "role": r.role, "color": REFERENCE_LOOKS[r.role][0],
             "dash": _DASHES[REFERENCE_LOOKS[r.role][1]]}
            for r in references
            if np.isfinite(r.value)
        ],
        "xTitle": x_title,
        "yTitle": y_title,
        "perplexity": viz.perplexity_name(objective),
        "logY": log_y,
        "height": height,
    }  # fmt: skip
    _COMPONENT(key=key, data=data)


def _line(line: viz.Series) -> dict[str, Any]:
    """One line as JSON: whole steps, values to 7 digits, null where there is no number."""
    x, y = viz.thin(line.steps, line.values, MAX_POINTS)
    color, width, dash = SERIES_LOOKS[line.role]
    values = [float(f"{v:.7g}") if np.isfinite(v) else None for v in y]
    steps = [int(v) for v in x]
    return {"name": line.name, "color": color, "width": width, "dash": _DASHES[dash], "x": steps, "y": values}
