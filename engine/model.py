"""One transformer for every architecture shown: the switches are in `ModelConfig`, there are no subclasses.

Letters in shape comments: B batch, T positions, C d_model, H heads, D d_head, V vocabulary, L layers.
"""

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cache import KVCache
from engine.config import ModelConfig
from engine.first_weights import NoFirstWeights, set_first_weights
from engine.precision import between_products
from engine.recorder import Recorder
from engine.rotary import rotary_turns, rotate, sinusoidal_positions
from wording import words

say = words("engine.model")


def attend(
    q: Tensor, k: Tensor, v: Tensor, bars: Tensor | None, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """Scaled dot-product attention, step by step (Vaswani et al. 2017, arXiv:1706.03762, eq. 1).

    Args:
        q: queries (B,H,T,D).
        k: keys (B,H,S,D).
        v: values (B,H,S,D).
        bars: (T,S) what is added to the scores: 0 where a query may look, -∞ where not; None: everywhere.
        scale: factor of the scores; None: 1 / √D.

    Returns:
        Output (B,H,T,D) and weights (B,H,T,S); each row of the weights sums to 1.
    """
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    Q, K, V = (x.flatten(0, 1) for x in (q, k, v))  # (B·H,T,D)
    bars = q.new_zeros(()) if bars is None else bars
    scores = torch.baddbmm(bars, Q, K.mT, alpha=scale)  # (B·H,T,S), bars + scale · Q Kᵀ at once
    # Where nobody else needs the scores, the weights take their place: new memory would cost as much again.
    place = scores if scores.is_cpu and not scores.requires_grad else None
    weights = torch.softmax(scores, dim=-1, out=place)
    return (weights @ V).view_as(q), weights.view(*q.shape[:-1], k.shape[-2])


@lru_cache(maxsize=4)  # all blocks ask for the same
def look_back(T: int, S: int, window: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """(T,S) bars before the future: row t stands at position S - T + t and sees itself and all before it.

    Args:
        T: queries, the last of the S positions.
        S: keys.
        window: how many positions a query sees, itself among them; 0: all.
        dtype: of the bars.
        device: where they are wanted.

    >>> look_back(2, 3, 2, torch.float32, torch.device("cpu")).tolist()
    [[0.0, 0.0, -inf], [-inf, 0.0, 0.0]]
    """
    with torch.inference_mode(False):  # what is made while one model writes may serve another that learns
        barred = torch.full((T, S), -math.inf, dtype=dtype, device=device)
        future = barred.triu(S - T + 1)
        return future + barred.tril(S - T - window) if window else future


def dropped(x: Tensor, p: float, generator: torch.Generator | None) -> Tensor:
    """Dropout (Srivastava et al. 2014) from the caller's generator; without one nothing is dropped."""
    if generator is None or p == 0:
        return x
    keep = torch.rand(x.shape, generator=generator, device=generator.device).to(x.device) >= p
    return x * keep / (1 - p)


class Norm(nn.Module):
    """LayerNorm (Ba et al. 2016, arXiv:1607.06450) or RMSNorm (Zhang & Sennrich 2019, arXiv:1910.07467)."""

    def __init__(self, config: ModelConfig, width: int) -> None:
        super().__init__()
        self.rms = config.norm == "rmsnorm"
        self.eps = config.norm_eps
        self.weight = nn.Parameter(torch.empty(width))
        self.bias = nn.Parameter(torch.empty(width)) if config.bias and not self.rms else None

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last axis."""
        if self.rms:
            return F.rms_norm(x, self.weight.shape, self.weight, self.eps)
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class Attention(nn.Module):
    """Queries look at keys and take a weighted mean of the values."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        inner, kv_inner = config.n_head * config.d_head, config.kv_heads * config.d_head
        self.q = nn.Linear(config.d_model, inner, bias=config.biased_qkv)
        self.k = nn.Linear(config.d_model, kv_inner, bias=config.biased_qkv)
        self.v = nn.Linear(config.d_model, kv_inner, bias=config.biased_qkv)
        self.out = nn.Linear(inner, config.d_model, bias=config.biased_out)
        self.q_norm = Norm(config, config.d_head) if config.qk_norm else None
        self.k_norm = Norm(config, config.d_head) if config.qk_norm else None

    def forward(
        self, x: Tensor, layer: int, turns: Tensor | None, cache: KVCache | None, recorder: Recorder | None
    ) -> Tensor:
        """(B,T,C) -> (B,T,C), what attention adds to the residual stream."""
        B, T, _ = x.shape
        q, k, v = (f(x).view(B, T, -1, self.config.d_head).transpose(1, 2) for f in (self.q, self.k, self.v))
        with between_products(q, k, v) as (q, k, v):
            heads = self._heads(q, k, v, layer, turns, cache, recorder)  # (B,H,T,D)
        return self.out(heads.transpose(1, 2).reshape(B, T, -1))

    def _heads(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        layer: int,
        turns: Tensor | None,
        cache: KVCache | None,
        recorder: Recorder | None,
    ) -> Tensor:
        """What the heads answer to queries (B,H,T,D) of keys and values (B,Hkv,T,D), as (B,H,T,D)."""
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        if turns is not None:
            q, k = rotate(q, turns), rotate(k, turns)
        if cache is not None:
            k, v = cache.extend(layer, k, v)
        return self._look(q, k, v, layer, recorder)

    def _look(self, q: Tensor, k: Tensor, v: Tensor, layer: int, recorder: Recorder | None) -> Tensor:
        causal, scale = self.config.objective == "clm", self.config.score_scale
        T, S = q.shape[2], k.shape[2]
        window = self.config.window(layer)
        narrow = causal and 0 < window < S
        fast = recorder is None and not narrow and (T == S or T == 1 or not causal)
        if fast and T == 1:
            # Heads that share a key/value head ask it together, as if they were positions: nothing is copied.
            together = q.reshape(q.shape[0], k.shape[1], -1, q.shape[3])  # (B,Hkv,H/Hkv,D)
            return F.scaled_dot_product_attention(together, k, v, scale=scale).reshape(q.shape)
        if self.config.kv_heads != self.config.n_head:  # several query heads share one key/value head
            k, v = (t.repeat_interleave(self.config.n_head // self.config.kv_heads, dim=1) for t in (k, v))
        if fast:  # the same numbers to 1e-5
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)
        bars = look_back(T, S, window if narrow else 0, q.dtype, q.device) if causal else None
        if recorder is None:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=bars, scale=scale)
        heads, weights = attend(q, k, v, bars, scale)
        heads = recorder.silence_heads(layer, heads)
        recorder.keep(q=q, k=k, v=v, weights=weights, heads=heads)
        return heads


def gelu(x: Tensor, activation: str) -> Tensor:
    """GELU (Hendrycks & Gimpel 2016, arXiv:1606.08415), exact or by the authors' formula with a tanh."""
    return F.gelu(x, approximate="tanh" if activation == "gelu_tanh" else "none")


class MLP(nn.Module):
    """Two matrices and a bend, the same at every position."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = config.activation
        self.up = nn.Linear(config.d_model, config.ff_width, bias=config.bias)
        gated = config.activation == "swiglu"
        self.gate = nn.Linear(config.d_model, config.ff_width, bias=config.bias) if gated else None
        self.down = nn.Linear(config.ff_width, config.d_model, bias=config.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(B,T,C) -> (B,T,C), what the MLP adds to the residual stream."""
        if self.gate is not None:  # SwiGLU (Shazeer 2020, arXiv:2002.05202)
            return self.down(F.silu(self.gate(x)) * self.up(x))
        if self.activation == "relu2":  # squared ReLU (So et al. 2021, arXiv:2109.08668)
            return self.down(F.relu(self.up(x)).square())
        return self.down(gelu(self.up(x), self.activation))


class Block(nn.Module):
    """Attention, then MLP; each adds its result to the residual stream."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.attention_norm = Norm(config, config.d_model)
        self.attention = Attention(config)
        self.mlp_norm = Norm(config, config.d_model)
        self.mlp = MLP(config)

    def forward(
        self,
        x: Tensor,
        layer: int,
        turns: Tensor | None,
        cache: KVCache | None,
        recorder: Recorder | None,
        dropout: torch.Generator | None,
    ) -> Tensor:
        """The residual stream (B,T,C) after this block."""
        pre, p = self.config.norm_place == "pre", self.config.dropout
        attention_out = self.attention(self.attention_norm(x) if pre else x, layer, turns, cache, recorder)
        if recorder is not None:
            attention_out = recorder.silence_part("attention", layer, attention_out)
        entered, x = x, x + dropped(attention_out, p, dropout)
        middle = x if pre else self.attention_norm(x)
        read = entered if self.config.parallel else middle
        mlp_out = self.mlp(self.mlp_norm(read) if pre else read)
        if recorder is not None:
            mlp_out = recorder.silence_part("mlp", layer, mlp_out)
        x = middle + dropped(mlp_out, p, dropout)
        x = x if pre else self.mlp_norm(x)
        if recorder is not None:
            recorder.keep(attention_out=attention_out, middle=middle, mlp_out=mlp_out, residual=x)
        return x


class Previous(nn.Module):
    """What a position's input gets of the token before it: that token's vector, times a learned factor each.

    The factors begin at 0: a model starts as if it had none of this. Attention must else find out where the
    neighbour stands before it can read it; the mixing hands it over for as many weights as a vector has.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, before: Tensor) -> Tensor:
        """Vectors of the tokens before (…,C) -> what is added at their right neighbours (…,C)."""
        return self.weight * before


class Transformer(nn.Module):
    """A language model: ids in, logits at every position out.

    Args:
        config: the shape.
        generator: source of the initial weights; None is seed 0. The global random state is never touched.
        initial: False leaves the weights without values, for who gives all of them at once.
    """

    def __init__(
        self, config: ModelConfig, generator: torch.Generator | None = None, *, initial: bool = True
    ) -> None:
        super().__init__()
        self.config = config
        with NoFirstWeights():
            self.embedding = nn.Embedding(config.vocab_size, config.d_model)
            self.previous = Previous(config.d_model) if config.mix_previous else None
            learned = config.positions == "learned"
            self.position = nn.Embedding(config.context_length, config.d_model) if learned else None
            self.embedding_norm = Norm(config, config.d_model) if config.embedding_norm else None
            self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layer))
            self.final_norm = Norm(config, config.d_model) if config.norm_place == "pre" else None
            transform = config.head_transform
            self.head_dense = nn.Linear(config.d_model, config.d_model) if transform else None
            self.head_norm = Norm(config, config.d_model) if transform else None
            self.head = nn.Linear(config.d_model, config.vocab_size, bias=config.head_bias)
        if config.tie_head:
            self.head.weight = self.embedding.weight
        if initial:
            set_first_weights(self, config, generator or torch.Generator().manual_seed(0))
        self.register_buffer("sinusoid", None, persistent=False)
        self.register_buffer("turns", None, persistent=False)
        if config.positions == "sinusoidal":
            self.sinusoid = sinusoidal_positions(config.context_length, config.d_model)
        if config.positions == "rotary":
            width = config.rotary.width(config.d_head)
            self.turns = rotary_turns(config.context_length, width, config.rotary)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embedding.weight.device

    def n_parameters(self) -> int:
        """Number of weights; a tied head counts once."""
        return sum(p.numel() for p in self.parameters())

    def embed(self, ids: Tensor, start: int = 0, before: Tensor | None = None) -> Tensor:
        """What enters the first block, token vectors plus what is added to them: (B,T) -> (B,T,C).

        Args:
            ids: the tokens.
            start: the position of the first id.
            before: (B,1) the tokens before the first ones, for a model that mixes them in; None is none.
        """
        x = self.embedding(ids)
        if self.previous is not None:
            first = torch.zeros_like(x[:, :1]) if before is None else self.embedding(before)
            x = x + self.previous(torch.cat((first, x[:, :-1]), dim=1))
        if self.position is not None:
            x = x + self.position.weight[start : start + ids.shape[1]]
        if self.sinusoid is not None:
            x = x * math.sqrt(self.config.d_model) + self.sinusoid[start : start + ids.shape[1]]
        return x if self.embedding_norm is None else self.embedding_norm(x)

    def read_out(self, x: Tensor) -> Tensor:
        """Residual stream (…,C) -> logits (…,V), by the final norm, if there is one, and the head."""
        x = x if self.final_norm is None else self.final_norm(x)
        if self.head_dense is not None and self.head_norm is not None:
            x = self.head_norm(gelu(self.head_dense(x), self.config.activation))
        return self.head(x)

    def forward(
        self,
        ids: Tensor,
        *,
        cache: KVCache | None = None,
        recorder: Recorder | None = None,
        dropout: torch.Generator | None = None,
    ) -> Tensor:
        """Logits (B,T,V) for ids (B,T).

        Args:
            ids: at most `context_length` of them, counting those in the cache.
            cache: tokens seen before; the new ones are added to it. Causal models only.
            recorder: is handed everything that is computed, by the explicit path.
            dropout: training only: where the dropout masks come from. Without it nothing is dropped, so a
                model that others train or read at the same time needs no switch of mode.

        Raises:
            ValueError: if there are no tokens, more than `context_length`, or an id outside the vocabulary.
        """
        return self.read_out(self.stream(ids, cache, recorder, dropout))

    def next_logits(self, ids: Tensor, *, cache: KVCache | None = None) -> Tensor:
        """Logits (B,V) after the last of ids (B,T) alone: `forward(...)[:, -1]` without the other positions.

        Of a large vocabulary the others would take most of the memory: 400 MB for 2048 tokens and 49k ids.
        """
        return self.read_out(self.stream(ids, cache)[:, -1])

    def stream(
        self,
        ids: Tensor,
        cache: KVCache | None = None,
        recorder: Recorder | None = None,
        dropout: torch.Generator | None = None,
    ) -> Tensor:
        """The residual stream (B,T,C) after the last block, from which `read_out` gives the logits.

        Args and errors as `forward`.
        """
        start = 0 if cache is None else cache.length
        self._check(ids, start, cache)
        T = ids.shape[1]
        before = None if cache is None else cache.read(ids)
        x = dropped(self.embed(ids, start, before), self.config.dropout, dropout)  # (B,T,C)
        turns = None if self.turns is None else self.turns[start : start + T]
        if recorder is not None:
            recorder.keep(residual=x)
        for layer, block in enumerate(self.blocks):
            x = block(x, layer, turns, cache, recorder, dropout)
        if cache is not None:
            cache.length += T
        return x

    def _check(self, ids: Tensor, start: int, cache: KVCache | None) -> None:
        n, limit = ids.shape[1] + start, self.config.context_length
        if ids.shape[1] == 0:
            raise ValueError(say("there_no_tokens_read"))
        if n > limit:
            raise ValueError(say("context_length_but_text", limit=limit, n=n))
        if cache is not None and self.config.objective == "mlm":
            raise ValueError(say("masked_model_looks_ahead"))
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= self.config.vocab_size:
            raise ValueError(
                say("models_ids_run_0", last=self.config.vocab_size - 1, odd=low if low < 0 else high)
            )
