"""The one visual language: what each colour means, and how every figure is laid out.

All colours were chosen to stand out by at least 3:1 on the light and on the dark background, and to stay
apart for the common kinds of colour blindness; tests hold that. Text is always in the theme's own colour.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from viz.put import merged, nested, put, put_xaxes, put_yaxes
from wording import words

say = words("viz.theme")

MODEL = "#376EE0"  # what the model says
TRUE = "#D9690F"  # the true distribution, and the floor it sets
CAUSAL = "#0E9855"
MASKED = "#B33C9C"
TRAIN = "#8B9299"  # loss on the training text
VALID = MODEL  # loss on unseen text: the model's own line
NEUTRAL = "#8B9299"  # before, removed, the rest
INK = "#000037"  # near black; Streamlit's Plotly theme puts the page's text colour in its place (its GRAY_90)
GRID = "rgba(128, 136, 145, 0.25)"
HATCH = "rgba(128, 136, 145, 0.55)"  # cells and bars that are not there

# Cividis (Nuñez, Anderton, Renslow 2018): even steps of lightness, alike with and without colour blindness.
PROBABILITY_COLORS = (
    "#00224E", "#123570", "#3B496C", "#575D6D", "#707173",
    "#8A8678", "#A59C74", "#C3B369", "#E1CC55", "#FEE838",
)  # fmt: skip
SURPRISAL_COLORS = (
    "#46327E", "#5D3591", "#76399A", "#90409A", "#AA4993",
    "#C15487", "#D56375", "#E57761", "#F08E4E", "#F6A944",
)  # fmt: skip
DIVERGING_COLORS = (
    "#1F4FB8", "#376EE0", "#6E96EA", "#A6BFF2", "#D9E1F2",
    "#F5E1CF", "#F0BE92", "#E59555", "#D9690F", "#A34B05",
)  # fmt: skip
SIZE_COLORS = ("#D9E1F2", "#A6BFF2", "#6E96EA", "#376EE0", "#1F4FB8")  # lengths: 0 is pale


def _scale(colors: Sequence[str]) -> list[list[Any]]:
    """Evenly spaced colours as a Plotly colour scale."""
    return [[i / (len(colors) - 1), color] for i, color in enumerate(colors)]


PROBABILITY_SCALE = _scale(PROBABILITY_COLORS)
SURPRISAL_SCALE = _scale(SURPRISAL_COLORS)
DIVERGING_SCALE = _scale(DIVERGING_COLORS)
SIZE_SCALE = _scale(SIZE_COLORS)

# Translucent, so that they sit under the theme's own text colour on light and on dark.
TOKEN_COLORS = tuple(
    f"rgba({r}, {g}, {b}, 0.24)"
    for r, g, b in (
        (55, 110, 224), (230, 159, 0), (14, 152, 85), (179, 60, 156),
        (86, 180, 233), (217, 105, 15), (128, 140, 60), (124, 100, 220),
    )
)  # fmt: skip

MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', 'DejaVu Sans Mono', monospace"
FONT_SIZE = 13
BESIDE_BAR: dict[str, Any] = {  # the number of a bar stands whole at its end, upright, never in it
    "textposition": "outside",
    "constraintext": "none",
    "textfont": {"size": FONT_SIZE, "color": INK},
    "textangle": 0,
    "cliponaxis": False,
}
CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "displayModeBar": False,
    "scrollZoom": False,
    "doubleClick": "reset",
}


def token_color(token_id: int) -> str:
    """The background of a token: the same id has the same colour on every page."""
    return TOKEN_COLORS[token_id % len(TOKEN_COLORS)]


def objective_color(objective: str) -> str:
    """The colour of causal (`"clm"`) and of masked (`"mlm"`) things."""
    return {"clm": CAUSAL, "mlm": MASKED}[objective]


def perplexity_name(objective: str) -> str:
    """What exp(loss) is called: the two objectives' numbers must never be compared."""
    return say(f"perplexity.{objective}")


