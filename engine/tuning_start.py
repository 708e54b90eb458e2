"""The model that a run starts from: what it is, whether it is still the same, and its copy in the run.

A small start is copied into the run, so that the run can always say what it was before. A large one is only
named, with the fingerprint of its weights: who moves it away can't start again from it or compare with it.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from engine.checkpoint_files import JSON, MODEL, read_description
from engine.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from engine.config import ModelConfig
from engine.hub import load_folder
from engine.hub_files import CONFIG, fingerprint, weight_files
from engine.hub_plan import look
from engine.hub_tokenizer import load_tokenizer
from engine.parameter_parts import parameter_count
from engine.tokenizers import Tokenizer, tokenizer_from_json
from wording import words

say = words("engine.tuning_start")

SMALL = 20_000_000  # numbers of a start that is copied into the run, 80 MB
FOLDER = "start"  # of the copy, in the run's folder


@dataclass(frozen=True)
class Start:
    """The model that a run starts from.

    Attributes:
        folder: where it lies.
        kind: "checkpoint" of ours, shipped or of a run, or "hub" for a published folder.
        name: for people.
        identity: of its weights, as `Checkpoint.identity` says it once they are loaded.
    """

    folder: str
    kind: str
    name: str
    identity: str


@dataclass(frozen=True, eq=False)
class StartModel:
    """What is known of a start before its weights are read.

    Attributes:
        start: with the fingerprint of its weights as they are now.
        model: its shape, which a run that starts from it must have.
        tokenizer: its vocabulary, likewise.
        n_parameters: numbers in it; a tied head counts once.
    """

    start: Start
    model: ModelConfig
    tokenizer: Tokenizer
    n_parameters: int

    @property
    def large(self) -> bool:
        """Whether a run only names it, keeps few checkpoints, and no moments."""
        return is_large(self.model)


def is_large(model: ModelConfig) -> bool:
    """Whether a model of this shape is too large to be copied into every run."""
    return parameter_count(model) > SMALL


def describe(folder: str | Path, kind: str, name: str) -> StartModel:
    """A model as the start of a run.

    Args:
        folder: of a checkpoint, or a published folder.
        kind: "checkpoint" or "hub".
        name: for people.

    Raises:
        ValueError: one sentence, if there is no such model, or it can't be loaded.
    """
    folder = Path(folder).absolute()
    if kind == "hub":
        model, tokenizer, identity = _published(folder)
    elif kind == "checkpoint":
        content = read_description(folder)
        model = ModelConfig.from_json(content["model"])
        tokenizer = tokenizer_from_json(content["tokenizer"])
        identity = _identity(content.get("info"), content["files"][MODEL]["sha256"][:16])
    else:
        raise ValueError(say("kind", kind=kind))
    return StartModel(Start(str(folder), kind, name, identity), model, tokenizer, parameter_count(model))


def _published(folder: Path) -> tuple[ModelConfig, Tokenizer, str]:
    model = look(folder).config
    files = sorted([*weight_files(folder), folder / CONFIG])
    marks = tuple((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files)
    return model, load_tokenizer(folder, model.vocab_size), _fingerprint(marks)


@lru_cache(maxsize=16)
def _fingerprint(marks: tuple[tuple[str, int, int], ...]) -> str:
    """Of files with these names, sizes and times: large ones take a second to read."""
    return fingerprint(Path(name) for name, _, _ in marks)


def check_start(start: Start, model: ModelConfig, tokenizer: Tokenizer) -> None:
    """Refuse a run whose start is gone, has changed, or is another model than the run's.

    Raises:
        ValueError: one sentence.
    """
    found = describe(start.folder, start.kind, start.name)
    if found.start.identity != start.identity:
        raise ValueError(say("changed", name=start.name))
    if found.model != model or found.tokenizer.hash != tokenizer.hash:
        raise ValueError(say("another_shape", name=start.name))


def open_start(start: Start) -> Checkpoint:
    """The model itself, with float32 weights on the CPU.

    Raises:
        ValueError: one sentence, if it is gone, damaged or not the one that it was.
    """
    folder = Path(start.folder)
    if not start.folder or not folder.is_dir():
        raise ValueError(say("gone", name=start.name, folder=start.folder))
    checkpoint = load_folder(folder) if start.kind == "hub" else load_checkpoint(folder)
    if _identity(checkpoint.info, checkpoint.identity) != start.identity:
        raise ValueError(say("changed", name=start.name))
    return checkpoint


def _identity(info: Any, weights: str) -> str:
    """Fingerprint of a model: of its weights, or for a copy in a run that of what was copied."""
    copied = info.get("start") if isinstance(info, dict) else None
    return str(copied["identity"]) if isinstance(copied, dict) and "identity" in copied else weights


# ---- in a run's folder


def copy_start(run_folder: Path, start: Start) -> None:
    """Keep a copy of a start in a run, unless it is large; the numbers are the same."""
    checkpoint = open_start(start)
    if is_large(checkpoint.model.config):
        return
    dtype: Literal["float16", "float32"] = "float16" if checkpoint.dtype == "float16" else "float32"
    about = {**checkpoint.info, "start": {"name": start.name, "identity": start.identity}}
    alone = replace(checkpoint, optimizer_state=None, generator_states=None, train_config=None, info=about)
    save_checkpoint(run_folder / FOLDER, alone, dtype=dtype)


def start_of_run(run_folder: Path, settings: dict[str, Any]) -> Checkpoint | None:
    """The model that a run started from, None if it began with new weights.

    Args:
        run_folder: of the run.
        settings: its run.json.

    Raises:
        ValueError: one sentence, if it was large and is gone by now.
    """
    about = settings.get("start")
    if not isinstance(about, dict):
        return None
    return open_start(kept_start(run_folder, about))


def kept_start(run_folder: Path, about: dict[str, Any]) -> Start:
    """The start of a run: its copy, or where it lay when the run was made; `about` is of its run.json."""
    name, identity = str(about["name"]), str(about["identity"])
    if (run_folder / FOLDER / JSON).exists():
        return Start(str(run_folder / FOLDER), "checkpoint", name, identity)
    return Start(str(about.get("folder", "")), str(about["kind"]), name, identity)
