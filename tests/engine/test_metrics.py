import math

import numpy as np
import pytest
import torch

from engine import metrics
from engine.metrics import (
    bits_per_byte,
    cross_entropy,
    entropy,
    kl_divergence,
    log_softmax,
    most_likely,
    next_token_scores,
    perplexity,
    rank,
    score,
    softmax,
    softmax_parts,
    surprisal,
)

C = [3.2, 1.1, 0.4, 2.4, -1.0]
IGNORED = -100


def loss_of(logits, target):
    return cross_entropy(torch.tensor([logits]), torch.tensor([target])).item()


# -- worked values (cases, section 11) -----------------------------------------------------------------------


def test_w01_two_probabilities():
    total = -(math.log(0.9) + math.log(0.8))
    surprisals = surprisal(np.log([0.9, 0.8]))
    assert surprisals.sum() == pytest.approx(0.32850406697, abs=1e-10) == total
    assert f"{surprisals.sum():.3f}" == "0.329"
    assert perplexity(surprisals.mean()) == pytest.approx(1.17851, abs=5e-6)
    assert math.exp(-surprisals.sum()) == pytest.approx(0.72)


def test_w02_three_logits_index_from_0():
    assert softmax([2, 1, 0]) == pytest.approx([0.6652409558, 0.2447284711, 0.0900305732], abs=1e-10)
    assert loss_of([2.0, 1.0, 0.0], 1) == pytest.approx(1.4076059644, abs=1e-6)
    assert loss_of([2.0, 1.0, 0.0], 0) == pytest.approx(0.4076059644, abs=1e-6)
    assert softmax_parts([2, 1, 0], 1).log_sum - 1 == pytest.approx(1.4076059644, abs=1e-10)


def test_w03_losses_come_from_logits_not_from_probabilities():
    assert softmax(C) == pytest.approx(
        [0.6069467366, 0.0743245295, 0.0369084691, 0.2727187484, 0.0091015164], abs=1e-10
    )
    assert loss_of(C, 0) == pytest.approx(0.4993142404, abs=1e-6)
    assert loss_of(C, 4) == pytest.approx(4.6993142404, abs=1e-6)
    assert loss_of(softmax(C).tolist(), 0) == pytest.approx(
        1.2292, abs=5e-5
    )  # softmax twice is another number


# -- loss and perplexity -------------------------------------------------------------------------------------


def test_cross_entropy_takes_one_row_or_many():
    one = cross_entropy(torch.tensor(C), torch.tensor(0))
    many = cross_entropy(torch.tensor(C).expand(2, 3, 5), torch.zeros(2, 3, dtype=torch.long))
    assert one.item() == pytest.approx(0.4993142404, abs=1e-6) == many.item()


def test_cross_entropy_in_half_precision_is_computed_in_float32():
    logits = torch.zeros(1, 50257, dtype=torch.bfloat16)
    assert cross_entropy(logits, torch.tensor([3])).item() == pytest.approx(math.log(50257), abs=1e-5)


@pytest.mark.parametrize("batch", [1, 3])
def test_p02_padding_does_not_count(batch):
    lengths = (1, 10, 100)
    targets = torch.stack([torch.where(torch.arange(100) < n, 7, IGNORED) for n in lengths])
    logits = torch.zeros(3, 100, 26)
    for rows, row_targets in zip(logits.split(batch), targets.split(batch), strict=True):
        loss = cross_entropy(rows, row_targets).item()
        assert loss == pytest.approx(3.2581, abs=5e-5)
        assert perplexity(loss) == pytest.approx(26.0, abs=1e-4)


