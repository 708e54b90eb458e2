"""What a perfect model would predict: exact token distributions of the story source.

The oracle keeps a belief: the weights of all states that the tokens read so far allow. A state is a configuration
of the grammar's automaton and the tokens of the current terminal that are still to come. One step forward gives
the next-token distribution; forward and backward over the lattice of states (Rabiner 1989, "A tutorial on hidden
Markov models") gives the posterior of masked tokens. Both are exact, for every tokenizer whose tokens do not
reach across the border of two terminals.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.grammar import Config, Grammar, split_terminals

TABLES_KEPT = 12_000  # configurations whose token tables are remembered
STORIES_CHECKED = 30  # stories that a tokenizer is tried on


class TokenizerLike(Protocol):
    """What the oracle needs of a tokenizer."""

    @property
    def vocab_size(self) -> int:
        """Number of ordinary ids."""
        ...

    def encode(self, text: str) -> list[int]:
        """Ids of a text."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that an id stands for."""
        ...


State = tuple[Config, tuple[int, ...]]  # configuration after the current terminal, its tokens still to come
Belief = dict[State, float]  # weights that sum to 1


class Step(NamedTuple):
    """One token from a state: its probability and the states after it with their conditional weights."""

    probability: float
    states: tuple[tuple[State, float], ...]


class Table(NamedTuple):
    """All tokens that can follow a configuration; `ids` and `probs` are the same as arrays (n,)."""

    steps: dict[int, Step]
    ids: NDArray[np.int64]
    probs: NDArray[np.float64]


@dataclass(frozen=True)
class LegalPrefix:
    """How far a text is one that the story source can tell.

    Attributes:
        text: the longest legal beginning of the text, cut inside a word if need be.
        n_chars: its length in characters.
        n_tokens: how many of the text's tokens lie wholly in it.
        complete: whether that is the whole text.
        expected: the likeliest terminals at the word where the text breaks (in a complete text: that can come
            next or complete its last word), with their probabilities given the words before; likeliest first.
    """

    text: str
    n_chars: int
    n_tokens: int
    complete: bool
    expected: list[tuple[str, float]]


