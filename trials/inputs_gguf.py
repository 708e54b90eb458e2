"""GGUF files: damaged bytes, lengths that can't be, counts that would fill any memory."""

import struct
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as some

from engine.gguf_file import missing_package, read_gguf
from engine.gguf_llama import convert
from trials import inputs_made as made
from trials.inputs_changes import Cut, cut_up, cuts
from trials.inputs_kind import Kind

MAGIC = b"GGUF"
COUNTS = (0, 1, 2, 2**31, 2**32, 2**40, 2**62, 2**63, 2**64 - 1)


class Bytes(NamedTuple):
    """Changes of the bytes, the first `near` of them only if that is not 0: the header."""

    cuts: tuple[Cut, ...]
    near: int = 0


class Made(NamedTuple):
    """A header of any making: version, number of tensors and of settings, then bytes."""

    version: int
    n_tensors: int
    n_values: int
    rest: bytes = b""


class Value(NamedTuple):
    """A file with one setting: its name, its kind, its bytes."""

    name: str
    kind: int
    data: bytes


def packed(text: bytes, length: int | None = None) -> bytes:
    """A string as a GGUF file has it, with another length if one is given."""
    return struct.pack("<Q", len(text) if length is None else length) + text


cases = some.one_of(
    some.builds(Bytes, cuts.map(tuple), some.sampled_from((0, 64, 600, 4000))),
    some.builds(
        Made,
        some.sampled_from((0, 1, 2, 3, 4, 2**31)),
        some.sampled_from(COUNTS),
        some.sampled_from(COUNTS),
        some.binary(max_size=60),
    ),
    some.builds(
        Value,
        some.sampled_from(("general.alignment", "general.architecture", "x", "")),
        some.one_of(some.integers(0, 13), some.sampled_from((99, 2**31))),
        some.one_of(
            some.binary(max_size=24),
            some.sampled_from(COUNTS).map(lambda n: struct.pack("<Q", n)),
            some.builds(
                lambda kind, n: struct.pack("<IQ", kind, n), some.integers(0, 13), some.sampled_from(COUNTS)
            ),
        ),
    ),
)
KNOWN: tuple[Any, ...] = (
    Bytes(()),
    Bytes((Cut("cut", 0),)),
    Made(3, 2**62, 0),
    Made(3, 0, 2**62),
    Made(3, 2**64 - 1, 2**64 - 1),
    Value("general.alignment", 4, struct.pack("<I", 0)),
    Value("general.alignment", 4, struct.pack("<I", 3)),
    Value("x", 8, struct.pack("<Q", 2**62)),
    Value("x", 9, struct.pack("<IQ", 9, 2**40)),
    Value("x", 9, struct.pack("<IQ", 0, 2**40)),
    Value("x", 9, struct.pack("<IQ", 9, 1) * 3000 + bytes(12)),
)


def attempt(case: Any, home: Path) -> None:
    """Read it and convert it."""
    if isinstance(case, Made):
        data = MAGIC + struct.pack("<IQQ", case.version, case.n_tensors, case.n_values) + case.rest
    elif isinstance(case, Value):
        data = MAGIC + struct.pack("<IQQ", 3, 0, 1) + packed(case.name.encode())
        data += struct.pack("<I", case.kind) + case.data
    else:
        whole = made.gguf_file()
        near = case.near or len(whole)
        data = cut_up(whole[:near], case.cuts) + whole[near:]
    path = home / "one.gguf"
    path.write_bytes(data)
    if missing_package():
        raise missing_package() or AssertionError
    convert(read_gguf(path))


KIND = Kind("gguf", cases, attempt, known=KNOWN, ready=made.gguf_file)
