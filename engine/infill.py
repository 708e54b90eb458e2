"""Blanks and a causal model, which sees only what stands on their left.

It can go on from the left, blind for the right; or it can try fillers and ask how likely each makes the
right: p(v | left) · p(right | left, v), which is p(v | left, right) up to a constant (Bayes' rule).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.fill import Choice, Fill
from engine.metrics import log_softmax
from engine.model import Transformer
from engine.row_reading import RowReading, Tell, part_of, quiet
from engine.search import largest, next_log_probs
from wording import words

say = words("engine.infill")


def _checked(model: Transformer, ids: Sequence[int], hidden: Sequence[int]) -> list[int]:
    places = sorted(set(hidden))
    if model.config.objective != "clm":
        raise ValueError(say("only_causal_model_reads"))
    if not places:
        raise ValueError(say("nothing_hidden_there_nothing"))
    if places[0] < 1 or places[-1] >= len(ids):
        last = len(ids) - 1
        raise ValueError(say("nothing_left_hide", last=last) if last else say("nothing_left_add"))
    if len(ids) > model.config.context_length:
        raise ValueError(
            say("causal_model_reads_most", context_length=model.config.context_length, n=len(ids))
        )
    return places


def go_on(
    model: Transformer, ids: Sequence[int], hidden: Sequence[int], *, forced: Sequence[int] | None = None
) -> Fill:
    """Fill each place with what is likeliest after its left, earlier fillers among it.

    Args:
        model: a causal one.
        ids: (T,) the text; what stands at hidden places is not looked at.
        hidden: places to fill, none of them the first token.
        forced: (T,) take these tokens instead of the likeliest: `log_prob` is then theirs.

    Raises:
        ValueError: for a masked model, no place or one that can't be guessed, or a text that is too long.
    """
    now, choices = list(ids), list[Choice]()
    for place in _checked(model, ids, hidden):
        row = _finite(next_log_probs(model, [now[:place]]))[0]
        now[place] = int(row.argmax()) if forced is None else int(forced[place])
        choices.append(Choice(place, now[place], float(row[now[place]])))
    return Fill(tuple(now), tuple(choices), sum(choice.log_prob for choice in choices))


@dataclass(frozen=True, eq=False)
class Rescored:
    """Fillers that a causal model chose by what comes after them.

    Attributes:
        fill: the best ones; a choice's probability is its share among all that were tried to the end.
        places: (K,) the places.
        tried: (N,K) tokens of the N fillings that were tried to the end, the best first.
        log_probs: (N,) natural log of p(everything from the first place on | its left) of each.
        exact: whether no filling was left out: then the shares are p(fillers | all that is visible).
    """

    fill: Fill
    places: tuple[int, ...]
    tried: NDArray[np.int64]
    log_probs: NDArray[np.float64]
    exact: bool

    @property
    def shares(self) -> NDArray[np.float64]:
        """(N,) of the fillings that were tried; they add up to 1."""
        shares: NDArray[np.float64] = np.exp(log_softmax(self.log_probs))
        return shares

    def share_of(self, place: int) -> dict[int, float]:
        """Token -> its share in one place, over all fillings that were tried."""
        found: dict[int, float] = {}
        tokens = self.tried[:, self.places.index(place)].tolist()
        for token, share in zip(tokens, self.shares.tolist(), strict=True):
            found[token] = found.get(token, 0.0) + share
        return found


def rescore(
    model: Transformer,
    ids: Sequence[int],
    hidden: Sequence[int],
    *,
    tried: int = 64,
    kept: int = 8,
    tell: Tell = quiet,
) -> Rescored:
    """Fill places by p(v | left) · p(right | left, v), up to the next place; the best go on from there.

    With one place and `tried` as large as the vocabulary nothing is left out. With several it is a beam
    search; it misses nothing if `kept` and `tried` are as large as the number of fillings.

    Args:
        model: a causal one.
        ids: (T,) the text; what stands at hidden places is not looked at.
        hidden: places to fill, none of them the first token.
        tried: fillings that are read on to the next place, those with the likeliest tokens.
        kept: how many of them go on from there.
        tell: is told how many of all fillings are read, part by part.

    Raises:
        ValueError: as in `go_on`, or for a number below 1.
    """
    places = _checked(model, ids, hidden)
    if tried < 1 or kept < 1:
        raise ValueError(say("least_1_filling_must", tried=tried, kept=kept))
    reading = RowReading(model, [ids[: places[0]]])
    fillers, scores, exact = np.zeros((1, 0), np.int64), np.zeros(1), True
    for n, (place, end) in enumerate(zip(places, [*places[1:], len(ids)], strict=True)):
        grown = scores[:, None] + _finite(reading.next_log_probs())  # (rows, V)
        best = largest(grown, tried)
        rows, tokens = np.divmod(best, grown.shape[1])
        pieces = [[int(token), *ids[place + 1 : end]] for token in tokens]
        scores = grown.ravel()[best] + reading.tails(rows, pieces, part_of(tell, n, len(places)))
        fillers = np.column_stack([fillers[rows], tokens])
        exact &= len(best) == grown.size
        order = np.argsort(-scores, kind="stable")
        if end < len(ids):
            exact &= len(order) <= kept
            order = order[:kept]
            reading.go_on(rows[order], [pieces[i] for i in order])
        fillers, scores = fillers[order], scores[order]
    return _best(ids, places, fillers, scores, exact)


def _best(
    ids: Sequence[int], places: list[int], fillers: NDArray[np.int64], scores: NDArray, exact: bool
) -> Rescored:
    """The best filling, each of its tokens with its share among all that were tried to the end."""
    now = list(ids)
    for place, token in zip(places, fillers[0].tolist(), strict=True):
        now[place] = token
    found = Rescored(Fill(tuple(now), ()), tuple(places), fillers, scores, exact)
    choices = tuple(
        Choice(place, now[place], math.log(min(found.share_of(place)[now[place]], 1.0))) for place in places
    )
    total = float(np.log(found.shares[0])) if exact else None
    return replace(found, fill=Fill(tuple(now), choices, total))


def left_log_probs(model: Transformer, ids: Sequence[int]) -> NDArray[np.float64]:
    """(V,) natural log of what a causal model gives each token after some ids."""
    found: NDArray[np.float64] = next_log_probs(model, [ids])[0]
    return found


def text_log_prob(model: Transformer, ids: Sequence[int]) -> float:
    """Natural log of a causal model's probability of a text, given its first token."""
    if len(ids) < 2:
        return 0.0
    reading = RowReading(model, [ids[:1]])
    rest = list(ids[1:])
    return float(reading.next_log_probs()[0, rest[0]] + reading.tails(np.zeros(1, np.int64), [rest])[0])


def _finite(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    if not np.isfinite(rows).all():
        raise ValueError(say("model_output_not_finite"))
    return rows
