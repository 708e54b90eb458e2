"""Formulas of fine-tuning: whoever puts the written numbers into a calculator gets the written result."""

import math
import re

import pytest

from ui.worked_tuning import answer_loss, changes, margin, preference_loss


def numbers(formula: str) -> list[float]:
    return [float(x) for x in re.findall(r"-?\d+\.\d+", formula)]


@pytest.mark.parametrize(("total", "n"), [(36.9312345, 30), (0.00012345, 7), (812.5, 3)])
def test_the_loss_of_an_answer_is_the_mean_over_its_own_tokens(total: float, n: int) -> None:
    formula = answer_loss({"before": total}, n, 14)
    assert f"N &= {n + 14} - 14 = {n}" in formula
    lines = formula.split(r"\\[8pt]")
    if r"10^" not in lines[-1]:
        top, loss = numbers(lines[-1])
        assert f"{top / n:.4g}" == f"{loss:.4g}"


def test_both_losses_stand_under_each_other() -> None:
    formula = answer_loss({"before": 30.0, "after": 15.0}, 10, 2)
    assert r"L_{\text{before}} &= \frac{30.00}{10} = 3.000" in formula
    assert r"L_{\text{after}} &= \frac{15.00}{10} = 1.500" in formula


@pytest.mark.parametrize("after", [(-45.3061, -40.9251), (-9.5, -80.123456), (-1.0, -1.0)])
def test_a_margin_follows_from_its_four_numbers(after: tuple[float, float]) -> None:
    before, beta = (-49.1321, -36.5091), 0.1
    wanted = beta * ((after[0] - before[0]) - (after[1] - before[1]))
    found = numbers(margin(after, before, beta))
    one, two, gain, three, four, lost, b, first, second, result = found
    assert f"{one - two:.4g}" == f"{gain:.4g}" and f"{three - four:.4g}" == f"{lost:.4g}"
    assert (b, first, second) == (0.1, gain, lost)
    assert f"{b * (first - second):.4g}" == f"{result:.4g}" == f"{wanted:.4g}"


@pytest.mark.parametrize("value", [0.8242, -1.25, 3.5, 12.0, -40.0])
def test_a_preference_costs_minus_the_log_of_the_sigmoid(value: float) -> None:
    formula = preference_loss(value)
    last = formula.split(r"\\[8pt]")[-1]
    wanted = math.log(1 + math.exp(-value))
    assert numbers(last)[-1] == pytest.approx(wanted, rel=6e-4) or "10^" in last
    assert r"\ln 2" not in formula


def test_no_margin_costs_ln_2() -> None:
    assert r"L &= \ln(1 + 1.000) = \ln 2 = 0.6931\ \text{nats}" in preference_loss(0.0)


def test_margins_beyond_what_a_computer_can_raise() -> None:
    assert r"\approx -m = 800.0" in preference_loss(-800.0)
    assert r"\ln(1 + 0) = 0\ " in preference_loss(800.0)


def test_what_changed() -> None:
    formula = changes(11.73, 0.27, 0.4852, 0.7043)
    assert "= -11.46" in formula and "= 0.2191" in formula