class Oracle:
    """Exact token distributions of a grammar for one tokenizer.

    Rows begin at the start of a story. A first token that ends with a line end is the end of the story before: it
    is given, not predicted. After the end of a story the next one begins.
    """

    def __init__(self, grammar: Grammar, tokenizer: TokenizerLike, *, max_edges: int = 400_000) -> None:
        """Check that the tokenizer keeps to the grammar's terminals; ValueError names two that it joins.

        Args:
            grammar: the story source.
            tokenizer: any tokenizer of the engine.
            max_edges: the largest lattice that `masked` works on, about one second's work.
        """
        self.grammar = grammar
        self.tokenizer = tokenizer
        self.vocab_size = tokenizer.vocab_size
        self.max_edges = max_edges
        self._tokens: dict[str, tuple[int, ...]] = {}
        self._tables: dict[Config, Table] = {}
        self._check_borders()

    # ---- one token after the other ----

    def start(self) -> Belief:
        """The belief before the first token of a story."""
        return {(self.grammar.start, ()): 1.0}

    def advance(self, belief: Belief, token_id: int) -> tuple[Belief | None, float]:
        """The belief after one more token and the token's natural log probability; (None, -inf) if it can't come."""
        grown: Belief = {}
        for (config, rest), weight in belief.items():
            if rest:
                if rest[0] == token_id:
                    state = (config, rest[1:])
                    grown[state] = grown.get(state, 0.0) + weight
                continue
            step = self._table(config).steps.get(token_id)
            if step is not None:
                for state, share in step.states:
                    grown[state] = grown.get(state, 0.0) + weight * step.probability * share
        mass = math.fsum(grown.values())
        if mass <= 0.0:
            return None, -math.inf
        return {state: weight / mass for state, weight in grown.items()}, min(math.log(mass), 0.0)

    def next_probs(self, belief: Belief) -> NDArray[np.float64]:
        """Probabilities of the next token, shape (V,), summing to 1."""
        probs = np.zeros(self.vocab_size)
        self._add_next(belief, probs)
        return probs

    def _add_next(self, belief: Belief, probs: NDArray[np.float64]) -> None:
        for (config, rest), weight in belief.items():
            if rest:
                probs[rest[0]] += weight
            else:
                table = self._table(config)
                probs[table.ids] += weight * table.probs

    def distributions(self, ids: Sequence[int]) -> NDArray[np.float64]:
        """Exact next-token distributions, shape (T, V): row t is p(next | ids[:t + 1]).

        Rows from the first illegal token on are NaN: a text that can't be told has no continuation.
        """
        rows = np.zeros((len(ids), self.vocab_size))
        belief: Belief | None = self.start()
        for position, token_id in enumerate(ids):
            if belief is not None and not (position == 0 and self._is_separator(token_id)):
                belief, _ = self.advance(belief, int(token_id))
            if belief is None:
                rows[position:] = np.nan
                break
            self._add_next(belief, rows[position])
        return rows

    def log_probs(self, ids: Sequence[int]) -> NDArray[np.float64]:
        """Natural log p(ids[t] | ids[:t]), shape (T,).

        The first entry is p of a story's first token, or 0.0 if that token is the end of the story before (it is
        given). The first illegal token has -inf, all after it NaN.
        """
        out = np.full(len(ids), np.nan)
        belief: Belief | None = self.start()
        for position, token_id in enumerate(ids):
            if position == 0 and self._is_separator(token_id):
                out[0] = 0.0
                continue
            assert belief is not None
            belief, out[position] = self.advance(belief, int(token_id))
            if belief is None:
                break
        return out

    # ---- masked tokens ----

    def masked(
        self, ids: Sequence[int], masked: Iterable[int], *, separator: bool | None = None
    ) -> NDArray[np.float64]:
        """Exact posterior p(token at a masked position | all visible tokens), shape (number of masked, V).

        The row begins at the start of a story and may be cut anywhere at its end.

        Args:
            ids: the tokens, shape (T,); values at masked positions are ignored.
            masked: positions, in the order of the rows that come back.
            separator: whether position 0 is the end of the story before. None: it is if ids[0] ends with a line
                end. Say it if position 0 itself is masked and ids[0] no longer holds the token.

        Raises:
            ValueError: a position outside the row, visible tokens that no story has, or more ways to fill the
                gaps than `max_edges` allows.
        """
        wanted = [int(position) for position in masked]
        if outside := [position for position in wanted if not 0 <= position < len(ids)]:
            raise ValueError(f"Masked positions {outside} lie outside the row of {len(ids)} tokens.")
        hidden = set(wanted)
        first = int(self._is_separator(ids[0]) if separator is None else separator) if len(ids) else 0
        posterior = self._lattice([int(token_id) for token_id in ids], hidden, first)
        out = np.zeros((len(wanted), self.vocab_size))
        for row, position in enumerate(wanted):
            shares = posterior[position] if position >= first else self._ending_shares()
            for token_id, share in shares.items():
                out[row, token_id] = share
        return out

    def _lattice(self, ids: list[int], hidden: set[int], first: int) -> dict[int, dict[int, float]]:
        """Forward over all states that the visible tokens allow, then back; position -> token -> probability."""
        layer: dict[State, int] = {(self.grammar.start, ()): 0}
        alphas = [[1.0]]
        edges: list[list[tuple[int, int, float, int]]] = []  # per position: from, token, probability, to
        n_edges = 0
        for position in range(first, len(ids)):
            grown: dict[State, int] = {}
            links: list[tuple[int, int, float, int]] = []
            for state, source in layer.items():
                for token_id, probability, after in self._moves(state, None if position in hidden else ids[position]):
                    links.append((source, token_id, probability, grown.setdefault(after, len(grown))))
            n_edges += len(links)
            if not links:
                raise ValueError(
                    f"No story has these visible tokens: the one at position {position} can't stand there. "
                    "Use a text of the story source, or mask that position too."
                )
            if n_edges > self.max_edges:
                raise ValueError(
                    f"{len(hidden)} masked positions leave more than max_edges={self.max_edges} ways to tell the "
                    "story. Mask fewer tokens, or allow a larger lattice."
                )
            alphas.append(_pass_on(alphas[-1], links, len(grown)))
            edges.append(links)
            layer = grown
        return _smooth(alphas, edges, hidden, first)

    def _moves(self, state: State, visible: int | None) -> Iterable[tuple[int, float, State]]:
        """The tokens that can follow a state (only the visible one, if any), with probability and next state."""
        config, rest = state
        if rest:
            if visible is None or visible == rest[0]:
                yield rest[0], 1.0, (config, rest[1:])
            return
        steps = self._table(config).steps
        if visible is None:
            chosen = steps
        else:
            chosen = {visible: steps[visible]} if visible in steps else {}
        for token_id, step in chosen.items():
            for after, share in step.states:
                yield token_id, step.probability * share, after

    def _ending_shares(self) -> dict[int, float]:
        """Probabilities of the last token of a story."""
        shares: dict[int, float] = {}
        for terminal, share in self.grammar.endings.items():
            token_id = self._encode(terminal)[-1]
            shares[token_id] = shares.get(token_id, 0.0) + share
        return shares

    # ---- legality ----

    def legal_prefix(self, text: str, *, n_expected: int = 8) -> LegalPrefix:
        """The longest beginning of a text that the source can tell, from the start of a story; by characters."""
        offset = 1 if text.startswith("\n") else 0
        agenda: dict[int, dict[Config, float]] = {offset: {self.grammar.start: 1.0}}
        reached, broke_at = -1, offset
        options: dict[str, float] = {}
        while agenda:
            place = min(agenda)
            belief = agenda.pop(place)
            found: dict[str, float] = {}
            for config, weight in belief.items():
                for terminal, probability, after in self.grammar.arcs_from(config):
                    found[terminal] = found.get(terminal, 0.0) + weight * probability
                    if text.startswith(terminal, place) and place + len(terminal) <= len(text):
                        grown = agenda.setdefault(place + len(terminal), {})
                        grown[after] = grown.get(after, 0.0) + weight * probability
            _rescale(agenda)
            far = max(place + _shared(text, place, terminal) for terminal in found)
            if far > reached or (far == reached and place > broke_at):
                reached, broke_at, options = far, place, found
        complete = reached == len(text)
        if complete:
            options = {word: share for word, share in options.items() if word.startswith(text[broke_at:])}
        total = math.fsum(options.values())
        ranked = sorted(((word, share / total) for word, share in options.items()), key=lambda pair: (-pair[1], pair[0]))
        return LegalPrefix(text[:reached], reached, self._count_tokens(text, reached), complete, ranked[:n_expected])

    def _count_tokens(self, text: str, n_chars: int) -> int:
        """How many tokens of a text lie wholly in its first `n_chars` characters."""
        left = len(text[:n_chars].encode())
        count = 0
        for token_id in self.tokenizer.encode(text):
            left -= len(self.tokenizer.token_bytes(token_id))
            if left < 0:
                break
            count += 1
        return count

    # ---- tokens of terminals ----

    def _table(self, config: Config) -> Table:
        table = self._tables.get(config)
        if table is not None:
            return table
        ways: dict[int, dict[State, float]] = {}
        for terminal, probability, after in self.grammar.arcs_from(config):
            token_id, *rest = self._encode(terminal)
            states = ways.setdefault(token_id, {})
            state = (after, tuple(rest))
            states[state] = states.get(state, 0.0) + probability
        steps = {}
        for token_id, states in ways.items():
            mass = math.fsum(states.values())
            steps[token_id] = Step(mass, tuple((state, weight / mass) for state, weight in states.items()))
        probs = np.array([step.probability for step in steps.values()])
        table = Table(steps, np.fromiter(steps, dtype=np.int64, count=len(steps)), probs)
        if len(self._tables) >= TABLES_KEPT:
            self._tables.clear()
        self._tables[config] = table
        return table

    def _encode(self, terminal: str) -> tuple[int, ...]:
        tokens = self._tokens.get(terminal)
        if tokens is None:
            tokens = self._tokens[terminal] = tuple(self.tokenizer.encode(terminal))
        return tokens

    def _is_separator(self, token_id: int) -> bool:
        return 0 <= token_id < self.vocab_size and self.tokenizer.token_bytes(int(token_id)).endswith(b"\n")

    def _check_borders(self) -> None:
        """Try the tokenizer on some stories: the tokens of a text must be those of its terminals."""
        rng = random.Random(0)
        text = "".join(self.grammar.story(rng) for _ in range(STORIES_CHECKED))
        terminals = split_terminals(text)
        joined = [token_id for terminal in terminals for token_id in self._encode(terminal)]
        if self.tokenizer.encode(text) == joined:
            return
        for left, right in zip(terminals, terminals[1:], strict=False):
            if tuple(self.tokenizer.encode(left + right)) != self._encode(left) + self._encode(right):
                raise ValueError(
                    f"This tokenizer joins {left!r} and {right!r}, two terminals of the story source, so exact "
                    "probabilities can't be given. Choose one that splits text into words first."
                )
        raise ValueError("This tokenizer doesn't split stories at their terminals. Choose one that splits into words.")


