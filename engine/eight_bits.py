"""A model that writes with weights of 8 bits: a quarter of the bytes to read for every token.

Each row of a matrix is whole numbers from -127 to 127 times a scale of its own (`engine.compact`). In the
blocks vectors go through in 16 bits (bfloat16), which costs next to nothing beside the weights' rounding:
vectors of 8 bits would cost three times as many nats (measured on SmolLM2-135M). The logits are sums of
whole numbers, exact: 16 bits would make likely tokens equally likely.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engine.cache import KVCache
from engine.compact import LARGEST, round_rows
from engine.decoding import Decoder, fits
from engine.model import Transformer
from engine.vector_products import LARGE, Measured, flat, pieces, reading_ahead_pays
from engine.windows import cut, score_parts
from wording import words

say = words("engine.eight_bits")

FINE = 2 * LARGEST  # steps of the fine part in one step of the coarse part
STEP = 32  # numbers of a row that are multiplied at once
PARTS = torch.tensor((1.0, 1 / FINE))  # a step of each
ZERO = 128  # stands for 0 in a row: most processors multiply bytes without a sign by bytes with one
Tell = Callable[[int, int], None]


class Rounded(nn.Module):
    """A matrix of 8 bits in the place of a `nn.Linear`; for single vectors a `vector_products.Line`."""

    whole: Tensor
    scale: Tensor

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        if linear.in_features % STEP:  # torch's product would read past the end of other rows
            raise ValueError(say("shape", step=STEP, width=linear.in_features))
        whole, scale = round_rows(linear.weight.detach())
        self.register_buffer("whole", whole)
        self.register_buffer("scale", scale[:, 0].bfloat16())
        self.bias = linear.bias
        self._pieces: list[tuple[Tensor, Tensor, Tensor]] = []

    def read_ahead(self) -> None:
        """From now on single vectors are multiplied as by `engine.vector_products.ReadAhead`."""
        self._pieces = [
            (flat(self.whole[rows]), self.whole[rows], self.scale[rows]) for rows in pieces(self.whole)
        ]

    def forward(self, x: Tensor) -> Tensor:
        """(…,in) -> (…,out)."""
        rows = x.reshape(-1, x.shape[-1]).bfloat16()
        out = torch._weight_int8pack_mm(rows, self.whole, self.scale).float()
        return (out if self.bias is None else out + self.bias).view(*x.shape[:-1], -1)

    def ready(self, x: Tensor) -> Tensor:
        """A vector (in,) as a row of 16 bits."""
        return x.bfloat16()[None]

    def into(self, x: Tensor, out: Tensor) -> None:
        """W x + b, written to `out`."""
        out.copy_(self._product(x))
        if self.bias is not None:
            out.add_(self.bias)

    def of(self, x: Tensor) -> Tensor:
        """W x + b."""
        out = self._product(x).float()
        return out if self.bias is None else out.add_(self.bias)

    def added(self, stream: Tensor, x: Tensor) -> Tensor:
        """The residual stream plus W x + b, of a vector that is not `ready`."""
        return (stream if self.bias is None else stream + self.bias) + self._product(self.ready(x))

    def _product(self, row: Tensor) -> Tensor:
        found = []
        for numbers, whole, scale in self._pieces:
            numbers.sum()
            found.append(torch._weight_int8pack_mm(row, whole, scale)[0])
        return torch.cat(found) if found else torch._weight_int8pack_mm(row, self.whole, self.scale)[0]


class Split(NamedTuple):
    """A vector as two rows of whole numbers."""

    rows: Tensor  # (2,in) uint8, a coarse part, and a fine one for what that left over; `ZERO` is 0
    step: float  # what the coarse part is multiplied by


class Packed:
    """A matrix of whole numbers in the order in which the processor wants to read it.

    Args:
        whole: (out,in) int8.
        scale: (out,1) of its rows.
    """

    def __init__(self, whole: Tensor, scale: Tensor) -> None:
        self._whole = torch.ops.onednn.qlinear_prepack(whole, None)
        self._scale, self._zeros = scale[:, 0], torch.zeros(len(scale), dtype=torch.int64)

    def of(self, rows: Tensor, step: float = 1.0) -> Tensor:
        """Rows (N,in) of uint8, less `ZERO`, times the matrix, times a factor: (N,out) float32."""
        matrix = self._whole, self._scale, self._zeros, None
        product: Tensor = torch.ops.onednn.qlinear_pointwise(
            rows, step, ZERO, *matrix, 1.0, 0, torch.float32, "none", [], ""
        )
        return product


class RoundedHead(nn.Module):
    """The matrix of the logits in 8 bits, whose sums are exact: a vector is two times 8 bits."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.bias = linear.bias
        self._matrix = Packed(*round_rows(linear.weight.detach()))

    def forward(self, x: Tensor) -> Tensor:
        """(…,in) -> (…,out)."""
        found = [self.of(self.ready(row)) for row in x.reshape(-1, x.shape[-1])]
        return torch.stack(found).view(*x.shape[:-1], -1)

    def ready(self, x: Tensor) -> Split:
        """A vector (in,) in two rows."""
        step = float(torch.linalg.vector_norm(x, math.inf)) / LARGEST or 1.0
        scaled = x * (1 / step)
        coarse = scaled.round()
        fine = scaled.sub_(coarse).mul_(FINE).round_()
        return Split(torch.stack((coarse, fine)).add_(ZERO).to(torch.uint8), step)

    def of(self, x: Split) -> Tensor:
        """W x + b."""
        both = self._matrix.of(x.rows, x.step).t()  # (out,2)
        return torch.mv(both, PARTS) if self.bias is None else torch.addmv(self.bias, both, PARTS)


