"""How a masked batch hides tokens: fates, epochs, counts against chance at a stated false-alarm rate."""

import math
from itertools import product

import numpy as np
import pytest
import torch

from engine.batches import mask_tokens
from engine.mask_draws import (
    FATES,
    KEPT,
    MASK,
    RANDOM,
    UNSCORED,
    binomial_bounds,
    chance_of_none,
    count_fates,
    draw_masks,
    epochs_to_meet,
    fate_shares,
)


def test_every_fate_follows_from_inputs_and_targets() -> None:
    ids = [i % 9 for i in range(400)]
    row = draw_masks(ids, mask_prob=0.5, mask_id=9, seed=3)
    assert set(row.fates) == {MASK, RANDOM, KEPT, UNSCORED}
    for token_id, given, target, fate in zip(ids, row.inputs, row.targets, row.fates, strict=True):
        assert (target == -100) == (fate == UNSCORED)
        assert target in (-100, token_id)
        assert {MASK: given == 9, RANDOM: given not in (9, token_id)}.get(fate, given == token_id)
    assert row == draw_masks(ids, mask_prob=0.5, mask_id=9, seed=3)
    assert row != draw_masks(ids, mask_prob=0.5, mask_id=9, seed=4)
    assert row.scored == [i for i, target in enumerate(row.targets) if target != -100]


def test_at_least_one_token_is_hidden_and_only_masks_if_asked() -> None:
    for seed in range(50):
        row = draw_masks([1, 2], mask_prob=0.15, mask_id=9, seed=seed, only_mask=True)
        assert row.scored and {row.fates[i] for i in row.scored} == {MASK}


def test_typed_masks_are_never_scored_and_nothing_else_to_hide_is_refused() -> None:
    for seed in range(30):
        assert 1 not in draw_masks([1, 9, 2], mask_prob=0.9, mask_id=9, seed=seed).scored
    with pytest.raises(ValueError, match="nothing to hide"):
        draw_masks([9, 9], mask_prob=0.5, mask_id=9, seed=0)


def test_every_epoch_hides_other_tokens_and_an_evaluation_the_same() -> None:
    ids = [i % 9 for i in range(60)]
    epochs = [draw_masks(ids, mask_prob=0.15, mask_id=9, seed=3, epoch=e) for e in range(8)]
    assert len({tuple(row.scored) for row in epochs}) == 8
    again = draw_masks(ids, mask_prob=0.15, mask_id=9, seed=3, epoch=5)
    assert again == epochs[5]
    fixed = [draw_masks(ids, mask_prob=0.15, mask_id=9, seed=3, only_mask=True) for _ in range(2)]
    assert fixed[0] == fixed[1] and {fixed[0].fates[i] for i in fixed[0].scored} == {MASK}


@pytest.mark.parametrize("n, p, false_alarm", [(10, 0.5, 0.05), (60, 0.1, 0.01), (200, 0.015, 1e-3)])
def test_binomial_bounds_against_exact_sums(n: int, p: float, false_alarm: float) -> None:
    mass = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    low, high = binomial_bounds(n, p, false_alarm)
    assert sum(mass[:low]) <= false_alarm / 2 < sum(mass[: low + 1])
    assert sum(mass[high + 1 :]) <= false_alarm / 2 < sum(mass[high:])


def test_binomial_bounds_at_the_ends() -> None:
    assert binomial_bounds(0, 0.5, 0.01) == (0, 0)
    assert binomial_bounds(5, 0.0, 0.01) == (0, 0)
    assert binomial_bounds(5, 1.0, 0.01) == (5, 5)


def test_80_10_10_within_bounds_of_false_alarm_1_in_1000() -> None:
    """128,000 tokens of a fixed seed: all four counts, the empty rows, and chi-square together."""
    ids = [i % 500 for i in range(128)]
    row = draw_masks(ids, mask_prob=0.15, mask_id=500, seed=1)
    found = count_fates(ids, row, mask_prob=0.15, mask_id=500, seed=1, n_draws=1000, false_alarm=1e-3)
    counts = {c.fate: c for c in found.rows}
    # 0.12 of 128,000; 0.015 less and more by the one random token in 500 that is the right one; 0.85
    expected = [15360, 1920 * (1 - 1 / 500), 1920 * (1 + 1 / 500), 108800]
    assert [counts[fate].expected for fate in FATES] == pytest.approx(expected)
    assert all(count.inside for count in found.rows)
    assert found.fit.p_value > 1e-3 and found.fit.degrees == 3
    assert sum(c.here for c in found.rows) == 128
    assert sum(c.many for c in found.rows) == found.n_tokens == 128_000


