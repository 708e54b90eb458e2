"""Marking: what people type is read as they mean it, and nothing but what is right is called right."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.exercise import Choice, Ids, Number, Option, Order, Slip
from engine.marking import mark_choice, mark_ids, mark_number, mark_order, rounded, tolerance
from engine.typed import LONGEST, read_ids, read_number

LOSS = Number(-math.log(math.exp(1) / (math.exp(2) + math.exp(1) + 1)), "nats")  # 1.40760596...
HALF = Number(0.5, "share")
COUNT = Number(32_000, "tokens", whole=True)
HOSTILE = (
    "", " ", "-", "+", ".", ",", "e", "e5", "%", "/", "1/0", "0/0", "NaN", "nan", "inf", "-inf", "Infinity",
    "1e999", "-1e999", "1e400", "__import__('os').system('true')", "9" * 10_000, "1" + "0" * 400, "(" * 50,
    "٠٫٦٩٣", "०.५", "０.５", "½", "Ⅳ", "五", "1,2,3,4", "1.2.3", "0x1F", "1e", "--1", "1 2", "\x00",
    "\u202e5.0",
    "None", "True", "lambda: 1", "1;2", "1_0_0__", "{0}", "%s", "🙂", "1e1e1", "10^^3", "2**99999999", "1//2",
)  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("0.693", 0.693), ("0,693", 0.693), (".693", 0.693), (",693", 0.693), ("69.3 %", 0.693),
        ("69,3%", 0.693),
        ("1/2", 0.5), ("−1/2", -0.5), ("1e-3", 0.001), ("1E-3", 0.001), ("10^-3", 0.001), ("10⁻³", 0.001),
        ("2.5×10^3", 2500), ("2,5·10³", 2500), ("2.5 x 10^3", 2500), ("–3", -3), ("+3", 3), ("≈ 0.5", 0.5),
        ("= 0.5", 0.5), ("1,234", 1.234), ("1.234", 1.234), ("1,234.5", 1234.5), ("1.234,5", 1234.5),
        ("1,234,567", 1234567), ("1 234,5", 1234.5), ("1\u202f234.5", 1234.5), ("  7 ", 7), ("5.", 5),
    ],
)  # fmt: skip
def test_a_number_is_read_as_it_is_meant(typed: str, value: float) -> None:
    read = read_number(typed)
    assert read.value == pytest.approx(value, rel=1e-15) and not read.fault


@pytest.mark.parametrize(
    "typed", ["32,000", "32.000", "32 000", "32'000", "32000", "3.2e4", "32_000", "32\u00a0000"]
)
def test_a_count_may_have_marks_of_thousands(typed: str) -> None:
    assert mark_number(typed, COUNT).right


def test_a_lone_comma_with_three_digits_depends_on_what_is_asked_and_is_told() -> None:
    assert read_number("1,234", whole=True).value == 1234 and read_number("1,234").value == 1.234
    assert mark_number("1,234", Number(1234.2)).note == "comma"
    assert mark_number("1,408", LOSS).read == "1.408" and mark_number("1,408", LOSS).right
    assert mark_number("32,000", COUNT).read == "32000"
    assert read_number("0,500", whole=True).value == 0.5  # nobody writes a thousand like that


@pytest.mark.parametrize(
    "typed", ["1.41", "1.408", "1.4076", "1.40760596", "1,41", "1.41 nats", "1.408 nats per token"]
)
def test_rounded_to_three_digits_or_more_is_right(typed: str) -> None:
    assert mark_number(typed, LOSS).right


def test_a_cut_off_last_digit_counts_if_three_digits_are_right_and_is_told() -> None:
    verdict = mark_number("1.407", LOSS)
    assert verdict.right and verdict.note == "right_nearly" and verdict.values == {"better": "1.408"}
    assert mark_number("1.406", LOSS).right  # from the rounded 0.245
    percent = mark_number("66.51 %", Number(0.6652409558, "share"))
    assert percent.right and percent.values == {"better": "66.52 %"}


@pytest.mark.parametrize(
    ("typed", "note"),
    [
        ("1.40", "cut"),
        ("1.4", "few_digits"),
        ("1", "few_digits"),
        ("1.42", "wrong"),
        ("-1.408", "slip.minus"),
    ],
)
def test_what_is_nearly_right_is_told_and_does_not_count(typed: str, note: str) -> None:
    verdict = mark_number(typed, LOSS)
    assert (verdict.right, verdict.note, verdict.marked) == (False, note, True)


def test_units_must_be_the_right_ones() -> None:
    assert mark_number("2.03 bits", LOSS).note == "other_unit"
    assert mark_number("2.03 bits", LOSS).values == {"unit": "nats", "given": "bits"}
    assert mark_number("1.41 bananas", LOSS).note == "unknown_unit"
    assert mark_number("141 %", LOSS).note == "no_share"
    assert mark_number("1.41 bits", LOSS).right is False  # the right number in the wrong unit
    assert mark_number("99 tokens", Number(99, "targets", whole=True)).right  # a target is a token
    assert mark_number("99 objetivos", Number(99, "targets", whole=True)).right


def test_a_word_that_is_no_unit_is_no_try() -> None:
    assert not mark_number("1.41 bananas", LOSS).marked and mark_number("1.41 bits", LOSS).marked


@pytest.mark.parametrize("answer", [Number(13.46), HALF])
def test_an_answer_without_a_unit_says_so(answer: Number) -> None:
    verdict = mark_number("0.5 nats", answer)
    assert (verdict.right, verdict.note, verdict.values) == (False, "no_unit", {"given": "nats"})


@pytest.mark.parametrize(
    "typed", ["1.41 (nats)", "1.41 ( nats per token )", "loss = 1.41", "p=1.41", "L ≈ 1.41"]
)
def test_brackets_and_a_name_before_it_don_t_matter(typed: str) -> None:
    assert mark_number(typed, LOSS).right


@pytest.mark.parametrize(
    "typed", ["50 percent", "50 per cent", "50 por ciento", "50％", "50%", "50.0 Percent"]
)
def test_per_cent_may_be_written_out(typed: str) -> None:
    assert mark_number(typed, HALF).right and not mark_number(typed, Number(50.0)).right


def test_a_percentage_needs_its_sign() -> None:
    assert mark_number("50 %", HALF).right
    assert mark_number("50", HALF).note == "percent"


def test_typical_mistakes_are_named_and_never_right() -> None:
    asked = Number(1.4076, "nats", slips=(Slip("log10", 0.6113), Slip("bits", 2.0307)))
    assert mark_number("0.611", asked).note == "slip.log10"
    assert mark_number("2.031", asked).note == "slip.bits"
    assert mark_number("98", Number(99, "targets", whole=True)).note == "off_by_one"
    assert mark_number("99.5", Number(99, "targets", whole=True)).note == "wrong"


@pytest.mark.parametrize("typed", HOSTILE)
@pytest.mark.parametrize("answer", [LOSS, HALF, COUNT, Number(0.0), Number(9.0, whole=True), Number(0.5)])
def test_what_is_no_number_is_never_right(typed: str, answer: Number) -> None:
    verdict = mark_number(typed, answer)
    assert not verdict.right and verdict.note


@given(st.text(max_size=2 * LONGEST), st.sampled_from([LOSS, HALF, COUNT]))
def test_any_text_is_read_without_a_crash_and_rarely_right(typed: str, answer: Number) -> None:
    verdict = mark_number(typed, answer)
    if verdict.right:  # then plain digits say so
        assert any(char in "0123456789" for char in typed)
    mark_ids(typed, Ids((1, 2)))


@given(st.floats(1e-6, 1e6), st.integers(3, 12))
def test_every_rounding_to_three_digits_or_more_is_right(value: float, digits: int) -> None:
    for text in (f"{value:.{digits - 1}e}", rounded(value, digits)):
        for typed in (text, text.replace(".", ",") if text.count(".") == 1 else text):
            assert mark_number(typed, Number(value)).right, (typed, value)


@given(st.floats(1e-4, 1e4), st.floats(-0.5, 0.5))
def test_what_is_further_than_half_of_the_third_digit_is_wrong(value: float, off: float) -> None:
    typed = f"{value * (1 + off):.15g}"
    far = abs(float(typed) - value) > tolerance(value) * (1 + 1e-6)
    near = abs(float(typed) - value) < tolerance(value) * (1 - 1e-6)
    assert not (far and mark_number(typed, Number(value)).right)
    assert not (near and not mark_number(typed, Number(value)).right)


@given(st.integers(1, 400), st.integers(1, 400))
def test_a_fraction_is_exact(top: int, bottom: int) -> None:
    assert read_number(f"{top}/{bottom}").value == pytest.approx(float(Fraction(top, bottom)), rel=1e-15)
    assert mark_number(f"{top}/{bottom}", Number(top / bottom)).right


@given(st.integers(-(10**9), 10**9))
def test_a_count_is_right_only_if_exact(n: int) -> None:
    answer = Number(n, whole=True)
    assert mark_number(f"{n}", answer).right and mark_number(f"{n:,}", answer).right
    assert not mark_number(f"{n + 1}", answer).right and not mark_number(f"{n}.5", answer).right


@pytest.mark.parametrize(("value", "half"), [(1.4076, 0.005), (0.0244, 0.00005), (123.4, 0.5), (0.5, 0.0005)])
def test_the_tolerance_is_half_of_the_third_digit(value: float, half: float) -> None:
    assert tolerance(value) == pytest.approx(half, rel=1e-12)
    assert mark_number(repr(value + 0.98 * half), Number(value)).right
    assert not mark_number(repr(value + 1.02 * half), Number(value)).right


def test_a_number_on_the_edge_is_right_whatever_a_float_makes_of_it() -> None:
    for n in range(100, 1000):  # 1.005 for 1.00, and so on
        assert mark_number(f"{n / 100:.2f}5", Number(n / 100)).right, n


def test_one_digit_alone_is_not_nearly_right() -> None:
    assert mark_number("0.6", Number(0.693)).note == "wrong"
    assert mark_number("0.69", Number(0.693)).note == "few_digits"


def test_what_is_too_long_is_not_read_in_part() -> None:
    assert read_number("1." + "0" * LONGEST).fault == "long"
    assert not mark_number("1." + "0" * LONGEST + "9" * 40, Number(1.0)).right


# ---- lists, choices, orders


@pytest.mark.parametrize(
    "typed", ["9 2 7", "9,2,7", "[9, 2, 7]", "(9; 2; 7)", "9 × 2 × 7", "9x2x7", "  9,  2,7 "]
)
def test_a_list_may_be_separated_in_any_way(typed: str) -> None:
    assert mark_ids(typed, Ids((9, 2, 7))).right


@pytest.mark.parametrize(
    "typed",
    [
        "4×128×32,000",
        "4, 128, 32,000",
        "4 x 128 x 32000",
        "(4, 128, 32000)",
        "4,128,32000",
        "[4; 128; 32.000]",
        "torch.Size([4, 128, 32000])",
        "shape = (4, 128, 32000)",
    ],
)
def test_a_shape_may_have_marks_of_thousands(typed: str) -> None:
    assert mark_ids(typed, Ids((4, 128, 32_000))).right


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=20))
def test_every_list_of_ids_is_read_back(ids: list[int]) -> None:
    assert read_ids(str(ids)) == ids and read_ids(" ".join(map(str, ids))) == ids


def test_a_wrong_list_says_what_is_wrong() -> None:
    answer = Ids((9, 2, 7), (("inputs", (5, 9, 2)),))
    assert mark_ids("5 9 2", answer).note == "slip.inputs"
    assert mark_ids("2 9 7", answer).note == "id_order"
    assert mark_ids("9 2", answer).note == "how_many"
    assert mark_ids("9 2 8", answer).note == "wrong"
    assert mark_ids("", answer).note == "empty"


@pytest.mark.parametrize("typed", [*HOSTILE[1:], "9 two 7", "9.5 2 7", "[[9, 2], [7]]", "1," * 5000, "9 2 ٧"])
def test_what_is_no_list_is_never_right(typed: str) -> None:
    assert not mark_ids(typed, Ids((9, 2, 7))).right


ONE = Choice((Option("a"), Option("b"), Option("c")), frozenset({1}))
SEVERAL = Choice((Option("a"), Option("b"), Option("c")), frozenset({0, 2}), several=True)


def test_of_a_choice_exactly_the_right_ones_are_right() -> None:
    assert mark_choice([1], ONE).right and mark_choice({0, 2}, SEVERAL).right
    assert mark_choice([0], ONE).values == {"key": "a"} and mark_choice([0], ONE).note == "option"
    notes = {(0,): "too_few", (0, 1, 2): "too_many", (1,): "not_these", (0, 1): "not_these"}
    assert {picked: mark_choice(picked, SEVERAL).note for picked in notes} == notes


@pytest.mark.parametrize("picked", [(), (3,), (-1,), (1, 7)])
def test_a_choice_of_nothing_or_of_what_is_not_there_is_no_try(picked: tuple[int, ...]) -> None:
    verdict = mark_choice(picked, ONE)
    assert not verdict.right and not verdict.marked


def test_an_order_says_how_much_of_its_start_is_right() -> None:
    answer = Order(("a", "b", "c"), ("c", "b", "a"))
    assert mark_order(("a", "b", "c"), answer).right
    assert mark_order(("a", "c", "b"), answer).values == {"n": 1}
    assert mark_order(("b", "a", "c"), answer).note == "order_none"
    for hostile in ((), ("a",), ("a", "b", "b"), ("a", "b", "c", "d")):
        assert not mark_order(hostile, answer).right and not mark_order(hostile, answer).marked