def eight_bits(model: Transformer) -> Transformer:
    """The same model with matrices of 8 bits; its other weights are the model's own, and shared with it.

    Token vectors are not rounded: of those a token reads a single row.
    """
    twin = Transformer(model.config, initial=False)  # its weights are never touched, and so take no memory
    matrices = [module.weight for module in model.modules() if isinstance(module, nn.Linear)]
    ahead = bytes_of(model) >= LARGE and reading_ahead_pays(matrices)
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            continue
        place = twin.get_submodule(name)
        for child, part in module.named_children():
            if isinstance(part, nn.Linear):
                setattr(place, child, (RoundedHead if part is model.head else Rounded)(part))
        for child, weights in module.named_parameters(recurse=False):
            setattr(place, child, weights)
    for module in twin.modules():
        if ahead and isinstance(module, Rounded):
            module.read_ahead()
    return twin.eval()


def bytes_of(model: Transformer) -> int:
    """What the matrices of 8 bits take beside the model."""
    lines = [module for module in model.modules() if isinstance(module, nn.Linear)]
    return sum(line.weight.numel() + 4 * line.out_features for line in lines)


def trouble(model: Transformer) -> str:
    """One sentence if this model can't write with 8 bits here; "" if it can."""
    if model.config.objective != "clm":
        return say("masked")
    if model.device.type != "cpu":
        return say("not_cpu")
    widths = [part.in_features for part in model.blocks.modules() if isinstance(part, nn.Linear)]
    if odd := [width for width in widths if width % STEP]:
        return say("shape", step=STEP, width=odd[0])
    if not fits(model):
        return say("not_cpu")
    return "" if _products_are_exact() and _products_are_fast() else say("processor")


@cache
def _products_are_exact() -> bool:
    """Whether this processor adds the largest whole numbers without an overflow; some older ones don't."""
    signs = LARGEST * torch.tensor([[1], [-1], [1]], dtype=torch.int8)
    rows, whole = (part.expand(-1, 1536).contiguous() for part in (signs[:2], signs))
    try:
        found = Packed(whole, torch.ones(3, 1)).of((rows.int() + ZERO).to(torch.uint8))
    except (RuntimeError, AttributeError):  # no such product in this build of torch
        return False
    return torch.allclose(found, rows.float() @ whole.float().t(), rtol=1e-6)


