"""Guess the token: bets on the next tokens of an unseen text, scored in bits against models and the truth.

A bet is a probability distribution over the whole vocabulary, as a model's prediction is, so that one measure
fits all: -log2 of what the token that came was given (Good 1952, the logarithmic score). Whoever bets the
true distribution can expect its entropy, and nobody can expect less.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine import metrics
from engine.baselines import NAMES, NGrams
from engine.grammar import story_text
from engine.oracle import Oracle
from engine.sampling import logits_of_last, next_logits
from engine.tokenizers import Tokenizer
from wording import words

if TYPE_CHECKING:
    from engine.model import Transformer

say = words("engine.guess")

CHIPS = 100
TOKENS = 10  # of a round
SHOWN = 8  # tokens of the story that are given at least
BEFORE = 40  # tokens of another text that are given
LISTED = 6  # candidates of the simple way
SEEDS_APART = 1_000_003
_FRESH = 7_000_003  # seeds of the stories played lie above those of any training or validation text here
MODEL, TRUTH = "model", "truth"
PLAYERS = (*NAMES, MODEL, TRUTH)

Probs = NDArray[np.float64]


@dataclass(frozen=True)
class Round:
    """Ten tokens to guess, one after the other.

    Attributes:
        ids: the tokens up to the last one to guess.
        first: how many at the start of them are no part of the text and are not shown.
        start: where the first one to guess stands in `ids`.
    """

    ids: tuple[int, ...]
    first: int
    start: int

    @property
    def n(self) -> int:
        """How many tokens are to be guessed."""
        return len(self.ids) - self.start

    def before(self, i: int) -> list[int]:
        """The tokens before the i-th one to guess."""
        return list(self.ids[: self.start + i])

    def answer(self, i: int) -> int:
        """The i-th one to guess."""
        return self.ids[self.start + i]


def story_round(tokenizer: Tokenizer, seed: int, n: int = TOKENS, oracle: Oracle | None = None) -> Round:
    """A place in a fresh story, the same for everybody with this seed and vocabulary.

    The end of another story stands before it, as in training: so its first word has something before it.

    Args:
        tokenizer: cuts the story.
        seed: of the story and of the place.
        n: tokens to guess.
        oracle: if given, the place is one where much can still happen: of all places the third with the most
            entropy to come.
    """
    rng = random.Random(f"guess:{seed}")
    end = tokenizer.encode(story_text(_FRESH + seed, 1))[-1]
    ids: list[int] = []
    more = 0
    while len(ids) < SHOWN + n:  # one story has more than enough tokens, but in an odd vocabulary
        more += 1
        ids += tokenizer.encode(story_text(_FRESH + seed + SEEDS_APART * more, 1))
    starts = list(range(SHOWN, len(ids) - n + 1))
    if oracle is not None:
        open_ = [metrics.entropy(row) for row in oracle.distributions(ids[:-1])]  # after each token
        starts.sort(key=lambda at: -math.fsum(open_[at - 1 : at - 1 + n]))
        starts = starts[: max(1, len(starts) // 3)]
    start = rng.choice(starts)
    return Round((end, *ids[: start + n]), 1, start + 1)


def text_round(ids: Sequence[int], seed: int, n: int = TOKENS) -> Round:
    """A place in the tokens of any unseen text.

    Raises:
        ValueError: if the text is too short.
    """
    before = min(BEFORE, len(ids) - n)
    if before < 1:
        raise ValueError(say("short", n=len(ids), least=n + 1))
    start = random.Random(f"guess:{seed}").randint(before, len(ids) - n)
    return Round(tuple(int(i) for i in ids[start - before : start + n]), 0, before)


def bet(chips: Mapping[int, int], vocab_size: int) -> Probs:
    """(V,) the distribution of a bet: chips on some tokens; the rest evenly on all others.

    At least one chip must be left for the others, so that nothing is impossible: a token that was given
    nothing would cost infinitely many bits.

    Raises:
        ValueError: for ids outside the vocabulary, chips that are no whole numbers above 0, or too many.

    >>> bet({0: 50, 2: 30}, 4).tolist()
    [0.5, 0.1, 0.3, 0.1]
    """
    placed = sum(chips.values())
    if any(not isinstance(n, int) or n < 1 for n in chips.values()):
        raise ValueError(say("no_chips"))
    if any(not 0 <= i < vocab_size for i in chips) or len(chips) >= vocab_size:
        raise ValueError(say("unknown_token", size=vocab_size))
    if placed >= CHIPS:
        raise ValueError(say("too_many", placed=placed, most=CHIPS - 1))
    probs = np.full(vocab_size, (CHIPS - placed) / CHIPS / (vocab_size - len(chips)))
    for token, n in chips.items():
        probs[token] = n / CHIPS
    return probs


def pick(token: int | None, listed: Sequence[int], percent: int, vocab_size: int) -> Probs:
    """(V,) the distribution of one choice and how sure it is.

    Args:
        token: the choice, or None: none of those listed.
        listed: the tokens to choose from.
        percent: how sure, from 1 to 99. What is left goes evenly on all others; if none of those listed was
            chosen, evenly on these, and the chosen share evenly on all others.
        vocab_size: V.

    >>> pick(None, [0, 1], 80, 4).tolist()
    [0.1, 0.1, 0.4, 0.4]
    """
    if not 1 <= percent <= 99:
        raise ValueError(say("percent", percent=percent))
    if token is not None:
        return bet({token: percent}, vocab_size)
    probs = np.full(vocab_size, percent / 100 / (vocab_size - len(listed)))
    probs[list(listed)] = (100 - percent) / 100 / len(listed)
    return probs


def bits(probs: Probs, token: int) -> float:
    """What a distribution pays for the token that came: -log2 of its probability.

    >>> bits(bet({0: 50, 2: 25}, 4), 2)
    2.0
    """
    with np.errstate(divide="ignore"):
        return float(metrics.surprisal(np.log(probs[token]), "bits"))


def counted(counts: NGrams, before: Sequence[int], order: int) -> Probs:
    """(V,) what an n-gram model says after some tokens; `order` as in `engine.baselines.NAMES`."""
    history = np.array([-1, -1, *before][-2:], np.int64)
    v = counts.vocab_size
    return counts.probs(np.tile(history, (v, 1)), np.arange(v), order)


def candidates(counts: NGrams, before: Sequence[int], k: int = LISTED) -> list[int]:
    """The tokens to choose from in the simple way: the trigram model's likeliest."""
    return [int(i) for i in metrics.most_likely(counted(counts, before, 3), k).ids]


