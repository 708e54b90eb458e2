r"""The grammar as a weighted automaton, made on demand: what can be said next, and what is remembered then.

A configuration holds what is still to be said (a stack of places in templates), what the registers remember,
and how the next word is joined to the text. Registers that nothing ahead reads are forgotten, so that
configurations with the same future are equal. The moves from a place depend only on the few registers that
are read before the next terminal: they are computed once for each content of those.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple
from weakref import WeakValueDictionary

from engine.rule_effects import check_punctuation, mark_registers
from engine.rules import Alternative, Article, Draw, Expand, Recall, Rules, Template, Terminal
from wording import words

say = words("engine.automaton")

MOVES_KEPT = 20_000  # places whose moves are remembered; our own stories have some 5,000

SPACED, GLUED, AFTER_A, AFTER_AN = range(4)  # how the next word is joined to what stands before it


class Frame:
    """A place in a template and the frame to go on with after it (None: the story ends there)."""

    __slots__ = ("template", "dot", "below", "live", "near", "kept", "__weakref__")

    def __init__(self, template: Template, dot: int, below: Frame | None, n_registers: int) -> None:
        """Find out which registers matter.

        `live`: bit mask of those that may still be read; `kept`: the same, a bool for each register;
        `near`: numbers of those read before the next terminal.
        """
        self.template, self.dot, self.below = template, dot, below
        under = below.live if below is not None else 0
        self.live: int = template.reads[dot] | (under & ~template.sets[dot])
        self.kept = [bool(self.live >> register & 1) for register in range(n_registers)]
        near = set(_bits(template.near[dot], n_registers))
        if template.passes[dot] and below is not None:
            near.update(below.near)
        self.near: tuple[int, ...] = tuple(sorted(near))


Choices = tuple[tuple[Alternative, ...], tuple[float, ...]]  # alternatives and their probabilities
Registers = tuple[Alternative | None, ...]
Config = tuple[Frame, Registers, int]  # what is to come, what is remembered, how the next word is joined
Write = tuple[int, Alternative]  # a register and what it is to remember


class Move(NamedTuple):
    """One terminal that can come next: its text, its probability, and what to do to get to what follows.

    `after` is None at the end of a story.
    """

    terminal: str
    probability: float
    after: Frame | None
    write: Write | None
    joined: int


class Automaton:
    """Moves between configurations; `start` is the configuration before the first word of a story."""

    def __init__(self, rules: Rules, register_names: Sequence[str], variety: float) -> None:
        check_punctuation(rules)
        mark_registers(rules)
        self._rules = rules
        self._names = tuple(register_names)
        self._variety = variety
        self._shares = {name: self._share(alternatives) for name, alternatives in rules.items()}
        self._frames: WeakValueDictionary[tuple[Template, int, Frame | None], Frame] = WeakValueDictionary()
        self._frames_lock = Lock()  # equal frames must be one object, whichever thread asks
        self._moves: dict[tuple[object, ...], tuple[Move, ...]] = {}
        first = self._frame(Template((Expand("story"),)), 0, None)
        assert first is not None
        self.start: Config = (first, (None,) * len(self._names), GLUED)

    def key(self, config: Config) -> tuple[object, ...]:
        """What the moves from a configuration depend on: with equal keys the moves are the same."""
        frame, registers, joined = config
        return (frame, joined, *[registers[register] for register in frame.near])

    def moves(self, config: Config) -> tuple[Move, ...]:
        """The terminals that can come next; their probabilities sum to 1."""
        key = self.key(config)
        moves = self._moves.get(key)
        if moves is None:
            moves = self._find_moves(config)
            if len(self._moves) >= MOVES_KEPT:
                self._moves.clear()
            self._moves[key] = moves
        return moves

    def follow(self, config: Config, move: Move) -> Config:
        """The configuration after a move; after the end of a story it is `start`."""
        after = move.after
        if after is None:
            return self.start
        frame, registers, _ = config
        if move.write is not None:
            register, held = move.write
            registers = (*registers[:register], held, *registers[register + 1 :])
        elif after.live == frame.live:
            return after, registers, move.joined
        kept = zip(registers, after.kept, strict=True)
        return after, tuple([held if keep else None for held, keep in kept]), move.joined

    def choices(self, symbol: Expand | Draw, registers: Sequence[Alternative | None]) -> Choices:
        """The alternatives that a symbol has, given what is remembered, and their probabilities."""
        rule = symbol.rule
        if isinstance(symbol, Draw) and symbol.owner is not None:
            owner = self._held(symbol.owner, registers)
            if rule not in owner.forms:
                raise ValueError(say("has_no_form_add", word=owner.text, form=rule))
            rule = owner.forms[rule]
        if isinstance(symbol, Expand) or not symbol.different:
            return self._shares[rule]
        taken = {self._held(register, registers).text for register in symbol.different}
        return self._share(tuple(each for each in self._rules[rule] if each.text not in taken))

    def recalled(self, symbol: Recall, registers: Sequence[Alternative | None]) -> Template:
        """The words of a recall, given what is remembered."""
        held = self._held(symbol.register, registers)
        if not symbol.form:
            return held.template
        if symbol.form not in held.form_templates:
            raise ValueError(say("has_no_form_add", word=held.text, form=symbol.form))
        return held.form_templates[symbol.form]

    def _held(self, register: int, registers: Sequence[Alternative | None]) -> Alternative:
        held = registers[register]
        if held is None:
            raise ValueError(say("register_read_before_anything", register=self._names[register]))
        return held

    def _share(self, alternatives: tuple[Alternative, ...]) -> Choices:
        weights = [alternative.weight**self._variety for alternative in alternatives]
        total = math.fsum(weights)
        if total <= 0.0:
            raise ValueError(say("rule_has_no_alternative"))
        return alternatives, tuple(weight / total for weight in weights)

    def _frame(self, template: Template, dot: int, below: Frame | None) -> Frame | None:
        """The one frame for a place; at the end of a template that is the frame below."""
        if dot == len(template.symbols):
            return below
        key = (template, dot, below)
        frame = self._frames.get(key)
        if frame is None:
            with self._frames_lock:
                frame = self._frames.setdefault(key, Frame(template, dot, below, len(self._names)))
        return frame

    def _find_moves(self, config: Config) -> tuple[Move, ...]:
        frame, registers, joined = config
        if joined in (AFTER_A, AFTER_AN):
            spaced = self.moves((frame, registers, SPACED))
            wanted = [move for move in spaced if takes_an(move.terminal) == (joined == AFTER_AN)]
            total = math.fsum(move.probability for move in wanted)
            return tuple(move._replace(probability=move.probability / total) for move in wanted)
        found: dict[Move, float] = {}  # moves with probability 0 as names, so that equal ones are added up
        self._expand(frame, registers, 1.0, None, joined, found)
        return tuple(move._replace(probability=weight) for move, weight in found.items() if weight > 0.0)

    def _expand(
        self,
        frame: Frame | None,
        registers: Registers,
        weight: float,
        write: Write | None,
        joined: int,
        found: dict[Move, float],
    ) -> None:
        """Follow every derivation from a frame to its first terminal and add its weight in `found`."""
        if frame is None:
            raise ValueError(say("story_must_end_terminal"))
        symbol = frame.template.symbols[frame.dot]
        after = self._frame(frame.template, frame.dot + 1, frame.below)
        if isinstance(symbol, Terminal):
            end = "\n" if after is None else ""
            move = Move(surface(symbol, joined) + end, 0.0, after, write, _joined_after(symbol))
            found[move] = found.get(move, 0.0) + weight
        elif isinstance(symbol, Article):
            self._expand_article(symbol, after, registers, weight, joined, found)
        elif isinstance(symbol, Recall):
            words = self._frame(self.recalled(symbol, registers), 0, after)
            self._expand(words, registers, weight, write, joined, found)
        else:
            for alternative, share in zip(*self.choices(symbol, registers), strict=True):
                words = self._frame(alternative.template, 0, after)
                drawn = (symbol.register, alternative) if isinstance(symbol, Draw) else write
                self._expand(words, registers, weight * share, drawn, joined, found)

    def _expand_article(
        self,
        article: Article,
        after: Frame | None,
        registers: Registers,
        weight: float,
        joined: int,
        found: dict[Move, float],
    ) -> None:
        """Say "a" with the probability of all words that take it together; then only those words can come."""
        if after is None:
            raise ValueError(say("article_must_have_word"))
        following = self.moves((after, registers, SPACED))
        for join in (AFTER_A, AFTER_AN):
            share = math.fsum(m.probability for m in following if takes_an(m.terminal) == (join == AFTER_AN))
            if share > 0.0:
                move = Move(article_surface(article, join == AFTER_AN, joined), 0.0, after, None, join)
                found[move] = found.get(move, 0.0) + weight * share


def takes_an(word: str) -> bool:
    """Whether "an" stands before a word: `takes_an("owl")` is True, `takes_an("useful")` is False."""
    word = word.strip().lower()
    if word.startswith(("uni", "use", "eu", "one")):
        return False
    return word.startswith(("a", "e", "i", "o", "u", "hour", "honest"))


def surface(terminal: Terminal, joined: int) -> str:
    """A terminal as it is written after what stands before it."""
    return " " + terminal.text if terminal.spaced and joined != GLUED else terminal.text


def article_surface(article: Article, an: bool, joined: int) -> str:
    """An article as it is written."""
    text = "an" if an else "a"
    return surface(Terminal(text.capitalize() if article.capital else text, spaced=True), joined)


def join(said: Sequence[Terminal | Article]) -> str:
    """Write down the terminals of a story: with spaces, the right articles, and the line end."""
    pieces: list[str] = []
    joined = GLUED
    for index, symbol in enumerate(said):
        if isinstance(symbol, Terminal):
            pieces.append(surface(symbol, joined))
            joined = _joined_after(symbol)
        else:
            following = said[index + 1]
            assert isinstance(following, Terminal)
            pieces.append(article_surface(symbol, takes_an(following.text), joined))
            joined = SPACED
    return "".join(pieces) + "\n"


def _joined_after(terminal: Terminal) -> int:
    return GLUED if terminal.text == "“" else SPACED


def _bits(mask: int, n: int) -> list[int]:
    return [index for index in range(n) if mask >> index & 1]