def test_a_wrong_split_is_caught() -> None:
    """Labels of 15 % with 70/15/15 in place of 80/10/10 leave the bounds and fail chi-square."""
    shares = fate_shares(0.15, 500)
    rows = torch.tensor([[i % 500 for i in range(128)]] * 1000)
    batch = mask_tokens(
        rows, mask_prob=0.15, mask_id=500, vocab_size=500, generator=torch.Generator().manual_seed(1),
        split=(0.7, 0.15, 0.15),
    )  # fmt: skip
    n_masked = int((batch.inputs == 500).sum())
    low, high = binomial_bounds(128_000, shares[MASK], 1e-3 / 5)
    assert not low <= n_masked <= high


def test_special_tokens_are_never_chosen_nor_drawn() -> None:
    """[CLS] a b [SEP] [PAD] [PAD] 1000 times (M02, M04): ids 0, 3, 4 are special, the rest is ordinary."""
    rows = torch.tensor([[0, 1, 2, 3, 4, 4]] * 1000)
    batch = mask_tokens(
        rows, mask_prob=0.5, mask_id=20, vocab_size=20, special_ids=(0, 3, 4),
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    special = torch.isin(rows, torch.tensor([0, 3, 4]))
    assert (batch.targets[special] == -100).all()
    assert (batch.inputs[special] == rows[special]).all()
    assert not torch.isin(batch.inputs[~special], torch.tensor([0, 3, 4])).any()
    scored = batch.targets != -100
    assert (batch.targets[scored] == rows[scored]).all()
    # a typed mask is special too
    draw = draw_masks([1, 9, 2], mask_prob=0.15, mask_id=9, seed=0)
    assert count_fates([1, 9, 2], draw, mask_prob=0.15, mask_id=9, seed=0).special_chosen == 0


def test_among_a_published_model_s_ids_no_other_control_token_is_drawn() -> None:
    """M04: of 8 ids 0, 1 and 2 are special and 3 is the mask, so that a random token is one of four."""
    how = {"mask_prob": 1.0, "mask_id": 3, "n_ids": 8, "special_ids": (0, 1, 2), "seed": 5}
    ids = [4, 5, 6, 7] * 50
    rows = [draw_masks(ids, **how, epoch=e) for e in range(20)]  # type: ignore[arg-type]
    assert {i for row in rows for i in row.inputs} == {3, 4, 5, 6, 7}
    found = count_fates([2, *ids], rows[0], **how)  # type: ignore[arg-type]
    assert found.n_tokens == 200 * 1000 and found.special_chosen == 0
    expected = {count.fate: count.expected for count in found.rows}
    assert expected[RANDOM] == pytest.approx(200_000 * 0.1 * 3 / 4)  # one time in four it is the right one
    assert all(count.inside for count in found.rows[:3])


def test_nothing_chosen_is_as_likely_as_the_formula_says() -> None:
    assert chance_of_none(4, 0.15) == pytest.approx(0.52200625)  # 0.85 ** 4
    ids = [1, 2, 3, 4]
    draw = draw_masks(ids, mask_prob=0.15, mask_id=9, seed=0)
    found = count_fates(ids, draw, mask_prob=0.15, mask_id=9, seed=0)
    low, high = found.empty_bounds
    assert found.empty_expected == pytest.approx(522.00625)
    assert low <= found.empty <= high and low > 400 and high < 650
    alone = [draw_masks(ids, mask_prob=0.15, mask_id=9, seed=s) for s in range(40)]
    assert all(row.scored for row in alone)  # a batch of one row never has no target


def test_epochs_until_every_token_was_met() -> None:
    """Two tokens, chance 1/2: the larger of two geometric numbers has the mean 8/3."""
    total, reach = 0.0, range(1, 60)
    for x, y in product(reach, reach):
        total += max(x, y) * 0.5**x * 0.5**y
    assert epochs_to_meet(2, 0.5) == pytest.approx(total, abs=1e-6) == pytest.approx(8 / 3, abs=1e-6)
    assert np.isclose(epochs_to_meet(1, 0.15), 1 / 0.15)
