"""The residual stream: its lengths, and what each layer would predict from it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.metrics import IGNORED, softmax
from engine.model import Transformer
from engine.trace import Trace

LARGEST = 4_000_000  # logits at once while the lens reads out: 16 MB, whatever the vocabulary
MOVED = 1e-6  # a smaller change of a probability is not told


@dataclass(frozen=True, eq=False)
class Lens:
    """The logit lens: the stream after every layer, read as if it were the last.

    Only the K likeliest tokens of a cell are kept, in float32: a full distribution is `lens_logits`.

    Attributes:
        positions: (P,) which positions of the trace these are.
        ids: (L+1,P,K) the likeliest tokens, the likeliest first; row 0 is the embedding.
        probs: (L+1,P,K) their probabilities over the whole vocabulary.
        ranks: (L+1,P) place of the true token, 1 is the likeliest; 0 where there is none.
        true_probs: (L+1,P) its probability; NaN where there is none.
        targets: (P,) the true tokens; -100 where there is none.
    """

    positions: NDArray
    ids: NDArray
    probs: NDArray
    ranks: NDArray
    true_probs: NDArray
    targets: NDArray


@torch.no_grad()
def lens(model: Transformer, traced: Trace, positions: Sequence[int] | None = None, *, most: int = 5) -> Lens:
    """Read the stream out after the embedding and after every block (nostalgebraist 2020).

    Each is put through the model's final norm and head; a post-norm model has no final norm, so its stream
    goes to the head as it is. The last row is the model's own output.

    Args:
        model: the one that was traced.
        traced: one forward pass.
        positions: which to read; None is all.
        most: tokens kept for each cell.
    """
    places = np.arange(len(traced.ids)) if positions is None else np.asarray(positions)
    targets = traced.targets[places]
    layers = len(traced.residual)
    stream = traced.residual[:, places].reshape(layers * len(places), -1)  # (R,C), R = (L+1)·P
    goal = torch.tensor(np.tile(targets, layers), device=model.device)  # (R,)
    rows = max(1, LARGEST // model.config.vocab_size)
    pieces = [
        _summary(_read(model, stream[begin : begin + rows]), goal[begin : begin + rows], most)
        for begin in range(0, len(stream), rows)
    ]
    whole = [torch.cat(parts).cpu().numpy() for parts in zip(*pieces, strict=True)]
    ids, probs, ranks, true = (part.reshape(layers, len(places), *part.shape[1:]) for part in whole)
    return Lens(places, ids, probs, ranks, true, targets)


def _read(model: Transformer, stream: NDArray) -> Tensor:
    """(…,C) -> (…,V) float32 logits, on the model's device."""
    weight = model.head.weight
    return model.read_out(torch.tensor(stream, device=weight.device, dtype=weight.dtype)).float()


def _summary(logits: Tensor, targets: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The likeliest ids (R,K), their probabilities, and the targets' ranks and probabilities (R,)."""
    log_probs = logits.log_softmax(dim=-1)
    top = log_probs.topk(min(most, log_probs.shape[-1]), dim=-1)
    some = targets != IGNORED
    true = log_probs.gather(-1, targets.clamp(min=0)[:, None])  # (R,1)
    ranks = torch.where(some, (log_probs > true).sum(dim=-1) + 1, 0)
    true_probs = torch.where(some, true[:, 0].exp(), torch.nan)
    return top.indices, top.values.exp(), ranks, true_probs


@torch.no_grad()
def lens_logits(model: Transformer, traced: Trace, layer: int, position: int) -> NDArray:
    """(V,) float32 logits of one cell of the lens; layer 0 is the embedding, L the model's output."""
    if layer == model.config.n_layer:
        return np.asarray(traced.logits[position])
    return np.asarray(_read(model, traced.residual[layer, position]).cpu().numpy())


@dataclass(frozen=True, eq=False)
class Shift:
    """What a layer changed: the tokens whose probability rose and fell most.

    Attributes:
        promoted, suppressed: ids, the largest change first.
        before, after: (V,) float64 probabilities.
    """

    promoted: NDArray
    suppressed: NDArray
    before: NDArray
    after: NDArray


def shift(before: NDArray, after: NDArray, most: int = 5) -> Shift:
    """Compare two distributions, given as logits (V,); tokens that did not move are in neither list."""
    p, q = softmax(before), softmax(after)
    order = np.argsort(q - p, kind="stable")
    fell, rose = order[:most], order[::-1][:most]
    return Shift(rose[(q - p)[rose] > MOVED], fell[(q - p)[fell] < -MOVED], p, q)


@dataclass(frozen=True, eq=False)
class Stream:
    """Lengths (L2 norms) along the residual stream, and how each update lies to it. No units.

    Attributes:
        lengths: (L+1,T) of the stream after the embedding and after each block.
        attention, mlp: (L,T) of what each half adds.
        attention_cosine, mlp_cosine: (L,T) between the update and the stream that it is added to, -1 to 1.
        mlp_share: (L,T) mlp / (attention + mlp), 0 to 1. NaN where nothing is added.
    """

    lengths: NDArray
    attention: NDArray
    mlp: NDArray
    attention_cosine: NDArray
    mlp_cosine: NDArray
    mlp_share: NDArray


def stream(traced: Trace) -> Stream:
    """Measure the residual stream and its updates, in float64."""
    residual, middle = traced.residual.astype(np.float64), traced.middle.astype(np.float64)
    attention, mlp = traced.attention_out.astype(np.float64), traced.mlp_out.astype(np.float64)
    long, by_attention, by_mlp = (np.linalg.norm(x, axis=-1) for x in (residual, attention, mlp))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = by_mlp / (by_attention + by_mlp)
    cosines = _cosine(attention, residual[:-1]), _cosine(mlp, middle)
    return Stream(long, by_attention, by_mlp, *cosines, share)


def _cosine(a: NDArray, b: NDArray) -> NDArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return (a * b).sum(axis=-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))
