"""Products of masked conditionals: pseudo-log-likelihood, two orders, totals; against sums by hand."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch

from engine.config import ModelConfig
from engine.metrics import softmax
from engine.model import Transformer
from engine.pair_table import HAND_MADE
from engine.pseudo import (
    TwoOrders,
    causal_total,
    pseudo_log_probs,
    totals,
    totals_of,
    two_orders,
)

MASK_ID = 6


def tiny(objective: str) -> Transformer:
    config = ModelConfig(
        vocab_size=7, context_length=8, n_layer=2, n_head=2, d_model=16, objective=objective  # type: ignore[arg-type]
    )  # fmt: skip
    model = Transformer(config, torch.Generator().manual_seed(4))
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(6)
    return model.eval()


def probs(model: Transformer, ids: list[int]) -> np.ndarray:
    with torch.no_grad():
        return softmax(model(torch.tensor([ids]))[0].numpy())


def test_each_token_is_masked_alone() -> None:
    model, ids = tiny("mlm"), [1, 2, 3, 4, 5]
    found = pseudo_log_probs(model, ids, MASK_ID)
    for t in range(5):
        seen = [MASK_ID if i == t else token for i, token in enumerate(ids)]
        assert found[t] == pytest.approx(np.log(probs(model, seen)[t, ids[t]]), abs=1e-5)


def test_a_typed_gap_stays_a_gap_and_has_no_score() -> None:
    model = tiny("mlm")
    found = pseudo_log_probs(model, [1, MASK_ID, 3], MASK_ID, hidden=(1,))
    assert np.isnan(found[1])
    assert found[0] == pytest.approx(np.log(probs(model, [MASK_ID, MASK_ID, 3])[0, 1]), abs=1e-5)
    assert np.isnan(pseudo_log_probs(model, [MASK_ID], MASK_ID, hidden=(0,))).all()


def test_two_orders_by_hand() -> None:
    model, ids = tiny("mlm"), [1, 2, 3, 4]
    found = two_orders(model, ids, (1, 3), MASK_ID)
    both = probs(model, [1, MASK_ID, 3, MASK_ID])
    assert found.a == pytest.approx(both[1, 2], abs=1e-6)
    assert found.b == pytest.approx(both[3, 4], abs=1e-6)
    assert found.b_after_a == pytest.approx(probs(model, [1, 2, 3, MASK_ID])[3, 4], abs=1e-6)
    assert found.a_after_b == pytest.approx(probs(model, [1, MASK_ID, 3, 4])[1, 2], abs=1e-6)
    assert found.a_first == pytest.approx(found.a * found.b_after_a)
    assert abs(found.apart) > 1e-4  # an untrained model belongs to no joint distribution
    assert TwoOrders(0.5, 0.4, 0.4, 0.5).apart == pytest.approx(0)
    with pytest.raises(ValueError, match="different"):
        two_orders(model, ids, (1, 1), MASK_ID)


def test_totals_over_every_filling_of_a_tiny_vocabulary() -> None:
    """7 ids, so 49 fillings of two gaps, written out one by one."""
    model, ids, (i, j) = tiny("mlm"), [1, 2, 3, 4], (1, 2)

    def given(a: int | None, b: int | None) -> np.ndarray:
        return probs(model, [1, MASK_ID if a is None else a, MASK_ID if b is None else b, 4])

    pseudo = first = second = half = 0.0
    for a, b in product(range(7), range(7)):
        p_a, p_b = given(None, None)[i, a], given(None, None)[j, b]
        b_after_a, a_after_b = given(a, None)[j, b], given(None, b)[i, a]
        pseudo += a_after_b * b_after_a
        first, second = first + p_a * b_after_a, second + p_b * a_after_b
        half += abs(p_a * b_after_a - p_b * a_after_b) / 2
    found = totals(model, ids, (i, j), MASK_ID)
    assert found.n_fillings == 49
    assert found.pseudo == pytest.approx(pseudo, abs=1e-4) and abs(found.pseudo - 1) > 1e-3
    assert found.a_first == pytest.approx(first, abs=1e-4) == pytest.approx(1, abs=1e-4)
    assert found.b_first == pytest.approx(second, abs=1e-4) == pytest.approx(1, abs=1e-4)
    assert found.half_sum == pytest.approx(half, abs=1e-4)


def test_the_same_sum_of_a_causal_model_is_1() -> None:
    model = tiny("clm")
    assert causal_total(model, [1, 2]) == pytest.approx(1, abs=1e-5)
    assert causal_total(model, [1, 2, 3, 4, 5] * 4) == pytest.approx(1, abs=1e-5)
    short = Transformer(replace(model.config, context_length=1))
    assert causal_total(short, [1, 2]) == pytest.approx(1, abs=1e-5)


def test_orders_so_unlikely_that_a_product_is_0() -> None:
    assert TwoOrders(1e-200, 1e-200, 1e-200, 1e-190).apart == pytest.approx(-10 * math.log(10))
    assert TwoOrders(0.5, 0.5, 0.5, 0.0).apart == math.inf
    assert TwoOrders(0.0, 0.5, 0.5, 0.5).apart == -math.inf
    assert math.isnan(TwoOrders(0.0, 0.5, 0.5, 0.0).apart)


def test_too_much_to_read_is_refused_with_the_numbers() -> None:
    config = ModelConfig(vocab_size=4000, context_length=16, n_layer=1, n_head=1, d_model=8, objective="mlm")
    model = Transformer(config, torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="80,000 tokens in all"):
        totals(model, list(range(10)), (0, 1), 3999)


def test_the_table_by_hand_is_exact() -> None:
    table = HAND_MADE["no-joint"]
    assert table.pulls == (6, Fraction(1, 9))  # (4/5 · 3/5) / (2/5 · 1/5); (1/4 · 1/4) / (3/4 · 3/4)
    # cat slept: 1/2 · 1/4 one way round, 1/2 · 4/5 the other
    assert (table.a_first(0, 0), table.b_first(0, 0)) == (Fraction(1, 8), Fraction(2, 5))
    assert [table.pseudo(a, b) for a, b in table.cells] == [
        Fraction(1, 5), Fraction(3, 10), Fraction(3, 20), Fraction(3, 20),
    ]  # fmt: skip
    assert sum(table.pseudo(a, b) for a, b in table.cells) == Fraction(4, 5)
    for order in (table.a_first, table.b_first):
        assert sum(order(a, b) for a, b in table.cells) == 1


def test_a_joint_distribution_gives_one_product_and_still_no_sum_of_1() -> None:
    table = HAND_MADE["joint"]
    assert table.pulls[0] == table.pulls[1]
    assert all(table.a_first(a, b) == table.b_first(a, b) for a, b in table.cells)
    assert sum(table.pseudo(a, b) for a, b in table.cells) == Fraction(34, 25)  # (16 + 1 + 1 + 16) / 25
    half, agree = np.array([0.5, 0.5]), np.eye(2)
    found = totals_of(half, half, agree, agree)
    assert (found.pseudo, found.a_first, found.half_sum) == (2.0, 1.0, 0.0)
