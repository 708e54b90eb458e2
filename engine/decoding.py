"""One token through a model on a processor, with as few operations as its sums need.

`Transformer.forward` reads many tokens of many rows. While a text is written, one token follows what is kept
of the others: every matrix meets a single vector. A small model then spends its time on starting operations,
not on sums, so a vector has one axis here, what can be prepared is prepared, and what an operation can take
along (a bias, the residual stream) it takes along. A large one spends it on reading its weights, once.
The logits are those of `forward` to 1e-5.
"""

import math
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cache import KVCache
from engine.model import Block, Norm, Transformer, gelu
from engine.vector_products import line_of, reading_ahead_pays


class _OneNorm:
    """`Norm` of one vector."""

    def __init__(self, norm: Norm) -> None:
        self.rms, self.eps, self.weight, self.bias = norm.rms, norm.eps, norm.weight, norm.bias
        self.shape = tuple(norm.weight.shape)

    def __call__(self, x: Tensor) -> Tensor:
        if self.rms:  # a third of the time that `rms_norm` takes for one vector
            length = math.sqrt(float(torch.dot(x, x)) / len(x) + self.eps)
            return (x * self.weight).mul_(1 / length if length else math.inf)  # 0 · ∞: not a number there
        return torch.layer_norm(x, self.shape, self.weight, self.bias, self.eps)


class _Parts:
    """What a block is made of."""

    def __init__(self, block: Block, layer: int, ahead: bool) -> None:
        attention, mlp, config = block.attention, block.mlp, block.config
        self.attention_norm, self.mlp_norm = _OneNorm(block.attention_norm), _OneNorm(block.mlp_norm)
        self.asks = [line_of(one, ahead) for one in (attention.q, attention.k, attention.v)]
        self.q_norm, self.k_norm = attention.q_norm, attention.k_norm
        self.out, self.down = line_of(attention.out, ahead), line_of(mlp.down, ahead)
        self.up = line_of(mlp.up, ahead)
        self.gate = None if mlp.gate is None else line_of(mlp.gate, ahead)
        self.window, self.activation = config.window(layer), config.activation

    def bent(self, x: Tensor) -> Tensor:
        """Between the MLP's two matrices."""
        ready = self.up.ready(x)
        if self.gate is not None:
            return F.silu(self.gate.of(ready)).mul_(self.up.of(ready))
        up = self.up.of(ready)
        if self.activation == "relu2":
            return F.relu(up).square_()
        if self.activation == "gelu" and len(up) % 2 == 0:
            # Of a single row oneDNN's exact GELU takes three times as long as torch's own, which is used for
            # what doesn't lie in a row.
            return F.gelu(up.view(2, -1).t()).t().reshape(-1)
        return gelu(up, self.activation)


