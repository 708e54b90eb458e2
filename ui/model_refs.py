"""Which models there are: shipped ones, published ones that were brought here, and a person's own runs.

All this is read from small files and headers; no weights are read and no torch is loaded.
"""

import hashlib
import json
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from safetensors import safe_open

from engine.config import ModelConfig
from engine.tokens import repair_text
from engine.trace_size import window_length
from ui import model_shelf, resources
from ui.resources import DESCRIPTION
from wording import words

say = words("ui.model_refs")
PRETRAINED = Path(__file__).parent.parent / "pretrained"
LARGE = 20_000_000  # parameters above which only few models are held at once, see `ui.model_shelf`


@dataclass(frozen=True)
class ModelRef:
    """A model that can be chosen; cheap to make, and the key of everything computed from it.

    Attributes:
        id: "stories-clm" for a shipped model, "run:<run id>" for one of a person's runs, "hub:<folder>" for a
            published one.
        name: its name as a person sees it; may hold any characters.
        kind: "shipped", "run" or "hub".
        folder: of the checkpoint.
        identity: changes when the weights do.
        objective: "clm" or "mlm".
        n_params: numbers that were learned.
        step: optimizer steps done.
        context_length: most tokens that it sees.
        window_length: most tokens that pictures of its inside read at once, see `engine.trace_size`.
        corpus: kind of text it learned from: "stories" or another, see `engine.corpus`; "" if unknown.
        dtype: how its weights are kept; "int8" are rounded.
        device: where it is to compute: "auto" or one of `engine.devices`.
        bits: of its matrices in memory: 32, or 8 where a person lets a large model write so, see
            `ui.writing_weights`.
    """

    id: str
    name: str
    kind: str
    folder: str
    identity: str
    objective: str
    n_params: int
    step: int
    context_length: int
    window_length: int
    corpus: str
    dtype: str = "float32"
    device: str = "auto"
    bits: int = 32

    @property
    def label(self) -> str:
        """As the picker shows it: no number in it changes while a run goes on."""
        return say("own_run", name=self.name, end=self.id[-4:]) if self.kind == "run" else self.name

    @property
    def choice(self) -> str:
        """The same with a word or two on what a shipped one has learned, for lists to choose from."""
        about = say.table("about").get(self.id, "") if self.kind == "shipped" else ""
        return f"{self.label} · {about}" if about else self.label

    @property
    def jump(self) -> int:
        """How many tokens it forgets at once past its context, see `engine.view.first_seen`.

        To read the whole context for every token, as small models do, would take a large one many seconds.
        """
        return max(1, self.context_length // 4) if self.large else 1

    @property
    def large(self) -> bool:
        """Whether only a few such models are held at once."""
        return self.n_params > LARGE


def shipped_models() -> list[ModelRef]:
    """The models that come with the app, the causal one of the stories first. Empty if their folder is."""
    folders = [path.parent for path in PRETRAINED.glob(f"*/{DESCRIPTION}")]
    refs = [_ref(folder.name, folder.name, "shipped", folder) for folder in folders]
    return sorted(
        (ref for ref in refs if ref), key=lambda ref: (ref.corpus != "stories", ref.objective, ref.id)
    )


def available_models(owner: str) -> list[ModelRef]:
    """What a person can choose: the shipped models, published ones, then their own runs, newest first.

    Each with the device that this person chose for it.
    """
    found = [*shipped_models(), *hub_models(), *_models_of(owner)]
    return [replace(ref, device=model_shelf.device_of(owner, ref.id)) for ref in found]


def models_folder() -> Path:
    """Where published models lie, a folder for each."""
    return resources.home() / "models"


def hub_models() -> list[ModelRef]:
    """The published models in the models folder that can be opened, by name."""
    return [ref for ref in map(hub_model, model_folders()) if ref]


def model_folders() -> list[Path]:
    """All folders in the models folder, by name; hidden ones are not models."""
    return sorted(path for path in models_folder().glob("[!.]*") if path.is_dir())


def hub_model(folder: Path) -> ModelRef | None:
    """The published model in a folder; None if it can't be opened: `engine.hub_plan.look` says why."""
    if repair_text(folder.name)[1] or not (folder / "tokenizer.json").is_file():
        return (
            None  # a name that is no text can't stand on a screen, and without its words a model says nothing
        )
    try:
        stamp = tuple(
            (path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in _model_files(folder)
        )
        summary = _hub_summary(str(folder), stamp)
    except (OSError, ValueError):
        return None
    name = folder.name
    return ModelRef(id=f"hub:{name}", name=name, kind="hub", folder=str(folder), corpus="", **summary)


def _model_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in (".json", ".safetensors"))


@lru_cache(maxsize=64)
def _hub_summary(folder: str, stamp: tuple[tuple[str, int, int], ...]) -> dict[str, Any]:
    """What a `ModelRef` says of a published model, from its files' headers alone; loads no torch."""
    from engine.hub_plan import look

    found = look(folder)
    return {
        "identity": hashlib.sha256(repr(stamp).encode()).hexdigest()[:16],
        "objective": found.config.objective,
        "context_length": found.config.context_length,
        "window_length": window_length(found.config),
        "step": 0,
        "n_params": found.n_weights,
    }


def _models_of(owner: str) -> list[ModelRef]:
    if not (resources.home() / "runs").is_dir():
        return []
    store, refs = resources.run_store(), []
    for info in store.list(owner):
        folder = store.latest_checkpoint(info.id) if info.has_checkpoint else None
        ref = folder and _ref(f"run:{info.id}", info.name, "run", folder, str(info.corpus["kind"]))
        refs += [ref] if ref else []
    return refs


def _ref(model_id: str, name: str, kind: str, folder: Path, corpus: str | None = None) -> ModelRef | None:
    """A checkpoint of ours; without `corpus`, what it learned from is what it says itself."""
    try:
        changed = (folder / DESCRIPTION).stat().st_mtime_ns
        summary = _summary(str(folder), changed)
    except (OSError, ValueError, KeyError, TypeError):
        return None  # being written, or no checkpoint of ours: opening it by hand says what is wrong
    if corpus is not None:
        summary = {**summary, "corpus": corpus}
    return ModelRef(id=model_id, name=name, kind=kind, folder=str(folder), **summary)


def checkpoint_ref(model_id: str, name: str, folder: Path) -> ModelRef | None:
    """Another checkpoint in the folder of an own run, such as the model that it began with."""
    return _ref(model_id, name, "run", folder)


def history(ref: ModelRef) -> list[ModelRef]:
    """The moments of a model's training that were kept, oldest first; the last one is its newest.

    Those of a shipped model lie in `pretrained/history`, in 8 bits, those of a run in its folder.
    """
    from engine.checkpoint_list import list_checkpoints

    if ref.kind == "hub":
        return [ref]
    if ref.kind == "shipped":
        kept = [path for _, path in list_checkpoints(PRETRAINED / "history" / ref.id)]
        kept.append(PRETRAINED / ref.id)
    else:
        kept = [path for _, path in list_checkpoints(Path(ref.folder).parent.parent)]
    found = (_ref(ref.id, ref.name, ref.kind, path, ref.corpus) for path in kept)
    moments = [replace(moment, n_params=ref.n_params, device=ref.device) for moment in found if moment]
    return moments or [ref]


@lru_cache(maxsize=256)
def _summary(folder: str, changed: int) -> dict[str, Any]:
    """What a `ModelRef` says of a checkpoint, without reading the weights or loading torch."""
    content = json.loads((Path(folder) / DESCRIPTION).read_bytes())
    weights = Path(folder) / "model.safetensors"
    with safe_open(weights, framework="numpy") as tensors:
        n_params = sum(math.prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118
    return {
        "identity": str(content["files"][weights.name]["sha256"])[:16],
        "objective": str(content["model"]["objective"]),
        "context_length": int(content["model"]["context_length"]),
        "window_length": window_length(ModelConfig.from_json(content["model"])),
        "step": int(content["step"]),
        "n_params": n_params,
        "corpus": str(content["info"].get("corpus", "stories")),
        "dtype": str(content.get("dtype", "float32")),
    }
