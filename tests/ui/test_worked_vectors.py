"""Formulas of token vectors: whoever puts the written numbers into a calculator gets what is written."""

import math
import random
import re

from engine.config import Rotary
from tests.ui.test_worked import NUMBER, digits_of, same, value
from ui import worked_vectors

SIGNED = rf"\(?({NUMBER})\)?"
NEW_LINE = r"\\\\\[8pt\]&\\quad"


def test_the_lookup_copies_one_number() -> None:
    shown = worked_vectors.look_up({0: 0.5, 7: -0.25, 99: 2.0}, 7, 100, 3)
    assert r"\sum_{v=0}^{99}" in shown and r"E_{7,3} = -0.2500" in shown
    terms = re.findall(rf"([01]) \\cdot {SIGNED}", shown)
    assert [(int(h), value(x)) for h, x in terms] == [(0, 0.5), (1, -0.25), (0, 2.0)]
    assert shown.count(r"\dots") == 2


def test_the_lookup_at_the_edges_has_no_gap_that_is_none() -> None:
    assert worked_vectors.look_up({0: 0.5}, 0, 1, 0).count(r"\dots") == 0
    assert worked_vectors.look_up({0: 0.5, 1: 1.0}, 1, 2, 0).count(r"\dots") == 0
    assert worked_vectors.look_up({0: 0.5, 2: 1.0}, 0, 3, 0).count(r"\dots") == 1


def test_sums_follow_from_their_parts() -> None:
    rng = random.Random(1)
    for _ in range(200):
        a, b = rng.uniform(-1, 1), rng.uniform(-1, 1)
        for more, factor in (({}, 1.0), ({"scale": math.sqrt(128), "d_model": 128}, math.sqrt(128))):
            shown = worked_vectors.addition(a, b, 5, 3, 2, **more)  # type: ignore[arg-type]
            sum_and_result = rf"{SIGNED} \+ {SIGNED}\\\\\[8pt\]&= ({NUMBER})"
            first, second, total = re.search(sum_and_result, shown).groups()  # type: ignore[union-attr]
            assert same(total, factor * value(first) + value(second)), shown
            assert (r"\sqrt{128}" in shown) == (factor != 1)


def test_a_sum_with_the_previous_token_follows_from_its_parts() -> None:
    rng = random.Random(3)
    for _ in range(100):
        a, p, w, b = (rng.uniform(-1, 1) for _ in range(4))
        for scale, width in ((1.0, 1), (math.sqrt(128), 128)):
            more = {"previous": (9, w, b), "scale": scale, "d_model": width}
            shown = worked_vectors.addition(a, p, 5, 3, 2, **more)  # type: ignore[arg-type]
            assert r"E_{5,2} + w_{2}\,E_{9,2}" in shown and "P_{3,2}" in shown
            product = (
                rf"{SIGNED}{NEW_LINE} \+ {SIGNED} \\cdot {SIGNED}(?:\\bigr\))? \+ {SIGNED}"
                rf"\\\\\[8pt\]&= ({NUMBER})"
            )
            *parts, total = re.search(product, shown).groups()  # type: ignore[union-attr]
            token, factor, before, place = map(value, parts)
            assert same(total, scale * (token + factor * before) + place), shown
            assert (r"\sqrt{128} \cdot \bigl(" in shown) == (scale != 1)
        shown = worked_vectors.addition(a, None, 5, 3, 2, previous=(9, w, b))
        *parts, total = re.search(
            rf"{SIGNED}{NEW_LINE} \+ {SIGNED} \\cdot {SIGNED}.*?&= ({NUMBER})", shown
        ).groups()  # type: ignore[union-attr]
        token, factor, before = map(value, parts)
        assert same(total, token + factor * before) and "P" not in shown, shown
    assert worked_vectors.addition(0.5, None, 5, 0, 2).count("&=") == 2  # the first token: its row alone