def rgb(color: str) -> tuple[int, int, int]:
    """`#376EE0` -> (55, 110, 224)."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def sample_scale(colors: Sequence[str], share: float) -> str:
    """The colour at `share` (0 to 1, clamped) of evenly spaced `colors`, as `#RRGGBB`."""
    place = min(max(share, 0.0), 1.0) * (len(colors) - 1)
    low = min(int(place), len(colors) - 2)
    mixed = (
        round(a + (b - a) * (place - low))
        for a, b in zip(rgb(colors[low]), rgb(colors[low + 1]), strict=True)
    )
    return "#{:02X}{:02X}{:02X}".format(*mixed)


def ink_on(color: str) -> str:
    """Black or white, whichever stands out more on an opaque `#RRGGBB` (WCAG relative luminance)."""
    light = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in rgb(color))
    ]
    return "#000000" if 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2] > 0.179 else "#FFFFFF"


def cell_texts(
    texts: Sequence[Sequence[str]],
    values: np.ndarray,
    color_of: Callable[[float], str] | None = None,
) -> go.Scatter:
    """Words over the cells of a heat map, each in the ink that can be read on its cell.

    A heat map's own texts take one of two greys, too faint on its middle colours.

    Args:
        texts: (rows, columns), escaped; empty ones are left out.
        values: (rows, columns) that colour the cells.
        color_of: the opaque colour of a value; None is that of a probability.
    """
    color_of = color_of or probability_color
    spots = [(r, c) for r, row in enumerate(texts) for c, text in enumerate(row) if text]
    return go.Scatter(
        x=[c for _, c in spots],
        y=[r for r, _ in spots],
        text=[texts[r][c] for r, c in spots],
        mode="text",
        textfont={"size": 12, "family": MONO,
                  "color": [ink_on(color_of(float(values[r, c]))) for r, c in spots]},
        hoverinfo="skip",
        showlegend=False,
        name="cells",
    )  # fmt: skip


def cell_points(said: Sequence[Sequence[str]]) -> go.Scatter:
    """A point that can't be seen in every cell: Plotly tells when a point is pressed, but not a cell.

    With `hoverdistance` -1 the nearest one answers, wherever in its cell the pointer is.

    Args:
        said: (rows, columns) what is said of each cell, escaped.
    """
    n, k = len(said), len(said[0]) if said else 0
    unseen = {"marker": {"opacity": 0}}
    return go.Scatter(
        x=np.tile(np.arange(k, dtype=np.int32), n),
        y=np.repeat(np.arange(n, dtype=np.int32), k),
        mode="markers",
        marker={"opacity": 0, "size": 20},
        selected=unseen,
        unselected=unseen,
        customdata=[text for row in said for text in row],
        hovertemplate="%{customdata}<extra></extra>",
        showlegend=False,
        name="cells:press",
    )


def probability_cells(
    values: np.ndarray, hover: Sequence[Sequence[str]], *, key: dict[str, Any], gap: int = 2
) -> go.Heatmap:
    """Cells coloured by probability, at whole numbers.

    Args:
        values: (rows, columns), 0 to 1; NaN leaves a cell empty.
        hover: (rows, columns) what is said of them, escaped.
        key: the colour key, see `color_bar`.
        gap: pixels between two cells.
    """
    n, k = values.shape
    return go.Heatmap(
        z=values,
        x=np.arange(k, dtype=np.int32),
        y=np.arange(n, dtype=np.int32),
        customdata=hover,
        hovertemplate="%{customdata}<extra></extra>",
        colorscale=PROBABILITY_SCALE,
        zmin=0,
        zmax=1,
        xgap=gap,
        ygap=gap,
        colorbar=key,
    )


def frame_cells(
    fig: go.Figure, columns: tuple[float, float], rows: tuple[float, float], color: str, **line: Any
) -> None:
    """Draw a frame around cells that stand at whole numbers.

    Args:
        fig: gets the frame.
        columns: the first and the last.
        rows: the first and the last.
        color: of the line.
        line: more of the line than its colour; its width is 3 pixels otherwise.
    """
    fig.add_shape(_frame(columns, rows, {"color": color, "width": 3, **line}))


def frame_each(fig: go.Figure, cells: Iterable[tuple[int, int]], color: str, width: int) -> None:
    """Draw a frame around each of many cells (row, column), which one by one would take a second for 150."""
    look = {"color": color, "width": width}
    frames = [_frame((column, column), (row, row), look) for row, column in cells]
    fig.layout.shapes = [*fig.layout.shapes, *frames]


def _frame(columns: tuple[float, float], rows: tuple[float, float], line: dict[str, Any]) -> dict[str, Any]:
    (x0, x1), (y0, y1) = columns, rows
    return {"type": "rect", "x0": x0 - 0.5, "x1": x1 + 0.5, "y0": y0 - 0.5, "y1": y1 + 0.5, "line": line}


def color_bar(title: str) -> dict[str, Any]:
    """The key of a 0..1 scale, below the picture: a narrow screen keeps its width for the cells."""
    return {
        "title": {"text": title, "side": "top"},
        "orientation": "h",
        "x": 0.5,
        "y": 0,
        "yanchor": "top",
        "len": 0.7,
        "thickness": 10,
        "outlinewidth": 0,
        "tickvals": [0, 0.25, 0.5, 0.75, 1],
    }


def probability_color(p: float, bright: bool = False) -> str:
    """The colour of a probability, 0 to 1; `bright` as in `probability_scale`."""
    return sample_scale(PROBABILITY_COLORS, math.sqrt(p) if bright and p > 0 else p)


def probability_scale(bright: bool) -> list[list[Any]]:
    """Places from 0 to 1 and their colours; `bright` goes by the square root, so that small ones show."""
    return [[place**2, color] for place, color in PROBABILITY_SCALE] if bright else PROBABILITY_SCALE


def surprisal_color(x: float, maximum: float) -> str:
    """The colour of a surprisal between 0 and `maximum` (same unit); not finite is the neutral colour."""
    if math.isnan(x) or maximum <= 0:
        return NEUTRAL
    return sample_scale(SURPRISAL_COLORS, min(x, maximum) / maximum)


def alt_text(fig: go.Figure) -> str:
    """One sentence that says what the figure shows, for those who can't see it."""
    return str((fig.layout.meta or {}).get("alt", ""))


