"""Published models from a Hugging Face folder, as our own `Transformer`.

Only config.json, safetensors and tokenizer.json are read; nothing in the folder is run.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from engine import hub_files
from engine.checkpoints import Checkpoint
from engine.config import ModelConfig
from engine.hub_families import Family, family_of, shape_of
from engine.hub_files import CONFIG, Stored, read_tensor, stored_tensors
from engine.hub_layout import Shapes, Weight, our_shapes, unpacked
from engine.hub_settings import Settings
from engine.hub_tokenizer import load_tokenizer
from engine.model import Transformer
from wording import words

say = words("engine.hub")

MOST_WEIGHTS = 4_000_000_000  # 16 GB as float32


@dataclass(frozen=True, eq=False)
class HubFolder:
    """What a Hugging Face folder holds, before its weights are read.

    Attributes:
        folder: where.
        kind: its `model_type`.
        config: our settings of it.
        n_weights: numbers in the model; a tied head counts once.
        n_bytes: size of the files that hold them.
        settings: its config.json.
    """

    folder: Path
    kind: str
    config: ModelConfig
    n_weights: int
    n_bytes: int
    settings: Mapping[str, Any]

    @property
    def memory(self) -> int:
        """Bytes that the weights take once loaded, as float32."""
        return 4 * self.n_weights


@dataclass(frozen=True, eq=False)
class _Plan:
    """Which tensor of the files goes where."""

    found: HubFolder
    weights: list[Weight]
    stored: Mapping[str, Stored]
    shapes: Shapes
    copies: list[tuple[str, str]]


def look(folder: str | Path, *, context_length: int | None = None) -> HubFolder:
    """What a folder holds, with everything checked but the numbers; takes milliseconds.

    Raises:
        ValueError: one sentence, if Loupe can't load it.
    """
    return _plan(Path(folder), context_length).found


def load_model(folder: str | Path, *, context_length: int | None = None) -> Transformer:
    """The model in a folder, with float32 weights on the CPU.

    Args:
        folder: with config.json and model.safetensors, or an index and its shards.
        context_length: most tokens to read at once, of a model with rotary positions; None: at most
            `hub_families.LONGEST`.

    Raises:
        ValueError: one sentence, if the architecture is unknown, a weight is missing, left over, of the wrong
            shape or not finite, or the folder holds what can't be read safely.
    """
    return _filled(_plan(Path(folder), context_length))


def load_folder(
    folder: str | Path, *, device: str | torch.device = "cpu", context_length: int | None = None
) -> Checkpoint:
    """The model and the tokenizer in a folder.

    Raises:
        ValueError: one sentence, if either can't be loaded exactly, or they don't belong together.
    """
    plan = _plan(Path(folder), context_length)
    config = plan.found.config
    tokenizer = load_tokenizer(plan.found.folder, config.vocab_size)
    files = {stored.file for stored in plan.stored.values()}
    info = {"name": plan.found.folder.name, "source": "hub", "kind": plan.found.kind}
    return Checkpoint(
        model=_filled(plan).to(device),
        tokenizer=tokenizer,
        config=config,
        info=info,
        identity=hub_files.fingerprint([*files, plan.found.folder / CONFIG]),
    )


def _plan(folder: Path, context_length: int | None) -> _Plan:
    if not folder.is_dir():
        raise ValueError(say("no_folder", folder=folder.name, config=CONFIG))
    settings = hub_files.read_json(folder, CONFIG)
    family = family_of(settings)
    stored = _canonical(family, stored_tensors(folder))
    try:
        config = shape_of(settings, context_length)
    except ValueError as error:
        raise ValueError(say("cant_load", folder=folder.name, why=error)) from error
    if config.n_layer > len(stored):  # before names are made for each of them
        raise ValueError(say("blocks_without_weights", n_layer=config.n_layer, n=len(stored)))
    shapes = our_shapes(config)
    weights = list(family.weights(Settings(settings), config, shapes))
    if not config.tie_head:
        weights = [_untied(family, weight, stored) for weight in weights]
    copies = list(_copies(family, config, weights, stored))
    _check_names(family, weights, stored, copies)
    _check_shapes(weights, stored, shapes)
    n_weights = sum(_product(shape) for shape in shapes.values())
    if n_weights > MOST_WEIGHTS:
        raise ValueError(say("too_many_weights", n=n_weights, most=MOST_WEIGHTS))
    n_bytes = sum(file.stat().st_size for file in {one.file for one in stored.values()})
    found = HubFolder(folder, str(settings["model_type"]), config, n_weights, n_bytes, settings)
    return _Plan(found, weights, stored, shapes, copies)


def _product(shape: tuple[int, ...]) -> int:
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def _canonical(family: Family, stored: Mapping[str, Stored]) -> dict[str, Stored]:
    """The tensors by the names in the family's table."""
    found: dict[str, Stored] = {}
    for name, one in stored.items():
        if family.canonical(name) in found:
            raise ValueError(say("twice", tensor=name, other=found[family.canonical(name)].name))
        found[family.canonical(name)] = one
    return found


