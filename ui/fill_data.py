"""The ways of filling blanks, and what each makes of the text on the Masking page; cached, read-only."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine import fill, infill
from engine.fill import Choice, Fill, Guesses
from engine.fill_scores import (
    CAUSAL,
    CAUSAL_WAYS,
    EXACT,
    GIBBS,
    LEFT_TO_RIGHT,
    MASKED_WAYS,
    ONE_PASS,
    RESCORED,
    SUREST,
    is_possible,
)
from engine.infill import Rescored
from engine.metrics import log_softmax
from engine.sampling import next_logits
from ui import resources
from ui.hiding import Both
from ui.model_refs import ModelRef
from wording import words

say = words("ui.fill_data")

MOST = 40  # blanks that are filled one after the other
MOST_DRAWS = 240  # of Gibbs sampling, about 4 seconds
QUICK = 30_000  # tokens that the causal model reads without being asked, about a second
MOST_TRIED = 512  # fillings that it tries; a quarter of them goes on to the next blank


class Way(NamedTuple):
    """A way of filling: which one, and whose it is."""

    way: str
    objective: str

    @property
    def name(self) -> str:
        """What it is called."""
        return say(f"name.{self.way}")

    @property
    def short(self) -> str:
        """What it is called in a narrow column."""
        return say(f"short.{self.way}")

    @property
    def how(self) -> str:
        """What it does."""
        return say(f"how.{self.way}")


WAYS = {
    **{way: Way(way, "mlm") for way in MASKED_WAYS},
    **{way: Way(way, "clm") for way in CAUSAL_WAYS},
    EXACT: Way(EXACT, ""),
}


@dataclass(frozen=True, eq=False)
class Fills:
    """What each way made of one text.

    Attributes:
        found: way -> its fill, in the order of `WAYS`.
        rescored: what the rescoring tried; None without a causal model that can do it.
        why: why the causal model's ways are missing; "" if they are not.
    """

    found: dict[str, Fill]
    rescored: Rescored | None
    why: str


def guesses_of(ref: ModelRef) -> Guesses:
    """The masked model's conditionals; its control tokens are no fillers."""
    tokenizer = resources.tokenizer(ref)
    never = tokenizer.control_ids if ref.kind == "hub" else ()
    return fill.masked_guesses(
        resources.load(ref).model, tokenizer.mask_id, frame=tokenizer.frame, never=never
    )


@st.cache_resource(max_entries=64, show_spinner=say.later("filling"))
def masked_fill(
    ref: ModelRef, way: str, ids: tuple[int, ...], hidden: tuple[int, ...], seed: int, n_sweeps: int
) -> Fill:
    """One of the masked model's ways; seed and sweeps are for Gibbs resampling alone."""
    guesses = guesses_of(ref)
    if way == GIBBS:
        return fill.gibbs(guesses, ids, hidden, n_sweeps=n_sweeps, seed=seed)
    ways = {ONE_PASS: fill.one_pass, LEFT_TO_RIGHT: fill.left_to_right, SUREST: fill.surest_first}
    return ways[way](guesses, ids, hidden)


@st.cache_resource(max_entries=32, show_spinner=False)
def start_of(ref: ModelRef, ids: tuple[int, ...], hidden: tuple[int, ...], seed: int) -> dict[int, int]:
    """The tokens that Gibbs resampling starts with."""
    guesses = guesses_of(ref)
    return fill.gibbs_start(guesses, ids, hidden, seed)


@st.cache_resource(max_entries=32, show_spinner=say.later("filling_left"))
def causal_fill(ref: ModelRef, ids: tuple[int, ...], hidden: tuple[int, ...]) -> Fill:
    """The causal model's continuation."""
    return infill.go_on(resources.load(ref).model, ids, hidden)


