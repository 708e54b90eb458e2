"""Other programs that train the same model: nanoGPT from a checkout, transformers, a plain PyTorch loop.

Each gives a `Peer`: `step()` trains on one batch, `validation_loss(ids)` scores a whole text. They are used
as their own documentation does it; what may be tuned stands in `Recipe`. None of their code is copied.
"""

import contextlib
import importlib.util
import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import ModelConfig

# nanoGPT's README, "I only have a macbook": the shape of its CPU run, without dropout and biases.
NANOGPT_CPU = ModelConfig(
    vocab_size=65, context_length=64, n_layer=4, n_head=4, d_model=128, bias=False, dropout=0.0
)


@dataclass(frozen=True)
class Recipe:
    """How a peer trains; the defaults are nanoGPT's for its CPU run.

    Attributes:
        steps: after which the learning rate has fallen.
        min_lr_share: of the learning rate, at the end.
        schedule: "cosine", "linear" or "constant", after `warmup_steps` of a rising rate.
        fused: None leaves AdamW as the peer takes it.
    """

    steps: int = 2000
    batch_size: int = 12
    learning_rate: float = 1e-3
    min_lr_share: float = 0.1
    warmup_steps: int = 100
    schedule: str = "cosine"
    weight_decay: float = 0.1
    betas: tuple[float, float] = (0.9, 0.99)
    grad_clip: float = 1.0
    seed: int = 1337
    fused: bool | None = None

    def learning_rate_at(self, step: int) -> float:
        """Of the update that follows `step` finished ones.

        >>> recipe = Recipe(steps=300, learning_rate=1.0)
        >>> [round(recipe.learning_rate_at(step), 3) for step in (0, 100, 200, 300, 900)]
        [0.01, 1.0, 0.55, 0.1, 0.1]
        """
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / (self.warmup_steps + 1)
        if self.schedule == "constant":
            return self.learning_rate
        done = min(1.0, (step - self.warmup_steps) / max(1, self.steps - self.warmup_steps))
        left = 1 - done if self.schedule == "linear" else (1 + math.cos(math.pi * done)) / 2
        return self.learning_rate * (self.min_lr_share + (1 - self.min_lr_share) * left)


def whole_loss(
    forward: Callable[[Tensor], Tensor], ids: Tensor, context_length: int, rows: int = 32
) -> float:
    """Mean surprisal in nats over all of a text but its first token, read in rows of the context length.

    Rows lie one behind the other, so that each token is a target once; a short row at the end counts too.

    Args:
        forward: ids (B,T) -> logits (B,T,V); it is called without gradients.
        ids: (N,) the text.
        context_length: T of all rows but the last.
        rows: B.
    """
    n = (len(ids) - 1) // context_length
    inputs, targets = (part[: n * context_length].view(n, -1) for part in (ids[:-1], ids[1:]))
    cut = (torch.split(inputs, rows), torch.split(targets, rows))
    parts = [*zip(*cut, strict=True)] if n else []
    if rest := (len(ids) - 1) % context_length:
        parts.append((ids[-rest - 1 : -1][None], ids[-rest:][None]))
    total = 0.0
    with torch.no_grad():
        for some, wanted in parts:
            total += float(F.cross_entropy(forward(some).flatten(0, 1), wanted.flatten(), reduction="sum"))
    return total / (len(ids) - 1)


class Peer(Protocol):
    """A training that goes on step by step."""

    model: nn.Module
    n_parameters: int  # a tied head counts once, positions count

    def step(self) -> float:
        """Train on one batch; its loss before the update, in nats per scored token."""

    def validation_loss(self, ids: Tensor) -> float:
        """`whole_loss` of a text."""


