"""Marking: an answer against what is right, with a word on typical mistakes."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from engine.exercise import Choice, Ids, Number, Order
from engine.typed import UNITS, Read, read_ids, read_number

DIGITS = 3  # significant ones that a number needs
_SLACK = 1e-9  # a typed decimal is not exactly the binary number


@dataclass(frozen=True)
class Verdict:
    """What is said to an answer.

    Attributes:
        right: whether it counts.
        note: key of a sentence of the text files: "right" or what is wrong.
        values: for the places in that sentence.
        read: how the answer was read, if that is not obvious.
        marked: whether it was an answer at all; what could not be read is not counted as a try.
    """

    right: bool
    note: str
    values: dict[str, Any] = field(default_factory=dict)
    read: str = ""
    marked: bool = True


def tolerance(value: float) -> float:
    """Half of the third significant digit.

    >>> tolerance(1.4076), tolerance(0.02), tolerance(0)
    (0.005, 5e-05, 0.005)
    """
    power = math.floor(math.log10(abs(value))) if value else 0
    return 0.5 * 10.0 ** (power - DIGITS + 1)


def _near(x: float, value: float, step: float) -> bool:
    """Whether x lies within `step` of a value, up to what a float can tell; with a step of 0, is it."""
    return x == value if not step else abs(x - value) <= step + _SLACK * max(abs(value), step)


def rounded(value: float, digits: int = DIGITS) -> str:
    """A number with so many significant digits, whole parts written out.

    >>> rounded(1.4076), rounded(0.0000123456), rounded(1234.6), rounded(0.5)
    ('1.41', '0.0000123', '1235', '0.500')
    """
    if not value:
        return "0"
    text = f"{value:.{digits - 1}e}"
    power = int(text.split("e")[1])
    return f"{float(text) if power < digits else round(value):.{max(digits - 1 - power, 0)}f}"


def mark_number(typed: str, answer: Number) -> Verdict:
    """Mark a typed number; see `Number` for what is right.

    >>> mark_number("1.41", Number(1.4076, "nats")).right, mark_number("1.40", Number(1.4076)).note
    (True, 'cut')
    >>> mark_number("2.03 bits", Number(1.4076, "nats")).note
    'other_unit'
    """
    read = read_number(typed, whole=answer.whole)
    if read.value is None:
        return Verdict(False, read.fault, marked=False)
    said = "" if read.plain else _said(read)
    verdict = _unit_fault(read, answer) or _judge(read, read.value, answer)
    return replace(verdict, read=said)


def _said(read: Read) -> str:
    text = f"{read.value:.15g}"
    return text + (f" {read.unit}" if read.unit not in ("", "?", "share") else "")


def _unit_fault(read: Read, answer: Number) -> Verdict | None:
    if not read.unit or read.unit == answer.unit or answer.unit in _shared_words(read.unit):
        return None
    if read.unit == "?":
        return Verdict(False, "unknown_unit", marked=False)
    if read.unit == "share":
        return Verdict(False, "no_share")
    if answer.unit in ("", "share"):
        return Verdict(False, "no_unit", {"given": read.unit})
    return Verdict(False, "other_unit", {"unit": answer.unit, "given": read.unit})


def _shared_words(unit: str) -> set[str]:
    """Units that share a word with this one: a token is also a target."""
    return {name for name, words in UNITS.items() if set(words) & set(UNITS.get(unit, ()))}


def _judge(read: Read, value: float, answer: Number) -> Verdict:
    near = 0.0 if answer.whole else tolerance(answer.value)
    if _near(value, answer.value, near):
        return _right(read, value, answer)
    for slip in answer.slips:
        if _near(value, slip.value, 1e-6 if answer.whole else tolerance(slip.value)):
            return Verdict(False, f"slip.{slip.name}")
    if read.other is not None and _near(read.other, answer.value, near):
        return Verdict(False, "comma")
    if _near(-value, answer.value, near):
        return Verdict(False, "slip.minus")
    if answer.whole:
        return Verdict(False, "off_by_one" if abs(value - answer.value) == 1 else "wrong")
    if answer.unit == "share" and not read.unit and _near(value / 100, answer.value, near):
        return Verdict(False, "percent")
    if read.step and read.digits < DIGITS and _near(value, answer.value, read.step / 2):
        return Verdict(False, "few_digits")
    cut_off = abs(value) < abs(answer.value) and _near(value, answer.value, read.step)
    return Verdict(False, "cut" if read.digits >= DIGITS - 1 and cut_off else "wrong")


def _right(read: Read, value: float, answer: Number) -> Verdict:
    """Right; with a word if the last of many typed digits is not."""
    if not answer.whole and read.step and not _near(value, answer.value, read.step / 2):
        scale = 100 if read.unit == "share" else 1
        better = f"{Decimal(repr(answer.value * scale)):.{_places(read.step * scale)}f}"
        return Verdict(True, "right_nearly", {"better": better + (" %" if scale == 100 else "")})
    return Verdict(True, "right")


def _places(step: float) -> int:
    return max(0, -math.floor(math.log10(step) + 0.5))


def mark_ids(typed: str, answer: Ids) -> Verdict:
    """Mark a typed list of ids."""
    if not typed.strip():
        return Verdict(False, "empty", marked=False)
    values = read_ids(typed)
    if values is None:
        return Verdict(False, "list", marked=False)
    said = ", ".join(map(str, values))
    if tuple(values) == answer.values:
        return Verdict(True, "right", read=said)
    for name, slip in answer.slips:
        if tuple(values) == slip:
            return Verdict(False, f"slip.{name}", read=said)
    if len(values) != len(answer.values):
        return Verdict(False, "how_many", {"n": len(values)}, said)
    if sorted(values) == sorted(answer.values):
        return Verdict(False, "id_order", {}, said)
    return Verdict(False, "wrong", read=said)


def mark_choice(chosen: Collection[int], answer: Choice) -> Verdict:
    """Mark the chosen places; of a wrong one the note is its key, so that the words can say why."""
    picked = set(chosen)
    if not picked or not picked <= set(range(len(answer.options))):
        return Verdict(False, "choose", marked=False)
    if picked == set(answer.right):
        return Verdict(True, "right")
    if not answer.several:
        return Verdict(False, "option", {"key": answer.options[min(picked)].key})
    extra, missing = len(picked - answer.right), len(answer.right - picked)
    return Verdict(False, "too_many" if not missing else "too_few" if not extra else "not_these")


def mark_order(given: Sequence[str], answer: Order) -> Verdict:
    """Mark an order; says how many steps at the start are right."""
    if sorted(given) != sorted(answer.steps):
        return Verdict(False, "choose", marked=False)
    n_right = 0
    while n_right < len(given) and given[n_right] == answer.steps[n_right]:
        n_right += 1
    if n_right == len(given):
        return Verdict(True, "right")
    return Verdict(False, "order", {"n": n_right}) if n_right else Verdict(False, "order_none")
