"""A text that is longer than a model's context, cut into overlapping windows that score each token once."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.cache import KVCache
from engine.config import ModelConfig
from engine.hub_layout import our_shapes
from wording import words

if TYPE_CHECKING:
    from engine.model import Transformer

say = words("engine.windows")

LOGITS_AT_ONCE = 4_000_000  # numbers; bounds the memory of a step and the time until it can be stopped
WORK_AT_ONCE = 60_000_000_000  # weights × tokens between two places where it can be stopped: two seconds
STEP = 64  # tokens at least


class Window(NamedTuple):
    """One pass of the model: it reads tokens `begin` to `end - 1`; only the last `fresh` predictions count.

    Each row predicts the token after the one that it reads, so the last one predicts token `end`. Before
    these tokens the model reads the first `frame` tokens of all, see `cut`.
    """

    begin: int
    end: int
    fresh: int
    frame: int = 0

    @property
    def length(self) -> int:
        """How many tokens the model reads."""
        return self.frame + self.end - self.begin


def cut(n: int, context_length: int, stride: int, frame: int = 0) -> list[Window]:
    """The windows over `n` tokens: together they predict each token but the first once.

    Args:
        n: tokens of the text, at least 2.
        context_length: most tokens that the model sees.
        stride: how far the window moves, 1 … context_length.
        frame: how many of the n tokens, at their beginning, the model wants before any text: see
            `engine.tokenizer.Tokenizer.frame`. They are read in every window and never predicted.

    >>> [window[:3] for window in cut(8, 4, 2)]
    [(0, 4, 4), (2, 6, 2), (4, 7, 1)]
    >>> [window[:3] for window in cut(8, 4, 2, frame=1)]
    [(1, 4, 4), (3, 6, 2), (5, 7, 1)]
    """
    if not 1 <= stride <= context_length:
        raise ValueError(say("stride_must_lie_between", context_length=context_length, stride=stride))
    room = max(1, context_length - frame)
    found, begin, scored = [], frame, max(0, frame - 1)
    while scored < n - 1:
        end = min(begin + room, n - 1)
        found.append(Window(begin, end, end - scored, frame))
        begin, scored = begin + min(stride, room), end
    return found


def context_sizes(windows: Sequence[Window]) -> NDArray[np.int64]:
    """(N,) how many tokens before it the model sees when it predicts each target, in the text's order.

    >>> context_sizes(cut(8, 4, 2)).tolist()
    [1, 2, 3, 4, 3, 4, 3]
    """
    sizes = [np.arange(w.length - w.fresh + 1, w.length + 1) for w in windows]
    return np.concatenate(sizes) if sizes else np.zeros(0, dtype=np.int64)


def tokens_read(windows: Sequence[Window]) -> int:
    """How many tokens go through the model in all: the work."""
    return sum(window.length for window in windows)


@torch.no_grad()
def score_parts(
    model: "Transformer",
    ids: Sequence[int] | Tensor,
    windows: Sequence[Window],
    *,
    tell: Callable[[int], None] = lambda n_tokens: None,
) -> Iterator[NDArray[np.float64]]:
    """Score the windows in order, a bounded number of them at once.

    Args:
        model: a causal one.
        ids: (N,) of the whole text.
        windows: of `cut`; to go on after a pause, those that are left.
        tell: is called with each number of tokens that went through the model, several times in a long
            window; it may raise to stop.

    Yields:
        Natural logs of the probabilities of the next targets in order; each array ends with a window.
    """
    row = torch.as_tensor(ids, device=model.device)
    for (length, fresh, frame), alike in groupby(windows, key=lambda w: (w.length, w.fresh, w.frame)):
        begins = torch.tensor([window.begin - frame for window in alike], device=model.device)
        at_once = max(1, LOGITS_AT_ONCE // (length * model.config.vocab_size))
        for some in torch.split(begins, at_once):
            places = some[:, None] + torch.arange(length, device=model.device)  # (B,T)
            targets = row[places[:, length - fresh :] + 1]  # (B,fresh)
            places[:, :frame] = torch.arange(frame, device=model.device)
            stream = _read(model, row[places], fresh, tell)  # (B,fresh,C)
            yield _log_probs(model, stream.flatten(0, 1), targets.flatten()).cpu().numpy()


@torch.no_grad()
def seconds_per_token(model: "Transformer", n: int = 128) -> float:
    """How long it takes now to read a token and to predict the next one, measured on a pass of `n` tokens.

    Late tokens of a long window take a little longer, as they look at more.
    """
    ids = torch.zeros(1, min(n, model.config.context_length), dtype=torch.int64, device=model.device)
    began = time.monotonic()
    stream = model.stream(ids)
    float(_log_probs(model, stream[0], ids[0]).sum())  # not before it is done, also on a GPU
    return (time.monotonic() - began) / ids.shape[1]


def block_weights(config: ModelConfig) -> int:
    """Numbers in the blocks, by their shapes: a model that writes with 8 bits has few parameters."""
    shapes = our_shapes(config)
    return sum(math.prod(shape) for name, shape in shapes.items() if name.startswith("blocks."))


def _read(model: "Transformer", ids: Tensor, fresh: int, tell: Callable[[int], None]) -> Tensor:
    """The last `fresh` places of the residual stream (B,fresh,C); of a large model a part of it at a time."""
    at_once = max(STEP, WORK_AT_ONCE // block_weights(model.config))
    if len(ids) > 1 or ids.shape[1] <= at_once:
        stream = model.stream(ids)[:, -fresh:]
        tell(ids.numel())
        return stream
    weight = model.embedding.weight
    cache = KVCache(model.config, device=weight.device, dtype=weight.dtype, room=ids.shape[1])
    parts = []
    for some in torch.split(ids, at_once, dim=1):  # the same numbers to 1e-5
        parts.append(model.stream(some, cache=cache))
        tell(some.numel())
    return torch.cat(parts, dim=1)[:, -fresh:]


def _log_probs(model: "Transformer", stream: Tensor, targets: Tensor) -> Tensor:
    """(n,) log-probabilities of targets (n,) after (n,C), without the logits (n,V) of all of them at once."""
    at_once, found = max(1, LOGITS_AT_ONCE // model.config.vocab_size), []
    for some, wanted in zip(torch.split(stream, at_once), torch.split(targets, at_once), strict=True):
        log_probs = model.read_out(some).double().log_softmax(-1)  # (n,V)
        found.append(log_probs.gather(-1, wanted[:, None])[:, 0])
    return torch.cat(found)
