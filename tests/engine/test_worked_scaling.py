"""The scaling law: its parts, its best division against a search, what it refuses."""

import math

import numpy as np
import pytest

from engine import worked_scaling as ws

LAWS = [ws.PUBLISHED, ws.Constants(0.0, 2.0, 1.0, 3.0, 0.5), ws.Constants(1.0, 10.0, 0.3, 10.0, 0.3)]


def test_the_loss_is_the_sum_of_its_parts() -> None:
    found = ws.loss_of(70e9, 1.4e12)
    assert found.by_size == pytest.approx(406.4 / (70e9) ** 0.34)
    assert found.by_data == pytest.approx(410.7 / (1.4e12) ** 0.28)
    assert found.total == pytest.approx(1.69 + found.by_size + found.by_data)


@pytest.mark.parametrize("law", LAWS)
def test_the_loss_falls_as_a_power_towards_the_floor(law: ws.Constants) -> None:
    one, two = ws.loss_of(1e6, 1e9, law), ws.loss_of(2e6, 1e9, law)
    assert two.by_size / one.by_size == pytest.approx(2**-law.alpha) and two.by_data == one.by_data
    assert ws.loss_of(1e300, 1e300, law).total == pytest.approx(law.floor, abs=1e-20)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("compute", [1e12, 5.76e23])
def test_the_best_division_spends_the_budget_and_nothing_beats_it(law: ws.Constants, compute: float) -> None:
    best = ws.balance(compute, law)
    assert 6 * best.n * best.d == pytest.approx(compute)
    assert law.alpha * law.a / best.n**law.alpha == pytest.approx(law.beta * law.b / best.d**law.beta)
    for factor in (0.5, 0.9, 1.1, 2.0):
        n = factor * best.n
        assert ws.loss_of(n, compute / 6 / n, law).total > best.loss
    sizes, losses = ws.along_budget(compute, law)
    assert sizes[int(np.argmin(losses))] == pytest.approx(best.n)


def test_with_equal_parts_both_get_the_same_share() -> None:
    best = ws.balance(6e10, ws.Constants(1.0, 10.0, 0.3, 10.0, 0.3))
    assert best.n == pytest.approx(1e5) and best.d == pytest.approx(1e5)


def test_what_is_no_law_and_no_size_is_refused() -> None:
    for bad in ({"a": 0.0}, {"alpha": -1.0}, {"beta": math.nan}, {"b": math.inf}):
        with pytest.raises(ValueError, match="above 0"):
            ws.Constants(**bad)
    with pytest.raises(ValueError, match="at least 0"):
        ws.Constants(floor=-1.0)
    for n, d in ((0, 1), (1, -1), (math.nan, 1), (1, math.inf)):
        with pytest.raises(ValueError, match="above 0"):
            ws.loss_of(n, d)
    with pytest.raises(ValueError, match="budget"):
        ws.balance(0)