def test_sinusoids_follow_from_their_angle() -> None:
    for t, dim in [(0, 0), (17, 6), (17, 7), (190, 0), (190, 1), (5, 127)]:
        shown = worked_vectors.sinusoid(t, dim, 128)
        name, given, result = re.search(rf"&= \\(sin|cos)\(({NUMBER})\) = ({NUMBER})", shown).groups()  # type: ignore[union-attr]
        assert name == ("cos" if dim % 2 else "sin")
        exact = getattr(math, name)(t / 10000 ** ((dim - dim % 2) / 128))
        assert same(result, getattr(math, name)(value(given)), 4) and same(result, exact, 4), shown


def test_the_angle_and_the_turn() -> None:
    rng = random.Random(2)
    for _ in range(200):
        t, pair = rng.randint(0, 191), rng.randint(0, 15)
        theta = t * 10000 ** (-2 * pair / 32)
        written = re.search(rf"&= ({NUMBER})\\ ", worked_vectors.angle(t, pair, 32))[1]  # type: ignore[index]
        assert same(written, theta)
        a, b = rng.uniform(-3, 3), rng.uniform(-3, 3)
        shown = worked_vectors.rotation(a, b, theta, pair)
        found = re.findall(
            rf"&= {SIGNED}\\(?:cos|sin) ({NUMBER}).*?{SIGNED}\\(?:sin|cos) .*?&= ({NUMBER})", shown
        )
        assert len(found) == 2
        (x, angle, y, first), (_, _, _, second) = found
        c, s = math.cos(value(angle)), math.sin(value(angle))
        assert same(first, value(x) * c - value(y) * s), shown
        assert same(second, value(x) * s + value(y) * c), shown


def test_the_angle_has_the_models_own_base_share_and_slowness() -> None:
    shown = worked_vectors.angle(7, 3, 64, Rotary(100_000.0))
    assert r"7 \cdot 100000^{-6/64}" in shown and r"d_{\text{head}}" in shown
    assert same(re.search(rf"&= ({NUMBER})\\ ", shown)[1], 7 * 100_000 ** (-6 / 64))  # type: ignore[index]
    part = worked_vectors.angle(7, 3, 16, Rotary(10_000.0, share=0.25))
    assert r"10000^{-6/16}" in part and r"d_{\mathrm{rot}}" in part and r"d_{\text{head}}" not in part
    slow = Rotary(500_000.0, 1.0, 8.0, 1.0, 4.0, 64)  # pair 20 makes less than one turn in 64 positions
    shown = worked_vectors.angle(50, 20, 64, slow)
    factor, result = re.search(rf"500000\^\{{-40/64\}} \\cdot ({NUMBER}).*?&= ({NUMBER})\\ ", shown).groups()  # type: ignore[union-attr]
    assert same(factor, 1 / 8) and same(result, 50 * 500_000 ** (-40 / 64) / 8)


def test_cosine_and_length_follow_from_their_own_numbers() -> None:
    rng = random.Random(3)
    for _ in range(200):
        a, b = rng.uniform(0.1, 9), rng.uniform(0.1, 9)
        dot = rng.uniform(-1, 1) * a * b
        shown = worked_vectors.cosine(dot, a, b, 128)
        upper, first, second = re.search(  # type: ignore[union-attr]
            rf"\\frac\{{({NUMBER})\}}\{{({NUMBER}) \\cdot ({NUMBER})\}}", shown
        ).groups()
        result = re.findall(rf"&= ({NUMBER})\\end", shown)[0]
        assert same(result, value(upper) / (value(first) * value(second))), shown
        assert rf"a_j b_j = {upper}" in shown
        shown = worked_vectors.length(a, 128)
        squares, result = re.search(rf"\\sqrt\{{({NUMBER})\}} = ({NUMBER})$", shown).groups()  # type: ignore[union-attr]
        assert same(result, math.sqrt(value(squares))) and digits_of(result) == 4


def test_coordinates_are_named_by_their_axis() -> None:
    shown = worked_vectors.coordinates([0.5, -1.25], 64)
    assert r"\text{PC }1: z_1 &= 0.5000" in shown and r"\text{PC }2: z_2 &= -1.250" in shown
    assert r"\sum_{j=0}^{63}" in shown
