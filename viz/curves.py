"""Numbers along the steps of a training: loss curves, and their axes and lines."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.put import put, put_xaxes, put_yaxes
from viz.text import escape, format_number, format_tick
from viz.theme import (
    MODEL,
    NEUTRAL,
    TRAIN,
    TRUE,
    VALID,
    finish,
    perplexity_name,
)
from wording import words

say = words("viz.curves")

# Colour and dash of a run. Two with one dash stay apart for colour-blind eyes; none is the floor's.
RUN_LOOKS = (
    ("#376EE0", "solid"), ("#A67C00", "dash"), ("#B33C9C", "dot"), ("#0E9855", "dashdot"),
    ("#CF3F4A", "solid"), ("#7C64DC", "dash"), ("#7A8B1F", "dot"), ("#D65F9E", "dashdot"),
)  # fmt: skip
# role -> colour, line width, Plotly dash: never told apart by colour alone
SERIES_LOOKS = {
    "train": (TRAIN, 1.5, "solid"),
    "raw": (TRAIN, 1.0, "solid"),  # what a smoothed line was made from, behind it
    "smooth": (TRAIN, 2.5, "solid"),
    "valid": (VALID, 3.0, "solid"),
    "model": (MODEL, 2.5, "solid"),
    "true": (TRUE, 2.5, "dash"),
    "other": (NEUTRAL, 2.0, "dot"),
    **{f"run {i}": (color, 2.5, dash) for i, (color, dash) in enumerate(RUN_LOOKS)},
}
FAINT = {"raw": 0.4}  # role -> opacity, of those that are not opaque
REFERENCE_LOOKS = {
    "start": (NEUTRAL, "dot"),
    "unigram": (NEUTRAL, "dash"),
    "bigram": (NEUTRAL, "longdash"),
    "trigram": (NEUTRAL, "dashdot"),
    "floor": (TRUE, "dash"),
    "other": (NEUTRAL, "dash"),
}


@dataclass(frozen=True, eq=False)
class Series:
    """One line: `steps` (N,), `values` (N,), NaN or infinite where there is none; `role` gives its look."""

    name: str
    steps: ArrayLike
    values: ArrayLike
    role: str = "other"


@dataclass(frozen=True)
class Reference:
    """A horizontal line with words on it: the `"start"` (ln V), a baseline, the `"floor"`, or another."""

    value: float
    label: str
    role: str = "other"


def thin(steps: ArrayLike, values: ArrayLike, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """At most `n` of the points, by which the line looks the same.

    Each of equal parts of the line keeps its lowest and highest point and one that is not finite, so no spike
    and no gap is lost; the first and last point always stay.

    Args:
        steps: (N,) in order.
        values: (N,) may hold NaN and infinities.
        n: most points, at least 5.

    Returns:
        steps (M,) and values (M,) float32, M <= n.
    """
    x = np.asarray(steps)
    y = np.asarray(values, dtype=np.float64)
    if n < 5:
        raise ValueError(say("too_few_points", n=n))
    if len(y) <= n:
        return x, y.astype(np.float32)
    keep = {0, len(y) - 1}
    for part in np.array_split(np.arange(1, len(y) - 1), (n - 2) // 3):
        finite = np.isfinite(y[part])
        if finite.any():
            inside = part[finite]
            keep |= {int(inside[y[inside].argmin()]), int(inside[y[inside].argmax()])}
        if not finite.all():
            keep.add(int(part[~finite][0]))
    order = sorted(keep)
    return x[order], y[order].astype(np.float32)


def finite_or_gap(values: ArrayLike) -> np.ndarray:
    """(N,) float32 with NaN wherever a value is not finite, so that lines break there."""
    y = np.array(values, dtype=np.float32)
    y[~np.isfinite(y)] = np.nan
    return y


def round_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Round numbers between `low` and `high`, both above 0, for an axis on which factors are even steps.

    Example:
        >>> round_ticks(1, 500)
        [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]
        >>> round_ticks(1, 1_000_000)
        [1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0, 1000000.0]
    """
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in (
        (1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 7, 8, 9),
        (1, 1.5, 2, 3, 5, 7),
        (1, 2, 5),
        (1, 3),
        (1,),
    ):
        found = [
            m * 10.0**e
            for e in exponents
            for m in factors
            if low * (1 - 1e-9) <= m * 10.0**e <= high * (1 + 1e-9)
        ]
        if len(found) <= most + 1:
            return found
    return found