def finish(fig: go.Figure, *, height: int, alt: str, **layout: Any) -> go.Figure:
    """Gives a figure the common layout: transparent, readable, nothing clipped.

    Args:
        fig: the figure, changed in place and returned.
        height: pixels.
        alt: one sentence for those who can't see it.
        layout: anything more for `layout`.
    """
    font = {"size": FONT_SIZE, "color": INK}
    axes = {"automargin": True, "zeroline": False, "tickfont": font, "title_font": font, "gridcolor": GRID,
            "title_standoff": 8}  # fmt: skip
    put_xaxes(fig, **axes)
    put_yaxes(fig, **{**axes, "title_standoff": 14})
    common = {
        "height": height,
        "meta": {"alt": alt},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": font,
        "legend_font": font,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "hoverlabel": {"font": {"size": FONT_SIZE, "family": MONO}, "align": "left", "namelength": -1},
        "dragmode": False,
        "bargap": 0.25,
    }
    put(fig, **merged(nested(common), nested(layout)))
    for note in fig.layout.annotations:
        note.font = merged(note.font.to_plotly_json(), font)
    for trace in fig.select_traces({"type": "heatmap"}):
        trace.colorbar = merged(trace.colorbar.to_plotly_json(), {"tickfont": font, "title": {"font": font}})
    return fig
