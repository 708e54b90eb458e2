"""One position of a text: the bars of what is expected there, and one number of them worked out."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine import metrics
from engine.trace import Trace
from ui import worked, worked_text
from ui.components import show
from ui.lesson import Truth
from viz import distribution_bars, format_count, format_number
from viz.scores import score_bars

QUANTITIES = ("probability", "log p", "logit")


def bar_controls() -> tuple[int, str]:
    """How many bars, and what they show."""
    with st.container(horizontal=True):
        quantity = st.segmented_control(
            "Bars of", QUANTITIES, default=QUANTITIES[0], required=True, key="measure",
            bind="query-params", label_visibility="collapsed",
        )  # fmt: skip
        k = st.segmented_control(
            "Number of bars", [5, 8, 12, 20], default=8, required=True,
            format_func=lambda n: f"{n} bars" if n == 5 else str(n),
            key="bars", bind="query-params", label_visibility="collapsed",
        )  # fmt: skip
    return int(k), str(quantity)


@dataclass(frozen=True, eq=False)
class Position:
    """What comes after token `at`: the model's distribution, the true one if known, and what came."""

    trace: Trace
    truth: Truth | None
    at: int

    @property
    def came(self) -> int | None:
        """Id of the token that came next; None at the end of the text."""
        return int(self.trace.ids[self.at + 1]) if self.at + 1 < len(self.trace.ids) else None

    @property
    def logits(self) -> NDArray[np.float32]:
        """(V,)."""
        row: NDArray[np.float32] = self.trace.logits[self.at]
        return row

    @property
    def true(self) -> NDArray[np.float64] | None:
        """(V,) or None."""
        return self.truth.after(self.at) if self.truth else None

    def bars(self, name_of: Callable[[int], str], k: int, quantity: str, unit: str, *, key: str) -> None:
        """Draw the k likeliest tokens, what came, and of probabilities all the others as one bar."""
        probs = metrics.softmax(self.logits)
        top = metrics.most_likely(probs, k, also=self.came)
        shown, true = top.ids.tolist(), self.true
        names = [name_of(i) for i in shown]
        row = None if self.came is None else shown.index(self.came)
        note = "" if self.came is None else f"came, rank {metrics.rank(probs, self.came)}"
        second = None if true is None else true[shown]
        if quantity == "probability":
            rest = None if true is None else metrics.tail_of(true, shown)
            fig = distribution_bars(
                names, top.probs, tail=top.tail, n_tail=top.n_tail, true_index=row, true_note=note,
                second=second, second_tail=rest,
            )  # fmt: skip
        elif quantity == "logit":
            fig = score_bars(
                names, self.logits[shown], title="logit", n_left=top.n_tail, true_index=row, true_note=note
            )
        else:
            log_probs = -metrics.surprisal(metrics.log_softmax(self.logits)[shown], unit)
            if second is not None:
                with np.errstate(divide="ignore"):
                    second = -metrics.surprisal(np.log(second), unit)
            fig = score_bars(
                names, log_probs, title=f"log-probability ({unit})", n_left=top.n_tail, true_index=row,
                true_note=note, second=second,
            )  # fmt: skip
        show(fig, key=key)

    def details(self, name_of: Callable[[int], str], quantity: str, unit: str) -> None:
        """One probability worked out; surprise and its mean; the distance from the true distribution."""
        probs, vocab_size = metrics.softmax(self.logits), len(self.logits)
        target = self.came if self.came is not None else int(probs.argmax())
        st.markdown(
            "**The highest probability**" if self.came is None else "**The probability of what came**"
        )
        st.code(name_of(target), language=None, wrap_lines=True)
        z, log_total, _ = metrics.softmax_parts(self.logits, target)
        if quantity == "probability":
            st.latex(worked.softmax(z, log_total, vocab_size, unit=unit))
        else:
            st.latex(worked_text.log_prob(z, log_total, vocab_size, unit=unit))
        st.caption(
            f"z is the model’s score for this token; the sum runs over all {format_count(vocab_size)}."
        )
        self._spread(probs, target, unit)
        if self.true is not None:
            st.latex(worked.divergence(float(metrics.kl_divergence(self.true, probs)), unit))
            st.caption(
                "How far the model is from the true distribution p*, over all tokens; 0 would be perfect."
            )

    def _spread(self, probs: NDArray[np.float64], target: int, unit: str) -> None:
        """Rank and surprise of one token beside the entropy, which is the surprise to expect."""
        entropy = float(metrics.surprisal(-metrics.entropy(probs), unit))
        surprise = float(metrics.surprisal(metrics.log_softmax(self.logits)[target], unit))
        words = [
            f"rank **{format_count(metrics.rank(probs, target))}** of {format_count(len(probs))}",
            f"surprise **{format_number(surprise, 4)} {unit}**",
            f"entropy **{format_number(entropy, 4)} {unit}**",
        ]
        if self.true is not None:
            true = float(metrics.surprisal(-metrics.entropy(self.true), unit))
            words.append(f"entropy of the true distribution **{format_number(true, 4)} {unit}**")
        st.markdown(" · ".join(words), help="Entropy is the surprise that the model itself expects here, "
                    "−Σ p log p over the whole vocabulary.")  # fmt: skip
