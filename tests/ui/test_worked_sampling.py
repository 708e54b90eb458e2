"""The worked probability: each written result follows from the written numbers before it."""

import math
import re

import numpy as np
import pytest

from engine.stages import sampling_stages, worked_out
from ui.worked_sampling import sampled

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
