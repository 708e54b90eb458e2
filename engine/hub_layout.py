"""Weights as others lay them out, put into our order: transposed, fused, or with rotary pairs apart.

Letters: C d_model, H heads, D numbers in a head.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from engine.config import ModelConfig

if TYPE_CHECKING:  # 1.5 s that a list of models does not wait for
    from torch import Tensor

Shapes = dict[str, tuple[int, ...]]
Layout = Literal["plain", "columns", "heads", "added"]


@dataclass(frozen=True)
class Weight:
    """One tensor of a published file.

    Attributes:
        theirs: its name there.
        ours: the names of ours that are in it; several where they are fused.
        layout: "plain" rows are outputs, as ours; "columns" columns are outputs, one matrix of ours after
            the other; "heads" rows are outputs, and each head's parts of our matrices lie together;
            "added" its first row is added to each row of ours.
        skip: rows at its start that no text uses.
        rows: its number of rows, where ours doesn't say it.
    """

    theirs: str
    ours: tuple[str, ...]
    layout: Layout = "plain"
    skip: int = 0
    rows: int = 0

    def shape(self, shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
        """The shape that it must have, from the shapes of ours."""
        first, *rest = shapes[self.ours[0]]
        rows = self.rows or self.skip + sum(shapes[name][0] for name in self.ours)
        return (*rest, rows) if self.layout == "columns" else (rows, *rest)


def unpacked(weight: Weight, tensor: "Tensor", config: ModelConfig, shapes: Shapes) -> "list[Tensor]":
    """The tensors of ours that are in one of theirs, in the order of `weight.ours`."""
    if weight.layout == "added":
        return [tensor[0]]
    if weight.layout == "columns":
        tensor = tensor.T if tensor.ndim == 2 else tensor
    sizes = [shapes[name][0] for name in weight.ours]
    if weight.layout == "heads":
        n, d = len(sizes), config.d_head
        by_head = tensor.view(-1, n, d, *tensor.shape[1:])  # (H,3,D,…)
        parts = [by_head[:, i].flatten(0, 1) for i in range(n)]
    else:
        parts = list(tensor[weight.skip :].split_with_sizes(sizes))
    return [_paired(part, name, config) for part, name in zip(parts, weight.ours, strict=True)]


def _paired(part: "Tensor", name: str, config: ModelConfig) -> "Tensor":
    """Rows of queries and keys so that the two numbers of a rotary pair are neighbours.

    Others turn number j together with number j + width/2 of a head; ours turns 2j with 2j + 1. Both are the
    same model: a score doesn't depend on the order of the numbers within a head.
    """
    turning = ("attention.q", "attention.k", "attention.q_norm", "attention.k_norm")
    if config.positions != "rotary" or not name.rsplit(".", 1)[0].endswith(turning):
        return part
    width = config.rotary.width(config.d_head)
    heads = part.view(-1, config.d_head, *part.shape[1:]).clone()  # (H,D,…)
    halves = heads[:, :width].reshape(len(heads), 2, width // 2, *part.shape[1:])
    heads[:, :width] = halves.transpose(1, 2).flatten(1, 2)
    return heads.flatten(0, 1)


def our_shapes(config: ModelConfig) -> Shapes:
    """Names and shapes of all weights of `Transformer(config)`, without making it; a tied head has none."""
    C, V, inner, kv = (
        config.d_model,
        config.vocab_size,
        config.n_head * config.d_head,
        config.kv_heads * config.d_head,
    )
    found: Shapes = {"embedding.weight": (V, C)}
    if config.mix_previous:
        found["previous.weight"] = (C,)
    if config.positions == "learned":
        found["position.weight"] = (config.context_length, C)
    if config.embedding_norm:
        found |= _norm("embedding_norm", C, config)
    qkv = config.biased_qkv
    for i in range(config.n_layer):
        block = f"blocks.{i}."
        found |= _norm(f"{block}attention_norm", C, config) | _norm(f"{block}mlp_norm", C, config)
        found |= _matrix(f"{block}attention.q", inner, C, qkv)
        found |= _matrix(f"{block}attention.k", kv, C, qkv) | _matrix(f"{block}attention.v", kv, C, qkv)
        found |= _matrix(f"{block}attention.out", C, inner, config.biased_out)
        if config.qk_norm:
            found |= _norm(f"{block}attention.q_norm", config.d_head, config)
            found |= _norm(f"{block}attention.k_norm", config.d_head, config)
        for part in ("up", "gate") if config.activation == "swiglu" else ("up",):
            found |= _matrix(f"{block}mlp.{part}", config.ff_width, C, config.bias)
        found |= _matrix(f"{block}mlp.down", C, config.ff_width, config.bias)
    if config.norm_place == "pre":
        found |= _norm("final_norm", C, config)
    if config.head_transform:
        found |= _matrix("head_dense", C, C, True) | _norm("head_norm", C, config)
    head = _matrix("head", V, C, config.head_bias)
    if config.tie_head:
        del head["head.weight"]
    return found | head


def _matrix(name: str, rows: int, columns: int, bias: bool) -> Shapes:
    return {f"{name}.weight": (rows, columns)} | ({f"{name}.bias": (rows,)} if bias else {})


def _norm(name: str, width: int, config: ModelConfig) -> Shapes:
    bias = config.bias and config.norm == "layernorm"
    return {f"{name}.{part}": (width,) for part in (("weight", "bias") if bias else ("weight",))}
