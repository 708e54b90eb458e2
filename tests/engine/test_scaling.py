"""Scaling laws: made data give back their own exponents, intervals cover as they say, nonsense is refused."""

import math

import numpy as np
import pytest

from engine import scaling
from engine.scaling import exponent_interval, fit, floor_interval, predict, student

SIZES = np.array([1e4, 2e4, 5e4, 1e5, 2e5, 5e5])
E, A, ALPHA = 0.5, 30.0, 0.4


def truth(sizes: np.ndarray | float) -> np.ndarray:
    return E + A * np.asarray(sizes) ** -ALPHA


def noisy(generator: np.random.Generator, sizes: np.ndarray = SIZES, share: float = 0.01) -> np.ndarray:
    return truth(sizes) * (1 + share * generator.standard_normal(len(sizes)))


@pytest.mark.parametrize(
    ("floor", "scale", "exponent"),
    [(0.5, 30.0, 0.4), (1.69, 406.4, 0.34), (0.0, 10.0, 0.076), (2.0, 1e6, 1.2)],
)
def test_data_without_noise_give_back_their_own_law(floor: float, scale: float, exponent: float) -> None:
    law = fit(SIZES, floor + scale * SIZES**-exponent)
    assert law.exponent == pytest.approx(exponent, rel=1e-3)
    assert law.floor == pytest.approx(floor, abs=2e-3)
    assert law.coefficient == pytest.approx(scale, rel=1e-2)
    assert law(3e6) == pytest.approx(floor + scale * 3e6**-exponent, rel=1e-4)


def test_the_order_of_the_sizes_does_not_matter() -> None:
    mixed = [3, 0, 5, 1, 4, 2]
    assert fit(SIZES[mixed], truth(SIZES)[mixed]).exponent == fit(SIZES, truth(SIZES)).exponent


def test_doubling_takes_away_a_fixed_share_of_the_distance() -> None:
    law = fit(SIZES, 1 + 100 / SIZES)  # α = 1: half of it
    assert law.saved_by_doubling == pytest.approx(0.5, abs=1e-3)
    assert (law(2e4) - law.floor) / (law(1e4) - law.floor) == pytest.approx(1 - law.saved_by_doubling)


def test_a_floor_below_zero_is_not_fitted() -> None:
    law = fit(SIZES, 5 - 0.3 * np.log(SIZES))  # a straight line in log x would run through 0
    assert law.floor == 0.0 and law.scale > 0


def test_noise_moves_the_exponent_but_not_far() -> None:
    law = fit(SIZES, noisy(np.random.default_rng(1)))
    assert law.exponent == pytest.approx(ALPHA, abs=0.1)
    assert ALPHA in exponent_interval(law) and E in floor_interval(law)


def test_the_intervals_cover_as_often_as_they_say() -> None:
    """95 % intervals in repeated made data; the bounds are those of a binomial (4 standard errors)."""
    generator, n = np.random.default_rng(7), 100
    hits = {"exponent": 0, "floor": 0, "prediction": 0}
    for _ in range(n):
        law = fit(SIZES, noisy(generator))
        further = float(noisy(generator, np.array([2e6]))[0])
        hits["exponent"] += ALPHA in exponent_interval(law)
        hits["floor"] += E in floor_interval(law)
        hits["prediction"] += further in predict(law, 2e6)
    error = math.sqrt(0.95 * 0.05 / n)
    for name, found in hits.items():
        assert 0.95 - 4 * error <= found / n, (name, found)
    assert hits["prediction"] / n <= 1 - 0.5 / n or hits["exponent"] / n < 1, "never wrong: far too wide"


def test_for_a_straight_line_the_prediction_interval_is_the_textbook_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With α held, the law is a line in u = x^-α; relative errors make it a weighted regression."""
    monkeypatch.setattr(scaling, "_search", lambda sse: ALPHA)
    y = noisy(np.random.default_rng(3), share=0.005)
    law, new = fit(SIZES, y), 1.5e6
    told = predict(law, new)
    u, w = (SIZES / law.middle) ** -ALPHA, y**-2.0
    x = np.stack([np.ones(6), u], axis=1)
    cov = np.linalg.inv(x.T @ (w[:, None] * x))
    here = np.array([1.0, (new / law.middle) ** -ALPHA])
    centre = float(here @ cov @ x.T @ (w * y))
    spread = student(0.975, 3) * math.sqrt(law.sse / 3 * (centre**2 + here @ cov @ here))
    assert told.low == pytest.approx(centre - spread, rel=0.01)
    assert told.high == pytest.approx(centre + spread, rel=0.01)


def test_a_further_size_is_foretold_less_surely() -> None:
    law = fit(SIZES, noisy(np.random.default_rng(5)))
    widths = [told.high - told.low for told in (predict(law, size) for size in (1e6, 1e7))]
    assert 0 < widths[0] < widths[1]


@pytest.mark.parametrize(
    ("share", "free", "t"), [(0.975, 1, 12.706), (0.975, 3, 3.182), (0.95, 5, 2.015), (0.5, 4, 0.0)]
)
def test_students_t_is_that_of_the_tables(share: float, free: int, t: float) -> None:
    assert student(share, free) == pytest.approx(t, abs=2e-3)
    assert student(1 - share, free) == pytest.approx(-t, abs=2e-3)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_fewer_than_four_sizes_are_refused(n: int) -> None:
    with pytest.raises(ValueError, match=f"{n} different sizes.*at least 4"):
        fit(SIZES[:n], truth(SIZES[:n]))


def test_the_same_size_again_is_no_new_size() -> None:
    with pytest.raises(ValueError, match="3 different sizes"):
        fit([1, 1, 2, 2, 3, 3], [3, 3, 2, 2, 1, 1])


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        ([2.0] * 6, "does not fall"),
        ([1.0, 1.2, 1.4, 1.6, 1.8, 2.0], "does not fall"),
        ([5.0, 2.0, 2.0, 2.0, 2.0, 2.0], "Only the smallest"),
        ([2.0, 1.9, 2.05, 1.93, 2.02, 1.95], "no larger than chance"),
        ([3.0, 2.0, 1.5, math.nan, 1.2, 1.1], "finite"),
        ([3.0, 2.0, 1.5, 1.3, math.inf, 1.1], "finite"),
    ],
)
def test_losses_without_a_law_are_refused_in_words(losses: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        fit(SIZES, losses)


def test_sizes_and_losses_must_fit() -> None:
    with pytest.raises(ValueError, match="6 sizes and 5 losses"):
        fit(SIZES, [1.0] * 5)
    with pytest.raises(ValueError, match="above 0"):
        predict(fit(SIZES, truth(SIZES)), 0)


def test_what_the_losses_dont_settle_is_left_open() -> None:
    law = fit([1.0, 2.0, 4.0, 8.0, 16.0], [2.3, 2.0, 1.92, 1.68, 1.66])
    found = exponent_interval(law)
    assert found.open_high and found.high == pytest.approx(scaling.EXPONENTS[1])
    assert 100.0 in found  # what was not searched is not ruled out
