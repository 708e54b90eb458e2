"""What a person has done so far with an exercise that stands on a page."""

from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st

from engine.exercise import SEEDS, Exercise, seed_of
from engine.exercise_list import exercise
from engine.exercise_store import Seen, SeenStore
from engine.marking import Verdict
from ui import people, resources, session

PIN = "seed"  # in the address: the same numbers for a whole class
_UNKEPT = "_exercises_unkept"


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
    def first(self) -> int:
        """The seed that its numbers begin with: the address says it, or the person has their own."""
        pin = pinned()
        return seed_of(session.owner(), self.id) if pin is None else pin

    @property
    def state(self) -> State:
        """How it stands, with what was seen before a reload, in another tab or at another place."""
        first, owner = self.first, session.owner()
        kept = st.session_state.get(self._name)
        state = State(*kept) if kept and kept[0] == first else State(first)
        if st.session_state.get(_UNKEPT):
            return state
        turn = _store().turn(owner, self.id, first)
        if turn is not None and turn != state.turn:
            state = replace(state, turn=turn, hints=0, solved=False, right=False)
        seen = _store().seen(owner, self.id, state.seed)
        right = state.right or seen.right
        solved = (state.solved or seen.spent) and not right
        return replace(state, hints=max(state.hints, seen.hints), solved=solved, right=right)

    @property
    def _name(self) -> str:
        return f"_exercise_{self.key}_{self.id}"

    def change(self, **changes: object) -> None:
        """Keep a change."""
        before = self.state
        after = replace(before, **changes)  # type: ignore[arg-type]
        # a tuple: a class of the app is another one after an edit
        st.session_state[self._name] = tuple(vars(after).values())
        owner, seen = session.owner(), Seen(after.hints, after.solved, after.right)
        try:
            if after.turn != before.turn:
                _store().go_to(owner, self.id, after.first, after.turn)
            if seen != Seen():
                _store().keep(owner, self.id, after.seed, seen)
        except OSError:  # the folder can't be used: this browser tab knows it all the same
            st.session_state[_UNKEPT] = True

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
        self.change(verdict=verdict, about=state.turn, right=right, ever=state.ever or verdict.right,
                    solved=state.solved or again)  # fmt: skip
        if again:
            self.change(turn=state.turn + 1, hints=0, solved=False)

    def new_numbers(self) -> None:
        """Go on to other numbers. For callbacks."""
        self._go_to(self.state.turn + 1)

    def first_numbers(self) -> None:
        """Go back to the numbers that the address gives. For callbacks."""
        self._go_to(0)

    def _go_to(self, turn: int) -> None:
        self.change(turn=turn, hints=0, solved=False, right=False, verdict=None)

    def one_hint(self) -> None:
        """Open one more hint. For callbacks."""
        self.change(hints=self.state.hints + 1)

    def solve(self) -> None:
        """Show the solution; these numbers count no more. For callbacks."""
        self.change(solved=True, verdict=None)


def _store() -> SeenStore:
    return _store_in(str(resources.home()))


@st.cache_resource(max_entries=4, show_spinner=False)
def _store_in(folder: str) -> SeenStore:
    return SeenStore(Path(folder))
