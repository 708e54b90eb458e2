r"""The story source: a probabilistic grammar with memory, whose every probability is known exactly.

A story is derived from the rules in `story_rules.txt`, leftmost symbol first. Registers remember what was
drawn (a name, a colour, a place), so that it can be said again much later. `engine.oracle` gives the exact
distributions over tokens.

A terminal is a word with its leading space (" princess"), a run of punctuation (",”") or an opening quote
(" “"); the last terminal of a story also carries the line end (".\n"). Every border between two terminals
is a border between chunks for the split patterns of gpt2, cl100k_base, o200k_base and our own BPE, so the
tokens of a text are the tokens of its terminals one after the other.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

from engine.automaton import Automaton, Config, join
from engine.rules import WORD, Alternative, Article, Draw, Expand, Recall, RuleReader, Rules, Symbol, Terminal

RULES_PATH = Path(__file__).with_name("story_rules.txt")

_SURFACE = re.compile(rf" ?“| ?{WORD}|[^\w\s“]+\n?|\n")


class Estimate(NamedTuple):
    """A mean over sampled stories and its standard error."""

    mean: float
    error: float


class Grammar:
    """A source of stories: rules with weights (the notation is explained in story_rules.txt).

    Attributes:
        version: short sha256 of the rules; a `variety` other than 1 is added to it.
        rules: the rules by name.
        arcs: the plots, that is the rules named by the alternatives of rule `arc` (`story` if there is none).
        words: all different words, in lower case.
        automaton: the same grammar as moves between configurations.
    """

    def __init__(self, text: str, *, variety: float = 1.0) -> None:
        """Read the rules; every weight is raised to the power `variety` (0 makes all alternatives alike)."""
        reader = RuleReader(text)
        self.rules = reader.rules
        self.version = hashlib.sha256(text.encode()).hexdigest()[:12]
        if variety != 1.0:
            self.version += f"-v{variety:g}"
        symbols = (
            symbol for line in self.rules.get("arc", self.rules["story"]) for symbol in line.template.symbols
        )
        self.arcs = tuple(symbol.rule for symbol in symbols if isinstance(symbol, Expand))
        self.words = frozenset(word.lower() for word in _all_words(self.rules))
        self.automaton = Automaton(self.rules, tuple(reader.registers), variety)

    @classmethod
    def load(cls, path: str | Path | None = None, *, variety: float = 1.0) -> Grammar:
        """Read a rules file (UTF-8); without a path, the stories that come with the product."""
        return cls(Path(path or RULES_PATH).read_text(encoding="utf-8"), variety=variety)

    def story(self, rng: random.Random) -> str:
        """One story with its line end. Only `rng.random()` is called: a seed gives it on any machine."""
        registers: list[Alternative | None] = [None] * len(self.automaton.start[1])
        pending: list[Symbol] = [Expand("story")]
        said: list[Terminal | Article] = []
        while pending:
            symbol = pending.pop()
            if isinstance(symbol, Terminal | Article):
                said.append(symbol)
                continue
            if isinstance(symbol, Recall):
                template = self.automaton.recalled(symbol, registers)
            else:
                alternatives, shares = self.automaton.choices(symbol, registers)
                chosen = alternatives[_draw(shares, rng)]
                if isinstance(symbol, Draw):
                    registers[symbol.register] = chosen
                template = chosen.template
            pending.extend(reversed(template.symbols))
        return join(said)

    def log_prob(self, text: str) -> float:
        """Natural log of the probability of one or several whole stories; -inf if they can't be derived."""
        terminals = split_terminals(text)
        if "".join(terminals) != text or not text.endswith("\n"):
            return -math.inf
        automaton = self.automaton
        belief: dict[Config, float] = {automaton.start: 1.0}
        total = 0.0
        for terminal in terminals:
            grown: dict[Config, float] = {}
            for config, weight in belief.items():
                for move in automaton.moves(config):
                    if move.terminal == terminal:
                        after = automaton.follow(config, move)
                        grown[after] = grown.get(after, 0.0) + weight * move.probability
            mass = math.fsum(grown.values())
            if mass == 0.0:
                return -math.inf
            total += math.log(mass)
            belief = {config: weight / mass for config, weight in grown.items()}
        return total

    def entropy_rate(self, n_stories: int = 400, seed: int = 0) -> Estimate:
        """Entropy in nats per word: mean of -log p over sampled stories, divided by their mean words.

        Punctuation adds to the surprisal but is not counted as words. The standard error is that of a ratio
        of means, by linearization (Cochran 1977, Sampling Techniques, chapter 6).
        """
        rng = random.Random(seed)
        stories = [self.story(rng) for _ in range(n_stories)]
        nats = [-self.log_prob(story) for story in stories]
        words = [count_words(story) for story in stories]
        rate = math.fsum(nats) / sum(words)
        squares = math.fsum(
            (surprisal - rate * length) ** 2 for surprisal, length in zip(nats, words, strict=True)
        )
        return Estimate(rate, math.sqrt(squares) / sum(words))

    @cached_property
    def endings(self) -> dict[str, float]:
        """Probabilities of a story's last terminal, a full stop or the like with the line end."""
        ends: dict[str, dict[str, float]] = {name: {} for name in self.rules}
        while True:  # a fixed point: each round reaches one rule deeper
            before, ends = ends, {name: self._endings_of(name, ends) for name in self.rules}
            if before == ends:
                return {terminal + "\n": share for terminal, share in ends["story"].items()}

    def _endings_of(self, name: str, ends: dict[str, dict[str, float]]) -> dict[str, float]:
        shares: dict[str, float] = {}
        for alternative, weight in zip(*self.automaton.choices(Expand(name), ()), strict=True):
            last = alternative.template.symbols[-1] if alternative.template.symbols else None
            if isinstance(last, Terminal):
                shares[last.text] = shares.get(last.text, 0.0) + weight
            elif isinstance(last, Expand):
                for terminal, share in ends[last.rule].items():
                    shares[terminal] = shares.get(terminal, 0.0) + weight * share
        return shares


