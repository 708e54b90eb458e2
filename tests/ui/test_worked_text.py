"""The chain rule and its neighbours tie out to the last digit that is written."""

import math
import random
import re

import pytest

from tests.ui.test_worked import NUMBER, digits_of, same, value
from ui import worked, worked_text


@pytest.mark.parametrize("scale", [0.01, 1, 30, 900, 50_000])
def test_the_chain_rule_follows_from_its_own_numbers(scale: float) -> None:
    rng = random.Random(2)
    for _ in range(60):
        total, n, n_bytes = -rng.uniform(0.001, 1) * scale, rng.randint(1, 200), rng.randint(1, 900)
        shown = worked_text.chain(total, n, n_bytes)
        log = re.search(rf"\\ln p_t = (-{NUMBER[2:]})", shown)[1]  # type: ignore[index]
        assert value(log) == pytest.approx(total, rel=1e-3)
        upper, count = re.search(rf"\\frac\{{({NUMBER})\}}\{{(\d+)\}}", shown).groups()  # type: ignore[union-attr]
        assert upper == log[1:] and int(count) == n
        loss = re.search(rf"&= ({NUMBER})\\ \\text\{{nats\}}", shown)[1]  # type: ignore[index]
        assert same(loss, value(upper) / n, digits_of(loss))
        product = re.search(rf"= e\^\{{{re.escape(log)}\}}\S*?&= ({NUMBER})", shown)[1]  # type: ignore[index]
        assert product == worked_text._product_tex(value(log), 4)
        perplexity = re.search(rf"perplexity\}} &= e\^\{{({NUMBER})\}} = (\S+?)(?:\\\\|$)", shown)
        if value(loss) < worked.LARGEST:
            assert perplexity and perplexity[1] == loss and same(perplexity[2], math.exp(value(loss)))
        bits = re.search(rf"\\ln 2 \\cdot {n_bytes}\}} = ({NUMBER})", shown)[1]  # type: ignore[index]
        assert same(bits, value(upper) / math.log(2) / n_bytes)


@pytest.mark.parametrize("scale", [0.01, 1, 30, 900, 50_000])
def test_in_bits_the_chain_rule_follows_from_its_own_numbers(scale: float) -> None:
    rng = random.Random(7)
    for _ in range(60):
        total, n, n_bytes = -rng.uniform(0.001, 1) * scale, rng.randint(1, 200), rng.randint(1, 900)
        shown = worked_text.chain(total, n, n_bytes, unit="bits")
        assert r"\ln" not in shown and "nats" not in shown
        log = re.search(rf"\\log_2 p_t = (-{NUMBER[2:]})", shown)[1]  # type: ignore[index]
        assert value(log) == pytest.approx(total / math.log(2), rel=1e-3)
        assert f"= 2^{{{log}}}" in shown
        product = re.search(rf"= 2\^\{{{re.escape(log)}\}}\S*?&= ({NUMBER})", shown)[1]  # type: ignore[index]
        assert product == worked_text._product_tex(value(log) * math.log(2), 4)
        loss = re.search(rf"&= ({NUMBER})\\ \\text\{{bits\}}", shown)[1]  # type: ignore[index]
        assert same(loss, -value(log) / n, digits_of(loss))
        perplexity = re.search(rf"perplexity\}} &= 2\^\{{({NUMBER})\}} = (\S+?)(?:\\\\|$)", shown)
        if value(loss) < worked.LARGEST:
            assert perplexity and perplexity[1] == loss and same(perplexity[2], 2 ** value(loss))
        bits = re.search(rf"\\frac\{{{re.escape(log[1:])}\}}\{{{n_bytes}\}} = ({NUMBER})", shown)
        assert bits and same(bits[1], -value(log) / n_bytes)


def test_a_long_text_in_bits() -> None:
    shown = worked_text.corpus(-8 * math.log(2), 4, 2, unit="bits")
    assert r"\log_2 p_t = \frac{8" in shown and r"\text{bits per token}" in shown
    assert "= 2^{2.000} = 4.000" in shown and "{2} = 4.000" in shown


def test_products_never_underflow() -> None:
    for log in (-1.0, -700.0, -2000.0, -123456.7, 0.0, 5.0):
        written, exponent = worked_text.mantissa(log)
        assert 1 <= float(written) < 10
        assert math.log(float(written)) + exponent * math.log(10) == pytest.approx(log, abs=6e-4)
    assert [worked_text.product(math.log(p)) for p in (0.25, 0.0012346, 0.00012346)] == [
        "0.2500", "0.001235", "1.235×10⁻⁴",
    ]  # fmt: skip
    assert worked_text.product(-math.inf) == "0"
    assert worked_text.product(math.nan) == "not finite"


