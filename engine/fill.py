"""Many blanks, filled by a model that sees both sides: at once, one after the other, or again and again.

Every function takes the conditional distributions as a callable, so that what they do can be checked with
distributions that are known exactly. Letters in shapes: V vocabulary (ordinary ids), K hidden places.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.dice import draw, throws
from engine.gaps import NO_FRAME, Frame, fill_gaps
from engine.metrics import log_softmax
from engine.model import Transformer
from wording import words

say = words("engine.fill")

Guesses = Callable[[Sequence[int], Sequence[int]], NDArray[np.float64]]
"""(ids, hidden places) -> (K,V) log-probabilities at those places, given all other tokens."""


@dataclass(frozen=True)
class Choice:
    """One token put into one place.

    Attributes:
        place: position in the text.
        id: the token.
        log_prob: natural log of its probability when it was chosen.
        sweep: of Gibbs sampling, counted from 1; 0 elsewhere.
    """

    place: int
    id: int
    log_prob: float
    sweep: int = 0


@dataclass(frozen=True)
class Fill:
    """A text whose blanks were filled.

    Attributes:
        ids: the whole text at the end.
        choices: what was put where, in this order.
        log_prob: natural log of the probability that the way of filling gives these fillers; None where it
            has none.
    """

    ids: tuple[int, ...]
    choices: tuple[Choice, ...]
    log_prob: float | None = None

    def after(self, n: int) -> dict[int, int]:
        """What stands in the places after the first `n` choices: place -> id."""
        return {choice.place: choice.id for choice in self.choices[:n]}

    @property
    def last(self) -> dict[int, Choice]:
        """The last choice for every place."""
        return {choice.place: choice for choice in self.choices}


def masked_guesses(
    model: Transformer, mask_id: int, *, frame: Frame = NO_FRAME, never: Collection[int] = ()
) -> Guesses:
    """The conditionals of a masked model; the mask itself is never a filler, so the others share its part.

    Args:
        model: a masked one.
        mask_id: where it is the last id, the rows end before it; else it has -∞.
        frame: ids around the text.
        never: further ids that are no fillers, as other control tokens.
    """
    last = mask_id == model.config.vocab_size - 1
    out = [i for i in {mask_id, *never} if i < model.config.vocab_size - last]

    def guesses(ids: Sequence[int], hidden: Sequence[int]) -> NDArray[np.float64]:
        rows = fill_gaps(model, ids, hidden, mask_id, frame)[list(hidden)]
        if not np.isfinite(rows).all():
            raise ValueError(say("model_output_not_finite"))
        rows = rows[:, :mask_id] if last else rows
        rows[:, out] = -np.inf
        return log_softmax(rows)

    return guesses


def _sorted(ids: Sequence[int], hidden: Sequence[int]) -> list[int]:
    places = sorted(set(hidden))
    if not places:
        raise ValueError(say("nothing_hidden_there_nothing"))
    if places[0] < 0 or places[-1] >= len(ids):
        raise ValueError(say("places_fill_must_lie", last=len(ids) - 1, places=places))
    return places


def _pick(row: NDArray[np.float64], place: int, forced: Sequence[int] | None) -> Choice:
    """The likeliest token (of equal ones the lowest id), or the forced one."""
    token = int(row.argmax()) if forced is None else int(forced[place])
    return Choice(place, token, float(row[token]))


def _finished(ids: Sequence[int], choices: Sequence[Choice]) -> Fill:
    filled = list(ids)
    for choice in choices:
        filled[choice.place] = choice.id
    return Fill(tuple(filled), tuple(choices), sum(choice.log_prob for choice in choices))


def one_pass(
    guesses: Guesses, ids: Sequence[int], hidden: Sequence[int], *, forced: Sequence[int] | None = None
) -> Fill:
    """Fill every place from its own distribution, none knowing what the others got.

    Args:
        guesses: the conditionals.
        ids: (T,) the text; what stands at hidden places is not looked at.
        hidden: places to fill.
        forced: (T,) take these tokens instead of the likeliest: `log_prob` is then theirs.

    Raises:
        ValueError: if nothing is hidden, or a place does not exist.
    """
    places = _sorted(ids, hidden)
    rows = guesses(ids, places)
    return _finished(ids, [_pick(row, place, forced) for row, place in zip(rows, places, strict=True)])


def left_to_right(
    guesses: Guesses, ids: Sequence[int], hidden: Sequence[int], *, forced: Sequence[int] | None = None
) -> Fill:
    """Fill the places in the order of the text; what was filled is read like the rest. See `one_pass`."""
    return _one_by_one(guesses, ids, hidden, forced, lambda rows: 0)


def surest_first(
    guesses: Guesses, ids: Sequence[int], hidden: Sequence[int], *, forced: Sequence[int] | None = None
) -> Fill:
    """Always fill the place whose likeliest token is most probable, then look again. See `one_pass`."""
    return _one_by_one(guesses, ids, hidden, forced, lambda rows: int(rows.max(axis=1).argmax()))


def _one_by_one(
    guesses: Guesses,
    ids: Sequence[int],
    hidden: Sequence[int],
    forced: Sequence[int] | None,
    which: Callable[[NDArray[np.float64]], int],
) -> Fill:
    places, now, choices = _sorted(ids, hidden), list(ids), list[Choice]()
    while places:
        rows = guesses(now, places)
        at = which(rows)
        choice = _pick(rows[at], places.pop(at), forced)
        now[choice.place] = choice.id
        choices.append(choice)
    return _finished(ids, choices)


def gibbs(
    guesses: Guesses,
    ids: Sequence[int],
    hidden: Sequence[int],
    *,
    n_sweeps: int,
    seed: int,
    start: Sequence[int] | None = None,
) -> Fill:
    """Draw one place after the other again, from p(token | all the rest); a sweep takes every place once.

    If the conditionals belong to one joint distribution, it is the long-run one (Geman & Geman 1984). Those
    of a masked model need not (Wang & Cho 2019, arXiv:1902.04094): then the order of the places matters.

    Args:
        guesses: the conditionals.
        ids: (T,) the text; what stands at hidden places is not looked at.
        hidden: places to fill.
        n_sweeps: at least 1.
        seed: of all draws, which belong to this call alone.
        start: (T,) what stands in the places before the first draw; None: any tokens, all alike probable.

    Raises:
        ValueError: if nothing is hidden, a place does not exist, or there is no sweep.
    """
    places = _sorted(ids, hidden)
    if n_sweeps < 1:
        raise ValueError(say("gibbs_sampling_needs_least", n_sweeps=n_sweeps))
    numbers = throws(n_sweeps * len(places), seed).tolist()
    now, choices = list(ids), list[Choice]()
    first = start if start is not None else _anything(guesses, ids, places, seed)
    for place in places:
        now[place] = first[place]
    for n, u in enumerate(numbers):
        place = places[n % len(places)]
        row = guesses(now, [place])[0]
        now[place] = draw(np.exp(row), u)
        choices.append(Choice(place, now[place], float(row[now[place]]), 1 + n // len(places)))
    return Fill(tuple(now), tuple(choices))


def _anything(guesses: Guesses, ids: Sequence[int], places: Sequence[int], seed: int) -> list[int]:
    """The text with any tokens in its places."""
    can_come = np.flatnonzero(np.isfinite(guesses(ids, places)[0]))
    found = list(ids)
    for place, u in zip(places, throws(len(places), seed, stream=1).tolist(), strict=True):
        found[place] = int(can_come[int(u * len(can_come))])
    return found


def gibbs_start(guesses: Guesses, ids: Sequence[int], hidden: Sequence[int], seed: int) -> dict[int, int]:
    """Place -> the token that `gibbs` starts with if it is told none."""
    places = _sorted(ids, hidden)
    found = _anything(guesses, ids, places, seed)
    return {place: found[place] for place in places}


def words_of(data: Sequence[bytes]) -> list[list[int]]:
    """Positions of the tokens of each word: a token that begins with a letter goes on the word before.

    >>> words_of([b"Once", b" up", b"on", b",", b" a"])
    [[0], [1, 2], [4]]
    """
    words: list[list[int]] = []
    inside = False
    for i, piece in enumerate(data):
        text = piece.decode("utf-8", "ignore")
        letters = text.lstrip()[:1].isalpha()
        if letters and inside and text[:1].isalpha():
            words[-1].append(i)
        elif letters:
            words.append([i])
        inside = letters and text[-1:].isalpha()
    return words


def some_places(n_tokens: int, n: int, seed: int, *, first: int = 0, in_a_row: bool = False) -> list[int]:
    """Places to hide, by chance, from a seed: anywhere, or next to each other.

    Args:
        n_tokens: of the text.
        n: how many to hide; fewer if there are not so many.
        seed: of numbers that belong to this call alone.
        first: places before it stay visible.
        in_a_row: hide neighbours.
    """
    open_places = n_tokens - first
    n = min(n, open_places)
    if n < 1:
        return []
    numbers = throws(open_places, seed)
    if in_a_row:
        begin = first + int(numbers[0] * (open_places - n + 1))
        return list(range(begin, begin + n))
    return sorted((np.argsort(numbers)[:n] + first).tolist())
