"""A text with gaps: [MASK] as one token, guesses in a gap, and how a training row hides tokens."""

import math

import numpy as np
import pytest
import torch

from engine.config import ModelConfig
from engine.gaps import (
    KEPT,
    MASK,
    RANDOM,
    UNSCORED,
    count_fates,
    draw_masks,
    fill_gaps,
    gap_tokens,
    guess,
    mean_surprisal,
    positions_of,
)
from engine.metrics import cross_entropy
from engine.model import Transformer
from engine.tokenizers import Tokenizer, byte_tokenizer, char_tokenizer, train_bpe

TOKENIZERS = [
    byte_tokenizer(),
    train_bpe("the cat sat on the mat " * 20, 280),
    char_tokenizer("the cat sat[MASK]<|endoftext|>"),
]


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda t: t.name)
def test_mask_typed_is_exactly_one_mask_id(tokenizer: Tokenizer) -> None:
    text = "the [MASK] sat"
    tokens = gap_tokens(tokenizer, text)
    assert [t.id for t in tokens].count(tokenizer.mask_id) == 1
    assert b"".join(t.data for t in tokens).decode() == text
    assert [t.byte_start for t in tokens][1:] == [t.byte_end for t in tokens][:-1]
    assert [text[t.start] for t in tokens if t.id == tokenizer.mask_id] == ["["]
    assert tokenizer.mask_id not in tokenizer.encode(text)  # everywhere else it is plain text


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda t: t.name)
def test_other_control_words_stay_plain_text(tokenizer: Tokenizer) -> None:
    ids = [t.id for t in gap_tokens(tokenizer, "the <|endoftext|>")]
    assert ids == tokenizer.encode("the <|endoftext|>")
    assert gap_tokens(tokenizer, "") == []


def test_positions_of_a_word_in_pieces() -> None:
    tokens = gap_tokens(byte_tokenizer(), "a cat, a cat 😀")
    assert positions_of(tokens, "a cat, a cat 😀", "cat") == [2, 3, 4, 9, 10, 11]
    assert positions_of(tokens, "a cat, a cat 😀", "cat", first=True) == [2, 3, 4]
    assert positions_of(tokens, "a cat, a cat 😀", "😀") == [13, 14, 15, 16]
    assert positions_of(tokens, "a cat, a cat 😀", "") == []


@pytest.fixture(scope="module")
def model() -> Transformer:
    config = ModelConfig(vocab_size=11, context_length=8, n_layer=2, n_head=2, d_model=16, objective="mlm")
    return Transformer(config, torch.Generator().manual_seed(4)).eval()


def test_fill_gaps_sees_the_mask_and_not_the_token(model: Transformer) -> None:
    with torch.no_grad():
        expected = model(torch.tensor([[1, 10, 3, 10]]))[0].numpy()
    for hidden_token in (2, 7):
        logits = fill_gaps(model, [1, hidden_token, 3, 4], [1, 3], 10)
        assert np.abs(logits - expected).max() < 1e-6
    with pytest.raises(ValueError, match="between 0 and 3"):
        fill_gaps(model, [1, 2, 3, 4], [4], 10)


def test_fill_gaps_refuses_a_causal_model() -> None:
    causal = Transformer(ModelConfig(vocab_size=11, context_length=8, n_layer=1, n_head=1, d_model=8))
    with pytest.raises(ValueError, match="masked model"):
        fill_gaps(causal, [1, 2], [1], 10)


def test_masked_token_loss_is_the_loss_that_training_uses(model: Transformer) -> None:
    ids, hidden = [1, 2, 3, 4, 5], [1, 4]
    logits = fill_gaps(model, ids, hidden, 10)
    targets = torch.tensor([[-100, 2, -100, -100, 5]])
    expected = cross_entropy(torch.tensor(logits)[None], targets).item()
    assert mean_surprisal(logits, ids, hidden) == pytest.approx(expected, abs=1e-6)
    with pytest.raises(ValueError, match="at least one"):
        mean_surprisal(logits, ids, [])


def test_guess_by_hand() -> None:
    logits = np.array([3.2, 1.1, 0.4, 2.4, -1.0], np.float32)
    found = guess(logits, 2, true_id=4, true=np.array([0.5, 0.5, 0.0, 0.0]))
    assert found.top.ids.tolist() == [0, 3, 4]
    assert found.rank == 5
    assert found.surprisal == pytest.approx(4.6993, abs=5e-5)
    assert found.true_probs is not None and found.true_probs.tolist() == [0.5, 0, 0]
    # 0.5 ln(0.5/0.60695) + 0.5 ln(0.5/0.07432)
    assert found.cost == pytest.approx(
        0.5 * math.log(0.5 / 0.6069467366) + 0.5 * math.log(0.5 / 0.0743245295), abs=1e-6
    )
    unknown = guess(logits, 2)
    assert (unknown.rank, unknown.surprisal, unknown.true_probs, unknown.cost) == (None, None, None, None)
    with pytest.raises(ValueError, match="not finite"):
        guess(np.array([1.0, np.nan], np.float32), 1)


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


def test_counts_come_near_what_is_expected() -> None:
    ids = [i % 500 for i in range(200)]
    row = draw_masks(ids, mask_prob=0.15, mask_id=500, seed=1)
    counts = {c.fate: c for c in count_fates(ids, row, mask_prob=0.15, mask_id=500, seed=1)}
    # 200 tokens: 24 masks, 3 random, 3 kept, 170 not scored
    assert [counts[f].expected for f in (MASK, RANDOM, KEPT, UNSCORED)] == pytest.approx([24, 3, 3, 170])
    assert sum(c.here for c in counts.values()) == 200
    assert sum(c.mean for c in counts.values()) == pytest.approx(200)
    for count in counts.values():  # the mean of 1,000 draws: within 5 standard errors
        assert abs(count.mean - count.expected) < 5 * math.sqrt(count.expected / 1000)
