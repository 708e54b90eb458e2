"""What is typed as an answer, read with goodwill: a number with its unit, or a list of ids.

Nothing that is typed is ever run. Only the digits 0 to 9 count, so that what is read is what is seen.
"""

import math
import re
from dataclasses import dataclass
from decimal import Decimal

LONGEST = 80  # characters of a number; of a list as many for each of its numbers
MOST_POWER = 300  # of ten; more would leave the numbers of a computer

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
