"""How often each way of filling blanks is right, on stories that no model has learned from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine import fill, infill
from engine.fill import Fill, Guesses
from engine.grammar import story_text
from engine.model import Transformer
from engine.oracle import Oracle
from engine.tokenizers import Tokenizer
from wording import words

say = words("engine.fill_scores")

ONE_PASS, LEFT_TO_RIGHT, SUREST, GIBBS = "one_pass", "left_to_right", "surest", "gibbs"
CAUSAL, RESCORED, EXACT = "causal", "rescored", "exact"
MASKED_WAYS = (ONE_PASS, LEFT_TO_RIGHT, SUREST, GIBBS)
CAUSAL_WAYS = (CAUSAL, RESCORED)
SWEEPS = 5  # of Gibbs sampling, from any tokens on
TRIED, KEPT = 32, 8  # of rescoring
HELD_OUT = 2_000_003  # added to a seed: the shipped models learned from seed 1, and were measured on others


@dataclass(frozen=True)
class StoryScore:
    """One way on one story.

    Attributes:
        n_right: places filled with the very token that was hidden.
        n_places: how many were hidden.
        possible: whether the whole filled text is one that the story source can tell.
        true_log_prob: natural log of the probability that this way gives the hidden tokens together; None
            where it has none.
        best: places that are right on average with the exact answer; only of that.
    """

    n_right: int
    n_places: int
    possible: bool
    true_log_prob: float | None
    best: float | None = None


def wilson(n_right: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """The interval of a share that 95 % of samples' intervals hold (Wilson 1927).

    Args:
        n_right: successes.
        n: trials, taken as independent.
        z: 1.96 for 95 %.

    Raises:
        ValueError: for no trial, or more successes than trials.

    >>> [round(x, 4) for x in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    if n < 1 or not 0 <= n_right <= n:
        raise ValueError(say("share_needs_1_trial", n_right=n_right, n=n))
    share, extra = n_right / n, z * z / n
    middle = (share + extra / 2) / (1 + extra)
    half = z / (1 + extra) * math.sqrt(share * (1 - share) / n + extra / (4 * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def held_out_rows(tokenizer: Tokenizer, n: int, seed: int, context_length: int) -> list[list[int]]:
    """Up to `n` whole stories as ids, each behind the last token of the story before it.

    Longer ones than the context are left out.

    Raises:
        ValueError: if none of twice as many stories fits the context.
    """
    ids = [tokenizer.encode(line + "\n") for line in story_text(seed + HELD_OUT, 2 * n + 1).splitlines()]
    rows = [[before[-1], *row] for before, row in zip(ids, ids[1:], strict=False)]
    fitting = [row for row in rows if len(row) <= context_length][:n]
    if not fitting:
        raise ValueError(
            say(
                "no_story_fits_context", context_length=context_length, shortest=min(len(row) for row in rows)
            )
        )
    return fitting


def is_possible(oracle: Oracle, ids: Sequence[int]) -> bool:
    """Whether a text, by its characters, is one that the story source can tell."""
    return oracle.legal_prefix(text_of(oracle, ids), n_expected=0).complete


def text_of(oracle: Oracle, ids: Sequence[int]) -> str:
    """The text of ids; the end of the story before it is left out."""
    data = [oracle.tokenizer.token_bytes(int(i)) for i in ids]
    if data and data[0].endswith(b"\n"):
        data = data[1:]
    return b"".join(data).decode("utf-8", "backslashreplace")


def exact_guesses(oracle: Oracle) -> Guesses:
    """The exact conditionals of the story source, in the form of a model's."""

    def guesses(ids: Sequence[int], hidden: Sequence[int]) -> np.ndarray:
        separator = None if 0 not in hidden else False
        with np.errstate(divide="ignore"):
            return np.log(oracle.masked(ids, hidden, separator=separator))

    return guesses


def score_exact(oracle: Oracle, ids: Sequence[int], hidden: Sequence[int]) -> StoryScore:
    """The exact posterior's likeliest token in every place: nobody can expect more right tokens.

    Raises:
        ValueError: if the blanks leave too many ways to tell the story.
    """
    guesses = exact_guesses(oracle)
    best = float(np.exp(guesses(ids, hidden)).max(axis=1).sum())
    filled = fill.one_pass(guesses, ids, hidden)
    true = fill.left_to_right(guesses, ids, hidden, forced=ids)
    return _score(oracle, filled, ids, hidden, true.log_prob, best)


def score_masked(
    way: str, guesses: Guesses, oracle: Oracle, ids: Sequence[int], hidden: Sequence[int], *, seed: int
) -> StoryScore:
    """One of `MASKED_WAYS` on a story whose tokens are known; Gibbs sampling sweeps `SWEEPS` times."""
    if way == GIBBS:
        filled = fill.gibbs(guesses, ids, hidden, n_sweeps=SWEEPS, seed=seed)
        return _score(oracle, filled, ids, hidden, None)
    fills = {ONE_PASS: fill.one_pass, LEFT_TO_RIGHT: fill.left_to_right, SUREST: fill.surest_first}[way]
    filled, true = fills(guesses, ids, hidden), fills(guesses, ids, hidden, forced=ids)
    return _score(oracle, filled, ids, hidden, true.log_prob)


def score_causal(
    way: str, model: Transformer, oracle: Oracle, ids: Sequence[int], hidden: Sequence[int]
) -> StoryScore:
    """One of `CAUSAL_WAYS` on a story whose tokens are known."""
    if way == RESCORED:
        found = infill.rescore(model, ids, hidden, tried=TRIED, kept=KEPT)
        return _score(oracle, found.fill, ids, hidden, None)
    true = infill.go_on(model, ids, hidden, forced=ids)
    return _score(oracle, infill.go_on(model, ids, hidden), ids, hidden, true.log_prob)


def _score(
    oracle: Oracle,
    filled: Fill,
    ids: Sequence[int],
    hidden: Sequence[int],
    true: float | None,
    best: float | None = None,
) -> StoryScore:
    n_right = sum(filled.ids[place] == ids[place] for place in hidden)
    return StoryScore(n_right, len(hidden), is_possible(oracle, filled.ids), true, best)


@dataclass(frozen=True)
class WayScore:
    """One way on all stories.

    Attributes:
        n_right, n_places: tokens, together.
        low, high: the 95 % interval of their share, the tokens taken as independent.
        n_possible, n_stories: whole texts.
        possible_low, possible_high: the 95 % interval of their share.
        true_nats: -log p of the hidden tokens together, nats a token; None where the way has none.
        best: expected share of right tokens; only of the exact answer.
    """

    n_right: int
    n_places: int
    low: float
    high: float
    n_possible: int
    n_stories: int
    possible_low: float
    possible_high: float
    true_nats: float | None
    best: float | None

    @property
    def share(self) -> float:
        """Of the tokens that are right."""
        return self.n_right / self.n_places


def together(scores: Sequence[StoryScore]) -> WayScore:
    """Add up the scores of at least one story."""
    n_right, n_places = sum(s.n_right for s in scores), sum(s.n_places for s in scores)
    n_possible, n = sum(s.possible for s in scores), len(scores)
    logs = [s.true_log_prob for s in scores if s.true_log_prob is not None]
    bests = [s.best for s in scores if s.best is not None]
    return WayScore(
        n_right,
        n_places,
        *wilson(n_right, n_places),
        n_possible,
        n,
        *wilson(n_possible, n),
        true_nats=max(0.0, -math.fsum(logs) / n_places) if len(logs) == n else None,
        best=math.fsum(bests) / n_places if len(bests) == n else None,
    )