@dataclass(frozen=True, eq=False)
class Field:
    """What all other players say in one round.

    Attributes:
        bits: name of a player -> what each token cost them; see `PLAYERS`.
        model: (n,V) the model's distributions.
        truth: (n,V) the true ones, None if they are not known.
    """

    bits: dict[str, list[float]]
    model: NDArray[np.float32]
    truth: Probs | None

    @property
    def floor(self) -> list[float] | None:
        """Entropy of the truth at each token, bits: nobody can expect less. None if it is not known."""
        if self.truth is None:
            return None
        return [float(metrics.surprisal(-metrics.entropy(row), "bits")) for row in self.truth]


def field(
    part: Round, counts: NGrams, model: "Transformer", oracle: Oracle | None, *, before: Sequence[int] = ()
) -> Field:
    """Let all other players predict the tokens of a round; the model reads `before` in front of the text."""
    v = counts.vocab_size
    said = {
        name: [bits(counted(counts, part.before(i), order), part.answer(i)) for i in range(part.n)]
        for order, name in enumerate(NAMES)
    }
    thought = np.stack([metrics.softmax(row)[:v] for row in _logits(part, model, before)])
    said[MODEL] = [bits(row, part.answer(i)) for i, row in enumerate(thought)]
    truth = _truth(part, oracle)
    if truth is not None:
        said[TRUTH] = [bits(row, part.answer(i)) for i, row in enumerate(truth)]
    return Field(said, thought.astype(np.float32), truth)


def _logits(part: Round, model: "Transformer", before: Sequence[int]) -> NDArray[np.float32]:
    """(n,V) the model's, before each token to guess: in one pass where the text fits its context."""
    ids = [*before, *part.ids[:-1]]
    if len(ids) > model.config.context_length:
        return np.stack([next_logits(model, [*before, *part.before(i)]) for i in range(part.n)])
    return logits_of_last(model, ids, part.n)


def _truth(part: Round, oracle: Oracle | None) -> Probs | None:
    if oracle is None:
        return None
    rows = oracle.distributions(part.ids[:-1])[part.start - 1 :]
    return rows if bool(np.isfinite(rows).all()) else None


@dataclass(frozen=True)
class Standing:
    """How a player stands.

    Attributes:
        name: of `PLAYERS`, or "you".
        total: bits so far.
        place: 1 has the fewest; equal ones share it.
    """

    name: str
    total: float
    place: int


def standings(scores: Mapping[str, Sequence[float]], n: int) -> list[Standing]:
    """How all stand after n tokens, the best first.

    >>> [(s.name, s.place) for s in standings({"a": [3, 1], "b": [1, 1], "c": [2, 2]}, 2)]
    [('b', 1), ('a', 2), ('c', 2)]
    """
    totals = {name: math.fsum(costs[:n]) for name, costs in scores.items()}
    ordered = sorted(totals, key=lambda name: totals[name])
    return [
        Standing(name, totals[name], 1 + sum(other < totals[name] - 1e-12 for other in totals.values()))
        for name in ordered
    ]


def probs_of(kept: Mapping[str, Any], vocab_size: int) -> Probs:
    """The distribution of a bet as it is kept: {"chips": {id: n}} or {"pick", "listed", "percent"}.

    Raises:
        ValueError: if it is none.
    """
    try:
        if "chips" in kept:
            return bet({int(i): int(n) for i, n in kept["chips"].items()}, vocab_size)
        token = kept["pick"]
        listed = [int(i) for i in kept["listed"]]
        return pick(None if token is None else int(token), listed, int(kept["percent"]), vocab_size)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(say("not_a_bet", error=repr(error))) from error
