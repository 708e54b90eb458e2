"""How a masked batch hides tokens: every token's fate, the masks of one epoch after the other, their counts.

Of the chosen tokens 80 % become the mask, 10 % a random token, 10 % stay (Devlin et al. 2018,
arXiv:1810.04805). New masks in every epoch, "dynamic" ones, are from Liu et al. 2019, arXiv:1907.11692.
"""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from engine.batches import mask_tokens
from engine.dice import Fit, fit
from engine.metrics import IGNORED

MASK, RANDOM, KEPT, UNSCORED = "mask", "random", "kept", "not scored"
FATES = (MASK, RANDOM, KEPT, UNSCORED)
SPLIT = (0.8, 0.1, 0.1)
_EPOCHS_APART = 1_000_003  # seeds of two epochs; a prime, so that few pairs of seed and epoch share one


@dataclass(frozen=True)
class MaskDraw:
    """One row as a training batch would hide it.

    Attributes:
        inputs: what the model is given.
        targets: what the loss compares with; -100 is not scored.
        fates: for each token "mask", "random", "kept" or "not scored".
    """

    inputs: list[int]
    targets: list[int]
    fates: list[str]

    @property
    def scored(self) -> list[int]:
        """Positions that the loss counts."""
        return [i for i, fate in enumerate(self.fates) if fate != UNSCORED]


def _fate(given: int, target: int, mask_id: int) -> str:
    if target == IGNORED:
        return UNSCORED
    if given == mask_id:
        return MASK
    return KEPT if given == target else RANDOM


def _generator(seed: int, epoch: int) -> torch.Generator:
    return torch.Generator().manual_seed((seed + epoch * _EPOCHS_APART) % 2**63)


def draw_masks(
    ids: Sequence[int],
    *,
    mask_prob: float,
    mask_id: int,
    seed: int,
    n_ids: int | None = None,
    special_ids: Collection[int] = (),
    epoch: int = 0,
    only_mask: bool = False,
) -> MaskDraw:
    """Hide tokens of one row exactly as training does (`batches.mask_tokens`), from a seed.

    Args:
        ids: the tokens, some of them perhaps masks already: these are never chosen.
        mask_prob: chance of each to be chosen.
        mask_id: what a hidden token becomes.
        n_ids: number of ids from which a random token comes; None: those below the mask.
        special_ids: further ids that are never chosen and never drawn.
        seed: of a generator of its own.
        epoch: the same seed hides other tokens in every epoch.
        only_mask: give every chosen token the mask, none of them a random token or its own; as evaluation.

    Raises:
        ValueError: for no ordinary token, or `mask_prob` outside its range.
    """
    batch = mask_tokens(
        torch.tensor([list(ids)], dtype=torch.int64),
        mask_prob=mask_prob,
        mask_id=mask_id,
        vocab_size=mask_id if n_ids is None else n_ids,
        special_ids=special_ids,
        generator=_generator(seed, epoch),
        split=(1.0, 0.0, 0.0) if only_mask else SPLIT,
    )
    inputs, targets = batch.inputs[0].tolist(), batch.targets[0].tolist()
    return MaskDraw(inputs, targets, [_fate(i, t, mask_id) for i, t in zip(inputs, targets, strict=True)])


def epochs_to_meet(n_tokens: int, mask_prob: float) -> float:
    """How many epochs it takes on average until every one of `n_tokens` was chosen at least once.

    The largest of n geometric numbers: the sum over k = 0, 1, 2, … of 1 - (1 - (1 - p)^k)^n.

    >>> epochs_to_meet(1, 0.25)
    4.0
    """
    total, k = 0.0, 0
    while (left := 1 - (1 - (1 - mask_prob) ** k) ** n_tokens) > 1e-12:
        total, k = total + left, k + 1
    return round(total, 9)


def chance_of_none(n_tokens: int, mask_prob: float) -> float:
    """How likely chance picks none of n tokens: (1 - p)^n.

    >>> [round(chance_of_none(n, 0.15), 3) for n in (4, 8, 12, 20)]
    [0.522, 0.272, 0.142, 0.039]
    """
    return float((1 - mask_prob) ** n_tokens)


def binomial_bounds(n: int, p: float, false_alarm: float) -> tuple[int, int]:
    """The counts between which a binomial count lies; an honest one is outside at most so often.

    Args:
        n: trials.
        p: chance of each.
        false_alarm: probability of a count outside, at most half of it on each side.

    >>> binomial_bounds(10, 0.5, 0.05)  # P(X <= 1) = 0.0107, P(X <= 2) = 0.0547
    (2, 8)
    """
    if n == 0 or p <= 0:
        return 0, 0
    if p >= 1:
        return n, n
    k = torch.arange(n + 1, dtype=torch.float64)
    choose = math.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)
    mass = torch.exp(choose + k * math.log(p) + (n - k) * math.log1p(-p)).numpy()
    below, above = np.cumsum(mass), np.cumsum(mass[::-1])
    low = int(np.searchsorted(below, false_alarm / 2, side="right"))
    high = n - int(np.searchsorted(above, false_alarm / 2, side="right"))
    return low, high


