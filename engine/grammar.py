"""The story source: a probabilistic grammar with memory, whose every probability is known exactly.

A story is derived from the rules in `story_rules.txt`, leftmost symbol first. Registers remember what was
drawn (a name, a colour, a place), so that it can be said again much later. The derivation is also a weighted
automaton: a `Config` holds what is still to be said and what is remembered; `Grammar.arcs` lists the next
terminals with their probabilities. `engine.oracle` turns those into exact distributions over tokens.

A terminal is a word with its leading space (" princess"), a run of punctuation (",”") or an opening quote
(" “"); the last terminal of a story also carries the line end (".\\n"). Every border between two terminals is a
border between chunks for the split patterns of gpt2, cl100k_base, o200k_base and our own BPE, so the tokens of a
text are the tokens of its terminals one after the other.
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
from weakref import WeakValueDictionary

from engine.rules import WORD, Alternative, Article, Draw, Expand, Recall, RuleReader, Rules, Symbol, Template, Terminal

RULES_PATH = Path(__file__).with_name("story_rules.txt")
ARCS_KEPT = 12_000  # configurations whose arcs are remembered, some 30 MB

SPACED, GLUED, AFTER_A, AFTER_AN = range(4)  # how the next word is joined to what stands before it

_SURFACE = re.compile(rf" ?“| ?{WORD}|[^\w\s“]+\n?|\n")


class Frame:
    """What is still to be said: a place in a template, and the frame below it (None: there the story ends)."""

    __slots__ = ("template", "dot", "below", "live", "__weakref__")

    def __init__(self, template: Template, dot: int, below: Frame | None) -> None:
        """`live` is the bit mask of the registers that may still be read from here on."""
        self.template, self.dot, self.below = template, dot, below
        under = below.live if below is not None else 0
        self.live = template.reads[dot] | (under & ~template.sets[dot])


Choices = tuple[tuple[Alternative, ...], tuple[float, ...]]  # alternatives and their probabilities
Registers = tuple[Alternative | None, ...]
Config = tuple[Frame | None, Registers, int]  # what is to come, what is remembered, how the next word is joined
Arc = tuple[str, float, Config]  # terminal, its probability, the configuration after it


class Estimate(NamedTuple):
    """A mean over sampled stories and its standard error."""

    mean: float
    error: float


def takes_an(word: str) -> bool:
    """Whether "an" stands before a word: `takes_an("owl")` is True, `takes_an("useful")` is False."""
    word = word.lower()
    if word.startswith(("uni", "use", "eu", "one")):
        return False
    return word.startswith(("a", "e", "i", "o", "u", "hour", "honest"))


def split_terminals(text: str) -> list[str]:
    """The terminals of a text: `split_terminals("Hi,” said")` gives ["Hi", ",”", " said"]. Other signs are dropped."""
    return _SURFACE.findall(text)


class Grammar:
    """A source of stories: rules with weights (the notation is explained in story_rules.txt).

    Attributes:
        version: short sha256 of the rules; a `variety` other than 1 is added to it.
        rules: the rules by name.
        arcs: the plots, that is the rules named by the alternatives of rule `arc` (of `story` if there is none).
        words: all different words, in lower case.
        start: the configuration before the first word of a story.
    """

    def __init__(self, text: str, *, variety: float = 1.0) -> None:
        """Read the rules; every weight is raised to the power `variety` (0 makes all alternatives alike)."""
        reader = RuleReader(text)
        self.rules = reader.rules
        self.version = hashlib.sha256(text.encode()).hexdigest()[:12] + (f"-v{variety:g}" if variety != 1 else "")
        self.arcs = tuple(
            symbol.rule
            for alternative in self.rules.get("arc", self.rules["story"])
            for symbol in alternative.template.symbols
            if isinstance(symbol, Expand)
        )
        self.words = frozenset(word.lower() for word in _all_words(self.rules))
        self._variety = variety
        self._shares = {name: self._share(alternatives) for name, alternatives in self.rules.items()}
        self._frames: WeakValueDictionary[tuple[Template, int, Frame | None], Frame] = WeakValueDictionary()
        self._arcs: dict[Config, tuple[Arc, ...]] = {}
        self._n_registers = len(reader.registers)
        self._register_names = list(reader.registers)
        self._first = Template((Expand("story"),))
        self.start: Config = (self._frame(self._first, 0, None), (None,) * self._n_registers, GLUED)

    @classmethod
    def load(cls, path: str | Path | None = None, *, variety: float = 1.0) -> Grammar:
        """Read a rules file (UTF-8); without a path, the stories that come with the product."""
        return cls(Path(path or RULES_PATH).read_text(encoding="utf-8"), variety=variety)

    # ---- sampling ----

    def story(self, rng: random.Random) -> str:
        """One story: a line that ends with "\\n". Only `rng.random()` is used, so a seed gives it on any machine."""
        registers: list[Alternative | None] = [None] * self._n_registers
        pending: list[Symbol] = [Expand("story")]
        said: list[Terminal | Article] = []
        while pending:
            symbol = pending.pop()
            if isinstance(symbol, Terminal | Article):
                said.append(symbol)
                continue
            if isinstance(symbol, Recall):
                template = self._recalled(symbol, registers)
            else:
                alternatives, shares = self._choices(symbol, registers)
                chosen = alternatives[_draw(shares, rng)]
                if isinstance(symbol, Draw):
                    registers[symbol.register] = chosen
                template = chosen.template
            pending.extend(reversed(template.symbols))
        return _join(said)

    # ---- the automaton ----

    def arcs_from(self, config: Config) -> tuple[Arc, ...]:
        """The terminals that can come next, each with its probability and the configuration after it.

        The probabilities sum to 1. After the end of a story (".\\n") the configuration is `start` again.
        """
        arcs = self._arcs.get(config)
        if arcs is None:
            if len(self._arcs) >= ARCS_KEPT:
                self._arcs.clear()
            arcs = self._arcs[config] = self._find_arcs(config)
        return arcs

    def _find_arcs(self, config: Config) -> tuple[Arc, ...]:
        frame, registers, joined = config
        assert frame is not None  # the end of a story is `start`
        if joined in (AFTER_A, AFTER_AN):
            wanted = [
                arc
                for arc in self.arcs_from((frame, registers, SPACED))
                if takes_an(arc[0].lstrip()) == (joined == AFTER_AN)
            ]
            total = math.fsum(probability for _, probability, _ in wanted)
            return tuple((terminal, probability / total, after) for terminal, probability, after in wanted)
        found: dict[tuple[str, Config], float] = {}
        self._expand(frame, registers, 1.0, joined, found)
        return tuple((terminal, probability, after) for (terminal, after), probability in found.items())

    def _expand(
        self,
        frame: Frame | None,
        registers: Registers,
        weight: float,
        joined: int,
        found: dict[tuple[str, Config], float],
    ) -> None:
        """Follow every derivation from a frame to its first terminal and add the weights in `found`."""
        if frame is None:
            raise ValueError("A story must not end with a part that can be empty: its last word carries the line end.")
        symbol = frame.template.symbols[frame.dot]
        after = self._frame(frame.template, frame.dot + 1, frame.below)
        if isinstance(symbol, Terminal):
            arc = self._say(symbol, after, registers, joined)
            found[arc] = found.get(arc, 0.0) + weight
        elif isinstance(symbol, Article):
            self._expand_article(symbol, after, registers, weight, joined, found)
        elif isinstance(symbol, Recall):
            template = self._recalled(symbol, registers)
            self._expand(self._frame(template, 0, after), registers, weight, joined, found)
        else:
            alternatives, shares = self._choices(symbol, registers)
            for alternative, share in zip(alternatives, shares, strict=True):
                memory = registers
                if isinstance(symbol, Draw):
                    memory = (*registers[: symbol.register], alternative, *registers[symbol.register + 1 :])
                self._expand(self._frame(alternative.template, 0, after), memory, weight * share, joined, found)

    def _say(self, terminal: Terminal, after: Frame | None, registers: Registers, joined: int) -> tuple[str, Config]:
        """A terminal as it is written, and the configuration after it."""
        text = " " + terminal.text if terminal.spaced and joined != GLUED else terminal.text
        if after is None:
            return text + "\n", self.start
        return text, (after, _forget(registers, after.live), GLUED if terminal.text == "“" else SPACED)

    def _expand_article(
        self,
        article: Article,
        after: Frame | None,
        registers: Registers,
        weight: float,
        joined: int,
        found: dict[tuple[str, Config], float],
    ) -> None:
        """ "a" is as probable as all next words that take "a" together; then only those words remain."""
        if after is None:
            raise ValueError("An article must have a word after it.")
        memory = _forget(registers, after.live)
        shares = {AFTER_A: 0.0, AFTER_AN: 0.0}
        for terminal, probability, _ in self.arcs_from((after, memory, SPACED)):
            shares[AFTER_AN if takes_an(terminal.lstrip()) else AFTER_A] += probability
        for join, share in shares.items():
            if share > 0.0:
                arc = (_article(article, join == AFTER_AN, joined), (after, memory, join))
                found[arc] = found.get(arc, 0.0) + weight * share

    def _frame(self, template: Template, dot: int, below: Frame | None) -> Frame | None:
        """The one frame for a place in a template; a template that is said to its end gives the frame below it."""
        if dot == len(template.symbols):
            return below
        key = (template, dot, below)
        frame = self._frames.get(key)
        if frame is None:
            frame = self._frames[key] = Frame(template, dot, below)
        return frame

    @cached_property
    def endings(self) -> dict[str, float]:
        """The last terminals of a story (".\\n", "!”\\n") and their probabilities."""
        ends: dict[str, dict[str, float]] = {name: {} for name in self.rules}
        while True:  # a fixed point: each round reaches one rule deeper
            before, ends = ends, {name: self._endings_of(name, ends) for name in self.rules}
            if before == ends:
                return {terminal + "\n": share for terminal, share in ends["story"].items()}

    def _endings_of(self, name: str, ends: dict[str, dict[str, float]]) -> dict[str, float]:
        shares: dict[str, float] = {}
        for alternative, weight in zip(*self._shares[name], strict=True):
            last = alternative.template.symbols[-1] if alternative.template.symbols else None
            if isinstance(last, Terminal):
                shares[last.text] = shares.get(last.text, 0.0) + weight
            elif isinstance(last, Expand):
                for terminal, share in ends[last.rule].items():
                    shares[terminal] = shares.get(terminal, 0.0) + weight * share
        return shares

    # ---- choices ----

    def _choices(self, symbol: Expand | Draw, registers: Sequence[Alternative | None]) -> Choices:
        """The alternatives that a symbol has here and their probabilities."""
        rule = symbol.rule
        if isinstance(symbol, Draw) and symbol.owner is not None:
            rule = self._held(symbol.owner, registers).forms[rule]
        if isinstance(symbol, Expand) or not symbol.different:
            return self._shares[rule]
        taken = {self._held(register, registers).text for register in symbol.different}
        return self._share(tuple(each for each in self.rules[rule] if each.text not in taken))

    def _share(self, alternatives: tuple[Alternative, ...]) -> Choices:
        weights = [alternative.weight**self._variety for alternative in alternatives]
        total = math.fsum(weights)
        return alternatives, tuple(weight / total for weight in weights)

    def _recalled(self, symbol: Recall, registers: Sequence[Alternative | None]) -> Template:
        held = self._held(symbol.register, registers)
        if not symbol.form:
            return held.template
        if symbol.form not in held.form_templates:
            raise ValueError(f"{held.text!r} has no form {symbol.form!r}. Add `; {symbol.form}=...` to its line.")
        return held.form_templates[symbol.form]

    def _held(self, register: int, registers: Sequence[Alternative | None]) -> Alternative:
        held = registers[register]
        if held is None:
            raise ValueError(f"Register {self._register_names[register]!r} is read before anything was drawn for it.")
        return held

    # ---- probability ----

    def log_prob(self, text: str) -> float:
        """Natural log of the probability of one or several whole stories; -inf if they can't be derived."""
        terminals = split_terminals(text)
        if "".join(terminals) != text or not text.endswith("\n"):
            return -math.inf
        total = 0.0
        belief = {self.start: 1.0}
        for terminal in terminals:
            grown: dict[Config, float] = {}
            for config, weight in belief.items():
                for said, probability, after in self.arcs_from(config):
                    if said == terminal:
                        grown[after] = grown.get(after, 0.0) + weight * probability
            mass = math.fsum(grown.values())
            if mass == 0.0:
                return -math.inf
            total += math.log(mass)
            belief = {config: weight / mass for config, weight in grown.items()}
        return total

    def entropy_rate(self, n_stories: int = 400, seed: int = 0) -> Estimate:
        """Entropy in nats per word, as the mean of -log p over sampled stories divided by their mean length.

        The standard error is that of the ratio (delta method). Words are counted, punctuation is not; its
        surprisal belongs to the numerator.
        """
        rng = random.Random(seed)
        pairs = []
        for _ in range(n_stories):
            story = self.story(rng)
            pairs.append((-self.log_prob(story), count_words(story)))
        nats, words = (math.fsum(column) for column in zip(*pairs, strict=True))
        rate = nats / words
        squares = math.fsum((surprisal - rate * length) ** 2 for surprisal, length in pairs)
        return Estimate(rate, math.sqrt(squares) / words)


