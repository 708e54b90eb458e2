"""Forward and backward over a lattice of states: what hidden tokens can be, given the visible ones around.

The method is that of hidden Markov models (Rabiner 1989, "A tutorial on hidden Markov models"); here the
states are found on the way, and only those that the visible tokens allow are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from wording import words

say = words("engine.lattice")

S = TypeVar("S", bound=Hashable)
Moves = Callable[
    [S, int | None], Iterable[tuple[int, float, S]]
]  # (state, visible id or None) -> id, p, next state
Link = tuple[int, int, float, int]  # number of a state, token id, probability, number of the next state


class NoPathError(ValueError):
    """No path has the visible tokens; `position` is the first token that can't stand where it does."""

    def __init__(self, position: int) -> None:
        super().__init__(say("no_path_has_visible", position=position))
        self.position = position


class TooManyPathsError(ValueError):
    """The lattice has more links than allowed."""


def hidden_posteriors(
    start: S, visible: Sequence[int | None], moves: Moves[S], *, max_links: int
) -> dict[int, dict[int, float]]:
    """Probabilities of the tokens at every hidden position.

    Args:
        start: the state before the first token.
        visible: the row's token ids; None at hidden positions.
        moves: gives, for a state and a visible id (None: any), the possible ids with their probabilities
            and the states after them.
        max_links: the largest number of links (state, token, next state) to work on.

    Returns:
        position -> token id -> probability; each sums to 1.

    Raises:
        NoPathError: no path has the visible tokens.
        TooManyPathsError: the lattice grows beyond `max_links`.
    """
    layer: dict[S, int] = {start: 0}
    alphas = [[1.0]]
    lattice: list[list[Link]] = []
    n_links = 0
    for position, wanted in enumerate(visible):
        grown: dict[S, int] = {}
        links: list[Link] = []
        for state, source in layer.items():
            for token_id, probability, after in moves(state, wanted):
                links.append((source, token_id, probability, grown.setdefault(after, len(grown))))
            if n_links + len(links) > max_links:
                raise TooManyPathsError(say("more_than_links_needed", max_links=max_links))
        if not links:
            raise NoPathError(position)
        n_links += len(links)
        alphas.append(_forward(alphas[-1], links, len(grown)))
        lattice.append(links)
        layer = grown
    return _backward(alphas, lattice, [position for position, wanted in enumerate(visible) if wanted is None])


def _forward(alpha: list[float], links: list[Link], n_states: int) -> list[float]:
    """Weights of the next layer's states, scaled to sum to 1."""
    out = [0.0] * n_states
    for source, _, probability, target in links:
        out[target] += alpha[source] * probability
    total = math.fsum(out)
    return [weight / total for weight in out]


def _backward(
    alphas: list[list[float]], lattice: list[list[Link]], hidden: list[int]
) -> dict[int, dict[int, float]]:
    posteriors: dict[int, dict[int, float]] = {}
    wanted = set(hidden)
    beta = [1.0] * len(alphas[-1])  # the row may be cut anywhere: every last state will do
    for position in range(len(lattice) - 1, -1, -1):
        alpha, links = alphas[position], lattice[position]
        shares: dict[int, float] = {}
        back = [0.0] * len(alpha)
        for source, token_id, probability, target in links:
            ahead = probability * beta[target]
            back[source] += ahead
            if position in wanted:
                shares[token_id] = shares.get(token_id, 0.0) + alpha[source] * ahead
        if position in wanted:
            total = math.fsum(shares.values())
            posteriors[position] = {token_id: share / total for token_id, share in shares.items()}
        top = max(back)
        beta = [weight / top for weight in back]
    return posteriors
