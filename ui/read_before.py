"""What large models have read for the people who write: kept for a while, so that a token costs one position.

Nobody's numbers change another's: whoever reads takes what was kept off the shelf, and puts it back later.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import streamlit as st

from engine.view import first_seen
from ui import resources
from ui.model_refs import ModelRef

if TYPE_CHECKING:
    from engine.sampling import Held

MOST = 3  # texts that are kept for all people; of SmolLM2 each takes 46 kB a token, at most 94 MB


class Shelf:
    """Texts that were read, the newest last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[tuple[ModelRef, Held]] = []

    def take(self, ref: ModelRef, seen: Sequence[int]) -> "Held | None":
        """The text that begins most like these tokens, if enough of it does; nobody else has it then."""
        with self._lock:
            found = [(held.shared(seen), i) for i, (of, held) in enumerate(self._kept) if of == ref]
            shared, i = max(found, default=(0, -1))
            if shared == 0 or (shared < len(seen) and 2 * shared < len(self._kept[i][1].ids)):
                return None
            return self._kept.pop(i)[1]

    def put(self, ref: ModelRef, held: "Held") -> None:
        """Keep a text; the oldest makes room."""
        with self._lock:
            self._kept = [*self._kept, (ref, held)][-MOST:]


@st.cache_resource(max_entries=1, show_spinner=False)
def _shelf() -> Shelf:
    return Shelf()


@contextmanager
def held_for(ref: ModelRef, ids: Sequence[int]) -> "Iterator[Held | None]":
    """What a large model has read that these ids share; afterwards what it has read then is kept."""
    if not ref.large:
        yield None
        return
    from engine.sampling import Held

    seen = ids[first_seen(len(ids), ref.context_length, ref.jump) :]
    held = _shelf().take(ref, seen) or Held(resources.load(ref).model)
    try:
        yield held
    finally:
        if held.ids and held.cache.length == len(held.ids):
            _shelf().put(ref, held)
