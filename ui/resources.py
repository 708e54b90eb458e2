"""What all people share: models, tokenizers, traces, runs. Cached, read-only, bounded.

Every key holds the identity of the checkpoint, so that a run that has learned more is another entry.
"""

import gc
import json
import math
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from safetensors import safe_open

from engine.folders import data_folder
from wording import words

if TYPE_CHECKING:
    # these import torch: 1.5 s that the first picture does not wait for
    from engine.checkpoints import Checkpoint
    from engine.oracle import Oracle
    from engine.runs import RunStore
    from engine.tokenizers import Tokenizer

say = words("ui.resources")
ROOT = Path(__file__).parent.parent
PRETRAINED = ROOT / "pretrained"
_DESCRIPTION = "checkpoint.json"
SMALL = 4_000_000  # parameters of a model of which many moments are held at once
_DEVICES: dict[tuple[str, str], str] = {}  # (model id, identity) -> where its weights are, once loaded


@dataclass(frozen=True)
class ModelRef:
    """A model that can be chosen; cheap to make, and the key of everything computed from it.

    Attributes:
        id: "stories-clm" for a shipped model, "run:<run id>" for one of a person's runs.
        name: its name as a person sees it; may hold any characters.
        kind: "shipped" or "run".
        folder: of the checkpoint.
        identity: changes when the weights do.
        objective: "clm" or "mlm".
        n_params: numbers that were learned.
        step: optimizer steps done.
        context_length: most tokens that it sees.
        corpus: kind of text it learned from: "stories" or another, see `engine.corpus`.
        dtype: how its weights are kept; "int8" are rounded.
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
    corpus: str
    dtype: str = "float32"

    @property
    def label(self) -> str:
        """As the picker shows it: no number in it changes while a run goes on."""
        return self.name if self.kind == "shipped" else say("own_run", name=self.name, end=self.id[-4:])


@st.cache_resource(show_spinner=False)
def warm_up() -> threading.Thread:
    """Load torch and what stands on it in the background, once in the life of the server.

    Pages import the same modules meanwhile. That is safe as long as no file asks for a part of torch
    before torch itself: it would hold the part and wait for the whole, while this thread holds the whole
    and waits for the part. tests/test_architecture.py holds that, and that the files of engine import in
    no circle.
    """
    thread = threading.Thread(target=_import_engine, name="warm-up")
    thread.start()
    return thread


def _import_engine() -> None:
    import torch

    torch.set_num_threads(1)  # the second core belongs to training: two threads there are slower than one
    import engine.checkpoints
    import engine.sampling
    import engine.trace  # noqa: F401

    gc.collect()
    gc.freeze()  # what is loaded by now stays: no later collection has to walk through it


def home() -> Path:
    """The data folder: runs, vocabularies and models that were brought here."""
    return data_folder()


def run_store() -> "RunStore":
    """The folder of runs, and the processes that train them."""
    return _run_store(str(home()))


@st.cache_resource(max_entries=4, show_spinner=False, on_release=lambda store: store.close())
def _run_store(folder: str) -> "RunStore":
    from engine.runs import RunStore

    return RunStore(folder)


def shipped_models() -> list[ModelRef]:
    """The models that come with the app, the causal one first. Empty if their folder is."""
    folders = [path.parent for path in PRETRAINED.glob(f"*/{_DESCRIPTION}")]
    refs = [_ref(folder.name, folder.name, "shipped", folder, "stories") for folder in folders]
    return sorted((ref for ref in refs if ref), key=lambda ref: (ref.objective, ref.id))


def available_models(owner: str) -> list[ModelRef]:
    """What a person can choose: the shipped models, then their own runs with a checkpoint, newest first."""
    return [*shipped_models(), *_models_of(owner)]


def _models_of(owner: str) -> list[ModelRef]:
    if not (home() / "runs").is_dir():
        return []
    store, refs = run_store(), []
    for info in store.list(owner):
        folder = store.latest_checkpoint(info.id) if info.has_checkpoint else None
        ref = folder and _ref(f"run:{info.id}", info.name, "run", folder, str(info.corpus["kind"]))
        refs += [ref] if ref else []
    return refs


def _ref(model_id: str, name: str, kind: str, folder: Path, corpus: str) -> ModelRef | None:
    try:
        changed = (folder / _DESCRIPTION).stat().st_mtime_ns
        summary = _summary(str(folder), changed)
    except (OSError, ValueError, KeyError, TypeError):
        return None  # being written, or no checkpoint of ours: opening it by hand says what is wrong
    return ModelRef(id=model_id, name=name, kind=kind, folder=str(folder), corpus=corpus, **summary)


def history(ref: ModelRef) -> list[ModelRef]:
    """The moments of a model's training that were kept, oldest first; the last one is its newest.

    Those of a shipped model lie in `pretrained/history`, in 8 bits, those of a run in its folder.
    """
    from engine.checkpoint_list import list_checkpoints

    if ref.kind == "shipped":
        kept = [path for _, path in list_checkpoints(PRETRAINED / "history" / ref.id)]
        kept.append(PRETRAINED / ref.id)
    else:
        kept = [path for _, path in list_checkpoints(Path(ref.folder).parent.parent)]
    found = (_ref(ref.id, ref.name, ref.kind, path, ref.corpus) for path in kept)
    moments = [replace(moment, n_params=ref.n_params) for moment in found if moment]
    return moments or [ref]


@st.cache_resource(max_entries=64, show_spinner=False)
def embedding_of(ref: ModelRef) -> NDArray[np.float32]:
    """The token vectors (V,C) of a model, without the rest of it; they can't be changed."""
    from engine.checkpoint_files import read_embedding

    vectors = read_embedding(ref.folder)
    vectors.setflags(write=False)
    return vectors


