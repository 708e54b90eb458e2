"""Worked numbers of the studies: the written numbers, put into a calculator, give the written result."""

import math
import re

import pytest

from ui import worked_experiments as worked

POWER = re.compile(r"([\d.]+)\\times10\^\{(-?\d+)\}")


def plain(latex: str) -> str:
    """Powers of ten as Python writes them."""
    return POWER.sub(lambda m: f"{m[1]}e{m[2]}", latex)


def numbers(latex: str) -> list[float]:
    return [float(x) for x in re.findall(r"\d+\.?\d*(?:e-?\d+)?", plain(latex))]


@pytest.mark.parametrize(
    ("floor", "a", "alpha", "size"),
    [(0.392, 17432.7, 1.027, 1_008_384), (0.0, 12.5, 0.2239, 231_000), (0.9671, 23456.7, 1.2937, 868_746)],
)
def test_the_law_ties_out(floor: float, a: float, alpha: float, size: float) -> None:
    lines = plain(worked.law(floor, a, alpha, size)).split(r"\\[8pt]")
    e, coefficient, x, power = numbers(lines[1].replace("&=", ""))
    (result,) = numbers(lines[2].replace("&=", ""))
    assert e + coefficient * x**-power == pytest.approx(result, abs=0.6 * 10 ** -(len(str(result)) - 2))
    assert result == pytest.approx(floor + a * size**-alpha, rel=1e-3)


def test_perplexity_ties_out() -> None:
    latex = worked.perplexity(0.4321098)
    loss, result = (float(x) for x in re.findall(r"\d+\.\d+", latex))
    assert f"{math.exp(loss):.4g}" == f"{result:.4g}" == f"{math.exp(0.4321098):.4g}"


def test_the_gap_ties_out() -> None:
    first, second, result = (
        float(x) for x in re.findall(r"\d+\.\d+", worked.gap(3.66543, 0.17999, ("a", "b")))
    )
    assert round(first - second, 2) == result == 3.49


def test_bits_per_byte_tie_out() -> None:
    last = worked.bits_per_byte(1.23456, 2.4276).split("&=")[-1]
    loss, length, result = (float(x) for x in re.findall(r"\d+\.\d+", last))
    assert f"{loss / (math.log(2) * length):.4g}" == f"{result:.4g}"


def test_the_way_to_the_floor_ties_out() -> None:
    last = worked.progress(math.log(512), 0.7531, 0.2558).split("&=")[-1]
    a, b, c, d, result = (float(x) for x in re.findall(r"\d+\.\d+", last))
    assert a == c and f"{(a - b) / (c - d):.3g}" == f"{result:.3g}"