def _untied(family: Family, weight: Weight, stored: Mapping[str, Stored]) -> Weight:
    """The weight under the name of its copy, if the file has one: without tying, that is what counts."""
    copy = next((copy for copy, of in family.copies.items() if of == weight.theirs and copy in stored), None)
    return weight if copy is None else replace(weight, theirs=copy)


def _copies(
    family: Family, config: ModelConfig, weights: list[Weight], stored: Mapping[str, Stored]
) -> Iterator[tuple[str, str]]:
    """Pairs of names in the file that must hold the same numbers."""
    if config.tie_head:
        embedding = next(weight.theirs for weight in weights if weight.ours == ("embedding.weight",))
        pairs = {**family.copies, family.head: embedding}
        yield from ((copy, of) for copy, of in pairs.items() if copy in stored)


def _check_names(
    family: Family, weights: list[Weight], stored: Mapping[str, Stored], copies: list[tuple[str, str]]
) -> None:
    wanted = {weight.theirs for weight in weights}
    if missing := [weight.theirs for weight in weights if weight.theirs not in stored]:
        raise ValueError(say("weights_missing", names=_some(missing)))
    known = wanted | {copy for copy, _ in copies} | set(family.copies.values())
    if extra := [name for name in stored if name not in known and not family.plays_no_part(name)]:
        raise ValueError(say("weights_extra", names=_some(sorted(extra))))


def _some(names: list[str]) -> str:
    """The first names, for a sentence."""
    return ", ".join(names[:3]) + (f" … ({len(names)})" if len(names) > 3 else "")


def _check_shapes(weights: list[Weight], stored: Mapping[str, Stored], shapes: Shapes) -> None:
    for weight in weights:
        shape, wanted = stored[weight.theirs].shape, weight.shape(shapes)
        if shape != wanted:
            raise ValueError(say("wrong_shape", tensor=weight.theirs, shape=shape, wanted=wanted))


@torch.no_grad()
def _filled(plan: _Plan) -> Transformer:
    """The model with its weights, one tensor of the files in memory at a time."""
    model = Transformer(plan.found.config, initial=False)
    parameters = dict(model.named_parameters())
    left = set(plan.shapes)
    for weight in plan.weights:
        tensor = read_tensor(plan.stored[weight.theirs])
        for name, part in zip(
            weight.ours, unpacked(weight, tensor, plan.found.config, plan.shapes), strict=True
        ):
            if weight.layout == "added":
                parameters[name].add_(part)
            else:
                parameters[name].copy_(part)
                left.discard(name)
    for copy, of in plan.copies:
        if not torch.equal(read_tensor(plan.stored[copy]), read_tensor(plan.stored[of])):
            raise ValueError(say("copies_differ", tensor=copy, other=of))
    if left:  # a gap in the family's table
        raise ValueError(say("weights_missing", names=_some(sorted(left))))
    return model
