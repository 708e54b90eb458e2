"""Every line of a worked example follows from the lines above it as they are written."""

import math
import random

import pytest

from ui import example_inputs
from ui.example_sum import Number, Sum, typed


def follows(made: Number, result: float) -> bool:
    """Whether a result, rounded as the number is, is the number that is written."""
    return made.round(result) == made.written


@pytest.mark.parametrize("seed", range(200))
def test_a_chain_of_probabilities_ties_out_and_is_rightly_rounded(seed: int) -> None:
    rng = random.Random(seed)
    values = [
        rng.choice([rng.random(), 10 ** -rng.uniform(0, 9), 1 - 10 ** -rng.uniform(2, 9)]) for _ in range(5)
    ]
    s = Sum()
    p = [s.read(x) for x in values]
    parts = [s.of(-math.log(x), lambda v: -math.log(v), q, places=6) for x, q in zip(values, p, strict=True)]
    total = s.of(math.fsum(x.value for x in parts), lambda *v: math.fsum(v), *parts)
    loss = s.of(total.value / 5, lambda v: v / 5, total)
    perplexity = s.of(math.exp(loss.value), math.exp, loss)
    s.alike(p, parts)
    s.settle()
    for part, q in zip(parts, p, strict=True):
        assert follows(part, -math.log(q.written))
    assert follows(total, math.fsum(x.written for x in parts))
    assert follows(loss, total.written / 5) and follows(perplexity, math.exp(loss.written))
    assert float(str(loss).replace(r"\times10^{", "e").rstrip("}")) == float(f"{loss.value:.{loss.digits}g}")


@pytest.mark.parametrize("seed", range(50))
def test_a_long_chain_gives_its_results_and_each_line_follows(seed: int) -> None:
    rng = random.Random(seed)
    x = [s_ for s_ in (rng.uniform(-3, 3) for _ in range(3))]
    s = Sum()
    given = [s.given(round(v, 2)) for v in x]
    powers = [s.of(math.exp(g.value), math.exp, g) for g in given]
    total = s.of(math.fsum(p.value for p in powers), lambda *v: math.fsum(v), *powers)
    probs = [s.of(p.value / total.value, lambda a, b: a / b, p, total) for p in powers]
    exact = [str(p) for p in probs]
    s.run(*probs)
    assert [str(p) for p in probs] == exact
    assert follows(total, math.fsum(p.written for p in powers))
    for p, power in zip(probs, powers, strict=True):
        assert follows(p, power.written / total.written)
    assert total.digits is not None and total.digits <= 7


def test_what_is_infinite_is_written_and_stops_nothing() -> None:
    s = Sum()
    p = s.given(0.0)
    log = s.of(-math.inf, math.log, p)
    s.settle()
    assert str(log) == r"-\infty" and log.cell == r"$-\infty$"


def test_whole_numbers_have_no_idle_noughts_and_typed_ones_stay() -> None:
    assert (str(Number(1.0, 5)), str(Number(0.72, 4)), str(Number(0.9, None))) == ("1", "0.7200", "0.9")
    assert typed(280e9) == r"2.8\times10^{11}" and typed(-0.5) == "-0.5"
    assert Number(-2.5, 3).cell == "−2.50" and Number(-2.5, 3).signed == "(-2.50)"
    assert str(Number(2.834e-6, 4, places=6)) == "0.000003"


def test_numbers_are_read_from_a_text() -> None:
    assert example_inputs.parse(" 2, 1;0.1\t-3e2 −4 ") == [2, 1, 0.1, -300, -4]
    assert example_inputs.whole("4, 8 15") == [4, 8, 15]


@pytest.mark.parametrize("bad", ["a", "1, x", "nan", "inf", "1,,2 $b$", "--1", "1e999"])
def test_what_is_no_number_is_named(bad: str) -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        example_inputs.parse(bad)


def test_empty_and_endless_lists_are_refused() -> None:
    for empty in ("", " , ;"):
        with pytest.raises(ValueError, match="empty"):
            example_inputs.parse(empty)
    with pytest.raises(ValueError, match="65.* 64"):
        example_inputs.parse("1 " * 65)


@pytest.mark.parametrize("bad", ["-1", "1.5", "1e12"])
def test_what_is_no_id_is_named(bad: str) -> None:
    with pytest.raises(ValueError, match="whole numbers"):
        example_inputs.whole(bad)
