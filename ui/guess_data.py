"""What a round of guessing needs: its text, what all other players say, and the person's bets."""

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from engine import corpus, guess
from engine.baselines import NGrams
from engine.guess import Field, Round
from engine.guess_store import Bets, BetStore, round_name
from ui import people, resources, session
from ui.model_refs import ModelRef
from wording import words

say = words("ui.guess_data")


def _texts(ref: ModelRef) -> tuple[str, str]:
    """What n-grams are counted in, and a model's validation text.

    For a shipped model as many stories as the app trains on; also for a published one, whose own text nobody
    has here.
    """
    if ref.kind in ("shipped", "hub"):
        return corpus.split(corpus.stories())
    from engine.repeats import spec_of

    spec = spec_of(resources.run_store().info(ref.id.removeprefix("run:")))
    return corpus.split(spec.corpus, spec.val_share)


@st.cache_resource(max_entries=8, show_spinner=say.later("counting"))
def counts(ref: ModelRef) -> NGrams:
    """The n-grams of a model's training text."""
    tokenizer = resources.tokenizer(ref)
    return NGrams(tokenizer.encode(_texts(ref)[0]), tokenizer.vocab_size)


@st.cache_resource(max_entries=16, show_spinner=False)
def round_of(ref: ModelRef, seed: int) -> Round:
    """The tokens to guess: of a run that learned from another text its validation text, else a fresh story.

    Raises:
        ValueError: if the validation text is too short.
    """
    tokenizer = resources.tokenizer(ref)
    if ref.corpus == "stories" or ref.kind in ("shipped", "hub"):
        return guess.story_round(tokenizer, seed, oracle=resources.oracle_for(ref))
    return guess.text_round(tokenizer.encode(_texts(ref)[1]), seed)


@st.cache_resource(max_entries=16, show_spinner=say.later("predicting"))
def field(ref: ModelRef, seed: int) -> Field:
    """What all other players say."""
    model = resources.load(ref).model
    before = resources.tokenizer(ref).frame[0]
    return guess.field(round_of(ref, seed), counts(ref), model, resources.oracle_for(ref), before=before)


def name_of(ref: ModelRef, seed: int) -> str:
    """The same for all models that read these tokens in the same way: a round is played once."""
    return round_name(round_of(ref, seed).ids, resources.tokenizer(ref).hash)


def bets(ref: ModelRef, seed: int) -> Bets:
    """The person's bets so far."""
    return _store(str(resources.home())).read(session.owner(), name_of(ref, seed))


def place(ref: ModelRef, seed: int, at: int, bet: Mapping[str, object]) -> None:
    """Place a bet on the token at a place; it can't be taken back. For callbacks."""
    with people.keeping():
        _store(str(resources.home())).add(session.owner(), name_of(ref, seed), at, bet)


@st.cache_resource(max_entries=4, show_spinner=False)
def _store(folder: str) -> BetStore:
    return BetStore(Path(folder))


def paid(ref: ModelRef, seed: int) -> list[float]:
    """What each of the person's bets cost, bits; a damaged one as much as no bet at all."""
    part, v = round_of(ref, seed), resources.tokenizer(ref).vocab_size
    costs = []
    for i, kept in enumerate(bets(ref, seed)[: part.n]):
        try:
            probs = guess.probs_of(kept, v)
        except ValueError:
            probs = guess.pick(None, [], 99, v)
        costs.append(guess.bits(probs, part.answer(i)))
    return costs
