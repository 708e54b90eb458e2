"""What a Hugging Face folder holds, checked before its weights are read; needs no torch."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine import hub_files
from engine.config import ModelConfig
from engine.hub_families import Family, family_of, shape_of
from engine.hub_files import CONFIG, Stored, stored_tensors
from engine.hub_layout import Shapes, Weight, our_shapes
from engine.hub_settings import Settings
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
class HubPlan:
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
    return plan_folder(Path(folder), context_length).found


def plan_folder(folder: Path, context_length: int | None) -> HubPlan:
    """What goes where in a folder, with everything checked but the numbers.

    Raises:
        ValueError: one sentence, if Loupe can't load it.
    """
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
    return HubPlan(found, weights, stored, shapes, copies)


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
    if missing := [weight for weight in weights if weight.theirs not in stored]:
        names = some([weight.theirs for weight in missing])
        headless = all(ours.startswith("head") for weight in missing for ours in weight.ours)
        masked = any(weight.ours[0].startswith("head_dense") for weight in weights)
        raise ValueError(say("no_head" if headless and masked else "weights_missing", names=names))
    known = wanted | {copy for copy, _ in copies} | set(family.copies.values())
    if extra := [name for name in stored if name not in known and not family.plays_no_part(name)]:
        raise ValueError(say("weights_extra", names=some(sorted(extra))))


def some(names: list[str]) -> str:
    """The first names, for a sentence."""
    return ", ".join(names[:3]) + (f" … ({len(names)})" if len(names) > 3 else "")


def _check_shapes(weights: list[Weight], stored: Mapping[str, Stored], shapes: Shapes) -> None:
    for weight in weights:
        shape, wanted = stored[weight.theirs].shape, weight.shape(shapes)
        if shape != wanted:
            raise ValueError(say("wrong_shape", tensor=weight.theirs, shape=shape, wanted=wanted))
