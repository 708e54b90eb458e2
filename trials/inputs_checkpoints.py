"""Checkpoints: bytes that changed, settings and tensors that somebody forged with checksums that fit."""

import json
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
from hypothesis import strategies as some
from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors

from engine.checkpoint_files import JSON, MODEL, OPTIMIZER, hash_json, read_embedding, sealed, sha256
from engine.checkpoint_list import list_checkpoints, newest_checkpoint
from engine.checkpoints import load_checkpoint
from engine.tokenizers import tokenizer_from_json
from trials import inputs_made as made
from trials.inputs_changes import Change, Cut, as_json, changed, changes, cut_up, cuts
from trials.inputs_kind import Broken, Kind

FILES = (MODEL, OPTIMIZER, JSON)


class Bytes(NamedTuple):
    """A file's bytes change; with `sealed` the checksums are made to fit afterwards."""

    file: str
    cuts: tuple[Cut, ...]
    sealed: bool = False
    dtype: str = "float32"


class Settings(NamedTuple):
    """The description changes; with `sealed` its own checksums are made to fit afterwards."""

    changes: tuple[Change, ...]
    part: str = ""
    sealed: bool = True


class Tensors(NamedTuple):
    """One tensor is of another kind, shape or content, or has gone, or one more is there."""

    at: int
    do: str
    value: Any = None
    file: str = MODEL


class Header(NamedTuple):
    """A safetensors header of any making, in front of some bytes."""

    length: int | None
    entries: Any
    n_bytes: int = 0


DTYPES = ("float16", "float64", "int64", "int8", "bool", "complex64", "bfloat16", "uint8", "float8_e4m3fn")
header_entry = some.fixed_dictionaries(
    {
        "dtype": some.sampled_from(("F32", "F16", "I8", "U8", "BOOL", "F8_E4M3", "X", "", "C64", 3, None)),
        "shape": some.lists(
            some.one_of(some.integers(-1, 9), some.sampled_from((2**31, 2**62, 2**64, 10**30))), max_size=4
        ),
        "data_offsets": some.lists(
            some.one_of(some.integers(-1, 200), some.sampled_from((2**63, 2**64 - 1))), max_size=3
        ),
    }
)
cases = some.one_of(
    some.builds(
        Bytes,
        some.sampled_from(FILES),
        cuts.map(tuple),
        some.booleans(),
        some.sampled_from(("float32", "int8")),
    ),
    some.builds(
        Settings,
        changes.map(tuple),
        some.sampled_from(("", "model", "model", "train", "tokenizer", "files")),
        some.sampled_from((True, True, True, False)),
    ),
    some.builds(
        Tensors,
        some.integers(0, 100),
        some.sampled_from(("dtype", "shape", "fill", "drop", "add", "rename", "empty")),
        some.one_of(
            some.sampled_from(DTYPES),
            some.sampled_from((float("nan"), float("inf"), 1e38, 0.0)),
            some.lists(some.integers(0, 5), max_size=4),
        ),
        some.sampled_from((MODEL, MODEL, OPTIMIZER)),
    ),
    some.builds(
        Header,
        some.one_of(some.none(), some.integers(0, 2**64 - 1)),
        some.dictionaries(
            some.sampled_from(("embedding.weight", "__metadata__", "x")),
            some.one_of(header_entry, some.text(max_size=5)),
            max_size=3,
        ),
        some.integers(0, 300),
    ),
)


def _set(name: str, value: Any) -> Settings:
    """A case in which a setting of the model has a value, whatever it was."""
    names = list(json.loads(made.checkpoint_files()[JSON])["model"])
    return Settings((Change(names.index(name), "set", value),), "model")


_BIG = (10**6, 10**9, 10**12, 10**18, 10**30, 10**400)
_ODD: tuple[Any, ...] = (float("nan"), -1, "x", None, [], {}, True, 1.5)
KNOWN: tuple[Any, ...] = (
    Bytes(MODEL, ()),
    Bytes(MODEL, (), True, "int8"),
    Bytes(MODEL, (Cut("cut", 0),), True),
    Header(2**63, {}, 8),
    Header(10**9, {}, 8),
    Header(None, {"x": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 8]}}, 8),
    *(
        _set(name, value)
        for name in ("vocab_size", "context_length", "n_layer", "n_head", "d_model", "d_ff")
        for value in _BIG
    ),
    *(_set(name, value) for name in ("d_model", "dropout", "norm") for value in _ODD),
    Settings((Change(0, "set", 10**400),), "train"),
    Settings((Change(0, "set", 2),), ""),
)


