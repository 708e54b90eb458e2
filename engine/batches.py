"""From a long row of ids to the inputs and targets of one training step."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from engine.metrics import IGNORED
from wording import words

say = words("engine.batches")


class Batch(NamedTuple):
    """Inputs and targets, both (B,T) int64; a target of -100 is not scored."""

    inputs: Tensor
    targets: Tensor


def need_tokens(n: int, context_length: int, what: str = "text") -> None:
    """Refuse a row of ids that is too short for one window and its last target."""
    if n < context_length + 1:
        raise ValueError(say(f"too_short.{what}", n=n, need=context_length + 1))


def row_starts(
    n: int,
    *,
    batch_size: int,
    context_length: int,
    generator: torch.Generator,
    starts: Tensor | None = None,
    aligned_rows: int = 0,
) -> Tensor:
    """Where a batch's rows begin, (B,): anywhere with equal chance; `aligned_rows` of them among `starts`."""
    at = torch.randint(n - context_length, (batch_size,), generator=generator)
    if starts is not None and aligned_rows:
        fitting = starts[starts + context_length < n]
        if len(fitting):
            at[:aligned_rows] = fitting[torch.randint(len(fitting), (aligned_rows,), generator=generator)]
    return at


def windows(ids: Tensor, at: Tensor, length: int) -> Tensor:
    """(B, length): the ids from each start on."""
    return ids[at[:, None] + torch.arange(length)]


def clm_rows(rows: Tensor) -> Batch:
    """Rows (B,T+1) -> inputs without the last token, targets without the first: each predicts the next.

    >>> clm_rows(torch.tensor([[10, 20, 30, 40, 50]])).targets.tolist()
    [[20, 30, 40, 50]]
    """
    return Batch(rows[:, :-1].contiguous(), rows[:, 1:].contiguous())


def clm_batch(
    ids: Tensor,
    *,
    batch_size: int,
    context_length: int,
    generator: torch.Generator,
    starts: Tensor | None = None,
    aligned_rows: int = 0,
) -> Batch:
    """A batch for next-token training.

    Args:
        ids: (N,) int64, the tokenised text.
        batch_size: rows.
        context_length: tokens in a row.
        generator: picks where the rows begin.
        starts: (M,) positions where a line or story begins.
        aligned_rows: so many of the rows begin at one of `starts`.

    Raises:
        ValueError: if the text is shorter than one row.
    """
    need_tokens(len(ids), context_length)
    at = row_starts(
        len(ids),
        batch_size=batch_size,
        context_length=context_length,
        generator=generator,
        starts=starts,
        aligned_rows=aligned_rows,
    )
    return clm_rows(windows(ids, at, context_length + 1))


def mask_tokens(
    ids: Tensor,
    *,
    mask_prob: float,
    mask_id: int,
    vocab_size: int,
    special_ids: Iterable[int] = (),
    generator: torch.Generator,
    split: tuple[float, float, float] = (0.8, 0.1, 0.1),
) -> Batch:
    """Hide tokens for masked training (Devlin et al. 2018, arXiv:1810.04805, §3.1).

    Each token is chosen with probability `mask_prob`. Of the chosen ones 80 % become the mask, 10 % a random
    ordinary token, 10 % stay as they are; all of them are targets, and nothing else is. If chance picks none
    in the whole batch, one token is picked uniformly, so that the loss always has a term.

    Args:
        ids: (B,T) int64.
        mask_prob: share of the tokens that is chosen, above 0.
        mask_id: what stands in place of a hidden token.
        vocab_size: random replacements are ids below it that are not special and not the mask.
        special_ids: never chosen and never drawn.
        generator: makes every choice here.
        split: shares of mask, random, unchanged among the chosen; they add up to 1.

    Raises:
        ValueError: if `mask_prob` is 0 or above 1, the shares do not add up, nothing may be hidden, or a
            random token is wanted and there is no ordinary one.
    """
    if not 0 < mask_prob <= 1:
        raise ValueError(say("mask_prob_must_above", mask_prob=mask_prob))
    if min(split) < 0 or abs(sum(split) - 1) > 1e-9:
        raise ValueError(say("shares_mask_random_unchanged", split=split))
    special = torch.tensor(sorted({*special_ids, mask_id}))
    open_to_choice = ~torch.isin(ids, special)
    if not open_to_choice.any():
        raise ValueError(say("every_token_here_special"))
    chosen = (torch.rand(ids.shape, generator=generator) < mask_prob) & open_to_choice
    if not chosen.any():
        candidates = open_to_choice.flatten().nonzero().flatten()
        chosen.view(-1)[candidates[torch.randint(len(candidates), (), generator=generator)]] = True
    fate = torch.rand(ids.shape, generator=generator)
    ordinary = torch.arange(vocab_size)
    ordinary = ordinary[~torch.isin(ordinary, special)]
    if not len(ordinary):  # a published mask may be id 0, where only those below it are given
        if split[1]:
            raise ValueError(say("no_token_in_its_place"))
        ordinary = torch.tensor([mask_id])
    random_ids = ordinary[torch.randint(len(ordinary), ids.shape, generator=generator)]
    inputs = torch.where(chosen & (fate < split[0]), mask_id, ids)
    inputs = torch.where(chosen & (fate >= split[0]) & (fate < split[0] + split[1]), random_ids, inputs)
    return Batch(inputs, torch.where(chosen, ids, IGNORED))


def mlm_batch(
    ids: Tensor,
    *,
    batch_size: int,
    context_length: int,
    generator: torch.Generator,
    mask_prob: float = 0.15,
    mask_id: int,
    vocab_size: int,
    special_ids: Iterable[int] = (),
    starts: Tensor | None = None,
    aligned_rows: int = 0,
    split: tuple[float, float, float] = (0.8, 0.1, 0.1),
) -> Batch:
    """A batch for masked training: windows of ids (N,), partly hidden. See `clm_batch`, `mask_tokens`."""
    need_tokens(len(ids), context_length)
    at = row_starts(
        len(ids),
        batch_size=batch_size,
        context_length=context_length,
        generator=generator,
        starts=starts,
        aligned_rows=aligned_rows,
    )
    return mask_tokens(
        windows(ids, at, context_length),
        mask_prob=mask_prob,
        mask_id=mask_id,
        vocab_size=vocab_size,
        special_ids=special_ids,
        generator=generator,
        split=split,
    )
