"""A whole text and how well each of its tokens was predicted: as a table, along the text, as best guesses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

import viz
from engine.metrics import NextTokenScores, most_likely, surprisal
from engine.trace import Trace
from ui.components import show
from ui.lesson import Truth

GUESSES = 6  # ranks of the best guesses


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

    def table(self, unit: str, *, key: str) -> None:
        """Draw a row for every token but the first; surprise and entropy in `unit`."""
        numbers: dict[str, NDArray[Any]] = {
            "probability": self.scores.probs,
            f"surprise ({unit})": surprisal(self.scores.log_probs, unit),
            f"entropy ({unit})": surprisal(-self.scores.entropies, unit),
            "running perplexity": self.scores.running_perplexity,
        }
        if self.truth:
            numbers["true probability"] = self.truth.of(self.trace.ids.tolist())
        places, names = range(1, len(self.trace.ids)), self.names[1:]
        columns: dict[str, Any] = {"position": places, "token": names, "rank": self.scores.ranks, **numbers}
        st.dataframe(
            {name: list(values) for name, values in columns.items()},
            hide_index=True,
            column_config={name: st.column_config.NumberColumn(format="%.4g") for name in numbers},
            height=300,
            key=key,
        )

    def surprise(self, unit: str, *, key: str) -> None:
        """Draw a bar for every token: the model's surprise, and beside it the smallest that is possible."""

        def along(log_probs: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([[np.nan], surprisal(log_probs, unit)])  # nothing predicts the first

        true = along(self.truth.log_of(self.trace.ids.tolist())) if self.truth else None
        mean = float(surprisal(-self.scores.loss, unit))
        bars = along(self.scores.log_probs)
        show(viz.surprisal_bars(self.names, bars, unit=unit, mean=mean, second=true), key=key)

    def guesses(self, name_of: Callable[[int], str], *, key: str) -> None:
        """Draw the best guesses after every token."""
        tops = [most_likely(row, GUESSES) for row in self.trace.probs()]
        labels = [[name_of(int(i)) for i in top.ids] for top in tops]
        ranks: Sequence[int | None] = [*self.scores.ranks.tolist(), None]
        fig = viz.position_heatmap(self.names, labels, [top.probs for top in tops], true_rank=ranks)
        with st.container(height=420):
            show(fig, key=key)
