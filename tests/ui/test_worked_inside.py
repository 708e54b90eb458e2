"""The formulas of Inside and Attention tie out: who calculates with what is written gets what is written."""

import math
import random
import re

import pytest

from tests.ui.test_worked import NUMBER, digits_of, value
from ui import worked, worked_attention, worked_inside
from ui.inside_parts import Bar, strongest
from ui.worked import tex


def numbers(shown: str) -> list[float]:
    return [value(x) for x in re.findall(NUMBER, shown.replace("[8pt]", ""))]


def test_a_logit_is_the_sum_of_what_is_written() -> None:
    rng = random.Random(1)
    for _ in range(300):
        values = [rng.gauss(0, 10 ** rng.uniform(-4, 2)) for _ in range(rng.randint(1, 5))]
        shown = worked_inside.logit_sum([f"part{chr(97 + i)}" for i in range(len(values))], values, left="z")
        *terms, total = numbers(shown)
        assert len(terms) == len(values)
        assert tex(math.fsum(terms), 4) == tex(total, 4), shown
        assert total == pytest.approx(math.fsum(values), rel=1e-3, abs=1e-12)


def test_the_norm_is_named_with_its_divisor() -> None:
    assert r"\bar a" in worked_inside.frozen_norm("layernorm", 9.6386)
    assert r"\bar a" not in worked_inside.frozen_norm("rmsnorm", 9.6386)
    assert "s &= 9.639" in worked_inside.frozen_norm("rmsnorm", 9.6386)


def test_the_length_of_a_sum_follows_from_both_lengths_and_their_angle() -> None:
    rng = random.Random(2)
    for _ in range(300):
        x, a = rng.uniform(0.01, 300), rng.uniform(0.001, 300)
        cosine = rng.choice([rng.uniform(-0.999, 0.999), rng.uniform(-0.01, 0.01)])
        shown = worked_inside.longer(x, a, cosine)
        found = re.search(rf"2 \\cdot ({NUMBER}) \\cdot ({NUMBER}) \\cdot \(?({NUMBER})\)?", shown)
        assert found, shown
        written = [value(g) for g in found.groups()]
        product = re.search(rf"\[8pt\]&= ({NUMBER})\\\\", shown)[1]  # type: ignore[index]
        cross = value(product)
        last = re.search(rf"&= ({NUMBER})\\end", shown)[1]  # type: ignore[index]
        assert tex(2 * math.prod(written), digits_of(product)) == product, shown
        assert tex(math.sqrt(max(written[0] ** 2 + written[1] ** 2 + cross, 0)), 4) == last, shown
        assert value(last) == pytest.approx(math.sqrt(x * x + a * a + 2 * x * a * cosine), rel=1e-3)


def test_a_share_and_a_change() -> None:
    rng = random.Random(3)
    for _ in range(200):
        m, a = rng.uniform(0.01, 90), rng.uniform(0.01, 90)
        top, left, right, result = numbers(worked_inside.share(m, a))
        assert top == right and tex(top / (left + right), 3) == tex(result, 3)
        before, after = rng.uniform(0.001, 9), rng.uniform(0.001, 9)
        first, second, result = numbers(worked_inside.change(before, after).replace("- ", "~"))
        assert tex(first - second, 4) == tex(result, 4)
        assert result == pytest.approx(after - before, rel=1e-3)


def test_weights_times_values_are_the_output() -> None:
    rng = random.Random(4)
    for n in [1, 2, 3, 4, 5, 60] * 20:
        raw = [rng.random() ** 4 for _ in range(n)]
        weights = [w / sum(raw) for w in raw]
        values = [rng.gauss(0, 2) for _ in range(n)]
        exact = math.fsum(w * v for w, v in zip(weights, values, strict=True))
        written = worked_attention.written_products(weights, values, digits=4)
        for w, v, product in zip(written.left, written.right, written.products, strict=True):
            assert tex(w * v, written.digits) == tex(product, written.digits)
        assert tex(math.fsum(written.products), 4) == tex(exact, 4)
        shown = worked_attention.output(written, 7)
        assert "v_{j,7}" in shown and (f"({n - 3} other key" in shown) == (n > 3)
        pairs = re.findall(rf"({NUMBER}) \\cdot \(?({NUMBER})\)?", shown)
        total = math.fsum(value(w) * value(v) for w, v in pairs)
        rest = re.search(rf"\+ \(?({NUMBER})\)? \\quad", shown)
        total += value(rest[1]) if rest else 0.0
        last = re.search(rf"&= ({NUMBER})\\end", shown)[1]  # type: ignore[index]
        assert len(pairs) == min(n, 3) and tex(total, 4) == last == tex(exact, 4), shown


