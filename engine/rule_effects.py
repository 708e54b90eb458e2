"""What the story rules do: which registers each place reads and sets, and whether all parts fit together.

Both are fixed points over the rules, since rules may name each other.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.rules import Alternative, Article, Draw, Expand, Recall, Rules, Symbol, Template, Terminal
from wording import words

say = words("engine.rule_effects")


class Effect(NamedTuple):
    """What a rule can do: registers it may read, those before its first terminal, whether it can be empty."""

    reads: int
    near: int
    passes: bool

    def either(self, other: Effect) -> Effect:
        """The effect of a choice between two things."""
        return Effect(self.reads | other.reads, self.near | other.near, self.passes or other.passes)


def mark_registers(rules: Rules) -> None:
    """Fill in `reads`, `sets`, `near` and `passes` of every template."""
    effects = dict.fromkeys(rules, Effect(0, 0, False))
    changed = True
    while changed:
        changed = False
        for name, alternatives in rules.items():
            merged = effects[name]
            for template in (
                template for alternative in alternatives for template in _templates(alternative)
            ):
                _mark(template, effects)
            for alternative in alternatives:
                merged = merged.either(_effect_of(alternative.template))
            changed |= merged != effects[name]
            effects[name] = merged


def _templates(alternative: Alternative) -> tuple[Template, ...]:
    return (alternative.template, *alternative.form_templates.values())


def _effect_of(template: Template) -> Effect:
    if not template.symbols:
        return Effect(0, 0, True)
    return Effect(template.reads[0], template.near[0], template.passes[0])


def _mark(template: Template, effects: dict[str, Effect]) -> None:
    """Mark a template from its end to its beginning."""
    reads = sets = near = 0
    passes = True
    for dot in range(len(template.symbols) - 1, -1, -1):
        symbol = template.symbols[dot]
        if isinstance(symbol, Expand):
            effect = effects[symbol.rule]
            near = effect.near | (near if effect.passes else 0)
            passes = passes and effect.passes
            reads |= effect.reads
        elif not isinstance(
            symbol, Article
        ):  # an article is chosen by the terminal after it: it lets through
            used = _registers_read(symbol)
            if isinstance(symbol, Draw):
                sets |= 1 << symbol.register
                reads &= ~(1 << symbol.register)
            near, passes, reads = used, False, reads | used
        template.reads[dot], template.sets[dot] = reads, sets
        template.near[dot], template.passes[dot] = near, passes


def _registers_read(symbol: Terminal | Draw | Recall) -> int:
    """The registers that saying a symbol reads, as a bit mask."""
    if isinstance(symbol, Recall):
        return 1 << symbol.register
    if isinstance(symbol, Draw):
        owner = () if symbol.owner is None else (symbol.owner,)
        return sum(1 << register for register in {*symbol.different, *owner})
    return 0


class Edges(NamedTuple):
    """Whether something can begin with punctuation or with a quote, end with either, or be empty."""

    begins: bool
    quotes: bool
    ends: bool
    empty: bool


def check_punctuation(rules: Rules) -> None:
    """Refuse rules in which the punctuation of two parts can meet, and stories that don't begin with a word.

    Tokenizers take a run of punctuation as one piece, so it must be one terminal, written in one place; and
    at the beginning of a line some of them take a quote and the word after it as one piece.
    """
    edges = dict.fromkeys(rules, Edges(False, False, False, False))
    while True:
        before = dict(edges)
        for name, alternatives in rules.items():
            found = [_edges_of(alternative.template, edges, name) for alternative in alternatives]
            edges[name] = Edges(*(any(column) for column in zip(*found, strict=True)))
        if edges == before:
            break
    if edges["story"].begins or edges["story"].quotes:
        raise ValueError(say("story_must_begin_word"))


def _edges_of(template: Template, edges: dict[str, Edges], name: str) -> Edges:
    begins = quotes = ends = False
    empty = True
    for symbol in template.symbols:
        part = _edges_of_symbol(symbol, edges)
        if ends and part.begins:
            raise ValueError(say("rule_punctuation_two_parts", name=name))
        begins = begins or (empty and part.begins)
        quotes = quotes or (empty and part.quotes)
        ends = part.ends or (ends and part.empty)
        empty = empty and part.empty
    return Edges(begins, quotes, ends, empty)


def _edges_of_symbol(symbol: Symbol, edges: dict[str, Edges]) -> Edges:
    if isinstance(symbol, Terminal):
        quote = symbol.text == "“"
        return Edges(not symbol.spaced, quote, quote or not symbol.spaced, False)
    if isinstance(symbol, Expand):
        return edges[symbol.rule]
    return Edges(False, False, False, False)  # articles and drawn words begin and end with letters
