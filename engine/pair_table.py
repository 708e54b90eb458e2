"""Two gaps with two words each, by hand: tables that belong to a joint distribution, and some that don't.

Conditionals given one by one may belong to no joint distribution: Arnold and Press 1989 (JASA 84:152).
"""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class PairTable:
    """Two gaps with two words each, as fractions: what a masked model could say of them.

    Attributes:
        a, b: the words of each gap.
        p_a, p_b: (2,) while both are hidden.
        b_given_a: (2,2) rows a.
        a_given_b: (2,2) rows b.
    """

    a: tuple[str, str]
    b: tuple[str, str]
    p_a: tuple[Fraction, Fraction]
    p_b: tuple[Fraction, Fraction]
    b_given_a: tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]
    a_given_b: tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]

    def a_first(self, a: int, b: int) -> Fraction:
        """p(a) p(b | a)."""
        return self.p_a[a] * self.b_given_a[a][b]

    def b_first(self, a: int, b: int) -> Fraction:
        """p(b) p(a | b)."""
        return self.p_b[b] * self.a_given_b[b][a]

    def pseudo(self, a: int, b: int) -> Fraction:
        """p(a | b) p(b | a): what the pseudo-log-likelihood is the log of."""
        return self.a_given_b[b][a] * self.b_given_a[a][b]

    @property
    def cells(self) -> list[tuple[int, int]]:
        """The four fillings."""
        return [(a, b) for a in (0, 1) for b in (0, 1)]

    @property
    def pulls(self) -> tuple[Fraction, Fraction]:
        """Odds ratios of the two tables: how much more one word expects its partner than the other does.

        Two tables with cells above 0 belong to a joint distribution exactly if these are equal.
        """
        (aa, ab), (ba, bb) = self.a_given_b
        (ca, cb), (da, db) = self.b_given_a
        return Fraction(aa * bb, ab * ba), Fraction(ca * db, cb * da)


def _pair_table(p_a: str, p_b: str, b_given_a: tuple[str, str], a_given_b: tuple[str, str]) -> PairTable:
    def row(p: str) -> tuple[Fraction, Fraction]:
        return Fraction(p), 1 - Fraction(p)

    return PairTable(
        ("cat", "dog"),
        ("slept", "ran"),
        row(p_a),
        row(p_b),
        (row(b_given_a[0]), row(b_given_a[1])),
        (row(a_given_b[0]), row(a_given_b[1])),
    )


HAND_MADE = {
    # The first table says that cat and slept attract each other, the second that they repel: 6 against 1/9.
    "no-joint": _pair_table("1/2", "1/2", ("1/4", "3/4"), ("4/5", "2/5")),
    "joint": _pair_table("1/2", "1/2", ("4/5", "1/5"), ("4/5", "1/5")),
}
