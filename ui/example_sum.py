"""A sum of several lines in numbers that are written: each line follows from those above it."""

import math
from collections.abc import Callable, Sequence

from ui.worked import EXACT, rounded, tex


class Number:
    """A number of a `Sum`.

    Attributes:
        value: exactly.
        digits: significant digits that are written; None for a number that a person typed, written in full.
        places: digits after the point that are written at most.
    """

    def __init__(self, value: float, digits: int | None, places: int | None = None) -> None:
        self.value = float(value)
        self.digits = digits
        self.places = places

    @property
    def written(self) -> float:
        """The number that is written."""
        return self.round(self.value)

    def round(self, x: float) -> float:
        """Another value, rounded as this one is."""
        if self.digits is None:
            return x
        short = rounded(x, self.digits)
        return short if self.places is None or not math.isfinite(x) else round(short, self.places) + 0.0

    def __str__(self) -> str:
        """As LaTeX; a whole number without idle noughts."""
        if self.digits is None or (self.value == round_or_nan(self.value) and abs(self.value) < 1e6):
            return typed(self.value)
        if self.places is not None and self.digits > self._decimals_to_digits():
            return f"{self.written:.{self.places}f}"
        return tex(self.value, self.digits)

    def _decimals_to_digits(self) -> int:
        """How many significant digits the value has up to its last place."""
        if not math.isfinite(self.value):
            return EXACT
        return (self.places or 0) + 1 + int(f"{self.value:e}".partition("e")[2])

    @property
    def signed(self) -> str:
        """With brackets if it is negative, to stand after a sign."""
        return f"({self})" if str(self).startswith("-") else str(self)

    @property
    def cell(self) -> str:
        """For a table: plain, or as a formula where a power of ten needs one."""
        return f"${self}$" if "\\" in str(self) else str(self).replace("-", "−")


def round_or_nan(x: float) -> float:
    """The whole number nearest to x; NaN if x is not finite."""
    return float(round(x)) if math.isfinite(x) else math.nan


def typed(x: float) -> str:
    r"""A number as a person types it.

    >>> typed(0.9), typed(-2.0), typed(0.1 + 0.2), typed(70e9)
    ('0.9', '-2', '0.3', '7\\times10^{10}')
    """
    if x == 0 or 1e-4 <= abs(x) < 1e9:
        return f"{x:.12g}"
    mantissa, _, power = f"{x:.11e}".partition("e")
    return rf"{float(mantissa):g}\times10^{{{int(power)}}}" if math.isfinite(x) else tex(x)


class Sum:
    """Numbers that depend on each other, written with as few digits as let every line be checked.

    >>> s = Sum()
    >>> p, q = s.given(0.9), s.given(0.8)
    >>> logs = [s.of(math.log(x.value), math.log, x) for x in (p, q)]
    >>> total = s.of(-sum(x.value for x in logs), lambda a, b: -a - b, *logs)
    >>> s.settle(), [str(x) for x in logs], str(total)
    (None, ['-0.1054', '-0.2231'], '0.3285')
    """

    def __init__(self, digits: int = 4) -> None:
        self._digits = digits
        self._lines: list[tuple[Number, Callable[..., float], tuple[Number, ...]]] = []
        self._groups: list[list[Number]] = []

    def given(self, value: float) -> Number:
        """A number that a person typed."""
        return Number(value, None)

    def read(self, value: float, digits: int | None = None) -> Number:
        """A number that something else computed, such as a logit of a model: rounded as it needs to be."""
        return Number(value, digits or self._digits)

    def of(
        self,
        value: float,
        compute: Callable[..., float],
        *numbers: Number,
        digits: int | None = None,
        places: int | None = None,
    ) -> Number:
        """A number that follows from others.

        Args:
            value: exactly.
            compute: from the numbers to the value; checks that what is written follows.
            numbers: what it follows from.
            digits: that are written at least.
            places: after the point, that are written at most.
        """
        made = Number(value, digits or self._digits, places)
        self._lines.append((made, compute, numbers))
        return made

    def alike(self, *groups: Sequence[Number]) -> None:
        """Write the numbers of each group, such as a column of a table, with equally many digits."""
        self._groups += [[number for number in group if number.digits is not None] for group in groups]

    def settle(self) -> None:
        """Find how many digits each number needs. Call it when all numbers are there."""
        for _ in range(4 * EXACT):
            grown = [self._grow(*line) for line in reversed(self._lines)]
            for group in self._groups:
                most = max((number.digits or 0 for number in group), default=0)
                grown += [number.digits != most for number in group]
                for number in group:
                    number.digits = most
            if not any(grown):
                return

    def run(self, *results: Number) -> None:
        """For a long chain: each line is computed from those above it as written, all to the same digits.

        The digits are the fewest that give the results exactly; the last digit of a line between may differ
        from the exact one, as in a calculation by hand.
        """
        exact = {number: str(number) for number in results}
        places = {number: number.digits for number in results}
        for n in range(self._digits, EXACT):
            for made, compute, numbers in self._lines:
                made.digits = places.get(made, n)
                made.value = compute(*(number.written for number in numbers))
            if all(str(number) == wanted for number, wanted in exact.items()):
                return

    @staticmethod
    def _grow(made: Number, compute: Callable[..., float], numbers: tuple[Number, ...]) -> bool:
        """Give what a line follows from one digit more, if the line does not follow yet."""
        try:
            found = compute(*(number.written for number in numbers))
        except (ArithmeticError, ValueError):  # a rounded number may leave the domain, as log(0)
            found = math.nan
        if made.round(found) == made.written or not math.isfinite(made.value):
            return False
        short = [n for n in numbers if n.digits is not None and n.digits < EXACT]
        fewest = min((number.digits or 0 for number in short), default=0)
        for number in short:
            number.digits = fewest + 1 if number.digits == fewest else number.digits
        return bool(short)
