import math

import pytest
import torch

from engine.batches import clm_batch, mask_tokens, mlm_batch, need_tokens

IGNORED = -100


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def within_6_sigma(count, n, p):
    """False alarm: 2 in a thousand million."""
    return abs(count - n * p) <= 6 * math.sqrt(n * p * (1 - p))


def masked(ids, **changes):
    settings = {"mask_prob": 0.15, "mask_id": 20, "vocab_size": 20, "generator": seeded(), **changes}
    return mask_tokens(ids, **settings)


def test_clm_targets_are_the_next_tokens():
    batch = clm_batch(torch.arange(100) * 3, batch_size=8, context_length=10, generator=seeded())
    assert batch.inputs.shape == batch.targets.shape == (8, 10)
    assert torch.equal(batch.targets, batch.inputs + 3)


def test_every_window_can_be_drawn_the_last_one_too():
    ids = torch.arange(9)
    batch = clm_batch(ids, batch_size=500, context_length=5, generator=seeded())
    assert set(batch.inputs[:, 0].tolist()) == {0, 1, 2, 3}
    assert batch.targets.max() == 8


def test_aligned_rows_begin_where_told():
    starts = torch.tensor([4, 40, 95])  # 95 leaves no room for a whole row
    batch = clm_batch(
        torch.arange(100),
        batch_size=50,
        context_length=10,
        generator=seeded(),
        starts=starts,
        aligned_rows=20,
    )
    assert set(batch.inputs[:20, 0].tolist()) == {4, 40}
    assert len(set(batch.inputs[20:, 0].tolist())) > 10


def test_one_seed_gives_one_batch_and_leaves_the_global_dice_alone(untouched_dice):
    def draw(seed):
        ids = torch.arange(200) % 20
        settings = {"batch_size": 4, "context_length": 8, "generator": seeded(seed)}
        return clm_batch(ids, **settings), mlm_batch(ids, mask_id=20, vocab_size=20, **settings)

    for one, same, other in zip(draw(1), draw(1), draw(2), strict=True):
        assert torch.equal(one.inputs, same.inputs) and torch.equal(one.targets, same.targets)
        assert not torch.equal(one.inputs, other.inputs)


def test_r03_a_text_of_too_few_tokens_is_refused_with_the_numbers():
    with pytest.raises(ValueError, match="6 tokens.* needs 33"):
        clm_batch(torch.arange(6), batch_size=1, context_length=32, generator=seeded())
    need_tokens(33, 32)


def test_m02_special_tokens_are_never_hidden_and_only_chosen_positions_are_targets():
    ids = torch.tensor([[0, 7, 8, 1, 2, 2]]).repeat(1000, 1)  # [CLS] a b [SEP] [PAD] [PAD]
    batch = masked(ids, special_ids=(0, 1, 2), mask_prob=0.5)
    special = ids < 3
    assert (batch.targets[special] == IGNORED).all() and torch.equal(batch.inputs[special], ids[special])
    chosen = batch.targets != IGNORED
    assert torch.equal(batch.targets[chosen], ids[chosen])  # also where the token was replaced or kept
    assert torch.equal(batch.inputs[~chosen], ids[~chosen])


def test_m02_of_the_hidden_80_percent_are_masks_10_random_10_unchanged():
    ids = torch.full((500, 400), 5)
    batch = masked(ids)
    chosen = batch.targets != IGNORED
    n = int(chosen.sum())
    assert within_6_sigma(n, ids.numel(), 0.15)
    shown = batch.inputs[chosen]
    assert within_6_sigma(int((shown == 20).sum()), n, 0.8)
    assert within_6_sigma(int((shown == 5).sum()), n, 0.1 + 0.1 / 20)  # a random token may be the same one
    for other in set(range(20)) - {5}:
        assert within_6_sigma(int((shown == other).sum()), n, 0.1 / 20)


def test_the_split_can_be_changed_and_must_add_up():
    ids = torch.full((50, 40), 5)
    batch = masked(ids, split=(1.0, 0.0, 0.0))
    assert (batch.inputs[batch.targets != IGNORED] == 20).all()
    with pytest.raises(ValueError, match="add up to 1"):
        masked(ids, split=(0.8, 0.1, 0.2))


def test_m03_a_short_sentence_always_has_a_target():
    dice, alone = seeded(), 0
    for _ in range(2000):
        batch = masked(torch.tensor([[4, 5, 6, 7]]), generator=dice)
        n = int((batch.targets != IGNORED).sum())
        assert n >= 1
        alone += n == 1
    # exactly one of four: by chance 4 · 0.15 · 0.85³, or forced because chance picked none, 0.85⁴
    assert within_6_sigma(alone, 2000, 4 * 0.15 * 0.85**3 + 0.85**4)


def test_m03_the_forced_token_is_never_special_and_may_be_any_other():
    dice, picked = seeded(), set()
    for _ in range(200):
        batch = masked(torch.tensor([[0, 4, 5, 0]]), special_ids=(0,), mask_prob=1e-9, generator=dice)
        picked.add(tuple((batch.targets[0] != IGNORED).nonzero().flatten().tolist()))
    assert picked == {(1,), (2,)}


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.5])
def test_m03_a_rate_that_hides_nothing_is_refused(rate):
    with pytest.raises(ValueError, match="mask_prob"):
        masked(torch.ones(2, 4, dtype=torch.long), mask_prob=rate)


def test_a_batch_of_special_tokens_only_is_refused():
    with pytest.raises(ValueError, match="nothing to hide"):
        masked(torch.zeros(2, 4, dtype=torch.long), special_ids=(0,))


def test_a_mask_of_id_0_hides_where_no_id_lies_below_it():
    ids = torch.arange(1, 9)[None]
    batch = masked(ids, mask_id=0, vocab_size=0, mask_prob=1.0, split=(1.0, 0.0, 0.0))
    assert batch.inputs.tolist() == [[0] * 8] and batch.targets.tolist() == ids.tolist()
    with pytest.raises(ValueError, match="Hide with the mask alone"):
        masked(ids, mask_id=0, vocab_size=0)


def test_m04_random_replacements_are_all_the_ordinary_ids_and_no_special_one():
    ids = torch.full((300, 100), 9)
    batch = masked(ids, special_ids=(0, 1, 2, 3), mask_id=4, mask_prob=0.9)
    seen = set(batch.inputs[batch.targets != IGNORED].tolist())
    assert seen == {4, *range(5, 20)}  # the mask, and every ordinary id
