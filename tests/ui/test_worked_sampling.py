"""The worked probability: each written result follows from the written numbers before it."""

import math
import re

import numpy as np
import pytest

from engine.dice import draw_many, fit, p_value
from engine.stages import sampling_stages, worked_out
from ui.worked_sampling import chi_square, path_product, sampled

NUMBER = r"-?\d+(?:\.\d+)?(?:\\times10\^\{-?\d+\})?"


def value(text: str) -> tuple[float, float]:
    """A written number and half a unit of its last digit."""
    mantissa, _, power = text.replace("}", "").partition(r"\times10^{")
    decimals = len(mantissa.partition(".")[2])
    scale = 10.0 ** int(power or 0)
    return float(mantissa) * scale, 0.5000001 * 10.0**-decimals * scale


def follows(computed: float, written: str) -> bool:
    number, half = value(written)
    return abs(computed - number) <= half


@pytest.mark.parametrize("seed", range(40))
def test_every_line_can_be_checked_with_a_calculator(seed: int) -> None:
    dice = np.random.default_rng(seed)
    logits = dice.normal(0, 3, 50)
    temperature = float(dice.choice([0.05, 0.7, 1.0, 2.5]))
    stages = sampling_stages(logits, temperature=temperature, top_k=20, top_p=0.9)
    for token_id in np.argsort(-logits)[:4].tolist():
        w = worked_out(logits, stages, token_id, temperature)
        text = sampled(w.logit, w.top, temperature, w.total, w.kept, w.final == 0)
        z, sign, top, t, weight = re.findall(
            rf"e\^\{{\(({NUMBER}) ([-+]) ({NUMBER})\)/([\d.]+)\}} = ({NUMBER})", text
        )[0]
        top_value = value(top)[0] if sign == "-" else -value(top)[0]
        assert follows(math.exp((value(z)[0] - top_value) / float(t)), weight)
        fractions = re.findall(rf"\\frac\{{({NUMBER})\}}\{{({NUMBER})\}} = ({NUMBER})", text)
        for above, below, result in fractions:
            assert follows(value(above)[0] / value(below)[0], result)
        assert fractions[0][0] == weight
        assert len(fractions) == (1 if w.final == 0 or w.kept == 1 else 2)
        if w.final:
            assert follows(w.final, fractions[-1][2])


def test_the_ends() -> None:
    assert "p = 1" in sampled(3.2, 3.2, 0, 1.0, 1.0, False)
    assert "p = 0" in sampled(2.4, 3.2, 0, 1.0, 1.0, True)
    assert "cut away" in sampled(-1.0, 3.2, 1.0, 1.6476, 0.9, True)
    assert "+ 1" in sampled(-2.0, -1.0, 1.0, 1.5, 1.0, False)


@pytest.mark.parametrize(
    "raw, penalty", [(3.2187654, 1.37), (-1.0432198, 1.2), (2.0, 2.0), (-0.00012345, 1.01)]
)
def test_the_penalty_is_a_line_of_its_own(raw: float, penalty: float) -> None:
    logit = raw / penalty if raw > 0 else raw * penalty
    text = sampled(logit, 4.1, 0.7, 2.5, 0.9, False, raw=raw, penalty=penalty)
    if raw > 0:
        found = re.findall(
            rf"z &= \\frac\{{z_0\}}\{{\\theta\}} = \\frac\{{({NUMBER})\}}\{{([\d.]+)\}} = ({NUMBER})", text
        )
        ((before, theta, after),) = found
        assert follows(value(before)[0] / float(theta), after)
    else:
        ((before, theta, after),) = re.findall(rf"theta = ({NUMBER}) \\cdot ([\d.]+) = ({NUMBER})", text)
        assert follows(value(before)[0] * float(theta), after)
    assert f"e^{{({after} " in text  # the next line goes on with it
    assert "theta" not in sampled(logit, 4.1, 0.7, 2.5, 0.9, False, raw=logit, penalty=penalty)


@pytest.mark.parametrize("seed", range(12))
def test_chi_square_can_be_checked_with_a_calculator(seed: int) -> None:
    probs = np.random.default_rng(seed).dirichlet(np.ones(6))
    counts = draw_many(probs, 1000, seed)
    found = fit(counts, probs)
    best = int(probs.argmax())
    text = chi_square(int(counts[best]), float(probs[best]), 1000, found.chi_square, found.degrees)
    n, p, expected = re.findall(rf"n\\,p = (\d+) \\cdot ({NUMBER}).{{7}}&= ({NUMBER})", text)[0]
    assert follows(float(n) * value(p)[0], expected)
    count, e, below, part = re.findall(rf"\((\d+) - ({NUMBER})\)\^2\}}\{{({NUMBER})\}} = ({NUMBER})", text)[0]
    assert e == below == expected and int(count) == counts[best]
    assert follows((int(count) - value(e)[0]) ** 2 / value(e)[0], part)
    degrees, total, result = re.findall(rf"\\chi\^2_\{{(\d+)\}} \\ge ({NUMBER})\) &= ({NUMBER})", text)[0]
    assert int(degrees) == found.degrees and f"= {total}" in text
    assert follows(p_value(value(total)[0], int(degrees)), result)


@pytest.mark.parametrize(
    "probs", [[0.72, 0.121, 1.6e-5], [0.5], [1.0, 1.0], [0.33333333, 0.66666666, 0.9, 0.123456]]
)
def test_the_product_of_a_path_can_be_checked_with_a_calculator(probs: list[float]) -> None:
    text = path_product(probs)
    numbers = text.split(" = ")
    result = numbers[-1]
    assert follows(math.prod(probs), result)
    if len(probs) > 1:
        factors = [value(number)[0] for number in numbers[-2].split(r" \cdot ")]
        assert len(factors) == len(probs) and follows(math.prod(factors), result)