@st.cache_resource(max_entries=32, show_spinner=say.later("trying"))
def rescored_fill(ref: ModelRef, ids: tuple[int, ...], hidden: tuple[int, ...], tried: int) -> Rescored:
    """The causal model's rescoring."""
    return infill.rescore(resources.load(ref).model, ids, hidden, tried=tried, kept=max(1, tried // 4))


@st.cache_resource(max_entries=256, show_spinner=False)
def causal_log_prob(ref: ModelRef, ids: tuple[int, ...]) -> float:
    """Natural log of the causal model's probability of a text, given its first token."""
    return infill.text_log_prob(resources.load(ref).model, ids)


def sweeps(n_blanks: int, wanted: int) -> int:
    """How many sweeps of Gibbs resampling are made of so many blanks."""
    return max(1, min(wanted, MOST_DRAWS // n_blanks))


def tried(both: Both, every: bool) -> int:
    """How many fillings the rescoring tries: of one blank all, where that is quick or `every` is wanted."""
    vocab_size, n_read = both.n_ids, len(both.text.seen) - both.hidden[0]
    if len(both.hidden) == 1 and (every or vocab_size * n_read <= QUICK):
        return vocab_size
    return max(32, min(MOST_TRIED, QUICK // n_read))


def fills(both: Both, seed: int, n_sweeps: int, every: bool) -> Fills:
    """Fill the blanks of the page in every way that its models have.

    Raises:
        ValueError: if the masked model's output is not finite.
    """
    ids, hidden = tuple(both.text.ids), tuple(both.hidden)
    n_sweeps = sweeps(len(hidden), n_sweeps)
    found = {way: masked_fill(both.masked, way, ids, hidden, seed, n_sweeps) for way in MASKED_WAYS}
    why = _no_causal(both)
    rescored = None
    if not why and both.causal is not None:
        try:
            found[CAUSAL] = causal_fill(both.causal, ids, hidden)
            rescored = rescored_fill(both.causal, ids, hidden, tried(both, every))
            found[RESCORED] = rescored.fill
        except ValueError as error:
            why = str(error)
    return Fills(found, rescored, why)


def _no_causal(both: Both) -> str:
    if both.causal is None:
        return say("there_no_causal_model")
    if not both.same_tokens:
        return say("causal_model_cuts_text")
    return ""


def probability(choice: Choice) -> float:
    """Of a token when it was chosen."""
    return math.exp(choice.log_prob)


@dataclass(frozen=True)
class Judged:
    """A filled text as a whole.

    Attributes:
        n_right: blanks that hold the hidden token.
        own: ln p of the fillers, by the way that chose them; None if it has none.
        causal: ln p of the text, given its first token, by the causal model; None without one.
        possible: whether the stories can go like this; None if that is not known.
        exact: ln p of the text by the story source; None if it is not known, or 0 has no logarithm.
    """

    n_right: int
    own: float | None
    causal: float | None
    possible: bool | None
    exact: float | None


def judged(both: Both, made: Fills) -> list[Judged]:
    """Every way's text, judged alike."""
    oracle = resources.oracle_for(both.masked)
    known = [place for place in both.hidden if place not in both.text.typed]
    rows = []
    for fill_of in made.found.values():
        n_right = sum(fill_of.ids[place] == both.text.ids[place] for place in known)
        causal = possible = exact = None
        if both.causal is not None and not made.why:
            causal = causal_log_prob(both.causal, fill_of.ids)
        if oracle is not None and not both.text.unused:
            possible = is_possible(oracle, fill_of.ids)
            logs = oracle.log_probs(fill_of.ids) if possible else np.array([-np.inf])
            exact = float(logs.sum()) if np.isfinite(logs).all() else None
        rows.append(Judged(n_right, fill_of.log_prob, causal, possible, exact))
    return rows


@st.cache_resource(max_entries=32, show_spinner=False)
def log_left(ref: ModelRef, ids: tuple[int, ...]) -> NDArray[np.float64]:
    """(V,) log-probabilities of the causal model after some ids."""
    found = log_softmax(next_logits(resources.load(ref).model, ids))
    found.setflags(write=False)
    return found
