"""The words of an exercise, with its numbers in them."""

from engine.exercise import Choice, Exercise
from ui.words import literal
from wording import words

say = words("ui.exercise_text")


def title(exercise_id: str) -> str:
    """Its name."""
    return say(f"exercise.{exercise_id}.title")


def topic(name: str) -> str:
    """The name of a topic."""
    return say(f"topic.{name}")


def question(exercise: Exercise) -> str:
    """What is asked, Markdown."""
    return say(f"exercise.{exercise.id}.question", **exercise.values)


def hints(exercise: Exercise) -> list[str]:
    """Its hints, from a nudge to nearly everything; Markdown."""
    names = say.table(f"exercise.{exercise.id}.hint")
    return [say(f"exercise.{exercise.id}.hint.{name}", **exercise.values) for name in names]


def because(exercise: Exercise) -> str:
    """Why the right answer is right, Markdown; for an exercise whose solution is no formula."""
    return say(f"exercise.{exercise.id}.because", **exercise.values)


def option(exercise: Exercise, place: int) -> str:
    """One option of a choice, Markdown."""
    assert isinstance(exercise.answer, Choice)
    chosen = exercise.answer.options[place]
    if chosen.text:
        return literal(chosen.text)
    return say(f"exercise.{exercise.id}.option.{chosen.key}", **exercise.values)


def why_not(exercise: Exercise, key: str) -> str:
    """What is wrong with an option, by its key."""
    return say(f"exercise.{exercise.id}.why.{key}", **exercise.values)


def step(exercise: Exercise, key: str) -> str:
    """One of the steps to bring into order."""
    return say(f"exercise.{exercise.id}.step.{key}")
