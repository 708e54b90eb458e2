"""A law through the losses of several sizes: the runs, the curve, its band, and a run that was foretold."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.curves import Reference, reference_line, round_ticks
from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import format_number, format_tick
from viz.theme import MODEL, NEUTRAL, finish, rgb
from wording import words

say = words("viz.scaling")


@dataclass(frozen=True, eq=False)
class LawLines:
    """What a law says along the sizes.

    Attributes:
        sizes: (K,) rising.
        losses: (K,) nats.
        low, high: (K,) where a further run would lie.
        limit: E, what is left however large the size.
    """

    sizes: ArrayLike
    losses: ArrayLike
    low: ArrayLike
    high: ArrayLike
    limit: float


@dataclass(frozen=True)
class Foretold:
    """The run that the law foretells: its size, the span of its loss, and the loss it reached, if it ran."""

    size: float
    low: float
    high: float
    came: float | None = None


@kept
def law_figure(
    sizes: ArrayLike,
    losses: ArrayLike,
    names: Sequence[str],
    law: LawLines | None,
    *,
    x_title: str,
    floor: float | None = None,
    foretold: Foretold | None = None,
) -> go.Figure:
    """Loss against size, both on logarithmic axes.

    Args:
        sizes: (n,) of the runs.
        losses: (n,) that they reached, nats.
        names: of the runs, for the pointer.
        law: the fitted curve, or None.
        x_title: with its unit.
        floor: what the true source scores, or None.
        foretold: the larger run.
    """
    x, y = np.asarray(sizes, np.float64), np.asarray(losses, np.float64)
    fig = go.Figure()
    if law is not None:
        _law(fig, law)
    fig.add_trace(
        go.Scatter(
            x=x, y=y, mode="markers", name=say("runs"), marker={"size": 11, "color": MODEL},
            customdata=list(names),
            hovertemplate="%{customdata}<br>" + _nats_at() + "<extra></extra>",
        )
    )  # fmt: skip
    if foretold is not None:
        _foretold(fig, foretold)
    _axes(fig, x, y, law, floor, foretold, x_title)
    if floor is not None:
        reference_line(fig, Reference(floor, say("true_floor"), "floor"), log_y=True)
    said = [say("alt", x_title=x_title, n=len(x), first=format_number(y[0]), last=format_number(y[-1]))]
    if foretold is not None:
        span = {"low": foretold.low, "high": foretold.high}
        came = foretold.came
        said.append(say("alt_foretold", **span) if came is None else say("alt_came", **span, came=came))
    legend = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}
    return finish(fig, height=360, alt=" ".join(said), legend=legend, showlegend=True)


def _nats_at() -> str:
    return say("nats_at")


def _law(fig: go.Figure, law: LawLines) -> None:
    k, low, high = (np.asarray(v, np.float64) for v in (law.sizes, law.low, law.high))
    r, g, b = rgb(NEUTRAL)
    fig.add_trace(
        go.Scatter(
            x=np.concatenate([k, k[::-1]]), y=np.concatenate([high, low[::-1]]), fill="toself", mode="lines",
            line={"width": 0}, fillcolor=f"rgba({r}, {g}, {b}, 0.25)", hoverinfo="skip",
            name=say("further_run"),
        )
    )  # fmt: skip
    fig.add_trace(
        go.Scatter(
            x=k, y=np.asarray(law.losses, np.float64), mode="lines", name=say("law"),
            line={"color": MODEL, "width": 2, "dash": "dash"},
            hovertemplate=say("law_hover") + "<extra></extra>",
        )
    )  # fmt: skip


def _foretold(fig: go.Figure, told: Foretold) -> None:
    fig.add_trace(
        go.Scatter(
            x=[told.size, told.size], y=[told.low, told.high], mode="lines+markers", name=say("foretold"),
            line={"color": NEUTRAL, "width": 4},
            marker={"symbol": "line-ew-open", "size": 16, "line": {"width": 3, "color": NEUTRAL}},
            hovertemplate=f"{say('foretold')}<br>{_nats_at()}<extra></extra>",
        )
    )  # fmt: skip
    if told.came is not None:
        fig.add_trace(
            go.Scatter(
                x=[told.size], y=[told.came], mode="markers", name=say("what_came"),
                marker={"symbol": "diamond", "size": 15, "color": MODEL},  # one more run, not the true source
                hovertemplate=f"{say('larger_one')}<br>{_nats_at()}<extra></extra>",
            )
        )  # fmt: skip


def _axes(
    fig: go.Figure,
    x: np.ndarray,
    y: np.ndarray,
    law: LawLines | None,
    floor: float | None,
    told: Foretold | None,
    x_title: str,
) -> None:
    seen = [*y, *([floor] if floor else [])]
    wide = list(x)
    if told is not None:
        seen += [max(told.low, 0.3 * min(seen)), told.high, *([told.came] if told.came else [])]
        wide.append(told.size)
    if law is not None:
        wide += [float(np.min(law.sizes)), float(np.max(law.sizes))]
    low, high = 0.85 * min(seen), 1.1 * max(seen)
    left, right = 0.85 * min(wide), 1.15 * max(wide)
    for update, title, a, b, most in (
        (put_xaxes, x_title, left, right, 4),  # long numbers, and phones are narrow
        (put_yaxes, say("loss_axis"), low, high, 6),
    ):
        ticks = round_ticks(a, b, most=most)
        update(
            fig, title_text=title, type="log", range=[math.log10(a), math.log10(b)], tickvals=ticks,
            ticktext=[format_tick(v) for v in ticks],
        )  # fmt: skip