_HOPELESS = 50  # times as slow as float32: without instructions for it a product can take 200 times as long


def _faster_now() -> bool:
    """Whether they take less time than those of float32; without instructions for them they take far more."""
    exact = nn.Linear(2048, 2048, bias=False).requires_grad_(False)
    rounded, head, x = Rounded(exact), RoundedHead(exact), torch.ones(2048)
    row, split = rounded.ready(x), head.ready(x)
    works: list[Callable[[], Tensor]] = [
        lambda: torch.mv(exact.weight, x), lambda: rounded.of(row), lambda: head.of(split)
    ]  # fmt: skip
    least = [math.inf] * len(works)
    for _ in range(9):  # in turns: what is slow for a moment is slow for all
        for k, work in enumerate(works):
            began = time.perf_counter()
            work()
            least[k] = min(least[k], time.perf_counter() - began)
        if max(least) > _HOPELESS * least[0]:
            return False
    return max(least[1:]) < least[0]


_products_are_fast = Measured(_faster_now)


@dataclass(frozen=True, eq=False)
class Comparison:
    """A model in full precision and in 8 bits, on this machine.

    Attributes:
        full, rounded: (n,) surprisal in nats of each token of a text.
        full_speed, rounded_speed: tokens a second when it writes.
    """

    full: NDArray[np.float64]
    rounded: NDArray[np.float64]
    full_speed: float
    rounded_speed: float

    @property
    def cost(self) -> float:
        """Nats that a token costs more with 8 bits."""
        return float((self.rounded - self.full).mean())

    @property
    def error(self) -> float:
        """Standard error of that."""
        return float((self.rounded - self.full).std(ddof=1)) / math.sqrt(len(self.full))

    @property
    def speedup(self) -> float:
        """How many times as fast it writes with 8 bits."""
        return self.rounded_speed / self.full_speed


WRITTEN = 12  # tokens of a round
ROUNDS = 3


def compare(
    model: Transformer, rounded: Transformer, ids: Sequence[int], tell: Tell = lambda done, n: None
) -> Comparison:
    """Read a text with both, then write a few tokens with each in turn.

    Args:
        model: in full precision.
        rounded: `eight_bits` of it.
        ids: of the text, at least 3; what doesn't fit the context is read in windows.
        tell: (done, all), in steps of about equal length; it may raise to stop.
    """
    pair, n_steps = (model, rounded), 2 + ROUNDS
    losses: list[NDArray[np.float64]] = []
    for one in pair:
        tell(len(losses), n_steps)
        windows = cut(len(ids), one.config.context_length, max(1, one.config.context_length // 2))
        losses.append(-np.concatenate(list(score_parts(one, list(ids), windows))))
    seconds: list[list[float]] = [[], []]
    for i in range(ROUNDS):
        tell(2 + i, n_steps)
        for one, spent in zip(pair, seconds, strict=True):
            spent.append(_seconds_per_token(one, ids))
    full_speed, rounded_speed = (1 / sorted(spent)[ROUNDS // 2] for spent in seconds)
    tell(n_steps, n_steps)
    return Comparison(losses[0], losses[1], full_speed, rounded_speed)


def _seconds_per_token(model: Transformer, ids: Sequence[int]) -> float:
    """Of some tokens one after the other, the first of which is not counted."""
    some = list(ids[: min(WRITTEN + 1, model.config.context_length)])
    cache, decoder = KVCache(model.config), Decoder(model)
    decoder.next_logits(some[0], cache)
    began = time.perf_counter()
    for token_id in some[1:]:
        decoder.next_logits(token_id, cache)
    return (time.perf_counter() - began) / max(1, len(some) - 1)
