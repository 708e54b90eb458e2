"""What a masked model's probabilities add up to: pseudo-log-likelihood, two orders of filling, totals.

Each is a probability of one token; a product of them need not be the probability of a text. The
pseudo-log-likelihood masks each token in turn (Salazar, Liang, Nguyen, Kirchhoff 2020, arXiv:1910.14659).
Conditionals given one by one may belong to no joint distribution: engine/pair_table.py has a small one.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import inf, log
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from engine.gaps import NO_FRAME, Frame, fill_gaps
from engine.metrics import log_softmax, softmax
from engine.model import Transformer
from engine.row_reading import Tell, quiet
from wording import words

say = words("engine.pseudo")

ROW_TOKENS = 4096  # tokens in one pass; an eighth of it of a large model
LARGE = 2000  # layers × width
LARGEST_TOTAL = 60_000  # tokens that `totals` reads at most: some seconds


@torch.no_grad()
def pseudo_log_probs(
    model: Transformer,
    ids: Sequence[int],
    mask_id: int,
    *,
    hidden: Collection[int] = (),
    frame: Frame = NO_FRAME,
    tell: Tell = quiet,
) -> NDArray[np.float64]:
    """(T,) natural log of p(ids[t] | all other tokens): each token in turn is the only one masked.

    Their sum is the pseudo-log-likelihood of the text. Positions in `hidden` hold no token: they stay masks
    and have NaN.

    Args:
        model: a masked one.
        ids: (T,).
        mask_id: what stands in place of a hidden token.
        hidden: positions at which a mask was typed.
        frame: ids around the text: read, never masked, never scored.
        tell: is told how many tokens were masked in turn, and of how many.
    """
    first = len(frame[0])
    shown = np.array([*frame[0], *ids, *frame[1]], np.int64)
    shown[[first + t for t in hidden]] = mask_id
    asked = [first + t for t in range(len(ids)) if t not in set(hidden)]
    found = np.full(len(shown), np.nan)
    for part in _parts(asked, len(shown), model):
        tell(int(np.isfinite(found).sum()), len(asked))
        rows = np.tile(shown, (len(part), 1))
        rows[np.arange(len(part)), part] = mask_id
        stream = model.stream(torch.from_numpy(rows).to(model.device))[torch.arange(len(part)), part]
        log_probs = log_softmax(model.read_out(stream).float().cpu().numpy())
        found[part] = log_probs[np.arange(len(part)), shown[part]]
    return found[first : first + len(ids)]


def _parts(items: Sequence[int], length: int, model: Transformer) -> Iterator[list[int]]:
    """The items in parts that are read at once: fewer for a large model."""
    tokens = ROW_TOKENS if model.config.d_model * model.config.n_layer < LARGE else ROW_TOKENS // 8
    size = max(1, tokens // max(length, 1))
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


@dataclass(frozen=True)
class TwoOrders:
    """Two hidden tokens filled one after the other, in both orders.

    Attributes:
        a: p(a) while both are hidden.
        b_after_a: p(b) once a stands there.
        b: p(b) while both are hidden.
        a_after_b: p(a) once b stands there.
    """

    a: float
    b_after_a: float
    b: float
    a_after_b: float

    @property
    def a_first(self) -> float:
        """The product if a is filled first."""
        return self.a * self.b_after_a

    @property
    def b_first(self) -> float:
        """The product if b is filled first; of a real joint distribution it is the same."""
        return self.b * self.a_after_b

    @property
    def apart(self) -> float:
        """Logarithm of the first product over the second; 0 for a joint distribution.

        Infinite if one of them is 0 (a number too small for float64), NaN if both are.
        """
        first, second = (
            sum(log(p) if p else -inf for p in pair)
            for pair in ((self.a, self.b_after_a), (self.b, self.a_after_b))
        )
        return first - second


@torch.no_grad()
def two_orders(
    model: Transformer,
    ids: Sequence[int],
    pair: tuple[int, int],
    mask_id: int,
    hidden: Collection[int] = (),
    frame: Frame = NO_FRAME,
) -> TwoOrders:
    """What a masked model gives the two tokens that stand at a pair of positions, in both orders.

    Args:
        model: a masked one.
        ids: (T,) with the two tokens in place.
        pair: two different positions.
        mask_id: what stands in place of a hidden token.
        hidden: further positions that stay hidden all the time.
        frame: ids around the text.

    Raises:
        ValueError: if the two positions are one.
    """
    i, j = pair
    if i == j:
        raise ValueError(say("two_different_positions_needed", i=i))
    both, after_a, after_b = (_with_masks(ids, mask_id, {*hidden, *more}) for more in ((i, j), (j,), (i,)))
    rows = [[*frame[0], *row, *frame[1]] for row in (both, after_a, after_b)]
    asked = ((0, i), (1, j), (0, j), (2, i))
    stream = model.stream(torch.tensor(rows, device=model.device))
    some = stream[[row for row, _ in asked], [len(frame[0]) + at for _, at in asked]]
    probs = softmax(model.read_out(some).float().cpu().numpy())
    return TwoOrders(*(float(row[ids[at]]) for row, (_, at) in zip(probs, asked, strict=True)))


def _with_masks(ids: Sequence[int], mask_id: int, hidden: Collection[int]) -> list[int]:
    return [mask_id if t in hidden else int(token_id) for t, token_id in enumerate(ids)]


def n_passes(length: int, vocab_size: int) -> int:
    """Tokens that `totals` reads: two tables, each with one row for every id of the vocabulary."""
    return 2 * length * vocab_size


@torch.no_grad()
def given_table(
    model: Transformer,
    ids: Sequence[int],
    given: int,
    asked: int,
    mask_id: int,
    frame: Frame = NO_FRAME,
) -> NDArray[np.float32]:
    """(V,V) row v: the distribution at position `asked`, hidden, if id v stands at position `given`."""
    vocab_size = model.config.vocab_size
    rows = np.tile(np.array([*frame[0], *ids, *frame[1]], np.int64), (vocab_size, 1))
    given, asked = given + len(frame[0]), asked + len(frame[0])
    rows[:, given], rows[:, asked] = np.arange(vocab_size), mask_id
    table = np.empty((vocab_size, vocab_size), np.float32)
    for part in _parts(range(vocab_size), len(ids), model):
        logits = model(torch.from_numpy(rows[part]).to(model.device))[:, asked]
        table[part] = softmax(logits.float().cpu().numpy())
    return table


@dataclass(frozen=True)
class Totals:
    """What a model's products add up to over all V² ways to fill two gaps.

    Attributes:
        n_fillings: V².
        a_first, b_first: of p(a) p(b | a), and of p(b) p(a | b): chains, each 1 for itself.
        pseudo: of p(a | b) p(b | a): of a probability it would be 1.
        most_apart: the largest |p(a) p(b | a) - p(b) p(a | b)| of one filling.
        half_sum: half of the sum of these differences: the total variation distance of the two orders.
    """

    n_fillings: int
    a_first: float
    b_first: float
    pseudo: float
    most_apart: float
    half_sum: float


def totals_of(
    a: NDArray[np.float64], b: NDArray[np.float64], b_given_a: NDArray[Any], a_given_b: NDArray[Any]
) -> Totals:
    """Add up over all fillings.

    Args:
        a: (V,) while both are hidden.
        b: (V,) the same of the other gap.
        b_given_a: (V,V) rows a, columns b.
        a_given_b: (V,V) rows b, columns a.

    >>> half = np.array([0.5, 0.5])
    >>> agree = np.eye(2)  # two words that always agree: a joint distribution, and still
    >>> totals_of(half, half, agree, agree).pseudo
    2.0
    """
    first, second = a[:, None] * b_given_a, (b[:, None] * a_given_b).T  # both (a, b)
    apart = np.abs(first - second)
    return Totals(
        len(a) * len(b),
        float(first.sum()),
        float(second.sum()),
        float((b_given_a.astype(np.float64) * a_given_b.T).sum()),
        float(apart.max()),
        float(apart.sum() / 2),
    )


def totals(
    model: Transformer, ids: Sequence[int], pair: tuple[int, int], mask_id: int, frame: Frame = NO_FRAME
) -> Totals:
    """A masked model's totals over everything that could stand at two positions; exact, V passes a table.

    Raises:
        ValueError: if that would take too long.
    """
    need = n_passes(len(ids), model.config.vocab_size)
    if need > LARGEST_TOTAL:
        raise ValueError(
            say(
                "tokens_would_have_read",
                n=len(ids),
                times=2 * model.config.vocab_size,
                need=need,
                most=LARGEST_TOTAL,
            )
        )
    i, j = pair
    both = softmax(fill_gaps(model, ids, pair, mask_id, frame))
    b_given_a = given_table(model, ids, given=i, asked=j, mask_id=mask_id, frame=frame)
    a_given_b = given_table(model, ids, given=j, asked=i, mask_id=mask_id, frame=frame)
    return totals_of(both[i], both[j], b_given_a, a_given_b)


@torch.no_grad()
def causal_total(model: Transformer, before: Sequence[int]) -> float:
    """The sum of p(a | before) p(b | before, a) over all V² pairs of next tokens: for a causal model, 1."""
    vocab_size = model.config.vocab_size
    most = model.config.context_length
    left = list(before)[-max(1, most - 1) :]
    a = softmax(model(torch.tensor([left], device=model.device))[0, -1].float().cpu().numpy())
    total = 0.0
    for part in _parts(range(vocab_size), len(left) + 1, model):
        rows = torch.tensor([[*left, v][-most:] for v in part], device=model.device)
        b_given_a = softmax(model(rows)[:, -1].float().cpu().numpy())
        total += float((a[part, None] * b_given_a).sum())
    return total
