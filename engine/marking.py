"""Marking: what was typed, read with goodwill, against what is right, with a word on typical mistakes.

Nothing that is typed is ever run. Only the digits 0 to 9 count, so that what is read is what is seen.
"""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from engine.exercise import Choice, Ids, Number, Order

DIGITS = 3  # significant ones that a number needs
LONGEST = 80  # characters of a number; of a list as many for each of its numbers
MOST_POWER = 300  # of ten; more would leave the numbers of a computer
_SLACK = 1e-9  # a typed decimal is not exactly the binary number

UNITS = {
    "nats": ("nat", "nats", "nat/token", "nats/token", "nats per token", "nats por token"),
    "bits": ("bit", "bits", "bit/token", "bits/token", "bits per token", "bits por token"),
    "bits per byte": ("bits per byte", "bits por byte", "bits/byte", "bit/byte", "bpb"),
    "share": ("%", "％", "per cent", "percent", "por ciento"),
    "bytes": ("byte", "bytes"),
    "tokens": ("token", "tokens"),
    "targets": ("target", "targets", "objetivo", "objetivos", "token", "tokens"),
    "windows": ("window", "windows", "row", "rows", "ventana", "ventanas", "fila", "filas"),
    "pairs": ("pair", "pairs", "par", "pares"),
    "digits": ("digit", "digits", "dígito", "dígitos", "cifra", "cifras"),
    "parameters": (
        "parameter", "parameters", "parámetro", "parámetros", "number", "numbers", "número", "números",
        "weight", "weights", "peso", "pesos",
    ),
}  # fmt: skip
_SPACES = re.compile(r"[\s']+")
_GROUPS = re.compile(r"(?<=[0-9])[\s'](?=[0-9]{3}(?![0-9]))")  # spaces that mark thousands
_TWO_NUMBERS = re.compile(r"[0-9][\s']+[0-9]")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_RAISED = re.compile(r"10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_MINUS = str.maketrans("−–—‒﹣－", "------")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+[.,]?|[.,][0-9])[0-9.,]*(?:[eE][+-]?[0-9]{1,4})?")
_POWER = re.compile(r"(?:[x×·*])10(?:\^|\*\*)\(?([+-]?[0-9]{1,4})\)?")
_SEPARATORS = (r"[×·*;|]|(?<=[\s0-9])[xX](?=[\s0-9])", r",\s+", r"[,\s]+")
_LEAD = re.compile(r"^(?:[A-Za-z]{1,12}\s*(?==|≈))?[=≈~]+")  # as in "= 0.5" and "p = 0.5"
_IN_BRACKETS = re.compile(r"\(\s*([^\W\d][^()0-9]*)\)$")  # a unit as in "1.41 (nats)"
_SHAPE = re.compile(r"^(?:torch\.Size|shape|size|tensor|tuple)?\s*=?\s*(?=[\[({])", re.IGNORECASE)


@dataclass(frozen=True)
class Read:
    """What a typed number was read as.

    Attributes:
        value: the number; None if there is none.
        fault: why there is none: "empty", "long", "digits", "number" or "large".
        unit: of `UNITS`, "" without one, "?" for a word that is no unit.
        step: the worth of the last typed digit; 0 for a fraction, which is exact.
        digits: significant ones that were typed.
        other: what a lone comma or point with three digits after it would mean the other way.
        plain: whether there was nothing to interpret.
    """

    value: float | None = None
    fault: str = ""
    unit: str = ""
    step: float = 0.0
    digits: int = 0
    other: float | None = None
    plain: bool = True


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


def read_number(typed: str, *, whole: bool = False) -> Read:
    """Read a number as people write it.

    A comma or a point with exactly three digits after it marks thousands if a whole number is asked for, and
    decimals otherwise. With both signs the later one marks the decimals.

    >>> read_number("0,693").value, read_number("32,000", whole=True).value, read_number("69.3 %").value
    (0.693, 32000.0, 0.693)
    >>> read_number("1.41 nats").unit, read_number("−1/2").value, read_number("1e999").fault
    ('nats', -0.5, 'large')
    """
    text = typed[: LONGEST + 1].strip()
    if len(typed) > LONGEST:
        return Read(fault="long")
    text = _RAISED.sub(lambda m: "10^" + m[1].translate(_SUPERSCRIPTS), text)
    text = _IN_BRACKETS.sub(r"\1", _LEAD.sub("", text.translate(_MINUS)).strip())
    if not text:
        return Read(fault="empty")
    if any(char.isnumeric() and char not in "0123456789" for char in text):
        return Read(fault="digits")
    number, unit = _split_unit(text)
    number_only = _GROUPS.sub("", number)
    if _TWO_NUMBERS.search(number_only):
        return Read(fault="number")
    found = _value(_SPACES.sub("", number_only).replace("_", ""), whole)
    if found.fault:
        return found
    value, step, other, name = found.value or 0.0, found.step, found.other, _unit_name(unit)
    if name == "share":  # a sign or a word for per cent
        value, step, other = value / 100, step / 100, None
    return Read(value, "", name, step, found.digits, other, found.plain and text == number and not unit)