def _pass_on(weights: list[float], links: list[tuple[int, int, float, int]], n_states: int) -> list[float]:
    """One step forward: the weights of the next layer, scaled to sum to 1."""
    out = [0.0] * n_states
    for source, _, probability, target in links:
        out[target] += weights[source] * probability
    total = math.fsum(out)
    return [weight / total for weight in out]


def _smooth(
    alphas: list[list[float]], edges: list[list[tuple[int, int, float, int]]], hidden: set[int], first: int
) -> dict[int, dict[int, float]]:
    """One pass backward: for every hidden position the probabilities of its tokens, given both sides."""
    posterior: dict[int, dict[int, float]] = {}
    beta = [1.0] * len(alphas[-1])
    for index in range(len(edges) - 1, -1, -1):
        alpha, links = alphas[index], edges[index]
        if index + first in hidden:
            shares: dict[int, float] = {}
            for source, token_id, probability, target in links:
                shares[token_id] = shares.get(token_id, 0.0) + alpha[source] * probability * beta[target]
            total = math.fsum(shares.values())
            posterior[index + first] = {token_id: share / total for token_id, share in shares.items()}
        back = [0.0] * len(alpha)
        for source, _, probability, target in links:
            back[source] += probability * beta[target]
        top = max(back)
        beta = [weight / top for weight in back]
    return posterior


def _shared(text: str, place: int, terminal: str) -> int:
    """How many characters of a terminal agree with the text from a place on."""
    return len(os.path.commonprefix([text[place : place + len(terminal)], terminal]))


def _rescale(agenda: dict[int, dict[Config, float]]) -> None:
    """Keep the weights of a long text from underflowing; only their ratios matter."""
    top = max((weight for belief in agenda.values() for weight in belief.values()), default=1.0)
    if top < 1e-100:
        for belief in agenda.values():
            for config in belief:
                belief[config] /= top
