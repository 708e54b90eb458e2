"""The margin of a difference: whoever puts the written numbers into a calculator gets what is written."""

import math
import random
import re

import pytest

from engine.seed_spread import contrast, spread
from ui.worked_runs import margin


@pytest.mark.parametrize("seed", range(20))
def test_the_margin_ties_out(seed: int) -> None:
    draw = random.Random(seed)
    scale = 10 ** draw.uniform(-4, 1)
    first, second = (spread([draw.gauss(2, scale) for _ in range(draw.randint(2, 6))]) for _ in range(2))
    written = margin(contrast(first, second), first, second)
    t, s = re.search(r"&= ([\d.]+) \\cdot (\S+) \\cdot", written).groups()  # type: ignore[union-attr]
    result = re.search(r"&= ([^&]+)\\end\{aligned\}", written)[1]  # type: ignore[index]
    number = [float(x.replace(r"\times10^{", "e").replace("}", "")) for x in (t, s, result)]
    exact = number[0] * number[1] * math.sqrt(1 / first.n + 1 / second.n)
    assert float(f"{exact:.2e}") == pytest.approx(number[2])
    assert rf"\tfrac1{{{first.n}}} + \tfrac1{{{second.n}}}" in written
