"""The text that the Inside page looks into, the token that is chosen, and what the model has to predict."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

import viz
from engine.metrics import IGNORED
from engine.model import Transformer
from engine.trace import Trace
from ui import choice, lesson, passes, resources
from ui.again import Again
from ui.components import current, select, token_strip
from ui.model_refs import ModelRef
from wording import words

say = words("ui.inside_text")

STRIP = "inside_pos"
ROWS = 14  # positions drawn at once in a map
COLUMNS = 13  # layers drawn at once: a word needs its room


@dataclass(frozen=True, eq=False)
class Looked:
    """One pass over a text, and one of its positions.

    Attributes:
        ref: the model.
        text: the text that was read.
        passed: the pass; of a masked model with the chosen token hidden.
        position: the chosen one, counted in the tokens that were read.
        n_greyed: chips of the strip before position 0.
    """

    ref: ModelRef
    text: str
    passed: Again[Trace]
    position: int
    n_greyed: int

    @property
    def trace(self) -> Trace:
        """The pass."""
        return self.passed.get()

    @property
    def model(self) -> Transformer:
        """The weights; read only."""
        return resources.load(self.ref).model

    @property
    def masked(self) -> bool:
        """Whether the chosen token is hidden from the model, which then guesses it."""
        return self.trace.objective == "mlm"

    @property
    def names(self) -> list[str]:
        """(T,) visible token texts, also of the hidden token."""
        return [viz.visible(token.data) for token in self.trace.tokens]

    @property
    def target(self) -> int | None:
        """The id that the chosen position has to predict, if there is one."""
        target = int(self.trace.targets[self.position])
        return None if target == IGNORED else target

    @property
    def layers(self) -> list[str]:
        """(L+1,) where the stream can be read: embed, 1, 2, …."""
        return [say("embed"), *(str(n) for n in range(1, len(self.trace.residual)))]

    @property
    def color(self) -> str:
        """Of this kind of model."""
        return viz.objective_color(self.trace.objective)

    @property
    def truth_note(self) -> str:
        """How the true token is marked among guesses."""
        return say("hidden") if self.masked else say("came_next")

    def name_of(self, token_id: int) -> str:
        """How a token of the vocabulary is written."""
        return viz.visible(resources.tokenizer(self.ref).token_bytes(int(token_id)))

    def rows(self) -> range:
        """The positions that a map draws: some before the chosen one, some after."""
        n = len(self.trace.ids)
        begin = max(0, min(self.position - ROWS + 4, n - ROWS))
        return range(begin, min(n, begin + ROWS))

    def columns(self, layer: int) -> list[int]:
        """The layers that a map draws, 0 is the embedding: all, or some at equal distances and `layer`."""
        last = len(self.trace.residual) - 1
        if last < COLUMNS:
            return list(range(last + 1))
        apart = -(-last // (COLUMNS - 3))
        return sorted({0, layer, *range(last, 0, -apart)})

    def note_columns(self, columns: Sequence[int]) -> None:
        """Say which layers are drawn, if not all."""
        last = len(self.trace.residual) - 1
        if len(columns) <= last:
            st.caption(say("blocks_drawn", n=len(columns) - (0 in columns), all=last))

    def row_labels(self) -> list[str]:
        """Of the drawn positions: number and token."""
        names = self.names
        return [f"{t} {names[t]}" for t in self.rows()]

    def place(self) -> str:
        """The chosen token in words, for Markdown."""
        name = lesson.literal(self.names[self.position])
        if self.masked:
            return say("place.hidden", n=self.position, token=name)
        return say("place.after", n=self.position, token=name)

    def choose(self, position: int) -> None:
        """For a callback: look at another position."""
        select(STRIP, position + self.n_greyed)

    def note_rows(self) -> None:
        """Say which positions are drawn, if not all."""
        rows, n = self.rows(), len(self.trace.ids)
        if len(rows) < n:
            st.caption(say("drawn", first=rows[0], last=rows[-1], end=n - 1))


def look(ref: ModelRef, text: str) -> Looked:
    """Draw the text to choose a token from, and read it; ends the page with a sentence where that fails."""
    trace = lesson.look(ref, text)
    strip = lesson.strip_of(ref, text)
    masked, n, inner = trace.objective == "mlm", len(trace.ids), trace.inner
    default = strip.n_greyed + (inner.stop - 1 if masked else max(n - 2, 0))  # the last whose truth is known
    choice.begin(STRIP, default, about=(ref, text), names=("pos",), first=-strip.n_greyed)
    chosen = current(STRIP, default)
    hidden = {_hidden(chosen - strip.n_greyed, inner) + strip.n_greyed} if masked else set()
    label = say("strip.masked") if masked else say("strip.causal")
    index = token_strip(
        strip.segments,
        key=STRIP,
        selected=default,
        hidden=hidden,
        greyed=range(strip.n_greyed),
        label=label,
    )
    position = min(max((default if index is None else index) - strip.n_greyed, 0), n - 1)
    if masked:
        position = _hidden(position, inner)
    choice.share({"pos": position})
    covered = (position,) if masked else ()
    if masked:
        trace = passes.traced(ref, text, hidden=covered)
    passed = Again(trace, partial(passes.traced, ref, text, hidden=covered))
    return Looked(ref, text, passed, position, strip.n_greyed)


def _hidden(position: int, inner: range) -> int:
    """The position that is hidden: what a published model wants around a text can't be, its neighbour is."""
    return min(max(position, inner.start), inner.stop - 1)


def allowed(key: str, options: Sequence[Any], default: Any) -> None:
    """Before a widget is drawn: begin with `default`, also where this model or text lacks what was chosen."""
    if st.session_state.get(key) not in options:
        st.session_state[key] = default