def test_every_number_of_a_row_follows_from_those_that_are_written() -> None:
    rng = random.Random(6)
    for n in [1, 2, 7, 128] * 15:
        dots, d_head = [rng.gauss(0, 15) for _ in range(n)], rng.choice([8, 32, 64])
        row = worked_attention.written_row(dots, d_head)
        total, digits = math.fsum(row.powers), row.digits
        assert tex(row.total, digits) == tex(total, digits)
        exact = [math.exp(dot / math.sqrt(d_head)) for dot in dots]
        columns = zip(dots, row.dots, row.scores, row.powers, row.weights, exact, strict=True)
        for dot, q_k, score, power, weight, top in columns:
            assert tex(dot, digits) == tex(q_k, digits)
            assert tex(q_k / math.sqrt(d_head), digits) == tex(score, digits)
            assert tex(math.exp(score), digits) == tex(power, digits)
            assert tex(power / row.total, 4) == tex(weight, 4) == tex(top / math.fsum(exact), 4)
        shown = worked.attention(dots[0], d_head, row.total, others=digits)
        assert f"= {tex(row.weights[0], 4)}\\end" in shown and f"= {tex(row.powers[0], digits)}\\\\" in shown


@pytest.mark.parametrize("scale", [1.0, 0.0883, 0.25])
def test_a_row_with_a_scale_of_its_own_follows_from_what_is_written(scale: float) -> None:
    """GPT-Neo takes q · k as it is; others multiply by a number that is not 1 / √d."""
    rng = random.Random(8)
    for n in [1, 7, 60] * 10:
        dots = [rng.gauss(0, 4) for _ in range(n)]
        row = worked_attention.written_row(dots, 64, scale=scale)
        exact = [math.exp(dot * scale) for dot in dots]
        for q_k, score, power, weight, top in zip(
            row.dots, row.scores, row.powers, row.weights, exact, strict=True
        ):
            assert tex(q_k * scale, row.digits) == tex(score, row.digits)
            assert tex(math.exp(score), row.digits) == tex(power, row.digits)
            assert tex(power / row.total, 4) == tex(weight, 4) == tex(top / math.fsum(exact), 4)
        shown = worked.attention(dots[0], 64, row.total, scale=scale, others=row.digits)
        assert f"= {tex(row.weights[0], 4)}\\end" in shown and "sqrt" not in shown
        first = tex(row.dots[0], row.digits)
        factor = f"({first})" if row.dots[0] < 0 else first  # nobody writes 0.25 · -3
        assert (f"{scale!r} \\cdot {factor} =" in shown) == (scale != 1)


@pytest.mark.parametrize(("dots", "less"), [([5000.0, 4990.0], 884), ([-9000.0, -8990.5], -1589)])
def test_scores_whose_powers_no_float_holds_are_all_moved_by_one_number(dots: list[float], less: int) -> None:
    row = worked_attention.written_row(dots, 32)
    assert row.subtracted == less
    exact = 1 / (1 + math.exp((dots[1] - dots[0]) / math.sqrt(32)))
    assert tex(row.weights[0], 4) == tex(exact, 4) and tex(row.weights.sum(), 3) == "1.00"
    sign = f"- {less}" if less > 0 else f"+ {-less}"
    shown = worked.attention(dots[0], 32, row.total, subtracted=less, others=row.digits)
    assert rf"e^{{s {sign}}} &= e^{{{tex(row.scores[0], row.digits)} {sign}}}" in shown
    assert f"= {tex(exact, 4)}\\end" in shown
    assert rf"\sum_k e^{{s_k {sign}}}" in worked_attention.row(row, 0)
    assert worked_attention.written_row([3.0, 1.0], 32).subtracted == 0


def test_products_add_up_to_the_dot_product_that_is_written() -> None:
    rng = random.Random(7)
    for digits in [4, 5, 7, 9] * 20:
        q, k = [rng.gauss(0, 1) for _ in range(32)], [rng.gauss(0, 1) for _ in range(32)]
        written = worked_attention.written_products(q, k, digits=digits)
        for x, y, product in zip(written.left, written.right, written.products, strict=True):
            assert tex(x * y, written.digits) == tex(product, written.digits)
        exact = math.fsum(x * y for x, y in zip(q, k, strict=True))
        assert tex(math.fsum(written.products), digits) == tex(exact, digits)


def test_hidden_keys_add_exactly_nothing_to_the_sum() -> None:
    shown = worked_attention.row(worked_attention.written_row([0.0, math.log(3.0)], 1), 4)
    assert re.search(r"\\underbrace\{4\.0+\}_\{\\text\{2 keys\}\}", shown), shown
    assert r"\underbrace{0}_{\text{4 hidden keys: }" in shown
    one = worked_attention.written_row([0.0], 1)
    assert "hidden" not in worked_attention.row(one, 0)
    assert r"_{\text{1 hidden key: }" in worked_attention.row(one, 1)


def test_many_bars_become_the_strongest_and_one_for_the_others() -> None:
    rng = random.Random(9)
    few = [Bar("mlp", rng.gauss(0, 1), n) for n in range(1, 28)]
    assert strongest(few) == few
    many = [Bar("mlp", rng.gauss(0, 1), n) for n in range(1, 65)]
    found = strongest(many)
    *drawn, rest = found
    assert len(drawn) == 16 and rest.group == "others" and rest.block == 48
    assert [bar.block for bar in drawn] == sorted(bar.block for bar in drawn)
    assert min(abs(bar.value) for bar in drawn) >= max(abs(b.value) for b in many if b not in drawn)
    assert math.fsum(bar.value for bar in found) == pytest.approx(math.fsum(bar.value for bar in many))
