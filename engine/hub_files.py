"""The files of a Hugging Face folder: what may be read, and the tensors by name without reading them.

Only JSON and safetensors are opened. Nothing outside the folder is read, whatever a file in it says.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from wording import words

if TYPE_CHECKING:  # 1.5 s that a list of models does not wait for
    from torch import Tensor

say = words("engine.hub")

CONFIG, SINGLE, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
MOST_JSON = 64_000_000  # bytes of a JSON file; the largest known tokenizer.json has 35 million
MOST_SHARDS = 1000
_SHARD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\.safetensors")
_OTHERS = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack")
_NUMBERS = {"F16", "BF16", "F32", "F64"}


@dataclass(frozen=True)
class Stored:
    """A tensor in a file: where it is, and its shape, but not its numbers."""

    file: Path
    name: str
    shape: tuple[int, ...]
    kind: str


def inside(folder: Path, name: str) -> Path:
    """The file of this name in the folder, also through a link, as long as that stays in the folder.

    The hub's own cache keeps a model's files in `blobs` beside the folder of links `snapshots/<version>`:
    there a link may lead into the same model's `blobs`.

    Raises:
        ValueError: if the name or a link leads out of the folder, or it is no file.
    """
    path = folder / name
    found, root = Path(os.path.realpath(path)), folder.resolve()  # `resolve` can't stand a link to itself
    cached = root.parent.name == "snapshots" and root.parents[1].name.startswith("models--")
    roots = [root, root.parents[1] / "blobs"] if cached else [root]
    if not any(found.is_relative_to(allowed) for allowed in roots):
        raise ValueError(say("link_leads_out", folder=folder.name, file=name))
    if not found.is_file():
        raise ValueError(say("no_file", folder=folder.name, file=name))
    return found


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """A JSON object of the folder.

    Raises:
        ValueError: one sentence, if it is not there, too large, or not a JSON object.
    """
    path = inside(folder, name)
    size = path.stat().st_size
    if size > MOST_JSON:
        raise ValueError(say("json_too_large", folder=folder.name, file=name, n=size, most=MOST_JSON))
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(say("not_json", folder=folder.name, file=name)) from error
    if not isinstance(content, dict):
        raise ValueError(say("not_json", folder=folder.name, file=name))
    return content


def weight_files(folder: Path) -> dict[Path, set[str] | None]:
    """The files that hold the weights, each with the names that the index promises; None without an index.

    Raises:
        ValueError: if there are none, only pickles, or an index that names paths or is damaged.
    """
    if (folder / SINGLE).exists() or (folder / SINGLE).is_symlink():
        return {inside(folder, SINGLE): None}
    if not (folder / INDEX).exists():
        others = sorted(path.name for path in folder.iterdir() if path.suffix in _OTHERS)
        if others:
            raise ValueError(say("only_pickle", folder=folder.name, file=others[0], wanted=SINGLE))
        raise ValueError(say("no_weights", folder=folder.name, wanted=SINGLE))
    places = read_json(folder, INDEX).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise ValueError(say("index_damaged", folder=folder.name, file=INDEX))
    promised: dict[str, set[str]] = {}
    for name, shard in places.items():
        if not isinstance(shard, str) or not _SHARD.fullmatch(shard):
            raise ValueError(say("shard_name", folder=folder.name, file=INDEX, shard=str(shard)[:200]))
        promised.setdefault(shard, set()).add(name)
    if len(promised) > MOST_SHARDS:
        raise ValueError(say("index_damaged", folder=folder.name, file=INDEX))
    return {inside(folder, shard): names for shard, names in promised.items()}


def stored_tensors(folder: Path) -> dict[str, Stored]:
    """Every tensor of the folder by its name; only the files' headers are read.

    Raises:
        ValueError: if a file is damaged, or holds other tensors than the index says.
    """
    found: dict[str, Stored] = {}
    for file, promised in weight_files(folder).items():
        try:
            with safe_open(file, framework="numpy") as opened:
                names = list(opened.keys())
                slices = {name: opened.get_slice(name) for name in names}
                here = {
                    name: Stored(file, name, tuple(part.get_shape()), part.get_dtype())
                    for name, part in slices.items()
                }
        except (SafetensorError, OSError) as error:
            raise ValueError(say("not_safetensors", folder=folder.name, file=file.name)) from error
        if promised is not None and (odd := sorted(promised ^ here.keys())):
            which = "absent" if odd[0] in promised else "unlisted"
            raise ValueError(say(f"index_lies.{which}", folder=folder.name, file=file.name, tensor=odd[0]))
        found |= here
    return found


def read_tensor(stored: Stored) -> "Tensor":
    """The numbers of one tensor, as wide as they are stored; not checked for being finite.

    Raises:
        ValueError: if they are no plain floating-point numbers.
    """
    if stored.kind not in _NUMBERS:
        raise ValueError(say("kind_of_numbers", tensor=stored.name, kind=stored.kind))
    try:
        with safe_open(stored.file, framework="pt") as opened:
            tensor: Tensor = opened.get_tensor(stored.name)
    except (SafetensorError, OSError) as error:
        folder = stored.file.parent.name
        raise ValueError(say("not_safetensors", folder=folder, file=stored.file.name)) from error
    return tensor


def fingerprint(files: Iterable[Path]) -> str:
    """Short sha256 of some files, whatever their names."""
    sums = []
    for path in files:
        with open(path, "rb") as file:
            sums.append(hashlib.file_digest(file, "sha256").hexdigest())
    return hashlib.sha256("".join(sorted(sums)).encode()).hexdigest()[:16]
