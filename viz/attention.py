"""Who looks at whom: the weights of one head, and what a mask allows."""

from collections.abc import Collection, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from viz.kept import kept
from viz.put import put, put_xaxes, put_yaxes
from viz.text import clip, escape, format_prob
from viz.theme import (
    HATCH,
    INK,
    MONO,
    NEUTRAL,
    cell_points,
    cell_texts,
    color_bar,
    finish,
    frame_cells,
    objective_color,
    probability_color,
    probability_scale,
)
from wording import words

say = words("viz.attention")

MAX_TICKS = 20  # beyond, labels would overlap in half a page
MAX_PRESSED = 40  # beyond, so many points to press would be slow
SLANTED = 16  # up to so many labels lean, more stand upright
MAX_PRINTED = 12  # beyond, numbers don't fit into cells
MAX_HOVER_TEXT = 80  # beyond, hover names positions only: token texts for each pair would be a megabyte
_WIDTH = 480  # pixels of a map with its labels, so much as half a page has at 1280
_LETTER = 7.2  # pixels
_STANDOFF = 18  # pixels between the title on top and upright labels, which begin a little above the axis


def tick_positions(n: int) -> list[int]:
    """Positions of 0..n-1 that get a label: at most 20, evenly spaced, from the first."""
    return list(range(0, n, max(1, -(-n // MAX_TICKS))))


def tick_labels(tokens: Sequence[str], first: int = 0) -> tuple[list[int], list[str]]:
    """Where tokens are named along an axis, and their names; with the position when some are left out.

    Args:
        tokens: visible texts; not escaped.
        first: the position of the first of them in the whole text.
    """
    places, names = _tick_names(tokens, first)
    return places, [escape(name) for name in names]


def _tick_names(tokens: Sequence[str], first: int) -> tuple[list[int], list[str]]:
    places = tick_positions(len(tokens))
    if len(places) == len(tokens):
        return places, [clip(token, 12 if len(tokens) <= SLANTED else 9) for token in tokens]
    return places, [f"{first + i} {clip(tokens[i], 8)}" for i in places]


def _square_axes(fig: go.Figure, tokens: Sequence[str], first: int = 0) -> None:
    """Integer coordinates with token labels, row 0 on top, square cells."""
    n = len(tokens)
    places, names = tick_labels(tokens, first)
    common = {"tickmode": "array", "tickvals": places, "ticktext": names, "tickfont_family": MONO,
              "showgrid": False, "constrain": "domain", "ticks": ""}  # fmt: skip
    put_xaxes(
        fig,
        range=[-0.5, n - 0.5],
        title_text=say("axis.key"),
        side="top",
        tickangle=-45 if n <= SLANTED else -90,
        **common,
    )
    put_yaxes(
        fig,
        range=[n - 0.5, -0.5],  # not by itself: points to press would ask for more room
        title_text=say("axis.query"),
        scaleanchor="x",
        constraintoward="bottom",  # on a narrow screen the square is smaller: it stays beside its key
        **common,
    )


def _room_at_the_right(tokens: Sequence[str]) -> int:
    """Pixels for the last label, which leans out of the square."""
    return 8 + 6 * len(clip(tokens[-1], 12)) if 0 < len(tokens) <= SLANTED else 8


def _height(tokens: Sequence[str], first: int, width: int) -> int:
    """Pixels for a map `width` wide: its labels on top, the square that is as wide as theirs leave, the key.

    More would be a hole between the square and the key.
    """
    longest = _LETTER * max((len(name) for name in _tick_names(tokens, first)[1]), default=0)
    top = longest * (0.7 if len(tokens) <= SLANTED else 1.0) + 54
    square = width - longest - 54 - _room_at_the_right(tokens)
    return round(top + square + 84)


def _hidden_area(n: int) -> go.Scatter:
    """The cells right of the diagonal, hatched: a causal model can't look there; that is not a 0."""
    xs: list[float] = []
    ys: list[float] = []
    for i in range(n - 1):  # down the staircase
        xs += [i + 0.5, i + 0.5]
        ys += [i - 0.5, i + 0.5]
    return _hatched([*xs, n - 0.5, n - 0.5, 0.5], [*ys, n - 1.5, -0.5, -0.5])


def _far_area(n: int, window: int) -> go.Scatter:
    """The cells that lie too far back for a query that sees the last `window` tokens only, hatched."""
    xs: list[float] = []
    ys: list[float] = []
    for i in range(window, n):
        xs += [i - window + 0.5, i - window + 0.5]
        ys += [i - 0.5, i + 0.5]
    return _hatched([*xs, -0.5, -0.5], [*ys, n - 0.5, window - 0.5])


def _hatched(xs: list[float], ys: list[float]) -> go.Scatter:
    """A hatched area with this outline."""
    return go.Scatter(
        x=xs,
        y=ys,
        fill="toself",
        fillcolor="rgba(0,0,0,0)",
        fillpattern={"shape": "/", "fgcolor": HATCH, "bgcolor": "rgba(0,0,0,0)", "size": 7, "solidity": 0.2},
        mode="lines",
        line={"width": 0},
        hoverinfo="skip",
        name=say("hidden"),
        showlegend=False,
    )


def _two_decimals(weight: float, short: bool) -> str:
    """`0.07`; in small cells `.07`; `>.99` where it would round up to 1; nothing for a hidden cell."""
    if np.isnan(weight):
        return ""
    text = f"{weight:.2f}"
    if text == "1.00" and weight < 1:
        return ">.99"
    return text.removeprefix("0") if short else text


def _pair_hover(tokens: Sequence[str], shown: np.ndarray, first: int, window: int) -> np.ndarray:
    """(T, T) hover texts: both positions, both tokens, the exact number or why there is none."""
    n = len(tokens)
    names = [escape(clip(token, 24)) for token in tokens]
    texts = np.empty((n, n), dtype=object)
    weight, hidden, far = (say(f"hover.{name}") for name in ("weight", "hidden", "far"))  # once, not n² times
    for q in range(n):
        for k in range(n):
            value = float(shown[q, k])
            said = weight if not np.isnan(value) else hidden if k > q else far
            texts[q, k] = said.format(
                query=first + q, from_token=names[q], key=first + k, to_token=names[k], weight=value,
                window=window,
            )  # fmt: skip
    return texts


@kept
def attention_map(
    tokens: Sequence[str],
    weights: ArrayLike,
    *,
    objective: str,
    query: int | None = None,
    key: int | None = None,
    press: bool = False,
    first: int = 0,
    width: int = _WIDTH,
    window: int = 0,
    bright: bool = False,
) -> go.Figure:
    """The weights of one head: rows are queries from top to bottom, columns keys, each row sums to 1.

    All arguments count from the first token that is drawn; what is written counts from `first`.

    Args:
        tokens: (T,) visible token texts; not escaped. Equal ones keep their own rows and columns.
        weights: (T, T) after softmax, 0 to 1.
        objective: `"clm"` hatches the cells a causal model can't see; in `"mlm"` every cell is open.
        query: a row to frame.
        key: a column; its cell in that row is framed boldly.
        press: whether cells can be pressed, up to MAX_PRESSED tokens.
        first: position of the first drawn token in its text; if it is not 0, rows may sum to less than 1.
        width: pixels of the map with its labels.
        window: of a causal model, how many tokens a query sees, itself among them; 0 is all before it.
        bright: whether colours go by the square root, so that small weights show.

    Raises:
        ValueError: the matrix doesn't fit the tokens.
    """
    shown = np.array(weights, dtype=np.float32)
    n = len(tokens)
    if shown.shape != (n, n):
        raise ValueError(say("wrong_shape", n=n, shape=shown.shape))
    window = window if objective == "clm" else 0
    if objective == "clm":
        shown[np.triu_indices(n, 1)] = np.nan
    if window:
        shown[np.tril_indices(n, -window)] = np.nan
    named = n <= MAX_HOVER_TEXT
    bar = color_bar(say("weight"))
    if width < _WIDTH:  # five numbers would stand upright below so short a key
        bar["tickvals"] = [0, 0.5, 1]
    heat = go.Heatmap(
        z=shown,
        x=np.arange(n, dtype=np.int32),
        y=np.arange(n, dtype=np.int32),
        zmin=0,
        zmax=1,
        colorscale=probability_scale(bright),
        xgap=1 if n <= 64 else 0,
        ygap=1 if n <= 64 else 0,
        customdata=_pair_hover(tokens, shown, first, window) if named else None,
        hovertemplate=("%{customdata}" if named else say("hover.unnamed")) + "<extra></extra>",
        hoverongaps=named,
        colorbar=bar,
    )
    fig = go.Figure(heat)
    if n <= MAX_PRINTED:
        printed = [[_two_decimals(v, short=n > 7) for v in row] for row in shown]
        fig.add_trace(cell_texts(printed, shown, lambda weight: probability_color(weight, bright)))
    if objective == "clm" and n > 1:
        fig.add_trace(_hidden_area(n))
    if 0 < window < n:
        fig.add_trace(_far_area(n, window))
    if query is not None:
        color = objective_color(objective)
        frame_cells(fig, (0, n - 1), (query, query), color)
        if key is not None:
            frame_cells(fig, (key, key), (query, query), color, width=5)
    if press and n <= MAX_PRESSED:
        fig.add_trace(cell_points(_pair_hover(tokens, shown, first, window).tolist()))
        put(fig, hovermode="closest", hoverdistance=-1)
    _square_axes(fig, tokens, first)
    alt = say("alt.map", n=n)
    if n:
        row = n - 1 if query is None else query
        best = int(np.nanargmax(shown[row]))
        alt += " " + say(
            "alt.most", query=first + row, from_token=tokens[row], key=first + best, to_token=tokens[best],
            weight=format_prob(float(shown[row, best])),
        )  # fmt: skip
    height = _height(tokens, first, width)
    finish(fig, height=height, alt=alt, width=width, margin_r=_room_at_the_right(tokens))
    put_xaxes(fig, title_standoff=_STANDOFF)
    return fig


@kept
def mask_matrix(
    tokens: Sequence[str], objective: str, *, hidden: Collection[int] = (), query: int | None = None
) -> go.Figure:
    """Who may see whom: a full cell means that the query's position can look at the key's.

    Args:
        tokens: (T,) visible token texts; not escaped.
        objective: `"clm"`, each position sees itself and what came before; `"mlm"`, all see all.
        hidden: positions whose token is replaced by the mask: all look there, and find nothing. Marked "?".
        query: a row to frame, for instance the one from which a gap is guessed.
    """
    n = len(tokens)
    allowed = np.ones((n, n), dtype=np.float32)
    if objective == "clm":
        allowed[np.triu_indices(n, 1)] = np.nan
    color = objective_color(objective)
    texts = [["?" if k in hidden and not np.isnan(allowed[q, k]) else "" for k in range(n)] for q in range(n)]
    hover = np.empty((n, n), dtype=object)
    sees, masked, unseen = say("hover.sees"), say("hover.sees_mask"), say("hover.unseen")
    for q in range(n):
        for k in range(n):
            template = unseen if np.isnan(allowed[q, k]) else masked if k in hidden else sees
            hover[q, k] = template.format(
                query=q, from_token=escape(tokens[q]), key=k, to_token=escape(tokens[k])
            )
    fig = go.Figure(
        go.Heatmap(
            z=allowed,
            x=np.arange(n, dtype=np.int32),
            y=np.arange(n, dtype=np.int32),
            zmin=0,
            zmax=1,
            colorscale=[[0, color], [1, color]],
            showscale=False,
            xgap=2,
            ygap=2,
            customdata=hover,
            text=texts,
            texttemplate="%{text}",
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    if objective == "clm" and n > 1:
        fig.add_trace(_hidden_area(n))
    for k in hidden:
        frame_cells(fig, (k, k), (0, n - 1), NEUTRAL, width=2, dash="dot")
    if query is not None:
        frame_cells(fig, (0, n - 1), (query, query), INK)
    _square_axes(fig, tokens)
    side = min(540, 300 + 8 * n)  # two of them stand side by side
    alt = say("alt.causal", n=n) if objective == "clm" else say("alt.all", n=n)
    if query is not None:
        alt += " " + say("alt.framed", token=tokens[query], position=query)
    finish(fig, height=side, alt=alt, width=side, margin_r=_room_at_the_right(tokens))
    put_xaxes(fig, title_standoff=_STANDOFF)
    return fig
