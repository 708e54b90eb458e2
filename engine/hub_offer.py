"""What a model on the Hugging Face hub would bring: which of its files, how large, and whether it fits here.

Only the names in `wanted` are ever fetched; nothing that could run a program is among them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.hub_files import CONFIG, INDEX, MOST_JSON, SINGLE
from engine.hub_plan import MOST_WEIGHTS
from engine.hub_tokenizer import TOKENIZER
from engine.memory import free_disk, memory
from engine.parameter_parts import memory_bytes
from wording import words

say = words("engine.hub_offer")

SPARE_DISK = 500_000_000  # bytes that stay free
MOST_FILES = 200
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_PREFIXES = ("https://huggingface.co/", "http://huggingface.co/", "huggingface.co/", "hf.co/")
_SMALL = ("special_tokens_map.json", "LICENSE", "LICENSE.txt", "LICENSE.md", "README.md")
_TOKENIZER = re.compile(r"tokenizer[A-Za-z0-9_-]{0,40}\.json")
_SHARD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\.safetensors")


class HubError(Exception):
    """What went wrong, by a short name, and its details; the sentence is made by whoever reads it."""

    def __init__(self, kind: str, **details: object) -> None:
        super().__init__(kind)
        self.kind, self.details = kind, details


@dataclass(frozen=True)
class RemoteFile:
    """A file on the hub: its size, and its sha256 if the hub tells (it does of large ones)."""

    name: str
    size: int
    sha256: str = ""


@dataclass(frozen=True)
class Offer:
    """A model on the hub, before it is fetched.

    Attributes:
        name: "owner/name".
        revision: the exact version, 40 hexadecimal digits.
        licence: as its owner states it; "" if not.
        files: that would be fetched.
        n_weights: numbers in it; 0 if Loupe doesn't know its architecture.
        kind: its `model_type`.
        refused: why Loupe can't load it, one sentence; "" if it can, as far as config.json tells.
    """

    name: str
    revision: str
    licence: str
    files: tuple[RemoteFile, ...]
    n_weights: int
    kind: str
    refused: str = ""

    @property
    def n_bytes(self) -> int:
        """Size of all its files."""
        return sum(file.size for file in self.files)

    @property
    def memory(self) -> int:
        """Bytes that the weights take once loaded, as float32."""
        return memory_bytes(self.n_weights)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Offer":
        """From what `to_json` gave."""
        return cls(**{**content, "files": tuple(RemoteFile(**file) for file in content["files"])})


def checked_repo(typed: str) -> str:
    """The "owner/name" that somebody typed; the address of its page will do.

    Raises:
        ValueError: if it is none.

    >>> checked_repo(" https://huggingface.co/roneneldan/TinyStories-1M ")
    'roneneldan/TinyStories-1M'
    """
    name = typed.strip()
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    name = name.rstrip("/")
    parts = name.split("/")
    good = all(len(part) <= 96 and _NAME.fullmatch(part) and "--" not in part for part in parts)
    if len(parts) != 2 or not good:
        raise ValueError(say("no_name", typed=typed.strip()[:80]))
    return name


def folder_name(name: str) -> str:
    """The folder that a model "owner/name" gets."""
    return name.split("/")[1]


def wanted(files: Iterable[tuple[str, int | None, str]]) -> tuple[RemoteFile, ...]:
    """Of all files of a model, each name, size and sha256, those that are fetched.

    Raises:
        HubError: if it has no weights as safetensors, no tokenizer.json, or files of unknown size.
    """
    by_name = {name: (size, sha) for name, size, sha in files}
    if CONFIG not in by_name:
        raise HubError("file_missing", file=CONFIG)
    weights = [SINGLE] if SINGLE in by_name else [name for name in by_name if _SHARD.fullmatch(name)]
    if SINGLE not in by_name and (INDEX not in by_name or not weights):
        raise HubError("no_safetensors", wanted=SINGLE)
    if TOKENIZER not in by_name:
        raise HubError("file_missing", file=TOKENIZER)
    index = [] if SINGLE in by_name else [INDEX]
    small = [name for name in by_name if name in _SMALL or _TOKENIZER.fullmatch(name)]
    names = [CONFIG, *sorted(small), *index, *sorted(weights)]
    if len(names) > MOST_FILES:
        raise HubError("too_many_files", n=len(names), most=MOST_FILES)
    found = [RemoteFile(name, by_name[name][0] or 0, by_name[name][1]) for name in names]
    for file in found:
        if file.size <= 0:
            raise HubError("no_size", file=file.name)
        if file.size > MOST_JSON and not file.name.endswith(".safetensors"):
            raise HubError("too_long", file=file.name, n=file.size, most=MOST_JSON)
    return tuple(found)


def check_room(offer: Offer, models: Path, there: int = 0) -> None:
    """See whether a model fits onto the disk and into memory.

    Args:
        offer: what it needs.
        models: where it goes.
        there: bytes that have come before.

    Raises:
        HubError: if it doesn't, with the numbers.
    """
    if offer.n_weights > MOST_WEIGHTS:
        raise HubError("too_many_weights", n=offer.n_weights, most=MOST_WEIGHTS)
    need, free = offer.n_bytes - there + SPARE_DISK, free_disk(models)
    if need > free:
        raise HubError("no_disk", need=need / 1e6, free=free / 1e6)
    total = memory().total
    if total is not None and offer.memory > total:
        raise HubError("no_memory", need=offer.memory / 1e6, total=total / 1e6)


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder and below."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
