"""Pairs and preferences from the story grammar: what is asked for can be told from what is written."""

import random
import re
from collections import defaultdict
from collections.abc import Iterator

from engine.grammar import default_grammar
from engine.pair_files import Pair, Preference

SENTENCES = 2  # of a story: its opening, which names the hero
HELD_OUT = 5  # one of so many combinations of hero and name is never trained on

Hero = tuple[str, str]  # kind and name


def story_pairs(seed: int, n: int, *, held_out: bool = False) -> list[Pair]:
    """`n` openings of stories, each with a prompt that asks for its hero.

    Heroes and names come together in combinations. One in five of them is only ever used with `held_out`: a
    model that follows such a prompt has learned to do what it is told, not the combinations.

    Args:
        seed: of the stories.
        n: how many.
        held_out: whether to use only the combinations that are kept apart, or only the others.

    >>> story_pairs(1, 1)[0].prompt
    'Begin a story about a rabbit called Max.'
    """
    found: list[Pair] = []
    openings = _openings(seed, held_out)
    while len(found) < n:
        hero, story = next(openings)
        found.append(Pair(_prompt(hero), story))
    return found


def follows(pair: Pair | Preference, text: str) -> bool:
    """Whether a text begins with the hero, of the kind and name, that the prompt of a story pair asks for.

    >>> pair = Pair("Begin a story about a fox called Max.", "There was once a shy fox called Max.")
    >>> follows(pair, pair.answer), follows(pair, "There was once a shy fox called Tom.")
    (True, False)
    """
    asked = re.search(r"about an? (\w+ called \w+)", pair.prompt)
    told = re.search(r"\w+ called \w+", text)
    return asked is not None and told is not None and asked[1] == told[0]


def story_preferences(seed: int, n: int, *, held_out: bool = False) -> list[Preference]:
    """`n` prompts as in `story_pairs`, each with an opening that is `wanted` and one that isn't.

    Both are about the hero of the prompt; none comes twice. Arguments as in `story_pairs`.
    """
    found: list[Preference] = []
    waiting: dict[tuple[Hero, bool], list[str]] = defaultdict(list)
    openings = _openings(seed, held_out)
    while len(found) < n:
        hero, story = next(openings)
        liked = wanted(story)
        others = waiting[hero, not liked]
        if others:
            one, other = (story, others.pop()) if liked else (others.pop(), story)
            found.append(Preference(_prompt(hero), one, other))
        else:
            waiting[hero, liked].append(story)
    return found


def wanted(text: str) -> bool:
    """Whether a story begins with a brave or kind hero; about one in fifteen of all stories do.

    >>> wanted("There was once a brave fox called Max."), wanted("There was once a fox called Max.")
    (True, False)
    """
    return re.search(r"\b(brave|kind) \w+ called \w+", text) is not None


def _openings(seed: int, held_out: bool) -> Iterator[tuple[Hero, str]]:
    rng, grammar = random.Random(seed), default_grammar()
    while True:
        opening = " ".join(re.split(r"(?<=[.!?]) ", grammar.story(rng))[:SENTENCES])
        told = re.search(r"(\w+) called (\w+)", opening)
        assert told is not None  # every opening of the grammar names its hero
        hero = told[1], told[2]
        if _apart(hero) == held_out:
            yield hero, opening


def _prompt(hero: Hero) -> str:
    article = "an" if hero[0][0] in "aeiou" else "a"
    return f"Begin a story about {article} {hero[0]} called {hero[1]}."


def _apart(hero: Hero) -> bool:
    return sum("".join(hero).encode()) % HELD_OUT == 0
