"""The written numbers of one step give the written results."""

import math
import random
import re

import pytest

from ui import worked_training as worked

NUMBER = r"-?\d+(?:\.\d+)?(?:\\times10\^\{-?\d+\})?"


def value(text: str) -> float:
    mantissa, _, power = text.partition(r"\times10^{")
    return float(mantissa + (f"e{power.rstrip('}')}" if power else ""))


def numbers(text: str) -> list[float]:
    return [value(found) for found in re.findall(NUMBER, text)]


def as_written(text: str) -> list[str]:
    return re.findall(NUMBER, text)


def same(result: float, written: str) -> bool:
    """Whether a result, rounded as the written one is, is the written one."""
    digits = len(re.sub(r"^-?0*\.?0*|\\times.*$", "", written).replace(".", "").lstrip("0")) or 1
    return math.isclose(float(f"{result:.{digits - 1}e}"), value(written), rel_tol=1e-12)


@pytest.mark.parametrize("p", [0.999, 0.5, 0.0321, 1e-7])
def test_the_loss_of_a_token(p: float) -> None:
    text = worked.token_loss(math.log(p))
    shown, loss = re.search(rf"-\\ln ({NUMBER}) = ({NUMBER})", text).groups()  # type: ignore[union-attr]
    assert same(-math.log(value(shown)), loss) and value(loss) == pytest.approx(-math.log(p), rel=1e-3)


def test_a_certain_token_costs_nothing() -> None:
    assert r"-\ln p &= 0\ \text{nats}" in worked.token_loss(0.0)


@pytest.mark.parametrize(("total", "n", "shape"), [(2362.379, 3072, (16, 192)), (1754.24, 480, (16, 192))])
def test_the_loss_of_a_batch(total: float, n: int, shape: tuple[int, int]) -> None:
    text = worked.batch_loss(total, n, shape)
    shown, count, loss = re.search(  # type: ignore[union-attr]
        rf"\\frac\{{({NUMBER})\}}\{{(\d+)\}}.*?&= ({NUMBER})", text, re.DOTALL
    ).groups()
    assert int(count) == n and same(value(shown) / n, loss)
    assert (r"16 \cdot 192 = 3072" in text) == (n == 3072)


def test_squares_add_up_and_the_root_gives_the_factor() -> None:
    draw = random.Random(3)
    for _ in range(200):
        lengths = [10 ** draw.uniform(-4, 2) for _ in range(draw.randint(1, 12))]
        limit = draw.choice([0.0, 0.5, 1.0, 1e6])
        text = worked.gradient_length(lengths, limit)
        lines = text.split(r"\\[8pt]")
        at = next(i for i, line in enumerate(lines) if line.startswith(r"\lVert g \rVert &="))
        terms, total, root = " ".join(lines[1 : at - 1]), as_written(lines[at - 1])[0], lines[at]
        parts = numbers(re.sub(r"_\{\\text\{\d+ more\}\}", "", terms))
        assert len(parts) == min(len(lengths), 4)
        assert same(math.fsum(parts), total), text
        norm = as_written(root)[-1]
        assert same(math.sqrt(value(total)), norm), text
        true = math.sqrt(math.fsum(x * x for x in lengths))
        assert value(norm) == pytest.approx(true, rel=1e-3)
        if limit and true > limit:
            over, under, factor = re.search(  # type: ignore[union-attr]
                rf"\\frac\{{({NUMBER})\}}\{{({NUMBER})\}} = ({NUMBER})", text
            ).groups()
            assert value(over) == limit and same(limit / value(under), factor), text
        else:
            assert ("nothing is clipped" in text) == bool(limit)


def test_the_update_in_lengths_of_its_weights() -> None:
    text = worked.update_ratio(3.3123456, 40.6612)
    top, below, ratio = re.search(  # type: ignore[union-attr]
        rf"\\frac\{{({NUMBER})\}}\{{({NUMBER})\}} = ({NUMBER})", text
    ).groups()
    assert same(value(top) / value(below), ratio)
    assert r"&= 8.15\,\%" in text  # as the bars say it: 3.3123456 / 40.6612 = 0.08146...
    assert worked.update_ratio(0.5, 0.0) and worked.update_ratio(0.0, 2.0)  # nothing to divide: no error


def test_the_change_of_the_loss() -> None:
    text = worked.loss_change(0.7690511, 0.5598912)
    after, before, change = re.search(  # type: ignore[union-attr]
        rf"&= ({NUMBER}) - ({NUMBER}).*?&= ({NUMBER})", text, re.DOTALL
    ).groups()
    assert same(value(after) - value(before), change) and value(change) < 0
    assert "0" in worked.loss_change(1.0, 1.0)


def test_one_number_moves_by() -> None:
    text = worked.mean_change(3.312, 131072, 0.009946)
    top, n, size = re.search(  # type: ignore[union-attr]
        rf"\\frac\{{({NUMBER})\}}\{{\\sqrt\{{(\d+)\}}\}}.*?&= ({NUMBER})", text, re.DOTALL
    ).groups()
    assert same(value(top) / math.sqrt(int(n)), size)
