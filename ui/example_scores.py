"""Tokens and their logits, typed or read from a model: what the examples about softmax and loss share."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ui import example_frame as frame
from ui import example_inputs as inputs
from ui.components import show
from ui.example_sum import Number, Sum
from viz import distribution_bars
from wording import words

say = words("ui.example_scores")
FIVE = "3.2, 1.1, 0.4, 2.4, -1"


class Scores(NamedTuple):
    """Tokens and their logits; of a model the likeliest, then one entry for all others.

    Attributes:
        names: of the tokens.
        logits: of the tokens.
        full: (V,) all logits; the same as `logits` where they were typed.
        ids: of the tokens, in `full`.
        n_rest: tokens in the last entry; 0 if there is none.
    """

    names: list[str]
    logits: list[float]
    full: Sequence[float]
    ids: list[int]
    n_rest: int = 0

    @property
    def labels(self) -> list[str]:
        """Names with that of the rest."""
        return [*self.names, frame.rest_name(self.n_rest)] if self.n_rest else self.names

    def bars(self, probs: Sequence[float], *, key: str, mark: int | None = None, **second: Any) -> None:
        """Draw probabilities of all entries."""
        shown = list(probs[: len(self.names)])
        tail = float(probs[-1]) if self.n_rest else 0.0
        fig = distribution_bars(
            self.names, shown, tail=tail, n_tail=self.n_rest, true_index=mark,
            true_note=say("target_mark"), **second,
        )  # fmt: skip
        show(fig, key=key)

    def number(self, s: Sum, value: float) -> Number:
        """A logit as typed, or rounded if a model computed it."""
        return s.read(value) if self.n_rest else s.given(value)


def real_scores(also: int | None = None) -> Scores | None:
    """The model's logits after the text in the sidebar, if the switch is on and all fits."""
    ref = frame.real()
    if ref is None:
        return None
    from engine.worked_sums import with_rest

    z = frame.looked(ref).logits[-1].astype(np.float64)
    names, ids, n_rest = frame.likeliest(ref, z, also=also)
    return Scores(names, with_rest(z, ids).tolist(), z.tolist(), ids, n_rest)


def plain_scores(key: str, default: str, name: Callable[[int], str]) -> Scores:
    """Logits that are typed.

    Raises:
        ValueError: for what is no number.
    """
    z = inputs.numbers(key, say("logits"), default, most=12)
    return Scores([name(i) for i in range(len(z))], z, z, list(range(len(z))))


def five() -> tuple[Scores, Any]:
    """The five words and their logits, shared by the examples about them, and the row for more inputs.

    Raises:
        ValueError: for another number of words than of logits.
    """
    found = real_scores()
    row = frame.inputs()
    if found is not None:
        return found, row
    with row:
        called = inputs.names("five_words", say("words"), say("default.five"))
        z = inputs.numbers("five_logits", say("logits"), FIVE, most=12)
    if len(called) != len(z):
        raise ValueError(say("words_and_logits", words=len(called), logits=len(z)))
    return Scores(called, z, z, list(range(len(z)))), row


def gathered(read: Scores, probs: Sequence[float]) -> list[float]:
    """The probabilities of the entries: those of the tokens, and one for all others."""
    from engine.metrics import tail_of

    shown = [float(probs[i]) for i in read.ids]
    return [*shown, tail_of(probs, read.ids)] if read.n_rest else shown
