"""Whoever puts the written numbers into a calculator gets the written result, to its last digit."""

import math
import random
import re

import pytest

from ui import worked


def value(shown: str) -> float:
    """The number that LaTeX shows."""
    found = re.fullmatch(r"(-?[\d.]+)(?:\\times10\^\{(-?\d+)\})?", shown)
    assert found, shown
    return float(found[1]) * 10 ** int(found[2] or 0)


NUMBER = r"-?[\d.]+(?:\\times10\^\{-?\d+\})?"


def same(shown: str, result: float, digits: int = 4) -> bool:
    return shown == worked.tex(result, digits)


def digits_of(shown: str) -> int:
    """Significant digits that are written."""
    return len(re.sub(r"\\times.*|[-.]", "", shown).lstrip("0"))


@pytest.mark.parametrize("unit", ["nats", "bits"])
def test_softmax_follows_from_its_own_numbers(unit: str) -> None:
    rng = random.Random(1)
    log = math.log if unit == "nats" else math.log2
    for _ in range(300):
        z, log_total = rng.uniform(-12, 20), 0.0
        log_total = z + rng.choice([rng.uniform(0.001, 12), rng.uniform(1e-6, 1e-3), 18.5])
        shown = worked.softmax(z, log_total, 512, unit=unit)
        exponent = re.search(rf"z &= ({NUMBER})", shown)[1]  # type: ignore[index]
        top = re.search(rf"e\^\{{z\}} &= ({NUMBER})", shown)[1]  # type: ignore[index]
        upper, lower = re.findall(rf"\\frac\{{({NUMBER})\}}\{{({NUMBER})\}}", shown)[0]
        p = re.search(rf"\\\\\[8pt\]&= ({NUMBER})", shown)[1]  # type: ignore[index]
        result = re.search(rf"= ({NUMBER})\\ \\text\{{{unit}\}}", shown)[1]  # type: ignore[index]
        assert upper == top and same(top, math.exp(value(exponent)), digits_of(top))
        assert same(p, value(upper) / value(lower), digits_of(p)), shown
        assert same(result, -log(value(p))), shown
        assert math.isclose(
            value(result), (log_total - z) / (1 if unit == "nats" else math.log(2)), rel_tol=6e-4
        )


@pytest.mark.parametrize(
    ("z", "log_total"), [(800.0, 800.5), (-800.0, -799.5), (-750.0, 51.0), (1e6, 1e6 + 2)]
)
def test_softmax_goes_on_where_a_float_ends(z: float, log_total: float) -> None:
    """A run whose learning rate was far too high has such logits: e^800 is 2.726·10^347."""
    shown, logs = worked.softmax(z, log_total, 512), (z, log_total)
    for log, written in zip(
        logs, re.findall(rf"\\frac\{{({NUMBER})\}}\{{({NUMBER})\}}", shown)[0], strict=True
    ):
        digits, _, exponent = written.removesuffix("}").partition(r"\times10^{")
        assert math.isclose(math.log(float(digits)) + int(exponent or 0) * math.log(10), log, abs_tol=1e-3)
    assert rf"&= {worked.tex(log_total - z)}\ \text{{nats}}" in shown
    assert r"\infty" not in shown and r"= 0\\" not in shown


def test_a_number_beyond_a_float_is_written_from_its_logarithm() -> None:
    assert worked.power(800.0) == r"2.726\times10^{347}"
    assert worked.power(-801.0) == r"1.349\times10^{-348}"
    assert worked.power(math.log(0.25)) == "0.2500"


def test_perplexity_follows_from_its_own_numbers() -> None:
    rng = random.Random(2)
    for _ in range(300):
        total, n, n_bytes = -rng.uniform(0.01, 900), rng.randint(1, 200), rng.randint(1, 900)
        shown = worked.perplexity(total, n, n_bytes)
        (upper, count), (again, _) = re.findall(
            rf"\\frac\{{({NUMBER})\}}\{{({NUMBER}|\\ln 2 \\cdot \d+)\}}", shown
        )
        loss = re.search(rf"= ({NUMBER})\\ \\text\{{nats\}}", shown)[1]  # type: ignore[index]
        exponent, result = re.search(rf"e\^\{{({NUMBER})\}} = ({NUMBER}|\\infty)", shown).groups()  # type: ignore[union-attr]
        per_byte = re.search(rf"= ({NUMBER})\\end", shown)[1]  # type: ignore[index]
        assert upper == again and int(count) == n and exponent == loss
        assert same(loss, value(upper) / n, digits_of(loss)), shown
        assert result == r"\infty" or same(result, math.exp(value(loss))), shown
        assert same(per_byte, value(upper) / math.log(2) / n_bytes), shown


def test_attention_follows_from_its_own_numbers() -> None:
    rng = random.Random(3)
    for _ in range(300):
        dot, total = rng.uniform(-40, 40), 0.0
        total = math.exp(dot / math.sqrt(32)) * rng.uniform(1, 500)
        shown = worked.attention(dot, 32, total)
        first, score = re.search(rf"\\frac\{{({NUMBER})\}}\{{\\sqrt\{{32\}}\}} = ({NUMBER})", shown).groups()  # type: ignore[union-attr]
        top = re.search(rf"e\^\{{{re.escape(score)}\}} = ({NUMBER})", shown)[1]  # type: ignore[index]
        upper, lower, weight = re.search(
            rf"\\frac\{{({NUMBER})\}}\{{({NUMBER})\}} = ({NUMBER})\\end", shown
        ).groups()  # type: ignore[union-attr]
        assert same(score, value(first) / math.sqrt(32), digits_of(score)), shown
        assert upper == top and same(top, math.exp(value(score)), digits_of(top)), shown
        assert same(weight, value(upper) / value(lower)), shown


@pytest.mark.parametrize(
    ("x", "digits", "shown"),
    [
        (0.328504, 3, "0.329"), (1234.5678, 6, "1234.57"), (20_700_123.4, 4, "20700123"), (0.0, 4, "0"),
        (2.5e12, 3, r"2.50\times10^{12}"), (-0.5, 2, "-0.50"),
        (1.234e-9, 3, r"1.23\times10^{-9}"), (math.inf, 4, r"\infty"), (9.9999, 3, "10.0"),
    ],
)  # fmt: skip
def test_numbers_are_rounded_and_never_cut(x: float, digits: int, shown: str) -> None:
    assert worked.tex(x, digits) == shown


def test_a_certain_token_is_no_error() -> None:
    assert r"= 0\ \text{nats}" in worked.softmax(3.0, 3.0, 1)


def test_an_infinite_perplexity_is_written_as_such() -> None:
    assert r"\infty" in worked.perplexity(-800.0, 1, 1)