@pytest.mark.parametrize("unit", ["nats", "bits"])
def test_a_log_probability_follows_from_logit_and_log_sum(unit: str) -> None:
    rng = random.Random(3)
    for _ in range(300):
        z = rng.uniform(-15, 20)
        log_total = z + rng.choice([rng.uniform(0.001, 14), rng.uniform(1e-6, 1e-3)])
        shown = worked_text.log_prob(z, log_total, 50257, unit=unit)
        left = re.search(rf"z &= ({NUMBER})", shown)[1]  # type: ignore[index]
        right = re.search(rf"z_j\}} = ({NUMBER})", shown)[1]  # type: ignore[index]
        difference = value(left) - value(right)
        log_p = re.search(rf"LSE\}} = ({NUMBER})", shown)[1]  # type: ignore[index]
        assert same(log_p, difference, digits_of(log_p)), shown
        p = re.search(rf"e\^\{{{re.escape(log_p)}\}} = ({NUMBER})", shown)[1]  # type: ignore[index]
        assert same(p, math.exp(value(log_p))) and value(p) == pytest.approx(
            math.exp(z - log_total), rel=1e-3
        )
        if unit == "bits":
            bits = re.search(rf"= ({NUMBER})\\ \\text\{{bits\}}", shown)[1]  # type: ignore[index]
            assert same(bits, difference / math.log(2))


def test_a_long_text_s_numbers_follow_from_the_sum() -> None:
    rng = random.Random(4)
    for _ in range(200):
        total, n, n_bytes = -rng.uniform(1, 90_000), rng.randint(1, 30_000), rng.randint(1, 100_000)
        shown = worked_text.corpus(total, n, n_bytes)
        upper = re.findall(rf"\\frac\{{({NUMBER})\}}\{{{n}\}}", shown)[-1]
        loss = re.search(rf"&= ({NUMBER})\\ \\text\{{nats per token\}}", shown)[1]  # type: ignore[index]
        assert same(loss, value(upper) / n, digits_of(loss))
        bits = re.search(rf"\\ln 2 \\cdot {n_bytes}\}} = ({NUMBER})", shown)[1]  # type: ignore[index]
        assert same(bits, value(upper) / math.log(2) / n_bytes)


def test_p03_perplexity_is_corpus_level() -> None:
    shown = worked_text.corpus(-1.9, 8, 8)
    assert "= 1.268" in shown and "1.246" not in shown


@pytest.mark.parametrize(("loss", "infinite"), [(88.73, False), (709.79, True), (800, True)])
def test_p05_a_perplexity_too_large_is_infinite(loss: float, infinite: bool) -> None:
    assert (r"\infty" in worked_text.corpus(-loss, 1, 1)) == infinite
    assert (r"\infty" in worked_text.chain(-loss, 1, 1)) == infinite


def test_the_difference_of_a_piece_follows_from_its_terms() -> None:
    rng = random.Random(5)
    for _ in range(200):
        parts = ([rng.expovariate(1) for _ in range(rng.randint(1, 4))], [rng.expovariate(0.5)])
        shown = worked_text.pieces(parts, "nats")
        lines = shown.replace(r"\\ &= ", "= ").split(r"\\[8pt]")  # three terms and more take two lines
        terms, total = re.search(rf"s_A &= (?:(.*) = )?({NUMBER})\\ ", lines[0]).groups()  # type: ignore[union-attr]
        if terms:
            assert same(total, sum(value(x) for x in terms.split(" + ")), digits_of(total))
        other = re.search(rf"s_B &= ({NUMBER})\\ ", lines[1])[1]  # type: ignore[index]
        gap = re.search(rf"s_A - s_B &= ({NUMBER})\\ ", lines[2])[1]  # type: ignore[index]
        assert same(gap, value(total) - value(other)), shown


def test_many_terms_are_a_sum_sign() -> None:
    shown = worked_text.pieces(([1.0] * 9, [2.0]), "bits")
    assert r"\sum_{i=1}^{9} -\log_2 p_i = 9" in shown and r"s_A - s_B &= 7" in shown


def test_distances_are_written_with_their_unit() -> None:
    shown = worked_text.distances(0.5, 0.25, 0.125, "bits")
    assert r"\tfrac12 D_{\text{KL}}(A \Vert M)" in shown and r"M &= \tfrac12 (A + B)" in shown
    assert r"\log_2" in shown and "= 0.5000" in shown and "0.1250" in shown and r"\text{bits}" in shown