class PlainPeer:
    """The loop that all three share: draw, forward, backward, clip, AdamW.

    Args:
        model: trained in place.
        optimizer: AdamW, however the peer makes it.
        loss: inputs and targets (B,T) -> the loss.
        logits: ids (B,T) -> (B,T,V).
        draw: the next batch.
        recipe: how.
        context_length: of the shape.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        loss: Callable[[Tensor, Tensor], Tensor],
        logits: Callable[[Tensor], Tensor],
        draw: Callable[[], tuple[Tensor, Tensor]],
        recipe: Recipe,
        context_length: int,
    ) -> None:
        self.model, self.n_parameters = model, sum(p.numel() for p in model.parameters())
        self._optimizer, self._loss, self._logits, self._draw = optimizer, loss, logits, draw
        self._recipe, self._context_length, self._done = recipe, context_length, 0

    def step(self) -> float:
        """Train on one batch; its loss before the update."""
        rate = self._recipe.learning_rate_at(self._done)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        loss = self._loss(*self._draw())
        loss.backward()  # type: ignore[no-untyped-call]
        if self._recipe.grad_clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), self._recipe.grad_clip)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self._done += 1
        return loss.item()

    def validation_loss(self, ids: Tensor) -> float:
        """Mean surprisal over all of a text."""
        self.model.eval()
        found = whole_loss(self._logits, ids, self._context_length)
        self.model.train()
        return found


# ---- nanoGPT


def nanogpt_training(path: Path, shape: ModelConfig, ids: Tensor, recipe: Recipe) -> Peer:
    """The model and optimizer of nanoGPT from a checkout, fed as its train.py does: rows of a uint16 array.

    Args:
        path: the checkout, with model.py in it.
        shape: vocabulary, context, layers, heads, width, bias and dropout count.
        ids: (N,) to learn from.
        recipe: how.
    """
    nano = module_from(path / "model.py")
    with quietly(recipe.seed):
        model = nano.GPT(nano.GPTConfig(**nanogpt_names(shape)))
        # as for its device "cpu": AdamW that is not fused
        optimizer = model.configure_optimizers(
            recipe.weight_decay, recipe.learning_rate, recipe.betas, "cuda" if recipe.fused else "cpu"
        )
    generator, data = torch.Generator().manual_seed(recipe.seed), ids.numpy().astype(np.uint16)
    T = shape.context_length

    def draw() -> tuple[Tensor, Tensor]:
        at = torch.randint(len(data) - T, (recipe.batch_size,), generator=generator)
        inputs, targets = (
            torch.stack([torch.from_numpy(data[i + k : i + k + T].astype(np.int64)) for i in at.tolist()])
            for k in (0, 1)
        )
        return inputs, targets

    return PlainPeer(
        model,
        optimizer,
        lambda inputs, targets: model(inputs, targets)[1],
        lambda inputs: model(inputs, inputs)[0],  # without targets it gives the last position alone
        draw,
        recipe,
        T,
    )


def nanogpt_names(shape: ModelConfig) -> dict[str, Any]:
    """A shape in nanoGPT's words.

    Raises:
        ValueError: if it has no such shape.
    """
    plain = ModelConfig(
        vocab_size=shape.vocab_size,
        context_length=shape.context_length,
        n_layer=shape.n_layer,
        n_head=shape.n_head,
        d_model=shape.d_model,
        bias=shape.bias,
        dropout=shape.dropout,
    )
    if shape != plain:
        raise ValueError("nanoGPT has only GPT-2's architecture. Leave the other switches as they are.")
    return {
        "block_size": shape.context_length,
        "vocab_size": shape.vocab_size,
        "n_layer": shape.n_layer,
        "n_head": shape.n_head,
        "n_embd": shape.d_model,
        "dropout": shape.dropout,
        "bias": shape.bias,
    }


# ---- transformers


def transformers_training(shape: ModelConfig, ids: Tensor, recipe: Recipe) -> Peer:
    """GPT2LMHeadModel with its own loss (`labels=`) and AdamW, on rows cut from the ids.

    GPT-2 here always has biases, so it has a few weights more than a shape without.
    """
    from transformers import GPT2Config, GPT2LMHeadModel

    with quietly(recipe.seed):
        model = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=shape.vocab_size,
                n_positions=shape.context_length,
                n_layer=shape.n_layer,
                n_head=shape.n_head,
                n_embd=shape.d_model,
                resid_pdrop=shape.dropout,
                embd_pdrop=shape.dropout,
                attn_pdrop=shape.dropout,
                bos_token_id=0,
                eos_token_id=0,
            )
        ).train()
    return PlainPeer(
        model,
        plain_adamw(model, recipe),
        lambda inputs, targets: model(inputs, labels=inputs).loss,  # it moves the labels by one itself
        lambda inputs: model(inputs).logits,
        plain_draw(ids, shape.context_length, recipe),
        recipe,
        shape.context_length,
    )


# ---- a plain loop


def plain_training(shape: ModelConfig, ids: Tensor, recipe: Recipe) -> Peer:
    """GPT-2 from PyTorch's own modules and a loop as any tutorial has it."""
    with quietly(recipe.seed):
        model = PlainGPT(shape)

    def loss(inputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())

    draw = plain_draw(ids, shape.context_length, recipe)
    return PlainPeer(model, plain_adamw(model, recipe), loss, model, draw, recipe, shape.context_length)


