"""One position of a text: the bars of what is expected there, and one number of them worked out."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine import metrics
from engine.trace import Trace
from ui import address, lesson, passes, resources, worked, worked_text
from ui.components import show
from ui.lesson import Truth
from ui.model_refs import ModelRef
from viz import distribution_bars, format_count, format_number, visible
from viz.scores import score_bars
from wording import words

say = words("ui.next_position")


def draw(ref: ModelRef, text: str, position: int, unit: str) -> None:
    """The bars after a token of a text that is read, and one of them worked out."""
    trace = passes.traced(ref, text)
    here = Position(trace, lesson.truth_of(ref, text), position)

    def name_of(token_id: int) -> str:
        return visible(resources.tokenizer(ref).token_bytes(int(token_id)))

    left, right = st.columns([3, 2], gap="small")
    with left:
        name = lesson.literal(visible(trace.tokens[position].data))
        st.subheader(say("after", position=position, token=name))
        k, quantity = bar_controls()
        here.bars(name_of, k, quantity, unit, key="next_token_bars")
    with right:
        here.details(name_of, quantity, unit)


def bar_controls() -> tuple[int, str]:
    """How many bars, and what they show."""
    with st.container(horizontal=True):
        quantity = address.choose(
            st.segmented_control, say("bars_of"), say.table("quantity"), key="measure", required=True,
            label_visibility="collapsed",
        )  # fmt: skip
        k = address.choose(
            st.segmented_control, say("how_many"), {"5": say("bars", n=5), "8": "8", "12": "12", "20": "20"},
            key="bars", default="8", required=True, label_visibility="collapsed",
        )  # fmt: skip
    return int(k), quantity


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
        note = "" if self.came is None else say("came", rank=metrics.rank(probs, self.came))
        second = None if true is None else true[shown]
        if quantity == "probability":
            rest = None if true is None else metrics.tail_of(true, shown)
            fig = distribution_bars(
                names, top.probs, tail=top.tail, n_tail=top.n_tail, true_index=row, true_note=note,
                second=second, second_tail=rest,
            )  # fmt: skip
        elif quantity == "logit":
            fig = score_bars(
                names,
                self.logits[shown],
                title=say("quantity.logit"),
                n_left=top.n_tail,
                true_index=row,
                true_note=note,
            )
        else:
            log_probs = -metrics.surprisal(metrics.log_softmax(self.logits)[shown], unit)
            if second is not None:
                with np.errstate(divide="ignore"):
                    second = -metrics.surprisal(np.log(second), unit)
            fig = score_bars(
                names, log_probs, title=say("log_probability", unit=unit), n_left=top.n_tail, true_index=row,
                true_note=note, second=second,
            )  # fmt: skip
        show(fig, key=key)

    def details(self, name_of: Callable[[int], str], quantity: str, unit: str) -> None:
        """One probability worked out; surprise and its mean; the distance from the true distribution."""
        probs, vocab_size = metrics.softmax(self.logits), len(self.logits)
        target = self.came if self.came is not None else int(probs.argmax())
        st.markdown(say("highest") if self.came is None else say("of_what_came"))
        st.code(name_of(target), language=None, wrap_lines=True)
        z, log_total, _ = metrics.softmax_parts(self.logits, target)
        if quantity == "probability":
            st.latex(worked.softmax(z, log_total, vocab_size, unit=unit))
        else:
            st.latex(worked_text.log_prob(z, log_total, vocab_size, unit=unit))
        st.caption(say("score", vocab_size=format_count(vocab_size)))
        self._spread(probs, target, unit)
        if self.true is not None:
            st.latex(worked.divergence(float(metrics.kl_divergence(self.true, probs)), unit))
            st.caption(say("divergence"))

    def _spread(self, probs: NDArray[np.float64], target: int, unit: str) -> None:
        """Rank and surprise of one token beside the entropy, which is the surprise to expect."""
        entropy = float(metrics.surprisal(-metrics.entropy(probs), unit))
        surprise = float(metrics.surprisal(metrics.log_softmax(self.logits)[target], unit))
        told = [
            say("rank", rank=format_count(metrics.rank(probs, target)), n=format_count(len(probs))),
            say("surprise", number=format_number(surprise, 4), unit=unit),
            say("entropy", number=format_number(entropy, 4), unit=unit),
        ]
        if self.true is not None:
            true = float(metrics.surprisal(-metrics.entropy(self.true), unit))
            told.append(say("true_entropy", number=format_number(true, 4), unit=unit))
        st.markdown(" · ".join(told), help=say("entropy_help"))
