"""Bars of the same tokens through several steps, as numbers that a browser can draw at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from viz.text import format_number, format_prob
from wording import words

say = words("viz.sampling")

KEPT, REMOVED, GONE = "kept", "removed", "gone"


@dataclass(frozen=True, eq=False)
class BarColumn:
    """One step of some tokens.

    Attributes:
        title: its name.
        values: (K,) logits, where `tail` is None, else probabilities over the full vocabulary.
        kept: (K,) bool, what is left after this step.
        tail: probability of all the other tokens: what is kept, and what this step removes.
        note: a few words under the title, as "k = 5".
        on: whether the step does anything.
        facts: what stands under the column, one text for each row of facts.
    """

    title: str
    values: ArrayLike
    kept: ArrayLike
    tail: tuple[float, float] | None = None
    note: str = ""
    on: bool = True
    facts: Sequence[str] = ()


def bar_cells(columns: Sequence[BarColumn], *, n_tail: int) -> list[dict[str, Any]]:
    """What to draw in each column: one cell a token, then one for the `n_tail` other tokens.

    A token that is removed keeps its bar, hatched, and as long as it was when it was removed. All
    probabilities share one scale; the bars of each column of probabilities add up to 1.

    Returns:
        For each column its title, note, on, facts and cells. A cell has `at` and `size`, the place and length
        of the bar as shares of the column's width, `lost`, the length of the hatched part, the `text` and the
        `state`: "kept", "removed" (by this step) or "gone" (by a step before).

    Raises:
        ValueError: bars and tail of a column do not add up to 1.
    """
    values = [np.asarray(column.values, np.float64) for column in columns]
    kept = [np.asarray(column.kept, bool) for column in columns]
    scale = max([1e-12, *(float(max(v.max(initial=0), *c.tail)) for v, c in zip(values, columns, strict=True)
                          if c.tail is not None)])  # fmt: skip
    gone, ghost = np.zeros(len(values[0]), bool), np.zeros(len(values[0]))  # what the steps before left
    drawn = []
    for column, row, stays in zip(columns, values, kept, strict=True):
        if column.tail is None:
            cells = _logit_cells(row)
        else:
            _check(column, row)
            ghost = np.where(~gone & (row > 0), row, ghost)  # the last length that a bar had
            cells = _prob_cells(row, stays, gone, ghost, scale)
            gone = gone | ~stays
        if n_tail:
            cells.append(_tail_cell(column.tail, scale))
        drawn.append({"title": column.title, "note": column.note, "on": column.on,
                      "facts": list(column.facts), "cells": cells})  # fmt: skip
    return drawn


def _check(column: BarColumn, row: NDArray[np.float64]) -> None:
    total = float(row.sum()) + sum(column.tail or ())
    if abs(total - 1) > 1e-3:
        raise ValueError(say("not_one", title=column.title, total=total))


def _cell(at: float, size: float, lost: float, text: str, state: str = KEPT) -> dict[str, Any]:
    return {"at": round(at, 4), "size": round(size, 4), "lost": round(lost, 4), "text": text, "state": state}


def _logit_cells(row: NDArray[np.float64]) -> list[dict[str, Any]]:
    """Bars from 0, to the left where a logit is negative."""
    finite = row[np.isfinite(row)]
    low, high = min(0.0, *finite.tolist()), max(0.0, *finite.tolist())
    width = (high - low) or 1.0
    return [
        _cell((min(z, 0.0) - low) / width, abs(z) / width, 0.0, format_number(z))
        if np.isfinite(z)
        else _cell(0, 0, 0, "−∞", GONE)
        for z in row.tolist()
    ]


def _prob_cells(
    row: NDArray[np.float64],
    stays: NDArray[np.bool_],
    gone: NDArray[np.bool_],
    ghost: NDArray[np.float64],
    scale: float,
) -> list[dict[str, Any]]:
    cells = []
    for p, left, before, old in zip(row.tolist(), stays.tolist(), gone.tolist(), ghost.tolist(), strict=True):
        if left:
            cells.append(_cell(0, p / scale, 0, format_prob(p)))
        elif p > 0:
            cells.append(_cell(0, 0, p / scale, format_prob(p), REMOVED))
        else:
            cells.append(_cell(0, 0, old / scale, say("removed"), GONE if before else REMOVED))
    return cells


def _tail_cell(tail: tuple[float, float] | None, scale: float) -> dict[str, Any]:
    if tail is None:
        return _cell(0, 0, 0, "")
    stays, removed = tail
    if stays > 0 or removed == 0:
        return _cell(0, stays / scale, removed / scale, format_prob(stays), KEPT if stays else GONE)
    return _cell(0, 0, removed / scale, format_prob(removed), REMOVED)