def _all_words(rules: Rules) -> Iterator[str]:
    """Every word of every template; articles count as "a" and "an"."""
    for alternatives in rules.values():
        for alternative in alternatives:
            for template in (alternative.template, *alternative.form_templates.values()):
                for symbol in template.symbols:
                    if isinstance(symbol, Article):
                        yield from ("a", "an")
                    elif isinstance(symbol, Terminal) and symbol.text[0].isalpha():
                        yield symbol.text


def _draw(shares: Sequence[float], rng: random.Random) -> int:
    """The index at which the running sum of the shares passes a uniform number."""
    left = rng.random()
    for index, share in enumerate(shares):
        left -= share
        if left < 0.0:
            return index
    return len(shares) - 1  # rounding: the shares sum to a hair under 1


def _forget(registers: Registers, live: int) -> Registers:
    """Only the registers that may still be read: configurations that tell the same future become equal."""
    return tuple([held if live >> index & 1 else None for index, held in enumerate(registers)])


def _article(article: Article, an: bool, joined: int) -> str:
    text = ("An" if an else "A") if article.capital else ("an" if an else "a")
    return text if joined == GLUED else " " + text


def _join(said: Sequence[Terminal | Article]) -> str:
    """Write down the terminals of a story: spaces, "a" or "an", and the line end."""
    pieces: list[str] = []
    joined = GLUED
    for index, symbol in enumerate(said):
        if isinstance(symbol, Article):
            following = said[index + 1]
            assert isinstance(following, Terminal)
            pieces.append(_article(symbol, takes_an(following.text), joined))
            joined = SPACED
        else:
            pieces.append(" " + symbol.text if symbol.spaced and joined != GLUED else symbol.text)
            joined = GLUED if symbol.text == "“" else SPACED
    return "".join(pieces) + "\n"


def count_words(text: str) -> int:
    """How many terminals of a text are words (not punctuation)."""
    return sum(terminal[-1].isalpha() for terminal in split_terminals(text))


@lru_cache(maxsize=1)
def default_grammar() -> Grammar:
    """The stories that come with the product, read once."""
    return Grammar.load()


def story_text(seed: int, n_stories: int, grammar: Grammar | None = None) -> str:
    """`n_stories` stories, one a line, from a seed."""
    rng = random.Random(seed)
    grammar = grammar or default_grammar()
    return "".join(grammar.story(rng) for _ in range(n_stories))
