"""What a perfect model would predict: exact token distributions of the story source.

The oracle keeps a belief: the weights of all states that the tokens read so far allow. A state is a
configuration of the grammar and the tokens of the current terminal that are still to come. One step forward
gives the next-token distribution; forward and backward over the lattice of states give the posterior of
masked tokens. Both are exact, for every tokenizer whose tokens stay inside the borders of the terminals.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.automaton import Config, Move
from engine.grammar import Grammar, split_terminals
from engine.lattice import NoPathError, TooManyPathsError, hidden_posteriors
from engine.legality import LegalPrefix, legal_characters
from wording import words

say = words("engine.oracle")

TABLES_KEPT = 20_000  # places whose token tables are remembered
STORIES_CHECKED = 30  # stories that a tokenizer is tried on


class TokenizerLike(Protocol):
    """What the oracle needs of a tokenizer."""

    @property
    def vocab_size(self) -> int:
        """Number of ordinary ids."""
        ...

    def encode(self, text: str, /) -> list[int]:
        """Ids of a text."""
        ...

    def token_bytes(self, token_id: int, /) -> bytes:
        """The bytes that an id stands for."""
        ...


State = tuple[Config, tuple[int, ...]]  # configuration after the current terminal, its tokens still to come
Belief = dict[State, float]  # weights that sum to 1; never changed once made


class Step(NamedTuple):
    """One token: its probability, and the ways to it as (move, tokens still to come, conditional weight)."""

    probability: float
    ways: tuple[tuple[Move, tuple[int, ...], float], ...]


class Table(NamedTuple):
    """All tokens that can follow a configuration; `ids` and `probs` say the same as arrays (n,)."""

    steps: dict[int, Step]
    ids: NDArray[np.int64]
    probs: NDArray[np.float64]


class Oracle:
    """Exact token distributions of a grammar for one tokenizer.

    Rows begin at the start of a story. A first token that ends with a line end is the end of the story
    before: it is given, not predicted. After the end of a story the next one begins.
    """

    def __init__(self, grammar: Grammar, tokenizer: TokenizerLike, *, max_links: int = 400_000) -> None:
        """Check that the tokenizer keeps to the grammar's terminals; ValueError names two that it joins.

        Args:
            grammar: the story source.
            tokenizer: any tokenizer of the engine.
            max_links: the largest lattice that `masked` works on, about a second's work.
        """
        self.grammar = grammar
        self.tokenizer = tokenizer
        self.vocab_size = tokenizer.vocab_size
        self.max_links = max_links
        self._tokens: dict[str, tuple[int, ...]] = {}
        self._tables: dict[tuple[object, ...], Table] = {}
        self._check_borders()

    # ---- one token after the other ----

    def start(self) -> Belief:
        """The belief before the first token of a story."""
        return {(self.grammar.automaton.start, ()): 1.0}

    def advance(self, belief: Belief, token_id: int) -> tuple[Belief | None, float]:
        """The belief after one more token and its natural log probability; (None, -inf) if it can't come."""
        grown: Belief = {}
        follow = self.grammar.automaton.follow
        for (config, rest), weight in belief.items():
            if rest:
                if rest[0] == token_id:
                    state = (config, rest[1:])
                    grown[state] = grown.get(state, 0.0) + weight
            elif (step := self._table(config).steps.get(token_id)) is not None:
                for move, pieces, share in step.ways:
                    state = (follow(config, move), pieces)
                    grown[state] = grown.get(state, 0.0) + weight * step.probability * share
        mass = math.fsum(grown.values())
        if mass <= 0.0:
            return None, -math.inf
        if len(grown) == 1:
            return dict.fromkeys(grown, 1.0), min(math.log(mass), 0.0)
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
        """Exact next-token distributions, shape (T, V): row t is p(next token | ids[:t + 1]).

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
        """Natural log of p(ids[t] | ids[:t]), shape (T,).

        The first entry is that of a story's first token, or 0.0 if it is the end of the story before (which
        is given). The first illegal token has -inf, all after it NaN.
        """
        out = np.full(len(ids), np.nan)
        belief: Belief | None = self.start()
        for position, token_id in enumerate(ids):
            if position == 0 and self._is_separator(token_id):
                out[0] = 0.0
                continue
            if belief is None:
                break
            belief, out[position] = self.advance(belief, int(token_id))
        return out

    # ---- masked tokens ----

    def masked(
        self, ids: Sequence[int], masked: Iterable[int], *, separator: bool | None = None
    ) -> NDArray[np.float64]:
        """Exact posterior p(token at a masked position | all visible tokens), shape (number of masked, V).

        The row begins at the start of a story, may hold several, and may be cut anywhere at its end.

        Args:
            ids: the tokens, shape (T,); the values at masked positions are ignored.
            masked: positions, in the order of the rows that come back.
            separator: whether position 0 is the end of the story before. None: it is if ids[0] ends with a
                line end. Say it if position 0 itself is masked and ids[0] no longer holds the token.

        Raises:
            ValueError: a position outside the row, visible tokens that no story has, or more ways to fill the
                gaps than `max_links` allows.
        """
        wanted = [int(position) for position in masked]
        if outside := [position for position in wanted if not 0 <= position < len(ids)]:
            raise ValueError(say("masked_positions_lie_outside", outside=outside, n=len(ids)))
        if not wanted:
            return np.zeros((0, self.vocab_size))
        hidden = set(wanted)
        first = int(self._is_separator(ids[0]) if separator is None else separator)
        visible = [None if position in hidden else int(ids[position]) for position in range(first, len(ids))]
        posteriors = self._posteriors(visible, first)
        out = np.zeros((len(wanted), self.vocab_size))
        for row, position in enumerate(wanted):
            shares = posteriors[position - first] if position >= first else self._ending_shares()
            for token_id, share in shares.items():
                out[row, token_id] = share
        return out

    def _posteriors(self, visible: list[int | None], first: int) -> dict[int, dict[int, float]]:
        try:
            start: State = (self.grammar.automaton.start, ())
            return hidden_posteriors(start, visible, self._moves, max_links=self.max_links)
        except NoPathError as error:
            raise ValueError(say("no_story_has_these", position=first + error.position)) from None
        except TooManyPathsError:
            raise ValueError(
                say("masked_tokens_leave_too", n=visible.count(None), most=self.max_links)
            ) from None

    def _moves(self, state: State, visible: int | None) -> Iterator[tuple[int, float, State]]:
        """The tokens that can follow a state (if one is visible, only that), probabilities, next states."""
        config, rest = state
        if rest:
            if visible is None or visible == rest[0]:
                yield rest[0], 1.0, (config, rest[1:])
            return
        follow = self.grammar.automaton.follow
        steps = self._table(config).steps
        for token_id in steps if visible is None else (visible,) if visible in steps else ():
            step = steps[token_id]
            for move, pieces, share in step.ways:
                yield token_id, step.probability * share, (follow(config, move), pieces)

    def _ending_shares(self) -> dict[int, float]:
        """Probabilities of the last token of a story."""
        shares: dict[int, float] = {}
        for terminal, share in self.grammar.endings.items():
            token_id = self._encode(terminal)[-1]
            shares[token_id] = shares.get(token_id, 0.0) + share
        return shares

    # ---- legality ----

    def legal_prefix(self, text: str, *, n_expected: int = 8) -> LegalPrefix:
        """The longest beginning of a text that the source can tell, from a story's start; by characters."""
        n_chars, word_at, options = legal_characters(self.grammar, text)
        complete = n_chars == len(text)
        if complete:  # only what can still become of the unfinished word
            options = {word: share for word, share in options.items() if word.startswith(text[word_at:])}
        total = math.fsum(options.values())
        ranked = sorted(options.items(), key=lambda option: (-option[1], option[0]))
        expected = [(word, share / total) for word, share in ranked[:n_expected]]
        return LegalPrefix(text[:n_chars], n_chars, self._whole_tokens(text, n_chars), complete, expected)

    def _whole_tokens(self, text: str, n_chars: int) -> int:
        """How many tokens of a text lie wholly in its first `n_chars` characters."""
        left = len(text[:n_chars].encode())
        count = 0
        try:
            ids = self.tokenizer.encode(text)
        except ValueError:  # the rest has characters that the tokenizer doesn't know
            ids = self.tokenizer.encode(text[:n_chars])
        for token_id in ids:
            left -= len(self.tokenizer.token_bytes(token_id))
            if left < 0:
                break
            count += 1
        return count

    # ---- tokens of terminals ----

    def _table(self, config: Config) -> Table:
        key = self.grammar.automaton.key(config)
        table = self._tables.get(key)
        if table is None:
            table = self._make_table(config)
            if len(self._tables) >= TABLES_KEPT:
                self._tables.clear()
            self._tables[key] = table
        return table

    def _make_table(self, config: Config) -> Table:
        ways: dict[int, list[tuple[Move, tuple[int, ...]]]] = {}
        for move in self.grammar.automaton.moves(config):
            token_id, *pieces = self._encode(move.terminal)
            ways.setdefault(token_id, []).append((move, tuple(pieces)))
        steps = {}
        for token_id, moves in ways.items():
            mass = math.fsum(move.probability for move, _ in moves)
            steps[token_id] = Step(
                mass, tuple((move, pieces, move.probability / mass) for move, pieces in moves)
            )
        probs = np.array([step.probability for step in steps.values()])
        return Table(steps, np.fromiter(steps, dtype=np.int64, count=len(steps)), probs)

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
        if self.tokenizer.encode(text) == [
            token_id for terminal in terminals for token_id in self._encode(terminal)
        ]:
            return
        for left, right in zip(terminals, terminals[1:], strict=False):
            if tuple(self.tokenizer.encode(left + right)) != self._encode(left) + self._encode(right):
                raise ValueError(say("tokenizer_joins_two_terminals", left=left, right=right))
        raise ValueError(say("tokenizer_doesnt_split_stories"))