def test_p03_perplexity_is_that_of_the_whole_corpus():
    losses = torch.tensor([0.1, 0.2, 0.1, 0.3, 0.5, 0.1, 0.4, 0.2], dtype=torch.float64)
    logits = torch.stack([torch.zeros_like(losses), torch.log(torch.exp(losses) - 1)], dim=-1)
    mean = cross_entropy(logits, torch.zeros(8, dtype=torch.long)).item()  # -log(1 / (1 + e^loss - 1)) = loss
    assert perplexity(mean) == pytest.approx(1.2681, abs=5e-5)
    assert perplexity(mean) != pytest.approx(1.2462, abs=0.02)  # the mean of the two sentences' perplexities


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (0.0, 1.0),
        (88.73, 3.42e38),
        (709.78, 1.79e308),
        (709.79, math.inf),
        (800, math.inf),
        (math.inf, math.inf),
    ],
)
def test_p05_perplexity_never_overflows(loss, expected):
    assert perplexity(loss) == pytest.approx(expected, rel=0.01)


def test_p06_fewer_than_two_tokens_are_refused(small_model):
    for ids in ([], [5]):
        with pytest.raises(ValueError, match=f"at least 2 tokens, and the text has {len(ids)}"):
            score(small_model(), ids)
        with pytest.raises(ValueError, match="at least 2 tokens"):
            next_token_scores(np.zeros((len(ids), 4)), ids)


def test_m03_no_target_is_refused_instead_of_nan():
    with pytest.raises(ValueError, match="No target"):
        cross_entropy(torch.zeros(2, 3, 5), torch.full((2, 3), IGNORED))


def test_bits_per_byte_of_a_fair_coin_per_byte_is_1():
    assert bits_per_byte(10 * math.log(2), 10) == pytest.approx(1.0)
    assert bits_per_byte(10 * math.log(2), 5) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="at least 1 byte"):
        bits_per_byte(1.0, 0)


# -- distributions -------------------------------------------------------------------------------------------


def test_entropy_by_hand():
    assert entropy([0.25] * 4) == pytest.approx(math.log(4))
    assert entropy([0.5, 0.25, 0.25, 0]) == pytest.approx(1.5 * math.log(2))
    assert str(entropy([1.0, 0.0])) == "0.0"  # not -0.0


def test_kl_by_hand():
    assert kl_divergence([0.5, 0.5], [0.25, 0.75]) == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))
    assert kl_divergence([1.0, 0.0], [0.5, 0.5]) == pytest.approx(math.log(2))
    assert kl_divergence([0.5, 0.5], [1.0, 0.0]) == math.inf
    # p / q would overflow: 0.5 ln(0.5 / 1e-310) + 0.5 ln 0.5
    assert kl_divergence([0.5, 0.5], [1e-310, 1.0]) == pytest.approx(math.log(0.5) + 155 * math.log(10))
    assert kl_divergence([[0.3, 0.7], [1, 0]], [[0.3, 0.7], [1, 0]]).tolist() == [0, 0]


def test_softmax_of_huge_logits_does_not_overflow():
    assert softmax([1e4, 1e4 - math.log(3)]) == pytest.approx([0.75, 0.25])
    assert log_softmax([0.0, -1e5])[1] == -1e5  # the probability is 0, its logarithm is not lost
    assert softmax([0.0, -math.inf]).tolist() == [1.0, 0.0]


def test_equal_tokens_share_the_better_rank():
    assert [rank([0.1, 0.4, 0.4, 0.1], i) for i in range(4)] == [3, 1, 1, 3]


def test_the_shown_tokens_and_the_tail_add_up_to_1():
    probs = softmax(np.random.default_rng(0).normal(size=1000) * 3)
    for k, also in ((0, None), (10, None), (10, int(probs.argmin())), (2000, None)):
        top = most_likely(probs, k, also=also)
        assert top.probs.sum() + top.tail == pytest.approx(1.0, abs=1e-12)
        assert len(top.ids) + top.n_tail == 1000 and (np.diff(top.probs[:k]) <= 0).all()
        assert also is None or also in top.ids


