"""A matrix times a single vector, which is what a model does all the time while it writes.

Every token needs every weight once, and those of a large model don't stay in the processor's caches. The
product of a matrix with a vector goes along several rows at once, and some memories serve that at a third of
the speed that a single long line has (an AMD EPYC: 10 and 30 GB/s). There each piece of a matrix is read
first, by a sum that nobody needs: that brings it into the core's own cache as fast as the memory can, and
the product finds it there. The numbers are the same to the last bit, or it is not done: rows know nothing of
each other, but a product may add in another order where there are fewer of them.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

PIECE = 768 * 1024  # bytes that are read at once: a core's own cache holds them (mostly 1 MB or more)
ROWS = 16  # a piece has a multiple of so many, as products take some rows together
LARGE = 16 * 1024 * 1024  # bytes of all matrices, from which on they may not stay in a cache
MEASURED = 64 * 1024 * 1024  # bytes that are enough to measure with
TURNS = 5  # of each way when it is measured
TRIES = 3  # measurements before a no is believed


class Line(Protocol):
    """A matrix and a bias, for single vectors."""

    def ready(self, x: Tensor) -> Any:
        """What `into` and `of` take in place of the vector; of several lines one does it for all."""
        ...

    def into(self, x: Any, out: Tensor) -> None:
        """W x + b, written to `out`."""
        ...

    def of(self, x: Any) -> Tensor:
        """W x + b."""
        ...

    def added(self, stream: Tensor, x: Tensor) -> Tensor:
        """The residual stream plus W x + b, of a vector that is not `ready`."""
        ...


class Exact:
    """A matrix as it stands in the model: the weights are read anew for every token, none is copied."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias

    def ready(self, x: Tensor) -> Tensor:
        """The vector itself."""
        return x

    def into(self, x: Tensor, out: Tensor) -> None:
        """W x + b, written to `out`."""
        if self.bias is None:
            torch.mv(self.weight, x, out=out)
        else:
            torch.addmv(self.bias, self.weight, x, out=out)

    def of(self, x: Tensor) -> Tensor:
        """W x + b."""
        return torch.mv(self.weight, x) if self.bias is None else torch.addmv(self.bias, self.weight, x)

    def added(self, stream: Tensor, x: Tensor) -> Tensor:
        """The residual stream plus W x + b."""
        return torch.addmv(stream if self.bias is None else stream + self.bias, self.weight, x)


class ReadAhead:
    """The same numbers as `Exact`, for a matrix that comes from memory: see the top of this file."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._n = len(weight)
        self._pieces = [
            (flat(weight[rows]), rows, Exact(weight[rows], None if bias is None else bias[rows]))
            for rows in pieces(weight)
        ]

    def ready(self, x: Tensor) -> Tensor:
        """The vector itself."""
        return x

    def into(self, x: Tensor, out: Tensor) -> None:
        """W x + b, written to `out`."""
        for numbers, rows, part in self._pieces:
            numbers.sum()
            part.into(x, out[rows])

    def of(self, x: Tensor) -> Tensor:
        """W x + b."""
        out = x.new_empty(self._n)
        self.into(x, out)
        return out

    def added(self, stream: Tensor, x: Tensor) -> Tensor:
        """The residual stream plus W x + b."""
        found = []
        for numbers, rows, part in self._pieces:
            numbers.sum()
            found.append(part.added(stream[rows], x))
        return torch.cat(found)


def pieces(matrix: Tensor) -> Iterator[slice]:
    """Rows of a matrix that are read at once.

    >>> [rows.stop - rows.start for rows in pieces(torch.empty(1536, 384))]
    [512, 512, 512]
    """
    n, size = len(matrix), matrix.numel() * matrix.element_size()
    step = -(-n // max(1, -(-size // PIECE)))  # as many rows in each
    step = -(-step // ROWS) * ROWS
    return (slice(begin, min(begin + step, n)) for begin in range(0, n, step))


def flat(matrix: Tensor) -> Tensor:
    """All that a matrix holds as one line, so that its sum reads it; bytes are taken in eights."""
    row = matrix.detach().view(-1)
    return row.view(torch.int64) if row.dtype == torch.int8 and len(row) % 8 == 0 else row


def reading_ahead_pays(matrices: Sequence[Tensor]) -> bool:
    """Whether `ReadAhead` is faster here, for a model with these matrices.

    It is measured once in a process. The numbers are the same either way, so that a busy moment does no harm.
    """
    matrices = [matrix for matrix in matrices if matrix.is_contiguous()]
    if sum(matrix.numel() * matrix.element_size() for matrix in matrices) < LARGE:
        return False
    return _known.setdefault(torch.get_num_threads(), Measured(_faster))(matrices)


class Measured:
    """Whether something is faster here, found by measuring.

    A busy moment may hide it, so a no is measured again, a few times in a process's life.

    Args:
        faster: measures, with what it is called with.
    """

    def __init__(self, faster: Callable[..., bool]) -> None:
        self._faster = faster
        self.said: list[bool] = []

    def __call__(self, *about: Any) -> bool:
        """What is known by now."""
        if not any(self.said) and len(self.said) < TRIES:
            self.said.append(self._faster(*about))
        return any(self.said)


_known: dict[int, Measured] = {}  # by the number of threads that an operation has


def _faster(matrices: Sequence[Tensor]) -> bool:
    some, size = list[Tensor](), 0
    for matrix in matrices:
        if size < MEASURED:
            some.append(matrix)
            size += matrix.numel() * matrix.element_size()
    vectors = [matrix.new_ones(matrix.shape[1]) for matrix in some]
    ways: list[list[Line]] = [[kind(matrix, None) for matrix in some] for kind in (Exact, ReadAhead)]

    def products(lines: list[Line]) -> list[Tensor]:
        return [line.of(vector) for line, vector in zip(lines, vectors, strict=True)]

    with torch.inference_mode():
        found = [products(lines) for lines in ways]
        if not all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(*found, strict=True)):
            return False
        exact, ahead = least_seconds([lambda: products(ways[0]), lambda: products(ways[1])], TURNS)
    return ahead < exact


def least_seconds(works: Sequence[Callable[[], object]], turns: int) -> list[float]:
    """Of each work, in turns: what is slow for a moment is slow for all."""
    least = [float("inf")] * len(works)
    for _ in range(turns):
        for k, work in enumerate(works):
            began = time.perf_counter()
            work()
            least[k] = min(least[k], time.perf_counter() - began)
    return least


def line_of(module: nn.Module, ahead: bool) -> Line:
    """A module of a model for single vectors: a `nn.Linear`, or one that is a `Line` itself.

    Args:
        module: it.
        ahead: whether the weights of a `nn.Linear` are read ahead, if they lie in a line.
    """
    if not isinstance(module, nn.Linear):
        line: Any = module
        return line
    in_a_line = ahead and module.weight.is_contiguous()
    return (ReadAhead if in_a_line else Exact)(module.weight, module.bias)