class Decoder:
    """A model for one token at a time. It belongs to one text that is written, as a cache does.

    Args:
        model: one that `fits`. Its weights may change between two tokens; its modules may not be exchanged.
    """

    def __init__(self, model: Transformer) -> None:
        self.model, self.config = model, model.config
        ahead = reading_ahead_pays([part.weight for part in model.modules() if isinstance(part, nn.Linear)])
        self.blocks = [_Parts(cast(Block, block), layer, ahead) for layer, block in enumerate(model.blocks)]
        self.final_norm = None if model.final_norm is None else _OneNorm(model.final_norm)
        self.embedding_norm = None if model.embedding_norm is None else _OneNorm(model.embedding_norm)
        self.head = line_of(model.head, ahead)
        n, kv, width = self.config.n_head, self.config.kv_heads, self.config.d_head
        row = torch.empty((n + 2 * kv) * width)  # the token's queries, keys and values; and parts of it
        self.sides = torch.split(row, [n * width, kv * width, kv * width])
        self.q = self.sides[0].view(1, kv, n // kv, width)  # heads that share keys ask as if in one row
        self.k, self.v = (side.view(1, kv, width) for side in self.sides[1:])
        self.turns: Tensor | None = None
        if model.turns is not None:
            self.turns = torch.view_as_complex(model.turns)  # (positions, pairs)
            pairs = row[: (n + kv) * width].view(-1, width)[:, : 2 * self.turns.shape[1]]
            self.turning = torch.view_as_complex(pairs.view(n + kv, -1, 2))  # (H+Hkv, pairs)

    def next_logits(self, token_id: int, cache: KVCache) -> Tensor:
        """(V,) after a token that follows those in a cache of one row; the cache then holds it, too.

        Raises:
            ValueError: as `Transformer.forward`.
        """
        at, config = cache.length, self.config
        if not (0 <= token_id < config.vocab_size and at < config.context_length):
            return self.model.next_logits(torch.tensor([[token_id]]), cache=cache)[0]  # says what is wrong
        cache.make_room(at + 1)
        with torch.inference_mode():
            x = self._enter(token_id, at, cache)
            turn = None if self.turns is None else self.turns[at]
            new = cache.k[:, :, :, at].unbind(), cache.v[:, :, :, at].unbind()
            all_ = cache.k[:, :, :, : at + 1].unbind(), cache.v[:, :, :, : at + 1].unbind()
            for parts, new_k, new_v, k, v in zip(self.blocks, *new, *all_, strict=True):
                self._ask(parts, x if config.norm_place == "post" else parts.attention_norm(x), turn)
                new_k.copy_(self.k)
                new_v.copy_(self.v)
                x = self._answer(parts, x, k, v)
            cache.length = at + 1
            return self._read_out(x)

    def _enter(self, token_id: int, at: int, cache: KVCache) -> Tensor:
        """What enters the first block, as `Transformer.embed`."""
        model, x = self.model, self.model.embedding.weight[token_id]
        if model.previous is not None:
            before = cache.read(torch.tensor([[token_id]]))
            if before is not None:
                x = x + model.previous(model.embedding.weight[int(before)])
        if model.position is not None:
            x = x + model.position.weight[at]
        if model.sinusoid is not None:
            x = x * math.sqrt(self.config.d_model) + model.sinusoid[at]
        return x if self.embedding_norm is None else self.embedding_norm(x)

    def _ask(self, parts: _Parts, x: Tensor, turn: Tensor | None) -> None:
        """Queries, keys and values of the token, each in its place."""
        ready = parts.asks[0].ready(x)
        for line, side in zip(parts.asks, self.sides, strict=True):
            line.into(ready, side)
        if parts.q_norm is not None and parts.k_norm is not None:
            self.q.copy_(parts.q_norm(self.q))
            self.k.copy_(parts.k_norm(self.k))
        if turn is not None:  # a pair of numbers is a complex one, and turned by one product
            self.turning.mul_(turn)

    def _answer(self, parts: _Parts, x: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """The residual stream after the block, whose keys and values (1,Hkv,S,D) are those of all tokens."""
        config = self.config
        if 0 < parts.window < k.shape[2]:
            k, v = k[:, :, -parts.window :], v[:, :, -parts.window :]
        heads = F.scaled_dot_product_attention(self.q, k, v, scale=config.score_scale)
        middle = parts.out.added(x, heads.reshape(-1))
        if config.norm_place == "post":
            middle = parts.attention_norm(middle)
            return parts.mlp_norm(parts.down.added(middle, parts.bent(middle)))
        read = parts.mlp_norm(x if config.parallel else middle)
        return parts.down.added(middle, parts.bent(read))

    def _read_out(self, x: Tensor) -> Tensor:
        if self.model.head_dense is not None:
            return self.model.read_out(x)
        x = x if self.final_norm is None else self.final_norm(x)
        return self.head.of(self.head.ready(x))


def fits(model: Transformer) -> bool:
    """Whether a `Decoder` gives this model's numbers: a causal one in float32 on the processor."""
    config = model.config
    pairs_apart = config.positions == "rotary" and config.d_head % 2
    here = all(p.dtype == torch.float32 and p.device.type == "cpu" for p in model.parameters())
    return config.objective == "clm" and not pairs_apart and here
