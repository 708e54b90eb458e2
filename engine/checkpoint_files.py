"""The files of a checkpoint: their names, the description with its checksums, the tensors; all checked."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from torch import Tensor

from engine.compact import unpack
from engine.folders import recover
from wording import words

say = words("engine.checkpoint_files")

FORMAT = 1
MODEL, OPTIMIZER, JSON = "model.safetensors", "optimizer.safetensors", "checkpoint.json"
EMBEDDING = "embedding.weight"
PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")
Read = TypeVar("Read")


def sealed(content: dict[str, Any]) -> bytes:
    """JSON with a checksum of itself, so that a damaged description is noticed too."""
    content = json.loads(json.dumps({name: value for name, value in content.items() if name != "seal"}))
    return json.dumps({**content, "seal": hash_json(content)}, indent=1, ensure_ascii=True).encode()


def sha256(data: bytes) -> str:
    """Checksum of a file."""
    return hashlib.sha256(data).hexdigest()


def hash_json(value: Any) -> str:
    """Short checksum of what JSON can hold; the order of names in it makes no difference."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def read_description(folder: Path) -> dict[str, Any]:
    """The JSON part of a checkpoint, checked to be ours and undamaged; the weights are not touched.

    Raises:
        ValueError: one sentence, if it is not.
    """
    if folder.suffix in PICKLES:
        raise ValueError(say("pickle_file_which_could", name=folder.name, model=MODEL, json=JSON))
    recover(folder)
    try:
        content = json.loads((folder / JSON).read_bytes())
    except OSError as error:
        raise ValueError(say("no_checkpoint_has_no", name=folder.name, json=JSON)) from error
    except (ValueError, RecursionError) as error:
        raise ValueError(say("damaged_not_valid_json", name=folder.name, json=JSON)) from error
    if not isinstance(content, dict) or content.get("kind") != "loupe-checkpoint":
        raise ValueError(say("not_one_loupes_checkpoints", name=folder.name, json=JSON))
    if content.get("format") != FORMAT:
        raise ValueError(
            say("has_format_version_reads", name=folder.name, found=content.get("format"), format=FORMAT)
        )
    files = content.get("files")
    if (
        not isinstance(files, dict)
        or MODEL not in files
        or not all(isinstance(f, dict) and "sha256" in f for f in files.values())
    ):
        raise ValueError(say("damaged_doesnt_list_checksum", name=folder.name, json=JSON, model=MODEL))
    return content


def read_file(folder: Path, name: str, content: dict[str, Any]) -> dict[str, Tensor]:
    """Tensors of one file, checked: the bytes that are hashed are the bytes that are read."""
    try:
        data = (folder / name).read_bytes()
    except OSError as error:
        raise ValueError(say("incomplete_missing_use_another", name=folder.name, file=name)) from error
    if sha256(data) not in (version["sha256"] for version in versions(content["files"][name])):
        raise ValueError(say("file_has_changed", name=folder.name, file=name))
    try:
        return read_tensors(data)
    except SafetensorError as error:
        raise ValueError(say("damaged_not_safetensors_file", name=folder.name, file=name)) from error


def versions(file: dict[str, Any]) -> list[dict[str, Any]]:
    """What a file may hold: what the description says, or what was there before, see `compact_checkpoint`."""
    before = file.get("before")
    return [file, before] if isinstance(before, dict) and "sha256" in before else [file]


def read_weights(folder: Path, content: dict[str, Any]) -> dict[str, Tensor]:
    """The model's weights by name, as floating-point numbers."""
    tensors = read_file(folder, MODEL, content)
    try:
        return unpack(tensors) if content.get("dtype") == "int8" else tensors
    except ValueError as error:
        raise ValueError(say("damaged_use_another_checkpoint", name=folder.name, error=error)) from error


def read_embedding(folder: str | Path) -> NDArray[np.float32]:
    """The token vectors (V,C) of a checkpoint alone, without building the model.

    Raises:
        ValueError: one sentence, if the checkpoint is missing or damaged.
    """
    return steadily(Path(folder), _embedding)


def _embedding(folder: Path) -> NDArray[np.float32]:
    weights = read_weights(folder, read_description(folder))
    if EMBEDDING not in weights:
        raise ValueError(say("damaged_has_no_tensor", name=folder.name, tensor=EMBEDDING))
    return np.asarray(weights[EMBEDDING].float().numpy())


def steadily(folder: Path, read: Callable[[Path], Read]) -> Read:
    """Read a checkpoint, once more if it changed meanwhile: a run makes its older moments small."""
    for _ in range(3):
        before = _description_bytes(folder)
        try:
            return read(folder)
        except ValueError:
            if _description_bytes(folder) == before:
                raise
    return read(folder)


def _description_bytes(folder: Path) -> bytes:
    try:
        return (folder / JSON).read_bytes()
    except OSError:
        return b""
