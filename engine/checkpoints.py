"""A trained model as a folder: weights in safetensors, the rest in one JSON file, each with its checksum.

Nothing here can run code from a file. A folder is written under a temporary name and then renamed, so that
whoever looks at any moment, also after a crash, finds the whole old one or the whole new one.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors
from torch import Tensor

from engine.compact import pack, unpack
from engine.config import ModelConfig, TrainConfig
from engine.folders import checked_name as checked_name
from engine.folders import recover, write_file, write_folder
from engine.model import Transformer
from engine.tokenizers import Tokenizer, tokenizer_from_json
from engine.training import TrainState
from wording import words

say = words("engine.checkpoints")

FORMAT = 1
MODEL, OPTIMIZER, JSON = "model.safetensors", "optimizer.safetensors", "checkpoint.json"
SMALL = ".model.8bit"  # weights that are about to take the place of the model's file
EMBEDDING = "embedding.weight"
PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")
Read = TypeVar("Read")
_DTYPES = {"float32": torch.float32, "float16": torch.float16}


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model at one moment, and what is needed to use it or to train it on.

    Attributes:
        config: of the model; None on saving means the model's own.
        optimizer_state, generator_states: None in a file that holds weights only.
        losses: running sum and number since the last evaluation, part of an exact resume.
        info: plain JSON values for people: name, corpus, losses, device …
        identity: short sha256 of the weights file, to tell models apart in caches; "" before it was saved.
        dtype: in which the weights were stored.
    """

    model: Transformer
    tokenizer: Tokenizer
    config: ModelConfig | None = None
    step: int = 0
    train_config: TrainConfig | None = None
    optimizer_state: dict[str, Tensor] | None = None
    generator_states: dict[str, Tensor] | None = None
    losses: list[float] = field(default_factory=lambda: [0.0, 0.0])
    info: dict[str, Any] = field(default_factory=dict)
    identity: str = ""
    dtype: str = "float32"

    def train_state(self) -> TrainState:
        """What `training.train` takes as `resume`."""
        return TrainState(
            step=self.step,
            model=self.model.state_dict(),
            optimizer=self.optimizer_state,
            generators=self.generator_states,
            losses=list(self.losses),
        )


def model_tensors(model: Transformer) -> dict[str, Tensor]:
    """The model's weights by name, contiguous on the CPU; a tied head is the embedding and is left out."""
    state = model.state_dict()
    if model.config.tie_head:
        state.pop("head.weight", None)
    return {name: value.detach().cpu().contiguous() for name, value in state.items()}


def save_checkpoint(
    folder: str | Path, checkpoint: Checkpoint, *, dtype: Literal["float32", "float16", "int8"] = "float32"
) -> None:
    """Write a checkpoint folder at once or not at all; one that is there is replaced.

    Args:
        folder: its parent is made if need be.
        checkpoint: what to write.
        dtype: how the weights are stored. They are float32 again when loaded; float16 halves the file and
            rounds, int8 quarters it and rounds more, see `engine.compact`.

    Raises:
        ValueError: if a weight is not finite, or too large for float16.
    """
    folder = Path(folder)
    tensors = model_tensors(checkpoint.model)
    if dtype != "int8":
        tensors = {name: value.to(_DTYPES[dtype]) for name, value in tensors.items()}
    bad = [name for name, value in tensors.items() if not value.isfinite().all()]
    if bad:
        raise ValueError(say("weights_not_finite_model", name=bad[0], dtype=dtype))
    files = {MODEL: write_tensors(pack(tensors) if dtype == "int8" else tensors)}
    if checkpoint.optimizer_state:
        files[OPTIMIZER] = write_tensors(
            {n: t.detach().cpu().contiguous() for n, t in checkpoint.optimizer_state.items()}
        )
    files[JSON] = _description(checkpoint, files, dtype)
    write_folder(folder, files)


def _description(checkpoint: Checkpoint, files: Mapping[str, bytes], dtype: str) -> bytes:
    config, train_config = checkpoint.model.config.to_json(), checkpoint.train_config
    generators = checkpoint.generator_states
    content = {
        "format": FORMAT,
        "kind": "loupe-checkpoint",
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "step": checkpoint.step,
        "model": config,
        "model_hash": _hash_json(config),
        "train": None if train_config is None else train_config.to_json(),
        "tokenizer": checkpoint.tokenizer.to_json(),
        "tokenizer_hash": checkpoint.tokenizer.hash,
        "dtype": dtype,
        "files": {name: {"sha256": _sha256(data), "bytes": len(data)} for name, data in files.items()},
        "generators": None
        if generators is None
        else {n: s.numpy().tobytes().hex() for n, s in generators.items()},
        "losses": list(checkpoint.losses),
        "info": checkpoint.info,
    }
    return _sealed(content)


