"""What every lesson does in the same way: read the text, explain what stops it, offer something to try."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from ui import nav, passes, resources, session
from ui.model_refs import ModelRef
from ui.words import literal as literal
from viz import format_count, format_number
from wording import words

if TYPE_CHECKING:
    from engine.tokenizers import Token
    from engine.trace import Trace

RECALL = (  # a story up to a place where only one word can come: the name that it began with
    "Once upon a time, there was a fox called Lily. She lived beside a river and loved music. "
    "One day, when the trees looked like sheep, Lily"
)
say = words("ui.lesson")
LONGEST_TRUTH = 2000  # tokens; the exact distribution of a longer text would take more than a second


class Step(NamedTuple):
    """Something to try: what to look for, the words on the button, and what the button does."""

    text: str
    label: str
    action: Callable[..., None]
    args: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class Strip:
    """The tokens that a page draws: what the model read, and before it, pale, some that it did not read.

    Attributes:
        segments: all of them, in whole graphemes.
        n_greyed: how many of them were not read; position 0 of the trace is chip `n_greyed`.
    """

    segments: "list[list[Token]]"
    n_greyed: int


@dataclass(frozen=True, eq=False)
class Truth:
    """The exact distributions of the stories.

    Attributes:
        probs: (T,V) after each token; NaN from the first token on that no story has there.
        n_told: how many positions have one.
    """

    probs: NDArray[np.float64]
    n_told: int

    def after(self, position: int) -> NDArray[np.float64] | None:
        """(V,), or None where no story goes on like this."""
        return self.probs[position] if position < self.n_told else None

    def of(self, ids: Sequence[int]) -> NDArray[np.float64]:
        """(T-1,) the probability of each token but the first; NaN where there is none."""
        return np.asarray(self.probs[np.arange(len(ids) - 1), list(ids[1:])])

    def log_of(self, ids: Sequence[int]) -> NDArray[np.float64]:
        """(T-1,) natural log of `of`."""
        with np.errstate(divide="ignore"):
            return np.log(self.of(ids))


def brief(x: float) -> str:
    """A number of 0 or more under a token: three significant digits, and no smaller than it matters there."""
    return "<0.001" if 0 < x < 0.001 else format_number(x)


def explain(error: ValueError) -> NoReturn:
    """Show why a page can't go on, word for word, and end it there."""
    st.warning(literal(str(error)))
    nav.end_page()


def need_text(text: str) -> None:
    """End the page with a sentence if there is no text."""
    if text:
        return
    st.info(say("no_text"))
    st.button(say("example"), key="use_example", on_click=session.set_text, args=(session.DEFAULT_TEXT,))
    nav.end_page()


def look(ref: ModelRef, text: str) -> "Trace":
    """One forward pass over the text, or a sentence that says why there is none, and the page ends."""
    need_text(text)
    try:
        trace = passes.traced(ref, text)
    except ValueError as error:
        explain(error)
    if not np.isfinite(trace.logits).all():
        explain(ValueError(say("not_finite")))
    if trace.unused:
        st.info(unread(ref, len(trace.tokens), trace.unused))
    return trace


def unread(ref: ModelRef, used: int, unused: int) -> str:
    """How many tokens are read, and why not those before: the context is full, or memory would be."""
    counts = {"used": format_count(used), "total": format_count(used + unused)}
    if ref.window_length < ref.context_length:
        return say("last_tokens_memory", **counts, context=format_count(ref.context_length))
    return say("last_tokens", **counts)


@lru_cache(maxsize=16)
def strip_of(
    ref: ModelRef, text: str, begin: int = 0, end: int | None = None, most_greyed: int = 24
) -> Strip:
    """The tokens to draw for `look`: positions `begin` to `end` of the trace.

    From position 0 on, the last `most_greyed` tokens that were not read stand before them.
    """
    from engine.tokens import whole_graphemes

    trace, tokenizer = passes.traced(ref, text), resources.tokenizer(ref)
    n_greyed = 0 if begin else min(trace.unused, most_greyed)
    tokens, before = tokenizer.ending(text, ref.context_length + most_greyed)
    first = len(tokenizer.frame[0]) + trace.unused - before  # where the trace's text begins in them
    drawn = [*tokens[first - n_greyed : first], *trace.tokens[begin:end]]
    return Strip(whole_graphemes(drawn, tokenizer.normal(text)), n_greyed)


def space_hint(text: str) -> None:
    """Point at a space at the end, which is easily overlooked."""
    if text[-1:] in (" ", "\t"):
        st.info(say("space_at_end"))


@st.cache_resource(max_entries=16, show_spinner=say.later("asking_grammar"))
def truth_of(ref: ModelRef, text: str) -> Truth | None:
    """What is true after each token that the model read.

    None if the model did not learn from the stories, or the text is too long.
    """
    trace = passes.traced(ref, text)
    if trace.unused + len(trace.tokens) > LONGEST_TRUTH or (oracle := resources.oracle_for(ref)) is None:
        return None
    rows = oracle.distributions(resources.tokenizer(ref).encode(text))[trace.unused :]
    rows.setflags(write=False)
    return Truth(rows, int(np.isfinite(rows[:, 0]).sum()))


def try_this(*steps: Step, key: str = "try") -> None:
    """The end of every page: two or three things to do, each a button that does it.

    Args:
        steps: the things to do.
        key: first part of the buttons' keys; a page with several views gives each its own.
    """
    with st.container(key=f"try_this_{key}"):  # a teacher's link may hide it
        st.subheader(say("try_this"))
        for i, (column, step) in enumerate(zip(st.columns(len(steps)), steps, strict=True)):
            with column.container(border=True, height="stretch"):
                st.write(step.text)
                st.button(step.label, key=f"{key}_{i}", on_click=step.action, args=step.args)
