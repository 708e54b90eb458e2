"""Worked formulas of the Masking page: the written numbers, put into a calculator, give the results."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from ui.worked_masking import lead, none_chosen, orders, pseudo_total

NUMBER = r"-?[\d.]+(?:\\times10\^\{-?\d+\})?"


def value(written: str) -> float:
    return float(re.sub(r"\\times10\^\{(-?\d+)\}", r"e\1", written))


def same(result: float, written: str) -> bool:
    """Whether a result rounds to what is written."""
    digits = len(re.sub(r"\\times.*|[-.]|^-?0\.0*", "", written).lstrip("0"))
    return f"{result:.{digits - 1}e}" == f"{value(written):.{digits - 1}e}"


@pytest.mark.parametrize("seed", range(40))
def test_both_products_follow_from_their_factors(seed: int) -> None:
    numbers = np.random.default_rng(seed).uniform(0, 1, 4) ** 4
    found = re.findall(rf"({NUMBER}) \\cdot ({NUMBER}) = ({NUMBER})", orders(*numbers))
    assert len(found) == 2
    for (x, y, z), exact in zip(found, (numbers[0] * numbers[1], numbers[2] * numbers[3]), strict=True):
        assert same(value(x) * value(y), z) and same(exact, z)


@pytest.mark.parametrize("seed", range(40))
def test_the_lead_follows_from_the_probabilities(seed: int) -> None:
    p_m, p_c, t_m, t_c = np.random.default_rng(seed).uniform(0.001, 1, 4)
    text = lead(p_m, p_c, t_m, t_c)
    ratios = re.findall(rf"\\frac\{{({NUMBER})\}}\{{({NUMBER})\}} = ({NUMBER})", text)
    assert len(ratios) == 2
    for top, bottom, z in ratios:
        assert same(math.log(value(top) / value(bottom)), z)
    a, b, rest = re.findall(rf"&= ({NUMBER}) - \(?({NUMBER})\)? = ({NUMBER})", text)[0]
    assert same(value(a) - value(b), rest)
    assert same(math.log(p_m / p_c) - math.log(t_m / t_c), rest)


def test_without_a_truth_there_is_one_line() -> None:
    assert "told" not in lead(0.5, 0.25, None, None)
    assert "= 0.693" in lead(0.5, 0.25, None, None)


def test_the_chance_of_no_mask_and_a_sum_of_fractions() -> None:
    assert none_chosen(4, 0.15).endswith("0.85^{4} = 0.5220")
    assert r"\tfrac{1}{5} + \tfrac{3}{10}" in pseudo_total([Fraction(1, 5), Fraction(3, 10)])
    assert r"&= \tfrac{1}{2} \neq 1" in pseudo_total([Fraction(1, 5), Fraction(3, 10)])
    assert "neq" not in pseudo_total([Fraction(1, 2), Fraction(1, 2)])