@st.cache_data(max_entries=256, show_spinner=False)
def _summary(folder: str, changed: int) -> dict[str, Any]:
    """What a `ModelRef` says of a checkpoint, without reading the weights or loading torch."""
    content = json.loads((Path(folder) / _DESCRIPTION).read_bytes())
    weights = Path(folder) / "model.safetensors"
    with safe_open(weights, framework="numpy") as tensors:
        n_params = sum(math.prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118
    return {
        "identity": str(content["files"][weights.name]["sha256"])[:16],
        "objective": str(content["model"]["objective"]),
        "context_length": int(content["model"]["context_length"]),
        "step": int(content["step"]),
        "n_params": n_params,
        "dtype": str(content.get("dtype", "float32")),
    }


def load(ref: ModelRef) -> "Checkpoint":
    """The checkpoint of a model, shared by all people: never change it.

    Raises:
        ValueError: one sentence, if the files are damaged or gone.
    """
    return _load(ref.folder, ref.identity, ref.id)


def load_moment(moment: ModelRef) -> "Checkpoint":
    """One of the moments of `history`, kept apart so that they don't push the models out that others use.

    Raises:
        ValueError: one sentence, if the files are damaged or gone.
    """
    if moment.n_params > SMALL:  # all moments of a large model would fill the memory
        return _open(moment.folder, moment.identity, moment.id)
    return _load_moment(moment.folder, moment.identity, moment.id)


@st.cache_resource(max_entries=64, show_spinner=False)
def _load_moment(folder: str, identity: str, model_id: str) -> "Checkpoint":
    return _open(folder, identity, model_id)


@st.cache_resource(max_entries=8, show_spinner=say.later("opening"))
def _load(folder: str, identity: str, model_id: str) -> "Checkpoint":
    return _open(folder, identity, model_id)


def _open(folder: str, identity: str, model_id: str) -> "Checkpoint":
    import torch

    from engine.checkpoints import load_checkpoint

    checkpoint = load_checkpoint(folder, "cuda" if torch.cuda.is_available() else "cpu")
    checkpoint.model.eval().requires_grad_(False)
    device = checkpoint.model.device
    name = f"GPU · {torch.cuda.get_device_name(device)}" if device.type == "cuda" else "CPU"
    _DEVICES[model_id, identity] = name
    return checkpoint


def loaded_on(ref: ModelRef) -> str | None:
    """Where the weights of a model are, or None if it has not been loaded yet."""
    return _DEVICES.get((ref.id, ref.identity))


@st.cache_resource(max_entries=16, show_spinner=False)
def tokenizer(ref: ModelRef) -> "Tokenizer":
    """The tokenizer of a model, without its weights."""
    from engine.tokenizers import tokenizer_from_json

    return tokenizer_from_json(json.loads((Path(ref.folder) / _DESCRIPTION).read_bytes())["tokenizer"])


def oracle_for(ref: ModelRef) -> "Oracle | None":
    """The exact distribution of the stories, in this model's vocabulary; None if it learned others."""
    return _oracle(ref) if ref.corpus == "stories" else None


@st.cache_resource(max_entries=4, show_spinner=say.later("reading_grammar"))
def _oracle(ref: ModelRef) -> "Oracle | None":
    from engine.grammar import default_grammar
    from engine.oracle import Oracle

    try:
        return Oracle(default_grammar(), tokenizer(ref))
    except ValueError:
        return None  # this vocabulary can't spell the stories, or its tokens reach across their words
