"""What a person has done so far with an exercise that stands on a page."""

from dataclasses import dataclass, replace

import streamlit as st

from engine.exercise import SEEDS, Exercise, seed_of
from engine.exercise_list import exercise
from engine.marking import Verdict
from ui import people, session

PIN = "seed"  # in the address: the same numbers for a whole class


@dataclass(frozen=True)
class State:
    """Of one exercise at one place.

    Attributes:
        first: the seed that its numbers began with.
        turn: how often new numbers were asked for.
        hints: opened for these numbers.
        solved: whether the solution of these numbers was shown before they were right.
        right: whether these numbers were answered right.
        ever: whether any were, at this place.
        verdict: on the last answer.
        about: turn of the numbers that the verdict is about; with a wrong choice they are gone already.
    """

    first: int
    turn: int = 0
    hints: int = 0
    solved: bool = False
    right: bool = False
    ever: bool = False
    verdict: Verdict | None = None
    about: int = 0

    @property
    def seed(self) -> int:
        """Of the numbers now."""
        return (self.first + self.turn) % SEEDS

    @property
    def seed_before(self) -> int:
        """Of the numbers that the verdict is about."""
        return (self.first + self.about) % SEEDS


def pinned() -> int | None:
    """The seed that the address gives to everybody, if it does."""
    wanted = st.query_params.get(PIN, "")
    return int(wanted) % SEEDS if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 else None


@dataclass(frozen=True)
class Place:
    """One exercise at one place of the app.

    Attributes:
        id: of the exercise.
        key: of the place, first part of the widgets' keys.
    """

    id: str
    key: str

    @property
    def state(self) -> State:
        """How it stands; begun anew if the address or the person says another seed."""
        pin = pinned()
        first = seed_of(session.owner(), self.id) if pin is None else pin
        kept = st.session_state.get(self._name)
        return State(*kept) if kept and kept[0] == first else State(first)

    @property
    def _name(self) -> str:
        return f"_exercise_{self.key}_{self.id}"

    def change(self, **changes: object) -> None:
        """Keep a change."""
        after = replace(self.state, **changes)  # type: ignore[arg-type]
        # a tuple: a class of the app is another one after an edit
        st.session_state[self._name] = tuple(vars(after).values())

    @property
    def exercise(self) -> Exercise:
        """With the numbers now."""
        return exercise(self.id, self.state.seed)

    @property
    def before(self) -> Exercise:
        """With the numbers that the verdict is about."""
        return exercise(self.id, self.state.seed_before)

    def widget(self, name: str) -> str:
        """The key of a widget, another one for each of the numbers."""
        return f"{self.key}_{self.id}_{self.state.seed}_{name}"

    def judged(self, verdict: Verdict) -> None:
        """Keep a verdict and count it; a wrong choice brings new numbers, against trying them all."""
        state = self.state
        if verdict.marked and not state.right and not state.solved:
            people.answer(self.id, seed=state.seed, right=verdict.right, hints=state.hints)
        again = verdict.marked and not verdict.right and self.exercise.kind in ("choose", "several")
        right = state.right or verdict.right
        self.change(verdict=verdict, about=state.turn, right=right, ever=state.ever or verdict.right)
        if again:
            self.change(turn=state.turn + 1, hints=0)

    def new_numbers(self) -> None:
        """Go on to other numbers. For callbacks."""
        self.change(turn=self.state.turn + 1, hints=0, solved=False, right=False, verdict=None)

    def one_hint(self) -> None:
        """Open one more hint. For callbacks."""
        self.change(hints=self.state.hints + 1)

    def solve(self) -> None:
        """Show the solution; these numbers count no more. For callbacks."""
        self.change(solved=True, verdict=None)
