"""Pictures of masked training: the fates of tokens epoch by epoch, and a loss against what was paid for."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.attention import tick_labels
from viz.curves import Reference, finite_or_gap, reference_line
from viz.kept import kept
from viz.put import put_xaxes, put_yaxes
from viz.text import escape, format_number
from viz.theme import FONT_SIZE, GRID, MASKED, MONO, NEUTRAL, finish, frame_cells, ink_on, objective_color
from wording import words

say = words("viz.masking")

UNSCORED = "not scored"
FATES = {  # to colours; a letter says the same
    "mask": MASKED,
    "random": "#E69F00",
    "kept": "#56B4E9",
    UNSCORED: "rgba(128, 136, 145, 0.16)",
}
_CELL = 26  # pixels


def fate_color(fate: str) -> str:
    """The colour of a token's fate in a masked batch."""
    return FATES[fate]


def fate_name(fate: str) -> str:
    """What the screen calls it."""
    return say(f"fate.{fate}")


@kept
def fate_map(
    tokens: Sequence[str],
    rows: Sequence[Sequence[str]],
    names: Sequence[str],
    *,
    chosen: int | None = None,
    first: int = 0,
) -> go.Figure:
    """One row of cells for each epoch, one column for each token; letters say the fate.

    Args:
        tokens: (T,) visible token texts; not escaped.
        rows: (E,T) fates.
        names: (E,) of the rows, from top to bottom.
        chosen: a row to frame.
        first: the position of the first token in the whole text.
    """
    order = list(FATES)
    z = np.array([[order.index(fate) for fate in row] for row in rows], dtype=np.float32)
    shown = np.where(z == order.index(UNSCORED), np.nan, z)  # empty cells stay empty
    n, e = len(tokens), len(rows)
    steps = [
        [edge / 3, FATES[order[k]]] for k in range(3) for edge in (k, k + 1)
    ]  # three flat colours for 0, 1, 2
    fig = go.Figure(
        go.Heatmap(
            z=shown,
            x=np.arange(n, dtype=np.int32),
            y=np.arange(e, dtype=np.int32),
            zmin=-0.5,
            zmax=2.5,
            colorscale=steps,
            showscale=False,
            xgap=2,
            ygap=2,
            hoverongaps=False,
            customdata=[
                [f"{escape(t)}: {fate_name(fate)}" for t, fate in zip(tokens, row, strict=True)]
                for row in rows
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    letters = say.table("letter")
    cells = [(r, c, fate) for r, row in enumerate(rows) for c, fate in enumerate(row) if fate != UNSCORED]
    fig.add_trace(
        go.Scatter(
            x=[c for _, c, _ in cells],
            y=[r for r, _, _ in cells],
            text=[letters[fate] for _, _, fate in cells],
            mode="text",
            textfont={"size": 12, "family": MONO, "color": [ink_on(FATES[fate]) for _, _, fate in cells]},
            hoverinfo="skip",
            showlegend=False,
            name="cells",
        )
    )
    if chosen is not None:
        frame_cells(fig, (0, n - 1), (chosen, chosen), NEUTRAL, width=2)
    places, labels = tick_labels(tokens, first)
    put_xaxes(
        fig,
        tickvals=places, ticktext=labels, tickfont_family=MONO, tickangle=-60, side="bottom",
        range=[-0.5, n - 0.5], showgrid=False, title_text=say("token"),
    )  # fmt: skip
    put_yaxes(
        fig,
        tickvals=list(range(e)),
        ticktext=[escape(name) for name in names],
        range=[e - 0.5, -0.5],
        showgrid=False,
    )
    counts = [sum(fate != UNSCORED for fate in row) for row in rows]
    told = ", ".join(f"{name} {count}" for name, count in zip(names, counts, strict=True))
    return finish(fig, height=e * _CELL + 120, alt=say("which_chosen", tokens=n, draws=e, counts=told))


@kept
def paid_curve(
    paid: ArrayLike,
    losses: ArrayLike,
    *,
    objective: str,
    x_title: str,
    y_title: str,
    span: tuple[float, float],
    floor: float | None = None,
) -> go.Figure:
    """The loss of one objective against what it cost, on a logarithmic axis; never two losses on one.

    Args:
        paid: (N,) tokens read, or targets scored; 0 can't be drawn.
        losses: (N,) nats.
        objective: its colour.
        x_title: the quantity of `paid`.
        y_title: the quantity of `losses`, with its unit.
        span: the axis from where to where, so that two pictures side by side share it.
        floor: the loss of the true source on the same targets.
    """
    x, y = np.asarray(paid, np.float64), finite_or_gap(losses)
    drawn = x > 0
    fig = go.Figure(
        go.Scatter(
            x=x[drawn],
            y=y[drawn],
            mode="lines+markers",
            name=escape(y_title),
            line={"color": objective_color(objective), "width": 2.5},
            hovertemplate="%{x:,.0f} " + escape(x_title) + "<br>%{y:.6f} nats<extra></extra>",
        )
    )
    if floor is not None:
        reference_line(fig, Reference(floor, say("floor"), "floor"), log_y=False)
    low, high = np.log10(span[0]), np.log10(span[1])
    powers = range(int(np.ceil(low - 1e-9)), int(np.floor(high + 1e-9)) + 1)
    put_xaxes(
        fig,
        type="log", title_text=escape(x_title), range=[low, high], gridcolor=GRID,
        tickvals=[10.0**k for k in powers], ticktext=[_short(10**k) for k in powers],
    )  # fmt: skip
    top = float(np.nanmax(y)) if len(y) and np.isfinite(y).any() else 1.0
    put_yaxes(fig, title_text=escape(y_title).replace(" (", "<br>("), range=[-0.12 * top, 1.05 * top])
    last = y[np.isfinite(y)]
    names = {"y": y_title, "x": x_title}
    alt = (
        say("loss_against_cost", last=format_number(float(last[-1])), **names)
        if len(last)
        else say("no_point_yet", **names)
    )
    return finish(fig, height=300, alt=alt, showlegend=False, font_size=FONT_SIZE)


def _short(n: int) -> str:
    """A power of ten as people say it: 1,000, 100,000, 1 million."""
    return f"{n:,}" if n < 10**6 else say("millions", n=n // 10**6)
