"""Pairs and preferences from the story grammar: what is asked for can be told from what is written."""

import random
import re
from collections.abc import Iterator
from functools import lru_cache

from engine.grammar import default_grammar
from engine.pair_files import Pair, Preference

MOST_WORDS = 130  # of a story: with its prompt it fits the context of the shipped model
HELD_OUT = 5  # one of so many combinations of hero and name is never trained on


def story_pairs(seed: int, n: int, *, held_out: bool = False) -> list[Pair]:
    """`n` stories, each with a prompt that asks for it.

    Heroes and names come together in combinations. One in five of them is only ever used with `held_out`: a
    model that follows such a prompt has learned to do what it is told, not the combinations.

    Args:
        seed: of the stories.
        n: how many.
        held_out: whether to use only the combinations that are kept apart, or only the others.
    """
    found = []
    for story in _stories(seed):
        hero, name = _hero(story)
        if (_apart(hero, name) == held_out) and len(story.split()) <= MOST_WORDS:
            article = "an" if hero[0] in "aeiou" else "a"
            found.append(Pair(f"Tell a story about {article} {hero} called {name}.", story.rstrip("\n")))
            if len(found) == n:
                return found
    raise AssertionError("the stories never end")


def follows(pair: Pair, text: str) -> bool:
    """Whether a text is about the hero, of the kind and name, that the prompt of a story pair asks for."""
    asked = re.search(r"about an? (\w+) called (\w+)", pair.prompt)
    return asked is not None and _hero(text) == (asked[1], asked[2])


def story_preferences(seed: int, n: int, *, held_out: bool = False) -> list[Preference]:
    """`n` prompts as in `story_pairs`, each with a story that is `wanted` and one that isn't."""
    found = []
    for pair in story_pairs(seed, n, held_out=held_out):
        found.append(Preference(pair.prompt, pair.answer, pair.answer + " "))
    return found


def wanted(text: str) -> bool:
    """Whether in this story the hero shares what there is to eat."""
    return re.search(r"gave (half|most|some) of the \w+ away", text) is not None


def _stories(seed: int) -> Iterator[str]:
    rng, grammar = random.Random(seed), default_grammar()
    while True:
        yield grammar.story(rng)


@lru_cache(maxsize=1)
def _heroes() -> frozenset[str]:
    return frozenset()


def _hero(text: str) -> tuple[str, str]:
    """What kind of hero a story is about, and the name: ("", "") if it doesn't say."""
    found = re.search(r"(\w+) called (\w+)", text)
    return (found[1], found[2]) if found else ("", "")


def _apart(hero: str, name: str) -> bool:
    return (sum(map(ord, hero)) + sum(map(ord, name))) % HELD_OUT == 0
