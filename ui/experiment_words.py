"""The studies in words: the question, what is held equal, and what one can predict."""

from collections.abc import Mapping
from dataclasses import dataclass

from wording import words

say = words("ui.experiment_words")


@dataclass(frozen=True)
class StudyWords:
    """What a study's section says before there is a result.

    Attributes:
        title: of the section, short.
        question: one sentence.
        setup: what is trained, and what is equal in all runs.
        ask: what to predict.
        choices: answer -> words; empty where a number of per cent is asked.
    """

    title: str
    question: str
    setup: str
    ask: str
    choices: Mapping[str, str]

    def said(self, answer: str | float) -> str:
        """An answer in words."""
        if isinstance(answer, str):
            return self.choices.get(answer, answer)
        return say("percent", n=answer)


ASKED_FOR_A_NUMBER = ("model-size", "text-size")  # per cent; the other studies offer a choice


def words_of(study: str) -> StudyWords:
    """What there is to say of a study, by its name."""
    return StudyWords(
        say(f"title.{study}"),
        say(f"question.{study}"),
        say(f"setup.{study}"),
        say(f"ask.{study}"),
        {} if study in ASKED_FOR_A_NUMBER else say.table(f"choice.{study}"),
    )
