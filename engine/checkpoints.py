"""A trained model as a folder: weights in safetensors, the rest in one JSON file, each with its checksum.

Nothing here can run code from a file. A folder is written under a temporary name and then renamed, so that
whoever looks at any moment, also after a crash, finds the whole old one or the whole new one.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save as write_tensors
from torch import Tensor

from engine.checkpoint_files import (
    FORMAT,
    JSON,
    MODEL,
    OPTIMIZER,
    hash_json,
    read_description,
    read_file,
    read_weights,
    sealed,
    sha256,
    steadily,
)
from engine.compact import pack
from engine.config import ModelConfig, TrainConfig
from engine.folders import write_folder
from engine.hub_layout import our_shapes
from engine.model import Transformer
from engine.refused import broken_entry
from engine.setting_checks import is_number
from engine.tokenizers import Tokenizer, tokenizer_from_json
from engine.training import TrainState
from wording import words

say = words("engine.checkpoints")

LARGEST_TABLE = 100_000_000  # numbers in a table of positions that is computed, not learned
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
    folder.parent.mkdir(parents=True, exist_ok=True)
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
        "model_hash": hash_json(config),
        "train": None if train_config is None else train_config.to_json(),
        "tokenizer": checkpoint.tokenizer.to_json(),
        "tokenizer_hash": checkpoint.tokenizer.hash,
        "dtype": dtype,
        "files": {name: {"sha256": sha256(data), "bytes": len(data)} for name, data in files.items()},
        "generators": None
        if generators is None
        else {n: s.numpy().tobytes().hex() for n, s in generators.items()},
        "losses": list(checkpoint.losses),
        "info": checkpoint.info,
    }
    return sealed(content)


def load_checkpoint(folder: str | Path, device: str | torch.device = "cpu") -> Checkpoint:
    """Open a checkpoint folder; the weights come as float32.

    Raises:
        ValueError: one sentence, if anything is missing, damaged, foreign or doesn't fit together.
    """
    return steadily(Path(folder), lambda path: _load(path, device))


def _load(folder: Path, device: str | torch.device) -> Checkpoint:
    content = read_description(folder)
    try:
        if not is_number(content["step"]) or not all(map(is_number, content["losses"])):
            raise TypeError(content["step"])
        config = ModelConfig.from_json(content["model"])
        train_config = None if content["train"] is None else TrainConfig.from_json(content["train"])
        tokenizer = tokenizer_from_json(content["tokenizer"])
        generators = {n: _generator_state(s) for n, s in (content["generators"] or {}).items()} or None
        step, losses, info = (
            int(content["step"]),
            [float(x) for x in content["losses"]],
            dict(content["info"]),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(say("cant_opened", name=folder.name, why=_first_line(error))) from error
    _check_fit(folder, content, config, tokenizer)
    weights = read_weights(folder, content)
    _check_weights(config, weights, folder)  # before a model is made: a few digits ask for any memory
    model = Transformer(config, initial=False)
    model.load_state_dict({name: value.float() for name, value in weights.items()}, strict=False)
    optimizer = read_file(folder, OPTIMIZER, content) if OPTIMIZER in content["files"] else None
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


def _check_fit(folder: Path, content: dict[str, Any], config: ModelConfig, tokenizer: Tokenizer) -> None:
    if content.get("tokenizer_hash") != tokenizer.hash:
        raise ValueError(say("refused_tokenizer_not_one", name=folder.name, hash=tokenizer.hash))
    if content.get("model_hash") != hash_json(content["model"]):
        raise ValueError(say("refused_model_settings_not", name=folder.name))
    if content.get("seal") != hash_json({n: v for n, v in content.items() if n != "seal"}):
        raise ValueError(say("damaged_has_changed_since", name=folder.name, json=JSON))
    need = tokenizer.model_vocab_size(config.objective)
    if config.vocab_size != need:
        raise ValueError(say("refused_model_has_ids", name=folder.name, has=config.vocab_size, need=need))


def _check_weights(config: ModelConfig, tensors: dict[str, Tensor], folder: Path) -> None:
    """Refuse weights that are not those of such a model: every name, shape and number."""
    if config.n_layer > len(tensors):  # before names are made for each of them
        raise ValueError(say("doesnt_fit.blocks", name=folder.name, n=config.n_layer, has=len(tensors)))
    if config.positions != "learned" and config.context_length * config.d_model > LARGEST_TABLE:
        told = {"n": config.context_length, "most": LARGEST_TABLE // config.d_model}
        raise ValueError(say("refused_context", name=folder.name, **told))
    expected = our_shapes(config)
    if odd := sorted(set(tensors) ^ set(expected)):
        which = "lacks" if odd[0] in expected else "unknown"
        raise ValueError(say(f"doesnt_fit.{which}", name=folder.name, model=MODEL, tensor=odd[0]))
    for name, value in tensors.items():
        if tuple(value.shape) != expected[name]:
            raise ValueError(
                say(
                    "doesnt_fit_settings_has",
                    name=folder.name,
                    tensor=name,
                    shape=tuple(value.shape),
                    wanted=expected[name],
                )
            )
        if not value.is_floating_point() or not value.isfinite().all():
            raise ValueError(say("refused_holds_numbers_not", name=folder.name, file=name))


def _generator_state(text: str) -> Tensor:
    return torch.frombuffer(bytearray.fromhex(text), dtype=torch.uint8)


def _first_line(error: Exception) -> str:
    if isinstance(error, KeyError):
        return say("has_no_entry", json=JSON, error=error)
    return str(error).split("\n")[0] if type(error) is ValueError else broken_entry(error)