class PlainBlock(nn.Module):
    """Attention and MLP, each behind a LayerNorm."""

    def __init__(self, shape: ModelConfig) -> None:
        super().__init__()
        C, self.n_head, self.p = shape.d_model, shape.n_head, shape.dropout
        self.attention_norm, self.mlp_norm = (nn.LayerNorm(C, bias=shape.bias) for _ in range(2))
        self.qkv = nn.Linear(C, 3 * C, bias=shape.bias)
        self.out = nn.Linear(C, C, bias=shape.bias)
        self.mlp = nn.Sequential(
            nn.Linear(C, 4 * C, bias=shape.bias),
            nn.GELU(),
            nn.Linear(4 * C, C, bias=shape.bias),
            nn.Dropout(self.p),
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B,T,C) -> (B,T,C)."""
        B, T, C = x.shape
        q, k, v = self.qkv(self.attention_norm(x)).view(B, T, 3, self.n_head, -1).permute(2, 0, 3, 1, 4)
        p = self.p if self.training else 0.0
        seen = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)  # (B,H,T,D)
        x = x + F.dropout(self.out(seen.transpose(1, 2).reshape(B, T, C)), p)
        return x + self.mlp(self.mlp_norm(x))


class PlainGPT(nn.Module):
    """GPT-2: the same numbers as `engine.model.Transformer` when it has the same weights."""

    def __init__(self, shape: ModelConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.vocab_size, shape.d_model)
        self.position = nn.Embedding(shape.context_length, shape.d_model)
        self.dropout = nn.Dropout(shape.dropout)
        self.blocks = nn.Sequential(*(PlainBlock(shape) for _ in range(shape.n_layer)))
        self.final_norm = nn.LayerNorm(shape.d_model, bias=shape.bias)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                writes = name.endswith(("out.weight", "mlp.2.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * shape.n_layer) if writes else 0.02)

    def forward(self, ids: Tensor) -> Tensor:
        """Ids (B,T) -> logits (B,T,V)."""
        x = self.embedding(ids) + self.position.weight[: ids.shape[1]]
        return F.linear(self.final_norm(self.blocks(self.dropout(x))), self.embedding.weight)

    @torch.no_grad()
    def take(self, weights: dict[str, Tensor]) -> None:
        """Take over the weights of a `Transformer` of the same shape, by their names there."""
        mine = self.state_dict()
        for name in mine:
            inside = name.split(".", 2)[2] if name.startswith("blocks.") else name
            stem = name.removesuffix(inside)
            kind = inside.rsplit(".", 1)[-1]
            if inside.startswith("qkv."):
                theirs = torch.cat([weights[f"{stem}attention.{which}.{kind}"] for which in "qkv"])
            else:
                inside = inside.replace("mlp.0.", "mlp.up.").replace("mlp.2.", "mlp.down.")
                theirs = weights[stem + ("attention." if inside.startswith("out.") else "") + inside]
            mine[name].copy_(theirs)


def plain_adamw(model: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """Over all weights alike."""
    return torch.optim.AdamW(
        model.parameters(),
        lr=recipe.learning_rate,
        betas=recipe.betas,
        weight_decay=recipe.weight_decay,
        fused=recipe.fused,
    )


def plain_draw(ids: Tensor, T: int, recipe: Recipe) -> Callable[[], tuple[Tensor, Tensor]]:
    """Rows from anywhere in the text."""
    generator = torch.Generator().manual_seed(recipe.seed)

    def draw() -> tuple[Tensor, Tensor]:
        at = torch.randint(len(ids) - T, (recipe.batch_size,), generator=generator).tolist()
        return torch.stack([ids[i : i + T] for i in at]), torch.stack([ids[i + 1 : i + 1 + T] for i in at])

    return draw


# ---- small things


def module_from(file: Path) -> ModuleType:
    """A Python file as a module, without a word on sys.path.

    Raises:
        FileNotFoundError: if it is not there.
    """
    spec = importlib.util.spec_from_file_location(f"peer_{file.parent.name}_{file.stem}", file)
    if not file.is_file() or spec is None or spec.loader is None:
        raise FileNotFoundError(f"There is no {file}. Give the folder of a checkout.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def quietly(seed: int) -> Iterator[None]:
    """What a peer prints is left out; its random numbers begin at the seed and leave ours alone."""
    with contextlib.redirect_stdout(io.StringIO()), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