def split_terminals(text: str) -> list[str]:
    """The terminals of a text: of "Hi,” said" they are ["Hi", ",”", " said"]. Other signs are dropped."""
    return _SURFACE.findall(text)


def count_words(text: str) -> int:
    """How many terminals of a text are words (and not punctuation)."""
    return sum(terminal[-1].isalpha() for terminal in split_terminals(text))


@lru_cache(maxsize=1)
def default_grammar() -> Grammar:
    """The stories that come with the product, read once."""
    return Grammar.load()


def story_text(seed: int, n_stories: int, grammar: Grammar | None = None) -> str:
    """`n_stories` stories from a seed, one a line."""
    rng = random.Random(seed)
    source = grammar or default_grammar()
    return "".join(source.story(rng) for _ in range(n_stories))


def _draw(shares: Sequence[float], rng: random.Random) -> int:
    """The index at which the running sum of the shares passes a uniform number."""
    left = rng.random()
    for index, share in enumerate(shares):
        left -= share
        if left < 0.0:
            return index
    return len(shares) - 1  # rounding: the shares may sum to a hair under 1


def _all_words(rules: Rules) -> Iterator[str]:
    """Every word that a story can hold; an article counts as "a" and "an"."""
    lines = [line for alternatives in rules.values() for line in alternatives]
    symbols = [symbol for line in lines for symbol in line.template.symbols]
    said = {symbol.form for symbol in symbols if isinstance(symbol, Recall)}
    for line in lines:
        symbols += [
            word for form in said & line.form_templates.keys() for word in line.form_templates[form].symbols
        ]
    for symbol in symbols:
        if isinstance(symbol, Article):
            yield from ("a", "an")
        elif isinstance(symbol, Terminal) and symbol.text[0].isalpha():
            yield symbol.text
