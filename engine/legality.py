"""How far a text is a story: its longest legal beginning, where it breaks, what could have stood there."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from engine.automaton import Config
from engine.grammar import Grammar

Beliefs = dict[int, dict[Config, float]]  # character index -> configurations reached there -> weight


@dataclass(frozen=True)
class LegalPrefix:
    """How far a text is one that the story source can tell.

    Attributes:
        text: the longest legal beginning of the text, cut inside a word if need be.
        n_chars: its length in characters.
        n_tokens: how many of the text's tokens lie wholly in it.
        complete: whether that is the whole text.
        expected: the likeliest terminals for the word at which the text breaks, given the words before it;
            if the text is complete, for its unfinished word or the next one. Likeliest first.
    """

    text: str
    n_chars: int
    n_tokens: int
    complete: bool
    expected: list[tuple[str, float]]


def legal_characters(grammar: Grammar, text: str) -> tuple[int, int, dict[str, float]]:
    """The longest legal beginning of a text that starts with a story (or with the line end before it).

    Returns:
        The length of that beginning in characters; where its last, perhaps unfinished terminal begins; and
        the probabilities of all terminals that can stand there.
    """
    automaton = grammar.automaton
    begin = 1 if text.startswith("\n") else 0
    agenda: Beliefs = {begin: {automaton.start: 1.0}}
    reached, word_at, options = -1, begin, dict[str, float]()
    while agenda:
        place = min(agenda)
        belief = agenda.pop(place)
        found: dict[str, float] = {}
        for config, weight in belief.items():
            for move in automaton.moves(config):
                found[move.terminal] = found.get(move.terminal, 0.0) + weight * move.probability
                if text.startswith(move.terminal, place):
                    after = automaton.follow(config, move)
                    grown = agenda.setdefault(place + len(move.terminal), {})
                    grown[after] = grown.get(after, 0.0) + weight * move.probability
        _rescale(agenda)
        far = place + max(_shared(text, place, terminal) for terminal in found)
        if far >= reached:  # the later of two words that break at the same character
            reached, word_at, options = far, place, found
    total = math.fsum(options.values())
    return reached, word_at, {terminal: share / total for terminal, share in options.items()}


def _shared(text: str, place: int, terminal: str) -> int:
    """How many characters of a terminal agree with the text from a place on."""
    return len(os.path.commonprefix([text[place : place + len(terminal)], terminal]))


def _rescale(agenda: Beliefs) -> None:
    """Keep the weights of a long text from underflowing; only their ratios matter."""
    top = max((weight for belief in agenda.values() for weight in belief.values()), default=1.0)
    if top < 1e-100:
        for belief in agenda.values():
            for config in belief:
                belief[config] /= top
