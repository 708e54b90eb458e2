"""What all people share: models, tokenizers, traces, runs. Cached, read-only, bounded.

Every key holds the identity of the checkpoint, so that a run that has learned more is another entry. What is
small and asked for many times in each run of a page is kept by `lru_cache`: to look an answer up, a cache of
Streamlit's reads the signature and hashes every field of the key, which takes a third of a millisecond.
"""

import gc
import json
import threading
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine.folders import data_folder
from engine.memory import KEPT_OF_MANY, keep_freed
from engine.parameter_parts import memory_bytes
from engine.shelf import Shelf
from ui import model_shelf
from wording import words

if TYPE_CHECKING:
    # these import torch: 1.5 s that the first picture does not wait for
    from engine.checkpoints import Checkpoint
    from engine.oracle import Oracle
    from engine.runs import RunStore
    from engine.tokenizers import Tokenizer
    from ui.model_refs import ModelRef

say = words("ui.resources")

DESCRIPTION = "checkpoint.json"  # `engine.checkpoint_files.JSON`, which would import torch at the start
SMALL = 4_000_000  # parameters of a model of which many moments are held at once
MOST_MOMENTS = 64
MOMENT_BYTES = 200_000_000  # of them together: all moments of both shipped models of the stories take 178 MB


@st.cache_resource(show_spinner=False)
def warm_up() -> threading.Thread:
    """Load torch and what stands on it in the background, once in the life of the server.

    Pages import the same modules meanwhile. That is safe as long as no file asks for a part of torch
    before torch itself: it would hold the part and wait for the whole, while this thread holds the whole
    and waits for the part. tests/test_architecture.py holds that, and that the files of engine import in
    no circle.
    """
    keep_freed(KEPT_OF_MANY)  # before there are more threads with heaps of their own
    thread = threading.Thread(target=_import_engine, name="warm-up")
    thread.start()
    return thread


def _import_engine() -> None:
    try:
        import torch

        torch.set_num_threads(1)  # the second core belongs to training: two threads there are slower than one
        import engine.checkpoints
        import engine.sampling
        import engine.trace  # noqa: F401
    except RuntimeError:
        if threading.main_thread().is_alive():
            raise
        return  # the server was ended meanwhile: torch can't be loaded any more, and nobody waits for it
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


def embedding_of(ref: "ModelRef") -> NDArray[np.float32]:
    """The token vectors (V,C) of a model; they can't be changed.

    Of a published model they are those of the model in memory, so that nothing keeps it there twice.
    """
    if ref.kind != "hub":
        return (_read_large_embedding if ref.large else _read_embedding)(ref)
    vectors = load(ref).model.embedding.weight.detach().cpu().numpy().view()
    vectors.setflags(write=False)
    return vectors


@st.cache_resource(max_entries=64, show_spinner=False)
def _read_embedding(ref: "ModelRef") -> NDArray[np.float32]:
    return _embedding_in_file(ref)


@st.cache_resource(max_entries=2, show_spinner=False)
def _read_large_embedding(ref: "ModelRef") -> NDArray[np.float32]:
    """Each takes 100 MB and more."""
    return _embedding_in_file(ref)


def _embedding_in_file(ref: "ModelRef") -> NDArray[np.float32]:
    """From the file, without the rest of the model."""
    from engine.checkpoint_files import read_embedding

    vectors = read_embedding(ref.folder)
    vectors.setflags(write=False)
    return vectors


def load(ref: "ModelRef") -> "Checkpoint":
    """The checkpoint of a model, shared by all people: never change it.

    Raises:
        ValueError: one sentence, if the files are damaged or gone, or there is too little memory.
    """
    return model_shelf.get(ref).checkpoint


def load_moment(moment: "ModelRef") -> "Checkpoint":
    """One of the moments of `history`, kept apart so that they don't push the models out that others use.

    Raises:
        ValueError: one sentence, if the files are damaged or gone.
    """
    if moment.kind == "hub":  # it has no other moments
        return load(moment)
    if moment.n_params > SMALL:  # all moments of a large model would fill the memory
        return model_shelf.open_model(moment).checkpoint
    need = memory_bytes(moment.n_params)
    return _moments().get(moment, lambda: model_shelf.open_model(moment).checkpoint, need=need)


@st.cache_resource(show_spinner=False)
def _moments() -> "Shelf[Checkpoint]":
    return Shelf(MOST_MOMENTS, lambda: None, most_bytes=MOMENT_BYTES)


def loaded_on(ref: "ModelRef") -> str | None:
    """Where the weights of a model are, or None if it is not in memory."""
    placed = model_shelf.where(ref)
    return None if placed is None else placed.device.label


@lru_cache(maxsize=16)
def tokenizer(ref: "ModelRef") -> "Tokenizer":
    """The tokenizer of a model, without its weights."""
    from engine.hub_plan import look
    from engine.hub_tokenizer import load_tokenizer
    from engine.tokenizers import tokenizer_from_json

    if ref.kind == "hub":
        return load_tokenizer(ref.folder, look(ref.folder).config.vocab_size)
    return tokenizer_from_json(json.loads((Path(ref.folder) / DESCRIPTION).read_bytes())["tokenizer"])


def has_tokenizer(ref: "ModelRef") -> bool:
    """Whether a model's tokenizer can be read: a published one may need a package that is not here."""
    try:
        tokenizer(ref)
    except ValueError:
        return False
    return True


def oracle_for(ref: "ModelRef") -> "Oracle | None":
    """The exact distribution of the stories, in this model's vocabulary; None if it learned others."""
    return _oracle(ref) if ref.corpus == "stories" else None


@st.cache_resource(max_entries=4, show_spinner=say.later("reading_grammar"))
def _oracle(ref: "ModelRef") -> "Oracle | None":
    from engine.grammar import default_grammar
    from engine.oracle import Oracle

    try:
        return Oracle(default_grammar(), tokenizer(ref))
    except ValueError:
        return None  # this vocabulary can't spell the stories, or its tokens reach across their words
