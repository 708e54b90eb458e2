"""A text with gaps: what a masked model expects there from both sides, and how a training batch makes gaps."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engine.batches import mask_tokens
from engine.metrics import IGNORED, kl_divergence, log_softmax
from engine.model import Transformer
from engine.tokenizers import MASK_TEXT, Token, Tokenizer

MASK, RANDOM, KEPT, UNSCORED = "mask", "random", "kept", "not scored"


def gap_tokens(tokenizer: Tokenizer, text: str) -> list[Token]:
    """The tokens of a text in which ``[MASK]`` is one mask token; every other spelling is plain text.

    Only for a text in which gaps are to be filled: everywhere else ``[MASK]`` is six characters.
    """
    found: list[Token] = []
    at = bytes_at = 0
    for i, part in enumerate(text.split(MASK_TEXT)):
        if i:
            end = bytes_at + len(MASK_TEXT)
            found.append(Token(tokenizer.mask_id, MASK_TEXT.encode(), MASK_TEXT, at, bytes_at, end))
            at, bytes_at = at + len(MASK_TEXT), end
        for t in tokenizer.tokens(part):
            place = (t.start + at, t.byte_start + bytes_at, t.byte_end + bytes_at)
            found.append(Token(t.id, t.data, t.text, *place))
        at, bytes_at = at + len(part), bytes_at + len(part.encode())
    return found


@torch.no_grad()
def fill_gaps(model: Transformer, ids: Sequence[int], hidden: Collection[int], mask_id: int) -> NDArray:
    """Log-probabilities (T,V) float64 of a masked model that sees the mask at the hidden positions.

    Raises:
        ValueError: for a causal model, a position that does not exist, or more ids than the context holds.
    """
    if model.config.objective != "mlm":
        raise ValueError("Only a masked model knows the mask. Choose a masked model.")
    if any(not 0 <= i < len(ids) for i in hidden):
        raise ValueError(f"Positions to hide must lie between 0 and {len(ids) - 1}, not {sorted(hidden)}.")
    seen = torch.tensor([[mask_id if i in hidden else token_id for i, token_id in enumerate(ids)]])
    return log_softmax(model(seen.to(model.device))[0].float().cpu().numpy())


@torch.no_grad()
def guess_next(model: Transformer, ids: Sequence[int]) -> NDArray:
    """Log-probabilities (T,V) float64 of a causal model: row t is about the token after `ids[: t + 1]`."""
    if model.config.objective != "clm":
        raise ValueError("A masked model looks at both sides. Choose a causal model to guess from the left.")
    return log_softmax(model(torch.tensor([list(ids)], device=model.device))[0].float().cpu().numpy())


def cost_of_model(true: NDArray, log_probs: NDArray) -> float:
    """KL(true ‖ model) in nats for true probabilities (V,); further ids of the model, as the mask, never truly come.

    >>> round(cost_of_model(np.array([0.5, 0.5]), np.log([0.5, 0.25, 0.25])), 4)
    0.3466
    """
    return float(kl_divergence(true, np.exp(log_probs[: len(true)])))


def mean_surprisal(log_probs: NDArray, ids: Sequence[int], positions: Collection[int]) -> float:
    """Mean of -log p of the tokens that stand at some positions, in nats: for hidden ones the masked-token loss.

    Args:
        log_probs: (T,V), row t is about position t.

    Raises:
        ValueError: if there are no positions.
    """
    if not positions:
        raise ValueError("No position is scored, so there is no loss. Hide at least one token.")
    return -float(np.mean([log_probs[t, ids[t]] for t in positions]))


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


def draw_masks(
    ids: Sequence[int], *, mask_prob: float, mask_id: int, seed: int, only_mask: bool = False
) -> MaskDraw:
    """Hide tokens of one row exactly as training does (`batches.mask_tokens`), from a seed.

    Args:
        only_mask: give every chosen token the mask, none of them a random token or its own.

    Raises:
        ValueError: for no ordinary token, or `mask_prob` outside its range.
    """
    batch = mask_tokens(
        torch.tensor([list(ids)], dtype=torch.int64),
        mask_prob=mask_prob,
        mask_id=mask_id,
        vocab_size=mask_id,
        generator=torch.Generator().manual_seed(seed),
        split=(1.0, 0.0, 0.0) if only_mask else (0.8, 0.1, 0.1),
    )
    inputs, targets = batch.inputs[0].tolist(), batch.targets[0].tolist()
    return MaskDraw(inputs, targets, [_fate(i, t, mask_id) for i, t in zip(inputs, targets, strict=True)])


@dataclass(frozen=True)
class FateCount:
    """How often one fate came: in one draw, on average in many, and as expected."""

    fate: str
    here: int
    mean: float
    expected: float


def count_fates(
    ids: Sequence[int], draw: MaskDraw, *, mask_prob: float, mask_id: int, seed: int, n_draws: int = 1000
) -> list[FateCount]:
    """Compare a draw with many others of the same row and with what the probabilities promise.

    A random token may happen to be the right one (1 chance in V): it counts as kept, as nothing tells them apart.
    """
    rows = torch.tensor([list(ids)] * n_draws, dtype=torch.int64)
    batch = mask_tokens(
        rows,
        mask_prob=mask_prob,
        mask_id=mask_id,
        vocab_size=mask_id,
        generator=torch.Generator().manual_seed(seed),
    )
    scored = batch.targets != IGNORED
    masked = scored & (batch.inputs == mask_id)
    kept = scored & (batch.inputs == batch.targets)
    many = {MASK: masked, RANDOM: scored & ~masked & ~kept, KEPT: kept, UNSCORED: ~scored}
    n_open = sum(token_id != mask_id for token_id in ids)
    shares = {MASK: 0.8 * mask_prob, RANDOM: 0.1 * mask_prob, KEPT: 0.1 * mask_prob, UNSCORED: 1 - mask_prob}
    extra = {
        MASK: 0,
        RANDOM: 0,
        KEPT: 0,
        UNSCORED: len(ids) - n_open,
    }  # masks that were typed are never scored
    here = Counter(draw.fates)
    return [
        FateCount(fate, here[fate], int(many[fate].sum()) / n_draws, n_open * share + extra[fate])
        for fate, share in shares.items()
    ]
