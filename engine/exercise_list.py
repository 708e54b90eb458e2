"""All exercises, by topic and in order, and one of them with the numbers of a seed."""

from engine import exercise_loss as loss
from engine import exercise_probability as probability
from engine.exercise import SEEDS, Exercise, Maker, Number, generator
from engine.marking import tolerance
from wording import words

say = words("engine.exercise_list")

TOPICS: dict[str, dict[str, Maker]] = {
    "probability": {
        "softmax-three": probability.softmax_three,
    },
    "loss": {
        "minus-log": loss.minus_log,
    },
}
IDS = tuple(name for makers in TOPICS.values() for name in makers)
_TOPIC = {name: topic for topic, makers in TOPICS.items() for name in makers}


def exercise(exercise_id: str, seed: int) -> Exercise:
    """An exercise with the numbers of a seed: the same for everybody, on every machine.

    Args:
        exercise_id: one of `IDS`.
        seed: any whole number.

    Raises:
        ValueError: if there is no such exercise.
    """
    if exercise_id not in _TOPIC:
        raise ValueError(say("unknown", name=repr(exercise_id), names=", ".join(IDS)))
    topic = _TOPIC[exercise_id]
    made = TOPICS[topic][exercise_id](generator(exercise_id, seed % SEEDS))
    answer = _told_apart(made.answer) if isinstance(made.answer, Number) else made.answer
    return Exercise(exercise_id, seed, topic, made.values, answer)


def _told_apart(answer: Number) -> Number:
    """Leave out mistakes that happen to give what is right, or nearly that."""
    near = 0.5 if answer.whole else 4 * tolerance(answer.value)
    kept = tuple(slip for slip in answer.slips if abs(slip.value - answer.value) > near)
    return Number(answer.value, answer.unit, answer.whole, kept)
