"""The models in memory: each once for all people, few large ones, on the device that was chosen.

Everything computed from a model has its `ModelRef` as a key, which says the device, too: two people who
choose different devices share no numbers.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from engine.parameter_parts import memory_bytes
from engine.shelf import Shelf
from ui.components.owner import answered
from wording import words

if TYPE_CHECKING:  # these import torch
    from engine.checkpoints import Checkpoint
    from engine.devices import Placed
    from ui.model_refs import ModelRef

say = words("ui.model_shelf")

MOST_SMALL = 8
MOST_LARGE = 2  # of models above `ui.model_refs.LARGE` parameters; $LOUPE_LARGE_MODELS says otherwise
RECENT = 600.0  # seconds in which somebody who used a model counts as using it
_MOST_CHOICES = 5000  # devices chosen; older ones are forgotten
_turn = count()


@dataclass(frozen=True, eq=False)
class Held:
    """A model in memory, and where its weights are."""

    checkpoint: "Checkpoint"
    placed: "Placed"


def most_large() -> int:
    """How many large models may be in memory at once."""
    told = os.environ.get("LOUPE_LARGE_MODELS", "")
    return int(told) if told.isdecimal() and 0 < int(told) < 1000 else MOST_LARGE


@st.cache_resource(show_spinner=False)
def _shelf(large: bool) -> Shelf[Held]:
    return Shelf(most_large() if large else MOST_SMALL)


def _key(ref: "ModelRef") -> tuple[str, ...]:
    return ref.folder, ref.identity, ref.id, ref.device


@st.cache_resource(show_spinner=False)
def _rounded() -> Shelf[Held]:
    """Weights of 8 bits, each beside the model that they were made from: as many as there may be of those."""
    return Shelf(most_large())


def _shelf_of(ref: "ModelRef") -> Shelf[Held]:
    return _rounded() if ref.bits == 8 else _shelf(ref.large)


def _user() -> str:
    """This browser's word; "" before it has said it, as it would count as two."""
    return (answered() or "") if get_script_run_ctx(suppress_warning=True) else ""


def get(ref: "ModelRef") -> Held:
    """A model, opened if it is not in memory; shared by all people: never change it.

    Raises:
        ValueError: one sentence, if its files are damaged or gone, or it doesn't fit into memory.
    """
    if where(ref) is None:
        _wait(next(_turn), lambda: _get(ref))
    return _get(ref)


def _get(ref: "ModelRef") -> Held:
    if ref.bits == 8:
        full = get(replace(ref, bits=32))  # before the other shelf waits
        need = memory_bytes(ref.n_params) // 4
        return _rounded().get(_key(ref), lambda: _round(full), name=ref.name, need=need, user=_user())
    need = memory_bytes(ref.n_params) if ref.large else 0
    return _shelf(ref.large).get(_key(ref), lambda: open_model(ref), name=ref.name, need=need, user=_user())


def _round(full: Held) -> Held:
    """The same model with weights of 8 bits."""
    from engine.eight_bits import eight_bits

    checkpoint = replace(full.checkpoint, model=eight_bits(full.checkpoint.model), dtype="int8")
    return Held(checkpoint, full.placed)


@st.cache_data(max_entries=1, show_spinner=say.later("opening"))
def _wait(turn: int, _work: Callable[[], object]) -> None:
    """Do something long, which a sentence says; within another cached function nothing is said."""
    _work()


def open_model(ref: "ModelRef") -> Held:
    """Read a model and put it onto its device, for nobody else to see.

    Raises:
        ValueError: one sentence, if the files are damaged or gone.
    """
    from engine.checkpoints import load_checkpoint
    from engine.devices import place
    from engine.hub import load_folder

    read = load_folder if ref.kind == "hub" else load_checkpoint
    checkpoint = read(ref.folder, device="cpu")
    checkpoint.model.eval().requires_grad_(False)
    return Held(checkpoint, place(checkpoint.model, ref.device))


def where(ref: "ModelRef") -> "Placed | None":
    """Where the weights of a model are now; None if it is not in memory."""
    held = _shelf_of(ref).peek(_key(ref))
    return None if held is None else held.placed


def let_go(ref: "ModelRef") -> None:
    """Free the memory of a model now, on whatever device. Whoever needs it again opens it again."""
    for shelf in (_rounded(), _shelf(ref.large)):
        for key in shelf.held():
            if isinstance(key, tuple) and key[:3] == _key(ref)[:3]:
                shelf.drop(key)


def others(ref: "ModelRef") -> int:
    """How many other browsers used a model in the last `RECENT` seconds."""
    shelf = _shelf(ref.large)
    keys = [key for key in shelf.held() if isinstance(key, tuple) and key[:3] == _key(ref)[:3]]
    return len(set().union(*(shelf.users(key, RECENT) for key in keys)) - {_user()})


@st.cache_resource(show_spinner=False)
def _choices() -> dict[tuple[str, str], str]:
    return {}


def device_of(owner: str, model_id: str) -> str:
    """The device that a person chose for a model; "auto" if none."""
    return _choices().get((owner, model_id), "auto")


def choose_device(owner: str, model_id: str, device: str) -> None:
    """Note a person's choice, as long as the server lives."""
    chosen = _choices()
    chosen.pop((owner, model_id), None)
    chosen[owner, model_id] = device
    while len(chosen) > _MOST_CHOICES:
        chosen.pop(next(iter(chosen)), None)
