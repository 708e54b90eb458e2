"""The notation of the story rules: text -> rules made of symbols, with what each place needs to remember.

The notation is explained at the top of `story_rules.txt`. `engine.grammar` derives stories from the result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from wording import words

say = words("engine.rules")

CAPITAL = "Capital"  # the form that `{X}` says
WORD = r"[^\W\d_]+(?:[-’'][^\W\d_]+)*"
_TERMINAL = re.compile(rf"“|{WORD}|[^\w\s“]+|\S")
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{([^{}]*)\}")
_DRAW = re.compile(r"(\w+)=(?:(\w+)\.)?(\w+)((?:!\w+)*)")
_RECALL = re.compile(r"(\w+)\.(\w+)")
_HEAD = re.compile(r"(forms )?(\w+):\s*(.*)")
_LINE = re.compile(r"(?:(\d+(?:\.\d+)?)\s*\|)?\s*(.*)")


@dataclass(frozen=True, slots=True)
class Terminal:
    """A word, a run of punctuation or an opening quote, without its leading space."""

    text: str
    spaced: bool


@dataclass(frozen=True, slots=True)
class Article:
    """`{a}` or `{A}`: "a" or "an", whichever suits the next word."""

    capital: bool


@dataclass(frozen=True, slots=True)
class Expand:
    """`{rule}`: one alternative of a rule."""

    rule: str


@dataclass(frozen=True, slots=True)
class Draw:
    """`{x=rule}`; `{x=y.form}` (the rule that y's form names); `{x=rule!y}` (other words than y holds)."""

    register: int
    owner: int | None
    rule: str
    different: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Recall:
    """`{x}`, `{X}` with a capital, or `{x.form}`: say again what register x holds, or one of its forms."""

    register: int
    form: str


Symbol = Terminal | Article | Expand | Draw | Recall


class Template:
    """A sequence of symbols, and for each place in it what the symbols from there on do with the registers.

    Attributes:
        symbols: the symbols. The rest is filled in by `engine.rule_effects`.
        reads: bit mask of the registers read before they are set; one entry for each place, as in the others.
        sets: bit mask of the registers set for certain.
        near: bit mask of the registers read before the next terminal is said.
        passes: whether the template can end without saying a terminal from there on.
    """

    __slots__ = ("symbols", "reads", "sets", "near", "passes")

    def __init__(self, symbols: tuple[Symbol, ...]) -> None:
        self.symbols = symbols
        self.reads = [0] * len(symbols)
        self.sets = [0] * len(symbols)
        self.near = [0] * len(symbols)
        self.passes = [False] * len(symbols)


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """One line of a rule: its text, its weight, its template, and its forms as text and as templates."""

    text: str
    weight: float
    template: Template
    forms: dict[str, str] = field(default_factory=dict)
    form_templates: dict[str, Template] = field(default_factory=dict)


Rules = dict[str, tuple[Alternative, ...]]


class RuleReader:
    """Reads rules; afterwards `rules` holds them and `registers` the number of each register."""

    def __init__(self, text: str) -> None:
        """Read all lines; ValueError names the line that breaks the notation."""
        self.rules: Rules = {}
        self.registers: dict[str, int] = {}
        self._form_groups: dict[str, dict[str, str]] = {}
        self._choices: dict[str, tuple[str, tuple[Alternative, ...]]] = {}
        lists: dict[str, list[Alternative]] = {}
        current: list[Alternative] | None = None
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            try:
                if line[0].isspace():
                    if current is None:
                        raise ValueError(say("alternative_stands_before_first"))
                    current.append(self._alternative(line.strip()))
                else:
                    current = self._head(line, lists, current)
            except ValueError as error:
                raise ValueError(
                    say("story_rules_line", number=number, line=line.strip(), error=error)
                ) from None
        self.rules = {name: tuple(alternatives) for name, alternatives in lists.items()}
        self.rules.update((name, alternatives) for name, alternatives in self._choices.values())
        self._check()

    def _head(
        self, line: str, lists: dict[str, list[Alternative]], current: list[Alternative] | None
    ) -> list[Alternative] | None:
        """A line at the left margin: `name:` opens a rule, `forms name: key=text; ...` a set of forms."""
        match = _HEAD.fullmatch(line.strip())
        if match is None:
            raise ValueError(say("write_name_left_margin"))
        is_forms, name, rest = match.groups()
        if is_forms:
            self._form_groups[name] = dict(_form(part) for part in rest.split(";"))
            return current
        if rest or name in lists:
            raise ValueError(say("rule_name_stands_alone"))
        return lists.setdefault(name, [])

    def _alternative(self, line: str) -> Alternative:
        match = _LINE.fullmatch(line)
        assert match is not None  # the pattern accepts every line
        weight, rest = match.groups()
        text, *extras = (part.strip() for part in rest.split(";"))
        forms: dict[str, str] = {}
        for extra in extras:
            if "=" not in extra and extra not in self._form_groups:
                raise ValueError(say("there_no_forms_above", extra=extra))
            forms.update([_form(extra)] if "=" in extra else self._form_groups[extra])
        forms |= {key.capitalize(): value[:1].upper() + value[1:] for key, value in forms.items()}
        template = self._template(text)
        if _plain(template):
            forms[CAPITAL] = text[:1].upper() + text[1:]
        templates = {key: self._template(value) for key, value in forms.items()}
        if wrong := [key for key, words in templates.items() if not _plain(words)]:
            raise ValueError(say("forms_must_plain_words", word=wrong))
        return Alternative(text, float(weight or 1), template, forms, templates)

    def _template(self, text: str) -> Template:
        symbols: list[Symbol] = []
        text = _CHOICE.sub(lambda match: "{" + self._choice(match[1]) + "}", text)
        for index, piece in enumerate(_SLOT.split(text)):
            if index % 2:
                symbols.append(self._slot(piece.strip()))
                continue
            for word in _TERMINAL.findall(piece):
                if word in "{}[]" or word[0].isdigit() or word == "_":
                    raise ValueError(say("cant_stand_story_use", word=word))
                symbols.append(Terminal(word, spaced=word == "“" or word[0].isalpha()))
        return Template(tuple(symbols))

    def _choice(self, options: str) -> str:
        """The name of the rule that stands for `[one/two]`; equal choices share one."""
        if options not in self._choices:
            alternatives = tuple(Alternative(each, 1.0, self._template(each)) for each in options.split("/"))
            self._choices[options] = (f"choice_{len(self._choices) + 1}", alternatives)
        return self._choices[options][0]

    def _slot(self, slot: str) -> Symbol:
        if slot in ("a", "A"):
            return Article(slot == "A")
        if match := _DRAW.fullmatch(slot):
            register, owner, rule, different = match.groups()
            others = tuple(self._register(name) for name in different.split("!")[1:])
            return Draw(self._register(register), self._register(owner) if owner else None, rule, others)
        if match := _RECALL.fullmatch(slot):
            return Recall(self._register(match[1]), match[2])
        if not slot.isidentifier():
            raise ValueError(say("not_understood_see_notation", slot=slot))
        return Expand(slot)  # a rule or a register: known when all lines are read

    def _register(self, name: str) -> int:
        return self.registers.setdefault(name, len(self.registers))

    def _check(self) -> None:
        """Every name that is used exists; `{x}` is a recall where x is a register."""
        if "story" not in self.rules:
            raise ValueError(say("rules_need_one_called"))
        if both := self.rules.keys() & self.registers.keys():
            raise ValueError(say("names_rules_registers_rename", names=sorted(both)))
        for name, alternatives in self.rules.items():
            if not alternatives:
                raise ValueError(say("rule_has_no_alternatives", name=name))
            for alternative in alternatives:
                for template in (alternative.template, *alternative.form_templates.values()):
                    template.symbols = tuple(self._resolve(name, symbol) for symbol in template.symbols)

    def _resolve(self, place: str, symbol: Symbol) -> Symbol:
        if isinstance(symbol, Expand) and (register := self.registers.get(symbol.rule.lower())) is not None:
            return Recall(register, CAPITAL if symbol.rule[0].isupper() else "")
        if isinstance(symbol, Expand | Draw):
            for rule in self._named_rules(symbol):
                if rule not in self.rules:
                    raise ValueError(say("rule_uses_which_neither", place=place, rule=rule))
                if isinstance(symbol, Draw) and any(not _plain(each.template) for each in self.rules[rule]):
                    raise ValueError(say("rule_draws_whose_alternatives", place=place, rule=rule))
        return symbol

    def _named_rules(self, symbol: Expand | Draw) -> set[str]:
        """The rules that a symbol can turn to; with an owner, all that its form names anywhere."""
        if isinstance(symbol, Expand) or symbol.owner is None:
            return {symbol.rule}
        lines = (line for alternatives in self.rules.values() for line in alternatives)
        return {line.forms[symbol.rule] for line in lines if symbol.rule in line.forms}


def _form(text: str) -> tuple[str, str]:
    key, _, value = text.partition("=")
    return key.strip(), value.strip()


def _plain(template: Template) -> bool:
    """Whether a template is only words, with punctuation at most between them."""
    symbols = template.symbols
    return bool(symbols) and all(
        isinstance(symbol, Terminal) and (symbol.text[0].isalpha() or symbol not in (symbols[0], symbols[-1]))
        for symbol in symbols
    )
