"""A text with gaps: what a masked model expects there, and how a training batch makes gaps."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engine.batches import mask_tokens
from engine.metrics import IGNORED, MostLikely, kl_divergence, log_softmax, most_likely, rank
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


def positions_of(tokens: Sequence[Token], text: str, word: str, *, first: bool = False) -> list[int]:
    """Positions of the tokens that hold a part of a word, wherever it stands or only the first time."""
    data, spans = text.encode(), []
    at = data.find(word.encode()) if word else -1
    while at >= 0:
        spans.append((at, at + len(word.encode())))
        at = -1 if first else data.find(word.encode(), at + 1)
    return [
        i
        for i, t in enumerate(tokens)
        if any(t.byte_start < end and t.byte_end > start for start, end in spans)
    ]


@torch.no_grad()
def fill_gaps(
    model: Transformer, ids: Sequence[int], hidden: Collection[int], mask_id: int
) -> NDArray[np.float32]:
    """Logits (T,V) of a masked model that sees the mask at the hidden positions.

    Raises:
        ValueError: for a causal model, a position that does not exist, or more ids than the context holds.
    """
    if model.config.objective != "mlm":
        raise ValueError("Only a masked model knows the mask. Choose a masked model.")
    if any(not 0 <= i < len(ids) for i in hidden):
        raise ValueError(f"Positions to hide must lie between 0 and {len(ids) - 1}, not {sorted(hidden)}.")
    seen = torch.tensor([[mask_id if i in hidden else token_id for i, token_id in enumerate(ids)]])
    logits: NDArray[np.float32] = model(seen.to(model.device))[0].float().cpu().numpy()
    return logits


@dataclass(frozen=True, eq=False)
class Guess:
    """What a model expects in a gap, beside what is true.

    Attributes:
        top: the likeliest tokens, and the one that stands there.
        rank, surprisal: of the one that stands there, nats; None if nobody knows it.
        true_probs: (K,) true probabilities of the tokens in `top`; None if not known.
        cost: KL(true ‖ model) in nats; None if not known.
    """

    top: MostLikely
    rank: int | None
    surprisal: float | None
    true_probs: NDArray[np.float64] | None
    cost: float | None


def guess(
    logits: NDArray[np.float32],
    n: int,
    *,
    true_id: int | None = None,
    true: NDArray[np.float64] | None = None,
) -> Guess:
    """Read one row of logits (V,) as a guess.

    Args:
        logits: of a masked or of a causal model.
        n: how many of the likeliest tokens.
        true_id: what stands in the gap.
        true: (V,) the true distribution; ids beyond it, as the mask, never truly come.

    Raises:
        ValueError: if the logits are not finite.
    """
    if not np.isfinite(logits).all():
        raise ValueError("The model output is not finite (did its training diverge?). Choose another model.")
    log_probs = log_softmax(logits)
    probs = np.exp(log_probs)
    top = most_likely(probs, n, also=true_id)
    cost = true_probs = None
    if true is not None:
        cost = float(kl_divergence(true, probs[: len(true)]))
        true_probs = np.append(true, np.zeros(len(probs) - len(true)))[top.ids]
    if true_id is None:
        return Guess(top, None, None, true_probs, cost)
    return Guess(top, rank(probs, true_id), -float(log_probs[true_id]), true_probs, cost)


def mean_surprisal(logits: NDArray[np.float32], ids: Sequence[int], positions: Collection[int]) -> float:
    """Mean of -log p of the tokens at some positions, in nats: of the hidden ones the masked-token loss.

    Args:
        logits: (T,V), row t is about position t.
        ids: (T,) the tokens of the text.
        positions: those that count.

    Raises:
        ValueError: if there are no positions.
    """
    if not positions:
        raise ValueError("No position is scored, so there is no loss. Hide at least one token.")
    log_probs = log_softmax(logits)
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
        ids: the tokens, some of them perhaps masks already: these are never chosen.
        mask_prob: chance of each to be chosen.
        mask_id: also the number of ordinary ids.
        seed: of a generator of its own.
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

    A random token may happen to be the right one (1 chance in V): it counts as kept.
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
