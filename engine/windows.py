"""A text that is longer than a model's context, cut into overlapping windows that score each token once."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wording import words

if TYPE_CHECKING:
    from engine.model import Transformer

say = words("engine.windows")

LOGITS_AT_ONCE = 4_000_000  # numbers; bounds the memory of a step and the time until it can be stopped


class Window(NamedTuple):
    """One pass of the model: it reads tokens `begin` to `end - 1`; only the last `fresh` predictions count.

    Row i predicts token `begin + i + 1`, so the last one predicts token `end`.
    """

    begin: int
    end: int
    fresh: int


def cut(n: int, context_length: int, stride: int) -> list[Window]:
    """The windows over `n` tokens: together they predict tokens 1 … n-1, each once.

    Args:
        n: tokens of the text, at least 2.
        context_length: most tokens that the model sees.
        stride: how far the window moves, 1 … context_length.

    >>> cut(8, 4, 2)
    [Window(begin=0, end=4, fresh=4), Window(begin=2, end=6, fresh=2), Window(begin=4, end=7, fresh=1)]
    """
    if not 1 <= stride <= context_length:
        raise ValueError(say("stride_must_lie_between", context_length=context_length, stride=stride))
    found, begin, scored = [], 0, 0
    while scored < n - 1:
        end = min(begin + context_length, n - 1)
        found.append(Window(begin, end, end - scored))
        begin, scored = begin + stride, end
    return found


def context_sizes(windows: Sequence[Window]) -> NDArray[np.int64]:
    """(N,) how many tokens before it the model sees when it predicts each target, in the text's order.

    >>> context_sizes(cut(8, 4, 2)).tolist()
    [1, 2, 3, 4, 3, 4, 3]
    """
    sizes = [np.arange(w.end - w.begin - w.fresh + 1, w.end - w.begin + 1) for w in windows]
    return np.concatenate(sizes) if sizes else np.zeros(0, dtype=np.int64)


def tokens_read(windows: Sequence[Window]) -> int:
    """How many tokens go through the model in all: the work."""
    return sum(window.end - window.begin for window in windows)


@torch.no_grad()
def score_parts(
    model: "Transformer", ids: Sequence[int] | Tensor, windows: Sequence[Window]
) -> Iterator[NDArray[np.float64]]:
    """Score the windows in order, a bounded number of them at once.

    Args:
        model: a causal one.
        ids: (N,) of the whole text.
        windows: of `cut`; to go on after a pause, those that are left.

    Yields:
        Natural logs of the probabilities of the next targets in order; each array ends with a window.
    """
    row = torch.as_tensor(ids, device=model.device)
    for (length, fresh), alike in groupby(windows, key=lambda w: (w.end - w.begin, w.fresh)):
        begins = torch.tensor([window.begin for window in alike], device=model.device)
        at_once = max(1, LOGITS_AT_ONCE // (length * model.config.vocab_size))
        for some in torch.split(begins, at_once):
            places = some[:, None] + torch.arange(length, device=model.device)  # (B,T)
            logits = model(row[places])[:, length - fresh :]  # (B,fresh,V)
            targets = row[places[:, length - fresh :] + 1]
            log_probs = logits.double().log_softmax(-1).gather(-1, targets[..., None])
            yield log_probs.flatten().cpu().numpy()
