"""What an exercise is: what its words are filled with, and the answer that is right.

The words themselves stand in the text files, under the exercise's id; here are only numbers and keys.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

SEEDS = 1_000_000  # seeds that a person is given lie below it


@dataclass(frozen=True)
class Slip:
    """A typical mistake.

    Attributes:
        name: what was done wrong, a key of the text files.
        value: what that gives.
    """

    name: str
    value: float


@dataclass(frozen=True)
class Number:
    """A number is asked for.

    Attributes:
        value: exact.
        unit: "nats", "bits", "share" (a number between 0 and 1, or a percentage), "" or what is counted.
        whole: a count, right only if it is exact. Others are right to three significant digits.
        slips: what typical mistakes give; none of them is as good as right.
    """

    value: float
    unit: str = ""
    whole: bool = False
    slips: tuple[Slip, ...] = ()


@dataclass(frozen=True)
class Option:
    """Something to choose.

    Attributes:
        key: its name; of its words too, if it has no text of its own.
        text: numbers or tokens, the same in every language; "" if words are needed.
    """

    key: str
    text: str = ""


@dataclass(frozen=True)
class Choice:
    """One of some options is right, or several are.

    Attributes:
        options: in the order shown.
        right: places of the right ones.
        several: whether to choose all that are right, which may be only one.
    """

    options: tuple[Option, ...]
    right: frozenset[int]
    several: bool = False


@dataclass(frozen=True)
class Order:
    """Steps to bring into order.

    Attributes:
        steps: keys of the steps, in the right order.
        shown: the same keys in the order in which they are shown at first, which is another.
    """

    steps: tuple[str, ...]
    shown: tuple[str, ...]


@dataclass(frozen=True)
class Ids:
    """A list of whole numbers is asked for.

    Attributes:
        values: in order.
        slips: what typical mistakes give, by name.
    """

    values: tuple[int, ...]
    slips: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True)
class RunTask:
    """A run is to be trained; `engine.exercise_runs` looks for it.

    Attributes:
        name: what is asked of it.
        target: a number that it must reach, if any.
    """

    name: str
    target: float = 0.0


Answer = Number | Choice | Order | Ids | RunTask


@dataclass(frozen=True)
class Made:
    """What a maker of exercises gives: the numbers of the question, and its answer."""

    answer: Answer
    values: Mapping[str, Any] = field(default_factory=dict)


Maker = Callable[[Random], Made]


def number(
    value: float,
    unit: str = "",
    *,
    whole: bool = False,
    slips: Mapping[str, float] | None = None,
    **values: Any,
) -> Made:
    """An exercise that asks for a number; see `Number`. `values` go into its words."""
    mistakes = tuple(Slip(name, float(slip)) for name, slip in (slips or {}).items())
    return Made(Number(float(value), unit, whole, mistakes), values)


@dataclass(frozen=True)
class Exercise:
    """One exercise with its numbers.

    Attributes:
        id: a slug.
        seed: which of its numbers.
        topic: a slug.
        values: what the places of its words are filled with: numbers, lists, texts.
        answer: what is right; its type says how it is asked.
    """

    id: str
    seed: int
    topic: str
    values: Mapping[str, Any]
    answer: Answer

    @property
    def kind(self) -> str:
        """How it is asked: "number", "choose", "several", "order", "ids" or "run"."""
        if isinstance(self.answer, Choice):
            return "several" if self.answer.several else "choose"
        kinds = {Number: "number", Order: "order", Ids: "ids", RunTask: "run"}
        return kinds[type(self.answer)]


def generator(exercise_id: str, seed: int) -> Random:
    """The dice of an exercise: the same on every machine."""
    return Random(f"{exercise_id}:{seed}")  # a text is hashed with SHA-512, whatever the machine


def seed_of(owner: str, exercise_id: str) -> int:
    """The seed that a person begins an exercise with: two neighbours have different numbers."""
    return int(hashlib.sha256(f"{owner}:{exercise_id}".encode()).hexdigest(), 16) % SEEDS


def choice(rng: Random, right: Sequence[Option], wrong: Sequence[Option], *, several: bool = False) -> Choice:
    """Shuffle right and wrong options; of two with the same text the first one stays."""
    good = {option.key for option in right}
    kept: dict[tuple[str, str], Option] = {}
    for option in (*right, *wrong):
        kept.setdefault(("", option.text) if option.text else (option.key, ""), option)
    options = list(kept.values())
    rng.shuffle(options)
    places = frozenset(i for i, option in enumerate(options) if option.key in good)
    return Choice(tuple(options), places, several)


def concept(rng: Random, right: Sequence[str], wrong: Sequence[str], n_wrong: int = 3) -> Choice:
    """A question of understanding: one of some right statements among some of the wrong ones."""
    return choice(rng, [Option(rng.choice(right))], [Option(key) for key in rng.sample(wrong, n_wrong)])


def order(rng: Random, steps: Sequence[str]) -> Order:
    """Shuffle steps until they are in another order."""
    shown = list(steps)
    while shown == list(steps):
        rng.shuffle(shown)
    return Order(tuple(steps), tuple(shown))