def _split_unit(text: str) -> tuple[str, str]:
    """What is a number at the start, and the words after it. `e` and `x` belong to numbers."""
    match = re.match(r"^([0-9+\-.,/_^()×·*\s']|(?<=[0-9 ])[xX](?=[ 0-9])|"
                     r"(?<=[0-9.,])[eE](?=[+-]?[0-9]))*", text)  # fmt: skip
    number = match[0] if match else ""
    if number.rstrip().endswith("/"):  # as in "2 /token"
        number = number.rstrip()[:-1]
    return number, text[len(number) :].strip().casefold()


def _unit_name(unit: str) -> str:
    words = " ".join(unit.split()).rstrip(".")
    return next((name for name, known in UNITS.items() if words in known), "?") if words else ""


def _value(text: str, whole: bool) -> Read:
    """Read `a`, `a/b`, `a×10^n` or `10^n`."""
    if text.count("/") == 1:
        top, bottom = (_plain_number(part, whole) for part in text.split("/"))
        if top.value is None or not bottom.value:
            return Read(fault=top.fault or bottom.fault or "number")
        value = top.value / bottom.value
        return Read(value, digits=99, plain=False) if math.isfinite(value) else Read(fault="large")
    if text.startswith(("10^", "10**")):
        text = f"1×{text}"
    power = _POWER.search(text)
    if power and power.end() == len(text):
        text = f"{text[: power.start()]}e{power[1]}"
    return _plain_number(text, whole)


def _plain_number(text: str, whole: bool) -> Read:
    text = text.strip("()") if text.count("(") == text.count(")") else text
    if not _NUMBER.fullmatch(text):
        return Read(fault="number")
    body, _, exponent = text.lower().partition("e")
    power = int(exponent or 0)
    if abs(power) > MOST_POWER:
        return Read(fault="large")
    digits = _decimal(body, whole)
    if digits is None:
        return Read(fault="number")
    value = Decimal(f"{digits}e{power}")
    if abs(float(value)) == math.inf:
        return Read(fault="large")
    step = float(Decimal(1).scaleb(int(value.as_tuple().exponent)))
    other = _other_way(body, digits)
    significant = len(digits.lstrip("+-").replace(".", "").lstrip("0"))
    return Read(float(value), "", "", step, significant, other, not exponent and digits == body.lstrip("+"))


def _decimal(body: str, whole: bool) -> str | None:
    """The same number with a decimal point and without marks of thousands; None if the marks make no sense.

    >>> [_decimal(text, False) for text in ("0,5", "1.234,5", "1,234,567", "1,23,4", ".5")]
    ['0.5', '1234.5', '1234567', None, '0.5']
    """
    sign = body[: len(body) - len(body.lstrip("+-"))]
    body = body[len(sign) :]
    marks = [char for char in body if char in ".,"]
    point = marks[-1] if marks else "."
    lone = len(marks) == 1
    if len(set(marks)) == 1 and (len(marks) > 1 or (whole and lone and _grouped(body, point))):
        point, group = "", marks[0]  # all of them mark thousands
    else:
        group = "," if point == "." else "."
    left, _, right = body.rpartition(point) if point and marks else (body, "", "")
    if point and marks and group in right:
        return None
    if group in left and not _grouped(left, group):
        return None
    left = left.replace(group, "")
    return f"{sign.replace('+', '')}{left or '0'}{'.' + right if right else ''}"


def _grouped(text: str, mark: str) -> bool:
    """Whether the marks stand before groups of three digits, as in 32,000; never so after a leading 0."""
    first, *rest = text.split(mark)
    return bool(rest) and 1 <= len(first) <= 3 and first[0] != "0" and all(len(part) == 3 for part in rest)


def _other_way(body: str, digits: str) -> float | None:
    """The other meaning of a lone mark with three digits after it."""
    body = body.lstrip("+-")
    marks = [char for char in body if char in ".,"]
    if len(marks) != 1 or not _grouped(body, marks[0]):
        return None
    joined = float(body.replace(marks[0], ""))
    return joined if "." in digits else joined / 1000


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


def read_ids(typed: str, most: int = 200) -> list[int] | None:
    """Read a list of whole numbers, however it is separated; None if something else stands there.

    Between `×` or `;`, and where commas with a space after them separate, 32,000 is one number.

    >>> read_ids("[9, 2, 7]"), read_ids("9 2 7"), read_ids("4 × 128 × 32,000"), read_ids("4, 128, 32,000")
    ([9, 2, 7], [9, 2, 7], [4, 128, 32000], [4, 128, 32000])
    """
    text = _SHAPE.sub("", typed.strip().translate(_MINUS)).strip("[](){} ")
    if not text or len(typed) > LONGEST * most:
        return None
    for separator in _SEPARATORS:
        parts = [part for part in re.split(separator, text) if part.strip()]
        values = [_whole(part.strip()) for part in parts]
        if None not in values and 0 < len(parts) <= most and (len(parts) > 1 or separator == _SEPARATORS[-1]):
            return [value for value in values if value is not None]
    return None


def _whole(text: str) -> int | None:
    if re.fullmatch(r"[1-9][0-9]{0,2}([,.\u00a0\u202f ][0-9]{3})+", text):
        text = re.sub(r"[^0-9]", "", text)
    return int(text) if re.fullmatch(r"-?[0-9]{1,12}", text) else None


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
