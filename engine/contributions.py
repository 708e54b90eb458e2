"""What each part of a model adds to a logit by itself: direct logit attribution."""

from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.model import Block, Norm, Transformer, gelu
from engine.trace import Trace


@dataclass(frozen=True)
class Part:
    """Something that adds to the residual stream.

    Attributes:
        kind: "token", "previous" (the token before it, of a model that mixes it in), "position", "head",
            "attention bias", "mlp", "norm bias", "head bias" (of what stands after the stream: the head, and
            the matrix before it if there is one).
        layer: counted from 0; -1 for what is in no block, as the last norm.
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
        divisors: the numbers by which the norms on the way divide, held at what they are, in the order of the
            model: of a norm after the embedding, of every block's two in a post-norm model, of the final norm
            in a pre-norm model, of the norm before the head if there is one.
        gates: (C,) the factors Φ by which the GELU before the head multiplies, held too; () without one.
    """

    parts: tuple[Part, ...]
    values: NDArray
    total: float
    divisors: NDArray
    gates: NDArray

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

    Some masked models have one more matrix, GELU and norm before the head. GELU(h) = h · Φ(h): there Φ(h) is
    held as well (the identity rule of Achtibat et al. 2024, arXiv:2402.05602), and the sum stays exact.

    Args:
        model: the one that was traced.
        traced: one forward pass.
        position: where the logit is.
        token_id: which logit.
        against: another token: then the difference logit(token_id) - logit(against).
    """
    way = _WayBack(model, token_id, against)
    last = traced.residual[-1, position]
    gates = way.through_transform(model, last)
    if model.final_norm is not None:
        way.through_norm(model.final_norm, last, -1)
    for layer in reversed(range(model.config.n_layer)):
        block = cast(Block, model.blocks[layer])
        post = model.config.norm_place == "post"
        attention, mlp = traced.attention_out[layer, position], traced.mlp_out[layer, position]
        if post:
            way.through_norm(block.mlp_norm, traced.middle[layer, position] + mlp, layer)
        way.note(Part("mlp", layer), mlp)
        if post:
            way.through_norm(block.attention_norm, traced.residual[layer, position] + attention, layer)
        heads = head_terms(model, traced, layer, position) @ way.direction  # (H,)
        if block.attention.out.bias is not None:
            bias = float(attention @ way.direction - heads.sum())
            way.found.append((Part("attention bias", layer), bias))
        way.found += [(Part("head", layer, h), float(heads[h])) for h in reversed(range(len(heads)))]
    entering = entering_parts(model, traced.ids, position)
    if model.embedding_norm is not None:
        way.through_norm(model.embedding_norm, np.sum(list(entering.values()), axis=0), -1)
    for kind, vector in reversed(entering.items()):
        way.note(Part(kind), vector)
    parts, values = zip(*reversed(way.found), strict=True)
    logits = traced.logits[position].astype(np.float64)
    total = logits[token_id] - (0.0 if against is None else logits[against])
    return Contributions(parts, np.array(values), float(total), np.array(way.divisors[::-1]), gates)


class _WayBack:
    """The way back from a logit through all that is linear once divisors and gates are held.

    Attributes:
        direction: (C,) float64; its product with a part of the stream here is what the part adds.
        found: parts that were passed, and what they add.
        divisors: of the norms that were passed.
    """

    def __init__(self, model: Transformer, token_id: int, against: int | None) -> None:
        def row(of: Tensor) -> NDArray:
            return _numbers(of[token_id]) - (0.0 if against is None else _numbers(of[against]))

        self.direction = row(model.head.weight)
        self.found: list[tuple[Part, float]] = []
        self.divisors: list[float] = []
        if model.head.bias is not None:
            self.found.append((Part("head bias"), float(row(model.head.bias))))

    def note(self, part: Part, vector: NDArray) -> None:
        """A part of the stream that stands here."""
        self.found.append((part, float(vector.astype(np.float64) @ self.direction)))

    def through_norm(self, norm: Norm, entering: NDArray, layer: int) -> None:
        """To before a norm; notes its bias and divisor."""
        self.direction, bias, divisor = _before_norm(norm, entering, self.direction)
        self.divisors.append(divisor)
        if norm.bias is not None:
            self.found.append((Part("norm bias", layer), bias))

    @torch.no_grad()
    def through_transform(self, model: Transformer, stream: NDArray) -> NDArray:
        """To before the matrix, GELU and norm before the head, if there are any; gives the gates (C,)."""
        if model.head_dense is None or model.head_norm is None:
            return np.zeros(0)
        x = stream.astype(np.float64)
        if model.final_norm is not None:
            weight = model.final_norm.weight
            read = model.final_norm(torch.tensor(stream, device=weight.device, dtype=weight.dtype))
            x = _numbers(read)
        matrix, bias = _numbers(model.head_dense.weight), _numbers(model.head_dense.bias)
        hidden = torch.from_numpy(matrix @ x + bias)
        bent = gelu(hidden, model.config.activation)
        gates = torch.where(hidden == 0, 0.5, bent / hidden).numpy()  # Φ(h)
        self.through_norm(model.head_norm, bent.numpy(), -1)
        towards = self.direction * gates
        self.found.append((Part("head bias"), float(bias @ towards)))
        self.direction = towards @ matrix
        return np.asarray(gates)


def _numbers(tensor: Tensor) -> NDArray:
    return np.asarray(tensor.detach().double().cpu().numpy())


def _before_norm(norm: Norm, x: NDArray, towards: NDArray) -> tuple[NDArray, float, float]:
    """For y = norm(x) and a direction d: (e, b, s) with d·y = e·x + b as long as the divisor s is held."""
    x = x.astype(np.float64)
    bias = 0.0 if norm.bias is None else float(_numbers(norm.bias) @ towards)
    towards = towards * _numbers(norm.weight)
    if norm.rms:
        divisor = float(np.sqrt((x**2).mean() + norm.eps))
        return towards / divisor, bias, divisor
    divisor = float(np.sqrt(x.var() + norm.eps))
    return (towards - towards.mean()) / divisor, bias, divisor  # d·(x - mean x) = (d - mean d)·x


def head_terms(model: Transformer, traced: Trace, layer: int, position: int) -> NDArray:
    """(H,C) float64: what each head adds to the stream, W_out's columns of the head times its output."""
    heads = traced.heads[layer, :, position].astype(np.float64)  # (H,D)
    weight = _numbers(cast(Block, model.blocks[layer]).attention.out.weight)  # (C,H·D)
    return np.einsum("chd,hd->hc", weight.reshape(len(weight), *heads.shape), heads)


@torch.no_grad()
def entering_parts(model: Transformer, ids: NDArray, position: int) -> dict[str, NDArray]:
    """What is added up before the first block at a position, by kind of `Part`, each (C,) float64.

    The first position has no token before it, and rotary positions add nothing: they turn queries and keys.
    A norm after the embedding is not passed yet.

    Args:
        model: either kind.
        ids: (T,) what it reads.
        position: which of them.
    """
    rows, sinusoidal = model.embedding.weight, model.config.positions == "sinusoidal"
    scale = np.sqrt(model.config.d_model) if sinusoidal else 1.0
    found = {"token": scale * _numbers(rows[int(ids[position])])}
    if model.previous is not None and position:
        found["previous"] = scale * _numbers(model.previous(rows[int(ids[position - 1])]))
    if model.position is not None:
        found["position"] = _numbers(model.position.weight[position])
    if sinusoidal:
        found["position"] = _numbers(model.sinusoid[position])
    return found