def test_next_token_scores_by_hand():
    logits = np.log([[0.5, 0.25, 0.25], [0.2, 0.2, 0.6], [0.1, 0.1, 0.8]])
    scores = next_token_scores(logits, [0, 1, 2])
    assert np.exp(scores.log_probs) == pytest.approx([0.25, 0.6])
    assert scores.ranks.tolist() == [2, 1]
    assert scores.entropies == pytest.approx(
        [1.5 * math.log(2), -(0.4 * math.log(0.2) + 0.6 * math.log(0.6))]
    )
    assert scores.running_perplexity == pytest.approx([4.0, 1 / math.sqrt(0.25 * 0.6)])
    assert scores.total == pytest.approx(math.log(0.15))
    assert scores.loss == pytest.approx(-math.log(0.15) / 2)


def test_r03_one_symbol_scores_0_without_a_minus():
    scores = next_token_scores(np.zeros((3, 1)), [0, 0, 0])
    assert f"{scores.loss:.3f}" == "0.000" and scores.running_perplexity.tolist() == [1, 1]


# -- a text of any length ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 7, 8, 9, 16, 17, 30])
@pytest.mark.parametrize("stride", [None, 1, 3, 4, 7, 8])
@torch.no_grad()
def test_score_counts_each_target_once_and_equals_a_forward_per_token(small_model, n, stride):
    model = small_model(context_length=8)
    ids = torch.randint(256, (n,), generator=torch.Generator().manual_seed(n)).tolist()
    scores = score(model, ids, stride=stride)
    assert scores.positions.tolist() == list(range(1, n))
    moved = 4 if stride is None else stride
    for position, context, log_prob in zip(scores.positions, scores.contexts, scores.log_probs, strict=True):
        assert min(position, 8 - moved + 1) <= context <= min(position, 8)
        seen = torch.tensor([ids[position - context : position]])
        expected = model(seen)[0, -1].double().log_softmax(-1)[ids[position]]
        assert log_prob == pytest.approx(expected.item(), abs=1e-4)
    assert scores.loss == pytest.approx(-scores.log_probs.mean())


def test_stride_1_sees_as_much_as_can_be_seen(small_model):
    contexts = score(small_model(context_length=8), list(range(20)), stride=1).contexts
    assert contexts.tolist() == [1, 2, 3, 4, 5, 6, 7, *[8] * 12]


def test_score_takes_lists_arrays_and_tensors(small_model):
    model, ids = small_model(), list(range(40))
    listed, array, tensor = (score(model, made) for made in (ids, np.array(ids), torch.tensor(ids)))
    assert listed.log_probs.tolist() == array.log_probs.tolist() == tensor.log_probs.tolist()


@pytest.mark.parametrize("stride", [0, -1, 17])
def test_a_stride_that_skips_targets_is_refused(small_model, stride):
    with pytest.raises(ValueError, match=f"between 1 and context_length 16, not {stride}"):
        score(small_model(), [1, 2, 3], stride=stride)


def test_p10_a_masked_model_has_no_score(small_model):
    with pytest.raises(ValueError, match="masked model"):
        score(small_model(objective="mlm"), [1, 2, 3])


@pytest.mark.parametrize("seed", range(20))
def test_the_likeliest_are_those_of_a_stable_sort(seed: int) -> None:
    rng = np.random.default_rng(seed)
    probs = rng.integers(0, 4, rng.integers(1, 40)).astype(float)  # many equal ones
    for k in (0, 1, 3, len(probs), len(probs) + 2):
        found = most_likely(probs, k)
        assert found.ids.tolist() == np.argsort(-probs, kind="stable")[:k].tolist()
        assert found.tail + found.probs.sum() == pytest.approx(probs.sum())


def test_rows_scored_in_parts_are_scored_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    logits, ids = rng.normal(size=(9, 11)).astype(np.float32), rng.integers(0, 11, 9).tolist()
    at_once = next_token_scores(logits, ids)
    monkeypatch.setattr(metrics, "ROWS_AT_ONCE", 23)  # two rows
    parts = next_token_scores(logits, ids)
    for name in ("log_probs", "ranks", "entropies", "running_perplexity"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(at_once, name))
    true = [math.log(np.exp(row)[i] / np.exp(row).sum()) for row, i in zip(logits, ids[1:], strict=False)]
    np.testing.assert_allclose(parts.log_probs, true, atol=1e-6)
