"""The worked solution of an exercise whose answer is a number; every line follows from the one before."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from engine.exercise import Exercise, Number
from ui.worked import aligned, softmax, tex

Numbers = Mapping[str, Any]


def formula(exercise: Exercise) -> str:
    """For st.latex."""
    assert isinstance(exercise.answer, Number)
    return FORMULAS[exercise.id](exercise.values, exercise.answer.value)


def _minus_log(given: Numbers, value: float) -> str:
    return aligned(r"\text{loss} &= -\ln p", rf"&= -\ln {given['p']} = {tex(value)}\ \text{{nats}}")


def _softmax_three(given: Numbers, value: float) -> str:
    total = sum(math.exp(z) for z in given["logits"])
    return softmax(given["z"], math.log(total), len(given["logits"]))


FORMULAS: dict[str, Callable[[Numbers, float], str]] = {
    "minus-log": _minus_log,
    "softmax-three": _softmax_three,
}
