"""What a model that mixes in the previous token adds to a token's row, on the screen."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine.positions import previous_factors, token_scale
from ui import resources, worked_vectors
from ui.components import show
from ui.embedding_data import Chosen, names
from ui.lesson import literal
from viz import sum_picture
from wording import words

say = words("ui.embedding_previous")


@dataclass(frozen=True, eq=False)
class Mixed:
    """The token before the chosen one, and what the model adds of it.

    Attributes:
        token_id: its id.
        factors: (C,) the learned factors w.
        row: (C,) its row of the embedding matrix.
        vector: (C,) what is added.
    """

    token_id: int
    factors: NDArray[np.float32]
    row: NDArray[np.float32]
    vector: NDArray[np.float32]

    def at(self, dim: int) -> tuple[int, float, float]:
        """Its id, and factor and number of one dimension, as `worked_vectors.addition` takes them."""
        return self.token_id, float(self.factors[dim]), float(self.row[dim])


def mixed(chosen: Chosen) -> Mixed | None:
    """What is added at the chosen position; None there where no token stands before, or by other models."""
    model = resources.load(chosen.ref).model
    factors = previous_factors(model)
    if factors is None or not chosen.position:
        return None
    token_id = int(chosen.trace.ids[chosen.position - 1])
    row = chosen.matrix[token_id]
    return Mixed(token_id, factors, row, np.float32(token_scale(model)) * factors * row)


def part(found: Mixed | None) -> list[tuple[str, NDArray[np.float32]]]:
    """The row of a picture of the sum, if there is one."""
    return [] if found is None else [(say("plus_previous"), found.vector)]


def explain(chosen: Chosen, found: Mixed | None) -> None:
    """Say what is mixed in; nothing for models that don't."""
    if found is not None:
        st.caption(say("mixed", name=literal(names(chosen.ref)[found.token_id])))
    elif chosen.config.mix_previous:
        st.caption(say("first"))


def draw(chosen: Chosen, ask: Callable[[], int]) -> None:
    """Token and previous token and their sum, for a model that adds no position; `ask` for a dimension."""
    t, token_id, found = chosen.position, int(chosen.trace.ids[chosen.position]), mixed(chosen)
    token = chosen.matrix[token_id]
    left, right = st.columns([4, 3], gap="large")
    with right:
        dim = ask()
        before = None if found is None else found.at(dim)
        st.latex(worked_vectors.addition(float(token[dim]), None, token_id, t, dim, previous=before))
        explain(chosen, found)
    with left:
        parts = [(say("token"), token), *part(found)]
        show(sum_picture([*parts, (say("sum"), sum(row for _, row in parts))], dim=dim), key="embeddings_sum")
