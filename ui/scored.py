"""A whole text and how well each of its tokens was predicted: guesses, surprise, the chain rule."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

import viz
from engine.metrics import (
    NextTokenScores,
    kl_divergence,
    most_likely,
    next_token_scores,
    softmax,
    surprisal,
)
from engine.trace import Trace
from ui import passes, worked_text
from ui.components import show
from ui.lesson import Truth
from ui.model_refs import ModelRef
from viz.along import kl_bars
from wording import words

say = words("ui.scored")

GUESSES = 6  # ranks of the best guesses


def fixed(values: NDArray[Any]) -> str:
    """One way to write all numbers of a column: with equal decimals, if none is huge or would look like 0.

    >>> fixed(np.array([0.0, 0.25, 2.5])), fixed(np.array([1.7e9])), fixed(np.array([1e-8, 0.25]))
    ('%.6f', '%.4g', '%.6g')
    """
    sizes = np.abs(np.nan_to_num(values, posinf=0, neginf=0))
    if sizes.max(initial=0) >= 1e5:
        return "%.4g"
    return "%.6g" if ((sizes > 0) & (sizes < 5e-7)).any() else "%.6f"


@st.cache_resource(max_entries=32, show_spinner=False)
def scores_of(ref: ModelRef, text: str) -> NextTokenScores:
    """How well the tokens that a causal model read were predicted; they must be at least 2. Read-only."""
    trace = passes.traced(ref, text)
    return next_token_scores(trace.logits, trace.ids.tolist())


@dataclass(frozen=True, eq=False)
class Scored:
    """A text of at least 2 tokens, what the model made of it, and what is true where that is known."""

    trace: Trace
    scores: NextTokenScores
    truth: Truth | None

    @property
    def names(self) -> list[str]:
        """(T,) visible token texts."""
        return [viz.visible(token.data) for token in self.trace.tokens]

    def divergences(self, unit: str) -> NDArray[np.float64]:
        """(T,) KL from the true distribution to the model's after each token; NaN where nothing is true."""
        found = np.full(len(self.trace.ids), np.nan)
        n = self.truth.n_told if self.truth else 0
        if self.truth and n:
            found[:n] = kl_divergence(self.truth.probs[:n], self.trace.probs()[:n])
        return -surprisal(found, unit)  # nats to the unit

    def guesses(self, name_of: Callable[[int], str], position: int, *, key: str) -> None:
        """Draw the best guesses after every token; the row after `position` is marked."""
        tops = [most_likely(softmax(row), GUESSES) for row in self.trace.logits]
        labels = [[name_of(int(i)) for i in top.ids] for top in tops]
        ranks: Sequence[int | None] = [*self.scores.ranks.tolist(), None]
        probs = [top.probs for top in tops]
        fig = viz.position_heatmap(self.names, labels, probs, true_rank=ranks, selected=position)
        with st.container(height=520, key=f"{key}_place"):  # frame.css lets it scroll sideways
            show(fig, key=key)
        hits = int((self.scores.ranks <= GUESSES).sum())
        st.caption(say("guesses", most=GUESSES, hits=hits, n=len(self.scores.ranks)))

    def surprise(self, unit: str, position: int, *, key: str) -> None:
        """Draw a bar for every token: the model's surprise, and on it a mark for the true source's."""

        def along(log_probs: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([[np.nan], surprisal(log_probs, unit)])  # nothing predicts the first

        true = along(self.truth.log_of(self.trace.ids.tolist())) if self.truth else None
        mean = float(surprisal(-self.scores.loss, unit))
        bars = along(self.scores.log_probs)
        fig = viz.surprisal_bars(self.names, bars, unit=unit, mean=mean, second=true, selected=position)
        show(fig, key=key)

    def divergence(self, unit: str, position: int, *, key: str) -> None:
        """Draw how far the model is from the truth after every token, where the stories are known."""
        if self.truth is None or not self.truth.n_told:
            return
        kl = self.divergences(unit)
        show(kl_bars(self.names, kl, unit=unit, selected=position), key=key)
        st.caption(say("divergence", mean=viz.format_number(float(np.nanmean(kl)), 4), unit=unit))

    def table(self, unit: str, *, key: str) -> None:
        """Draw a row for every token but the first; surprise and entropy in `unit`."""
        numbers: dict[str, NDArray[Any]] = {
            say("column.probability"): self.scores.probs,
            say("column.surprise", unit=unit): surprisal(self.scores.log_probs, unit),
            say("column.entropy", unit=unit): surprisal(-self.scores.entropies, unit),
            say("column.perplexity"): self.scores.running_perplexity,
        }
        if self.truth:
            numbers[say("column.true")] = self.truth.of(self.trace.ids.tolist())
            numbers[say("column.divergence", unit=unit)] = self.divergences(unit)[:-1]
        self._rows({say("column.rank"): self.scores.ranks, **numbers}, list(numbers), key)

    def chain(self, unit: str, *, key: str) -> None:
        """Draw the chain rule: each probability, its log, the sum of the logs and the product so far."""
        log = "ln" if unit == "nats" else "log₂"
        logs = -surprisal(self.scores.log_probs, unit)
        columns = {say("column.conditional"): self.scores.probs, f"{log} p": logs}
        columns[say("column.sum", log=log)] = np.cumsum(logs)
        so_far = [worked_text.product(float(x)) for x in np.cumsum(self.scores.log_probs)]
        self._rows({**columns, say("column.product"): so_far}, list(columns), key)

    def _rows(self, columns: dict[str, Any], numbers: list[str], key: str) -> None:
        """Draw a table with one row for every token but the first."""
        places = range(1, len(self.trace.ids))
        rows = {say("column.position"): places, say("column.token"): self.names[1:], **columns}
        st.dataframe(
            {name: list(values) for name, values in rows.items()},
            hide_index=True,
            column_config={
                name: st.column_config.NumberColumn(format=fixed(columns[name]))
                if name in numbers
                else st.column_config.Column(alignment="right")
                for name in columns
            },
            height=320,
            key=key,
        )
