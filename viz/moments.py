"""One text at many moments of a training: bars, lines and marks as numbers that a browser draws."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from viz.curves import REFERENCE_LOOKS, SERIES_LOOKS, Reference, Series, thin
from viz.text import format_number, format_prob
from viz.theme import NEUTRAL, surprisal_color
from wording import words

say = words("viz.moments")

# Lines told apart by colour and dash; each colour stands out by 3:1 on the light and on the dark page.
LINE_LOOKS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("#376EE0", ()),
    ("#A67C00", ()),
    ("#12808F", ()),
    ("#B33C9C", ()),
    ("#7C64DC", (7, 4)),
    ("#C2543F", (7, 4)),
    ("#5E8C31", (2, 4)),
)
DASHES: Mapping[str, tuple[int, ...]] = {"solid": (), "dash": (8, 5), "dot": (2, 4)}
MOST_POINTS = 300  # of a curve


def bar_rows(
    ids: Sequence[int],
    probs: ArrayLike,
    *,
    tail: float,
    true: ArrayLike | None = None,
    true_tail: float = 0.0,
    came: int | None = None,
    lines: Sequence[int] = (),
) -> list[dict[str, Any]]:
    """One moment's distribution: a row for each token shown, then one for all others; together they are 1.

    Args:
        ids: (K,) of the tokens, top to bottom.
        probs: (K,) over the full vocabulary.
        tail: probability of all the others.
        true: (K,) the true distribution of the same tokens, where it is known.
        true_tail: its probability outside the rows.
        came: id of the token that stands in the text.
        lines: ids that have a line in the picture beside; a row names its line.

    Raises:
        ValueError: shown bars and tail don't add up to 1.
    """
    p = np.append(np.asarray(probs, np.float64), tail)
    truths = None if true is None else np.append(np.asarray(true, np.float64), true_tail)
    for values, name in ((p, "model"), (truths, "true")):
        if values is not None and abs(float(values.sum()) - 1) > 1e-3:
            of_model, total = name == "model", values.sum()
            off = say("model_bars_off", sum=total) if of_model else say("true_bars_off", sum=total)
            raise ValueError(off)
    places = {token_id: i for i, token_id in enumerate(lines)}
    rows: list[dict[str, Any]] = []
    for i, token_id in enumerate([*ids, None]):
        row: dict[str, Any] = {"id": token_id, "p": _short(float(p[i])), "text": format_prob(float(p[i]))}
        if truths is not None:
            row |= {"true": _short(float(truths[i])), "trueText": format_prob(float(truths[i]))}
        if token_id is not None and token_id == came:
            row["came"] = True
        if token_id in places:
            row["line"] = places[token_id]
        rows.append(row)
    return rows


def _short(x: float) -> float:
    """Six digits: more can't be seen."""
    return float(f"{x:.6g}")


def prob_lines(
    names: Sequence[str], probs: ArrayLike, *, true: ArrayLike | None = None, came: int | None = None
) -> list[dict[str, Any]]:
    """A line for each of K tokens: its probability at every moment, and where the true distribution has it.

    Args:
        names: (K,) visible texts.
        probs: (S,K).
        true: (K,) or None.
        came: the row of the token that stands in the text.

    Raises:
        ValueError: more lines than looks.
    """
    p = np.asarray(probs, np.float64)
    if len(names) > len(LINE_LOOKS):
        raise ValueError(say("too_many_lines", looks=len(LINE_LOOKS), n=len(names)))
    found = []
    for i, name in enumerate(names):
        color, dash = LINE_LOOKS[i]
        line: dict[str, Any] = {"name": name, "color": color, "dash": list(dash)}
        line |= {"values": [_short(float(x)) for x in p[:, i]], "came": i == came}
        if true is not None:
            line["true"] = _short(float(np.asarray(true)[i]))
        found.append(line)
    return found


def chip_looks(log_probs: ArrayLike, most: float) -> tuple[list[str], list[str]]:
    """Surprise under each token in nats, and its colour; a token that was not asked for has neither.

    Args:
        log_probs: (T,) natural logs; NaN where there is none.
        most: nats at which the colour is brightest.

    Returns:
        T texts, and T colours.
    """
    surprise = -np.asarray(log_probs, np.float64)
    texts = ["–" if np.isnan(x) else _under(float(x) + 0.0) for x in surprise]
    colors = [NEUTRAL if np.isnan(x) else surprisal_color(float(x), most) for x in surprise]
    return texts, colors


def _under(x: float) -> str:
    return "<0.01" if 0 < x < 0.005 else f"{x:.2f}" if x < 10 else f"{x:.1f}"


def curve(series: Sequence[Series], references: Sequence[Reference], y_title: str) -> dict[str, Any]:
    """A loss curve and its horizontal lines, thinned."""
    lines = []
    for one in series:
        x, y = thin(one.steps, one.values, MOST_POINTS)
        color, width, dash = SERIES_LOOKS[one.role]
        lines.append(
            {
                "name": one.name,
                "color": color,
                "width": width,
                "dash": list(DASHES[dash]),
                "x": [int(v) for v in x],
                "y": [_short(float(v)) if np.isfinite(v) else None for v in y],
            }
        )
    marks = [
        {
            "value": float(mark.value),
            "label": f"{mark.label} {format_number(mark.value)}",
            "color": REFERENCE_LOOKS[mark.role][0],
            "dash": list(DASHES[REFERENCE_LOOKS[mark.role][1]]),
        }
        for mark in references
        if np.isfinite(mark.value)
    ]
    return {"series": lines, "references": marks, "title": y_title}


def head_weights(weights: ArrayLike) -> str:
    """One head at S moments, (S,n,n) weights 0 to 1 or uint8 0 to 255, as base64 for a canvas."""
    array = np.asarray(weights)
    if array.dtype != np.uint8:
        array = np.rint(np.clip(array.astype(np.float32), 0, 1) * 255).astype(np.uint8)
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