@dataclass(frozen=True)
class FateCount:
    """How often one fate came: in one draw, in many draws, as expected, and the bounds of honest chance."""

    fate: str
    here: int
    many: int
    expected: float
    low: int
    high: int

    @property
    def inside(self) -> bool:
        """Whether the count in many draws lies within the bounds."""
        return self.low <= self.many <= self.high


@dataclass(frozen=True)
class FateCounts:
    """Many draws of one row against what the probabilities promise.

    Attributes:
        rows: one for each fate.
        n_draws: how often the row was drawn.
        n_tokens: tokens that chance could choose, in all draws together.
        false_alarm: how often honest draws would have any count outside its bounds, at most.
        fit: Pearson's test of all four counts together.
        special_chosen: how often a typed mask or another special token was chosen: never.
        empty: rows of which nothing was chosen.
        empty_expected: how many of these there should be.
        empty_bounds: and between which counts.
    """

    rows: list[FateCount]
    n_draws: int
    n_tokens: int
    false_alarm: float
    fit: Fit
    special_chosen: int
    empty: int
    empty_expected: float
    empty_bounds: tuple[int, int]


def fate_shares(mask_prob: float, n_ordinary: int) -> dict[str, float]:
    """The probability of each fate. A random one of so many may happen to be right: that is called kept."""
    same = 1 / n_ordinary
    return {
        MASK: SPLIT[0] * mask_prob,
        RANDOM: SPLIT[1] * mask_prob * (1 - same),
        KEPT: (SPLIT[2] + SPLIT[1] * same) * mask_prob,
        UNSCORED: 1 - mask_prob,
    }


def count_fates(
    ids: Sequence[int],
    draw: MaskDraw,
    *,
    mask_prob: float,
    mask_id: int,
    seed: int,
    n_ids: int | None = None,
    special_ids: Collection[int] = (),
    n_draws: int = 1000,
    false_alarm: float = 1e-3,
) -> FateCounts:
    """Compare a draw with many others of the same row, made as one batch, and with what is promised.

    Args:
        ids: the row; masks and other special tokens in it are never chosen and are not counted.
        draw: one draw of it.
        mask_prob: chance of each token to be chosen.
        mask_id: what a hidden token becomes.
        n_ids: number of ids from which a random token comes; None: those below the mask.
        special_ids: further ids that are never chosen and never drawn.
        seed: of the many draws.
        n_draws: how many.
        false_alarm: shared evenly by the five bounds, those of the four fates and of the empty rows.
    """
    n_ids, never = mask_id if n_ids is None else n_ids, {mask_id, *special_ids}
    rows = torch.tensor([list(ids)] * n_draws, dtype=torch.int64)
    batch = mask_tokens(
        rows,
        mask_prob=mask_prob,
        mask_id=mask_id,
        vocab_size=n_ids,
        special_ids=special_ids,
        generator=_generator(seed, 0),
        split=SPLIT,
    )
    scored, special = batch.targets != IGNORED, torch.isin(rows, torch.tensor(sorted(never)))
    masked = scored & (batch.inputs == mask_id)
    kept = scored & (batch.inputs == batch.targets)
    many = {MASK: masked, RANDOM: scored & ~masked & ~kept, KEPT: kept, UNSCORED: ~scored & ~special}
    n_open = sum(token_id not in never for token_id in ids)
    n, each = n_open * n_draws, false_alarm / 5
    n_ordinary = n_ids - sum(i < n_ids for i in never)
    shares, here = fate_shares(mask_prob, n_ordinary), Counter(draw.fates)
    counts = [
        FateCount(
            fate,
            here[fate] - (len(ids) - n_open) * (fate == UNSCORED),
            int(many[fate].sum()),
            n * share,
            *binomial_bounds(n, share, each),
        )
        for fate, share in shares.items()
    ]
    none = chance_of_none(n_open, mask_prob)
    return FateCounts(
        counts,
        n_draws,
        n,
        false_alarm,
        fit(np.array([count.many for count in counts]), np.array(list(shares.values()))),
        int((scored & special).sum()),
        int((~scored.any(dim=1)).sum()),
        n_draws * none,
        binomial_bounds(n_draws, none, each),
    )