def attempt(case: Any, home: Path) -> None:
    """Open a checkpoint as a page does, its embedding alone, and the list of a run's checkpoints."""
    files = dict(made.checkpoint_files(case.dtype if isinstance(case, Bytes) else "float32"))
    good = read_tensors(made.checkpoint_files()[MODEL])
    if isinstance(case, Bytes):
        files[case.file] = cut_up(files[case.file], case.cuts)
        if case.sealed and case.file != JSON:
            files[JSON] = _described(files)
    elif isinstance(case, Settings):
        files[JSON] = _settings(files[JSON], case)
    elif isinstance(case, Tensors):
        try:
            files[case.file] = _forged(files[case.file], case)
        except (SafetensorError, RuntimeError, TypeError, ValueError):
            return  # no such tensor can be written
        files[JSON] = _described(files)
    else:
        head = as_json(case.entries)
        length = len(head) if case.length is None else case.length
        files[MODEL] = struct.pack("<Q", length) + head + bytes(case.n_bytes)
        files[JSON] = _described(files)
    folder = made.put(home / "checkpoints" / "0000003", files)
    listed, newest = list_checkpoints(home), newest_checkpoint(home)
    if bool(listed) != bool(newest):
        raise Broken("one list has a checkpoint that the other lacks")
    try:
        vectors = read_embedding(folder)
    except ValueError:
        vectors = None
    found = load_checkpoint(folder)
    if vectors is None or not torch.isfinite(torch.from_numpy(vectors)).all():
        raise Broken("a model without vectors")
    if isinstance(case, Bytes) and not case.sealed and files == made.checkpoint_files(case.dtype):
        state = found.model.state_dict()
        if case.dtype == "float32" and not all(torch.equal(state[name], good[name]) for name in good):
            raise Broken("other weights come back")
    with torch.no_grad():
        found.model(torch.zeros(1, 2, dtype=torch.int64))


def _described(files: dict[str, bytes], content: dict[str, Any] | None = None) -> bytes:
    """A description whose checksums are those of the files."""
    content = json.loads(files[JSON]) if content is None else content
    content["files"] = {n: {"sha256": sha256(d), "bytes": len(d)} for n, d in files.items() if n != JSON}
    return sealed(content)


def _settings(data: bytes, case: Settings) -> bytes:
    content = json.loads(data)
    if case.part:
        content[case.part] = changed(content[case.part], case.changes)
    else:
        content = changed(content, case.changes)
    if case.sealed and isinstance(content, dict):
        if "model" in content:
            content["model_hash"] = hash_json(content["model"])
        with suppress(Exception):
            content["tokenizer_hash"] = tokenizer_from_json(content["tokenizer"]).hash
        return sealed(content)
    return as_json(content)


def _forged(data: bytes, case: Tensors) -> bytes:
    tensors = read_tensors(data)
    name = sorted(tensors)[case.at % len(tensors)]
    if case.do == "drop":
        del tensors[name]
    elif case.do == "add":
        tensors["more"] = torch.zeros(2)
    elif case.do == "rename":
        tensors[name.upper()] = tensors.pop(name)
    elif case.do == "empty":
        tensors[name] = torch.zeros(0)
    elif case.do == "dtype" and isinstance(case.value, str):
        tensors[name] = tensors[name].to(getattr(torch, case.value))
    elif case.do == "shape" and isinstance(case.value, list):
        tensors[name] = torch.zeros(*case.value)
    elif isinstance(case.value, float):
        tensors[name].view(-1)[-1:] = case.value
    return write_tensors(tensors)


KIND = Kind(
    "checkpoints",
    cases,
    attempt,
    known=KNOWN,
    ready=lambda: [made.checkpoint_files(), made.checkpoint_files("int8"), made.checkpoint_files("float32")],
)
