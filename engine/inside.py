"""The residual stream: its lengths, what each layer would predict from it, what each part adds to a logit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.metrics import IGNORED, softmax
from engine.model import Block, Norm, Transformer
from engine.trace import Trace

LARGEST = 4_000_000  # logits at once while the lens reads out: 16 MB, whatever the vocabulary
EPSILON = 1e-5  # in every norm, see `engine.model.Norm`
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
    goal = torch.tensor(targets, device=model.device)
    rows = max(1, LARGEST // model.config.vocab_size)
    found: list[list[Tensor]] = []
    for stream in traced.residual:
        pieces = []
        for begin in range(0, len(places), rows):
            logits = _read(model, stream[places[begin : begin + rows]])  # (rows,V)
            pieces.append(_summary(logits, goal[begin : begin + rows], most))
        found.append([torch.cat(parts) for parts in zip(*pieces, strict=True)])
    ids, probs, ranks, true = (torch.stack(parts).cpu().numpy() for parts in zip(*found, strict=True))
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


@dataclass(frozen=True)
class Part:
    """Something that adds to the residual stream.

    Attributes:
        kind: "token", "position", "head", "attention bias", "mlp" or "norm bias".
        layer: of the last four, counted from 0, or -1.
        head: of a head, counted from 0, or -1.
    """

    kind: str
    layer: int = -1
    head: int = -1


@dataclass(frozen=True, eq=False)
class Contributions:
    """A logit (or the difference of two) as a sum.

    Attributes:
        parts: what adds, in the order of the model.
        values: (len(parts),) float64; their sum is `total`.
        total: the logit.
        divisors: the numbers by which the norms on the way divide, held at what they are: the final norm's
            alone in a pre-norm model, every block's two in a post-norm model.
    """

    parts: tuple[Part, ...]
    values: NDArray
    total: float
    divisors: NDArray

    def of(self, kind: str, layer: int = -1) -> float:
        """Sum of the parts of a kind in a layer; "attention" is all heads and their bias."""
        kinds = ("head", "attention bias") if kind == "attention" else (kind,)
        return float(
            sum(
                v
                for part, v in zip(self.parts, self.values, strict=True)
                if part.kind in kinds and part.layer == layer
            )
        )


def contributions(
    model: Transformer, traced: Trace, position: int, token_id: int, against: int | None = None
) -> Contributions:
    """Direct logit attribution: what each part adds to one logit by itself (Elhage et al. 2021).

    The stream is a sum, and the head is linear, so only norms stand between. Of a norm, taking off the mean
    and the weight are linear too; the divisor is not, and is held at its value in this pass. With that the
    sum is exact. What a part does through later parts is not counted here.

    Args:
        model: the one that was traced.
        traced: one forward pass.
        position: where the logit is.
        token_id: which logit.
        against: another token: then the difference logit(token_id) - logit(against).
    """
    direction = _numbers(model.head.weight[token_id])  # (C,) float64
    if against is not None:
        direction = direction - _numbers(model.head.weight[against])
    found: list[tuple[Part, float]] = []
    divisors: list[float] = []

    def back_through(norm: Norm, entering: NDArray, layer: int, towards: NDArray) -> NDArray:
        """The direction before a norm that stands after this point; notes its bias and divisor."""
        towards, bias, divisor = _before_norm(norm, entering, towards)
        divisors.append(divisor)
        if norm.bias is not None:
            found.append((Part("norm bias", layer), bias))
        return towards

    if model.final_norm is not None:
        direction = back_through(model.final_norm, traced.residual[-1, position], -1, direction)
    for layer in reversed(range(model.config.n_layer)):
        block = cast(Block, model.blocks[layer])
        post = model.config.norm_place == "post"
        attention, mlp = traced.attention_out[layer, position], traced.mlp_out[layer, position]
        if post:
            entering = traced.middle[layer, position] + mlp
            direction = back_through(block.mlp_norm, entering, layer, direction)
        found.append((Part("mlp", layer), float(mlp.astype(np.float64) @ direction)))
        if post:
            entering = traced.residual[layer, position] + attention
            direction = back_through(block.attention_norm, entering, layer, direction)
        heads = head_terms(model, traced, layer, position) @ direction  # (H,)
        if block.attention.out.bias is not None:
            found.append((Part("attention bias", layer), float(attention @ direction - heads.sum())))
        found += [(Part("head", layer, h), float(heads[h])) for h in reversed(range(len(heads)))]
    found += _embedding_terms(model, traced, position, direction)
    parts, values = zip(*reversed(found), strict=True)
    logits = traced.logits[position].astype(np.float64)
    total = logits[token_id] - (0.0 if against is None else logits[against])
    return Contributions(parts, np.array(values), float(total), np.array(divisors[::-1]))


def _numbers(tensor: Tensor) -> NDArray:
    return np.asarray(tensor.detach().double().cpu().numpy())


def _before_norm(norm: Norm, x: NDArray, towards: NDArray) -> tuple[NDArray, float, float]:
    """For y = norm(x) and a direction d: (e, b, s) with d·y = e·x + b as long as the divisor s is held."""
    x = x.astype(np.float64)
    bias = 0.0 if norm.bias is None else float(_numbers(norm.bias) @ towards)
    towards = towards * _numbers(norm.weight)
    if norm.rms:
        divisor = float(np.sqrt((x**2).mean() + EPSILON))
        return towards / divisor, bias, divisor
    divisor = float(np.sqrt(x.var() + EPSILON))
    return (towards - towards.mean()) / divisor, bias, divisor  # d·(x - mean x) = (d - mean d)·x


def head_terms(model: Transformer, traced: Trace, layer: int, position: int) -> NDArray:
    """(H,C) float64: what each head adds to the stream, W_out's columns of the head times its output."""
    heads = traced.heads[layer, :, position].astype(np.float64)  # (H,D)
    weight = _numbers(cast(Block, model.blocks[layer]).attention.out.weight)  # (C,H·D)
    return np.einsum("chd,hd->hc", weight.reshape(len(weight), *heads.shape), heads)


def _embedding_terms(
    model: Transformer, traced: Trace, position: int, direction: NDArray
) -> list[tuple[Part, float]]:
    """The token's own vector and, where positions are added to it, the position's."""
    whole = traced.residual[0, position].astype(np.float64)
    if model.config.positions == "rotary":  # positions turn queries and keys, and add nothing
        return [(Part("token"), float(whole @ direction))]
    token = _numbers(model.embedding.weight[int(traced.ids[position])])
    if model.config.positions == "sinusoidal":
        token = token * np.sqrt(model.config.d_model)
    return [
        (Part("position"), float((whole - token) @ direction)),
        (Part("token"), float(token @ direction)),
    ]


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