def _perplexity_axis(fig: go.Figure, low: float, high: float, name: str, log_y: bool) -> None:
    """A second scale on the right: the same heights read as exp(loss)."""
    ticks = round_ticks(math.exp(max(low, 0.0)), math.exp(min(high, 80.0)))
    fig.add_trace(go.Scatter(x=[None], y=[None], yaxis="y2", showlegend=False, hoverinfo="skip"))
    put(
        fig,
        yaxis2={
            "overlaying": "y",
            "matches": "y",
            "side": "right",
            "title": {"text": say("perplexity_axis", name=name)},
            "type": "log" if log_y else "linear",
            "tickvals": [math.log(p) for p in ticks if p > 1 or not log_y],
            "ticktext": [format_tick(p) for p in ticks if p > 1 or not log_y],
            "showgrid": False,
        },
    )


def _log_ticks(low: float, high: float) -> dict[str, list[Any]]:
    """Labels for a logarithmic axis: Plotly's own go down to a size nobody can read."""
    ticks = round_ticks(low, high)
    return {"tickvals": ticks, "ticktext": [format_tick(v) for v in ticks]}


def reference_line(fig: go.Figure, reference: Reference, log_y: bool) -> None:
    """A horizontal line named where it stands."""
    color, dash = REFERENCE_LOOKS[reference.role]
    fig.add_hline(y=reference.value, line={"color": color, "width": 2, "dash": dash})
    fig.add_annotation(
        x=1,
        xref="x domain",
        xanchor="right",
        y=math.log10(reference.value) if log_y else reference.value,
        yanchor="top" if reference.role == "floor" else "bottom",
        text=escape(f"{reference.label} · {format_number(reference.value)}"),
        showarrow=False,
    )


def loss_curve(
    series: Sequence[Series],
    *,
    references: Sequence[Reference] = (),
    objective: str = "clm",
    log_x: bool = False,
    log_y: bool = False,
    perplexity_axis: bool = True,
) -> go.Figure:
    """Loss against steps, standing still; gaps where it is not finite.

    Args:
        series: lines; each is thinned to 2,000 points.
        references: horizontal lines such as ln V and the floor, named on the line.
        objective: names the perplexity on the right.
        log_x: steps on a logarithmic axis (step 0 can't be drawn there).
        log_y: loss on a logarithmic axis.
        perplexity_axis: show exp(loss) on the right.
    """
    fig = go.Figure()
    seen = [r.value for r in references]
    said = [say("alt")]
    for line in series:
        x, y = thin(line.steps, line.values, 2000)
        if log_x:
            x, y = x[x > 0], y[x > 0]
        y = finite_or_gap(y)
        color, width, dash = SERIES_LOOKS[line.role]
        fig.add_trace(
            go.Scatter(
                x=x,
                y=y,
                name=escape(line.name),
                mode="lines+markers" if len(x) < 30 else "lines",
                connectgaps=False,
                line={"color": color, "width": width, "dash": dash},
                customdata=np.exp(np.minimum(y, 80)).astype(np.float32),
                hovertemplate=say("hover", name=escape(line.name), perplexity=perplexity_name(objective))
                + "<extra></extra>",
            )
        )
        good = y[np.isfinite(y)]
        seen += [float(good.min()), float(good.max())] if len(good) else []
        said += [say("ends", name=line.name, loss=format_number(float(good[-1])))] if len(good) else []
    for reference in references:
        reference_line(fig, reference, log_y)
    low, high = (min(seen), max(seen)) if seen else (0.0, 1.0)
    pad = 0.08 * (high - low or 1.0)
    low, high = (max(low * 0.85, 1e-6), high * 1.15) if log_y else (low - 1.3 * pad, high + 1.3 * pad)
    put_xaxes(fig, title_text=say("step"))
    put_yaxes(fig, title_text=say("loss_axis"), range=[low, high])
    if log_x:
        last_step = max((float(t.x[-1]) for t in fig.data if t.x is not None and len(t.x)), default=10.0)
        put_xaxes(fig, type="log", **_log_ticks(1, max(last_step, 2)))
    if log_y:
        put_yaxes(fig, type="log", range=[math.log10(low), math.log10(high)], **_log_ticks(low, high))
    if perplexity_axis:
        _perplexity_axis(fig, low, high, perplexity_name(objective), log_y)
    legend = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}
    return finish(fig, height=400, alt=" ".join(said), legend=legend, showlegend=True)