def _sealed(content: dict[str, Any]) -> bytes:
    """JSON with a checksum of itself, so that a damaged description is noticed too."""
    content = json.loads(json.dumps({name: value for name, value in content.items() if name != "seal"}))
    return json.dumps({**content, "seal": _hash_json(content)}, indent=1, ensure_ascii=True).encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _hash_json(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def load_checkpoint(folder: str | Path, device: str | torch.device = "cpu") -> Checkpoint:
    """Open a checkpoint folder; the weights come as float32.

    Raises:
        ValueError: one sentence, if anything is missing, damaged, foreign or doesn't fit together.
    """
    return _steadily(Path(folder), lambda path: _load(path, device))


def _steadily(folder: Path, read: Callable[[Path], Read]) -> Read:
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


def _load(folder: Path, device: str | torch.device) -> Checkpoint:
    content = read_description(folder)
    try:
        config = ModelConfig.from_json(content["model"])
        train_config = None if content["train"] is None else TrainConfig.from_json(content["train"])
        tokenizer = tokenizer_from_json(content["tokenizer"])
        generators = {n: _generator_state(s) for n, s in (content["generators"] or {}).items()} or None
        step, losses, info = (
            int(content["step"]),
            [float(x) for x in content["losses"]],
            dict(content["info"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(say("cant_opened", name=folder.name, why=_first_line(error))) from error
    _check_fit(folder, content, config, tokenizer)
    model = Transformer(config)
    _fill(model, _weights(folder, content), folder)
    optimizer = _tensors(folder, OPTIMIZER, content) if OPTIMIZER in content["files"] else None
    return Checkpoint(
        model=model.to(device),
        tokenizer=tokenizer,
        config=config,
        step=step,
        train_config=train_config,
        optimizer_state=optimizer,
        generator_states=generators,
        losses=losses,
        info=info,
        identity=content["files"][MODEL]["sha256"][:16],
        dtype=str(content.get("dtype", "float32")),
    )


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
    except ValueError as error:
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


def _check_fit(folder: Path, content: dict[str, Any], config: ModelConfig, tokenizer: Tokenizer) -> None:
    if content.get("tokenizer_hash") != tokenizer.hash:
        raise ValueError(say("refused_tokenizer_not_one", name=folder.name, hash=tokenizer.hash))
    if content.get("model_hash") != _hash_json(content["model"]):
        raise ValueError(say("refused_model_settings_not", name=folder.name))
    if content.get("seal") != _hash_json({n: v for n, v in content.items() if n != "seal"}):
        raise ValueError(say("damaged_has_changed_since", name=folder.name, json=JSON))
    need = tokenizer.model_vocab_size(config.objective)
    if config.vocab_size != need:
        raise ValueError(say("refused_model_has_ids", name=folder.name, has=config.vocab_size, need=need))


def _tensors(folder: Path, name: str, content: dict[str, Any]) -> dict[str, Tensor]:
    """Tensors of one file, checked: the bytes that are hashed are the bytes that are read."""
    try:
        data = (folder / name).read_bytes()
    except OSError as error:
        raise ValueError(say("incomplete_missing_use_another", name=folder.name, file=name)) from error
    if _sha256(data) not in (version["sha256"] for version in _versions(content["files"][name])):
        raise ValueError(say("damaged_has_changed_since_2", name=folder.name, file=name))
    try:
        return read_tensors(data)
    except SafetensorError as error:
        raise ValueError(say("damaged_not_safetensors_file", name=folder.name, file=name)) from error


def _versions(file: dict[str, Any]) -> list[dict[str, Any]]:
    """What a file may hold: what the description says, or what was there before, see `compact_checkpoint`."""
    before = file.get("before")
    return [file, before] if isinstance(before, dict) and "sha256" in before else [file]


def _weights(folder: Path, content: dict[str, Any]) -> dict[str, Tensor]:
    """The model's weights by name, as floating-point numbers."""
    tensors = _tensors(folder, MODEL, content)
    try:
        return unpack(tensors) if content.get("dtype") == "int8" else tensors
    except ValueError as error:
        raise ValueError(say("damaged_use_another_checkpoint", name=folder.name, error=error)) from error


def read_embedding(folder: str | Path) -> NDArray[np.float32]:
    """The token vectors (V,C) of a checkpoint alone, without building the model.

    Raises:
        ValueError: one sentence, if the checkpoint is missing or damaged.
    """
    return _steadily(Path(folder), _embedding)


def _embedding(folder: Path) -> NDArray[np.float32]:
    weights = _weights(folder, read_description(folder))
    if EMBEDDING not in weights:
        raise ValueError(say("damaged_has_no_tensor", name=folder.name, tensor=EMBEDDING))
    return np.asarray(weights[EMBEDDING].float().numpy())


def _fill(model: Transformer, tensors: dict[str, Tensor], folder: Path) -> None:
    """Copy weights into a model after checking every name, shape and number."""
    expected = {name: value.shape for name, value in model_tensors(model).items()}
    if odd := sorted(set(tensors) ^ set(expected)):
        which = "lacks" if odd[0] in expected else "unknown"
        raise ValueError(say(f"doesnt_fit.{which}", name=folder.name, model=MODEL, tensor=odd[0]))
    for name, value in tensors.items():
        if value.shape != expected[name]:
            raise ValueError(
                say(
                    "doesnt_fit_settings_has",
                    name=folder.name,
                    tensor=name,
                    shape=tuple(value.shape),
                    wanted=tuple(expected[name]),
                )
            )
        if not value.is_floating_point() or not value.isfinite().all():
            raise ValueError(say("refused_holds_numbers_not", name=folder.name, file=name))
    model.load_state_dict({name: value.float() for name, value in tensors.items()}, strict=False)


def _generator_state(text: str) -> Tensor:
    return torch.frombuffer(bytearray.fromhex(text), dtype=torch.uint8)


def _first_line(error: Exception) -> str:
    if isinstance(error, KeyError):
        return say("has_no_entry", json=JSON, error=error)
    return str(error).split("\n")[0]


def list_checkpoints(run_folder: str | Path) -> list[tuple[int, Path]]:
    """Checkpoints of a run as (step, folder), oldest first.

    Only complete ones: their description is readable and the files are there in full length. Checksums are
    left to `load_checkpoint`, since reading all weights takes time.
    """
    parent = Path(run_folder) / "checkpoints"
    found = []
    if not parent.is_dir():
        return []
    for aside in parent.glob(".*.old"):
        recover(parent / aside.name[1:-4])
    for path in parent.iterdir():
        if path.name.isdigit() and _complete(path):
            found.append((int(path.name), path))
    return sorted(found)


def newest_checkpoint(run_folder: str | Path) -> tuple[int, Path] | None:
    """The last of `list_checkpoints`, without reading what all the others say of themselves."""
    parent = Path(run_folder) / "checkpoints"
    if not parent.is_dir():
        return None
    for path in sorted((p for p in parent.iterdir() if p.name.isdigit()), key=lambda p: -int(p.name)):
        if _complete(path):
            return int(path.name), path
    return None


def _complete(folder: Path) -> bool:
    try:
        files = read_description(folder)["files"]
        return all(
            (folder / name).stat().st_size in [version.get("bytes") for version in _versions(file)]
            for name, file in files.items()
            if name in (MODEL, OPTIMIZER)
        )
    except (ValueError, OSError):
        return False


def compact_checkpoint(folder: Path) -> None:
    """Rewrite a checkpoint in 8 bits and without optimizer, about a twelfth of its size.

    Whoever reads or dies meanwhile finds a whole one: the description names old and new weights while the
    file of the one is replaced by that of the other.

    Raises:
        ValueError: if it is damaged; then it is left as it is.
        OSError: if there is no room; then too.
    """
    content = read_description(folder)
    if content["dtype"] != "int8":
        old = {"dtype": content["dtype"], **content["files"][MODEL]}
        tensors = {name: value.float() for name, value in _tensors(folder, MODEL, content).items()}
        data = write_tensors(pack(tensors))
        write_file(folder / SMALL, data)
        content["files"].pop(OPTIMIZER, None)
        content["files"][MODEL] = {"sha256": _sha256(data), "bytes": len(data), "before": old}
        content |= {"dtype": "int8", "generators": None}
        write_file(folder / JSON, _sealed(content))
    if (folder / SMALL).exists():  # also one that was left when a process died here
        os.replace(folder / SMALL, folder / MODEL)
    for leftover in (folder / OPTIMIZER, *folder.glob(".*")):
        leftover.unlink(missing_ok=True)
