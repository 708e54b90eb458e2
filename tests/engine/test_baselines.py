"""Counting models against counts by hand, brute force, and a source whose entropy is known."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

from engine.baselines import NAMES, NGrams, baseline_losses
from engine.batches import Batch, clm_rows
from engine.metrics import IGNORED

V = 6


def markov_text(n: int, seed: int) -> tuple[list[int], float]:
    """A text in which each token depends on the one before, and its entropy rate in nats."""
    dice = np.random.default_rng(seed)
    moves = dice.dirichlet(np.full(V, 0.4), size=V)
    ids = [0]
    for _ in range(n - 1):
        ids.append(int(dice.choice(V, p=moves[ids[-1]])))
    values, vectors = np.linalg.eig(moves.T)
    stationary = np.real(vectors[:, np.argmax(np.real(values))])
    stationary = stationary / stationary.sum()
    rate = -(stationary[:, None] * moves * np.log(np.maximum(moves, 1e-300))).sum()
    return ids, float(rate)


def by_hand(counts: NGrams, ids: list[int], history: list[int], target: int, order: int) -> float:
    """The formula of the class, with Counters and a recursion."""
    if order == 0:
        return 1 / V
    below = by_hand(counts, ids, history[-(order - 2) :] if order > 2 else [], target, order - 1)
    trust = counts.trust[order - 1]
    if order == 1:
        return trust * ids.count(target) / len(ids) + (1 - trust) * below
    context = tuple(history[-(order - 1) :])
    n = order - 1
    follows = Counter(tuple(ids[i : i + n]) for i in range(len(ids) - n))
    runs = Counter(tuple(ids[i : i + n + 1]) for i in range(len(ids) - n))
    if len(context) < n or not follows[context]:
        return below
    return trust * runs[(*context, target)] / follows[context] + (1 - trust) * below


def test_every_order_is_the_formula() -> None:
    ids, _ = markov_text(300, 1)
    counts = NGrams(ids, V)
    dice = np.random.default_rng(2)
    for order in range(4):
        for _ in range(60):
            history = dice.integers(0, V, size=2).tolist()
            target = int(dice.integers(0, V))
            got = counts.probs(np.array([history]), np.array([target]), order)[0]
            assert got == pytest.approx(by_hand(counts, ids, history, target, order), rel=1e-12)


def test_probabilities_of_all_tokens_add_up_to_1_after_any_context() -> None:
    ids = [0, 1, 0, 2, 0, 1, 3, 0, 1, 2, 2, 1] * 3  # 4 and 5 never occur: contexts with them are unseen
    counts = NGrams(ids, V)
    for a in range(-1, V):
        for b in range(V):
            history = np.broadcast_to(np.array([a, b]), (V, 2))
            for order in range(4):
                assert counts.probs(history, np.arange(V), order).sum() == pytest.approx(1, abs=1e-12)


def test_the_trust_is_the_best_on_the_held_out_end() -> None:
    ids, _ = markov_text(2000, 3)
    counts = NGrams(ids, V)
    first = NGrams.__new__(NGrams)
    first.vocab_size, first.trust = V, list(counts.trust)
    text = np.array(ids)
    first._count(text[:1800])
    at = np.arange(1800, 2000)

    def likelihood(order: int, trust: float) -> float:
        first.trust = [*counts.trust[: order - 1], trust]
        history = np.stack([text[at - 2], text[at - 1]], axis=-1)
        return float(np.log(first.probs(history, text[at], order)).sum())

    for order in (1, 2, 3):
        best = max(np.linspace(0.001, 0.999, 999), key=lambda trust: likelihood(order, float(trust)))
        assert likelihood(order, counts.trust[order - 1]) >= likelihood(order, float(best)) - 1e-3


def test_a_bigram_reaches_the_entropy_of_a_source_of_pairs_and_a_trigram_can_not_beat_it() -> None:
    ids, rate = markov_text(60_000, 4)
    counts = NGrams(ids[:50_000], V)
    losses = baseline_losses(counts, clm_rows(torch.tensor(ids[50_000:])[None]), "clm")
    assert tuple(losses) == NAMES
    assert losses["uniform"] == pytest.approx(math.log(V), abs=1e-12)
    assert losses["unigram"] > rate + 0.05
    assert losses["bigram"] == pytest.approx(rate, abs=0.02)
    assert losses["trigram"] == pytest.approx(losses["bigram"], abs=0.01)


def test_only_scored_targets_count_and_a_masked_model_is_compared_with_no_order_of_words() -> None:
    counts = NGrams([0, 0, 0, 1] * 20, V)
    inputs = torch.tensor([[0, 1, 2]])
    batch = Batch(inputs, torch.tensor([[IGNORED, 1, IGNORED]]))
    losses = baseline_losses(counts, batch, "mlm")
    assert tuple(losses) == ("uniform", "unigram")
    p = counts.trust[0] * 20 / 80 + (1 - counts.trust[0]) / V
    assert losses["unigram"] == pytest.approx(-math.log(p))
    nothing = Batch(inputs, torch.full((1, 3), IGNORED))
    assert all(math.isnan(loss) for loss in baseline_losses(counts, nothing, "mlm").values())


def test_the_first_target_of_a_row_has_one_token_before_it() -> None:
    """So its trigram is its bigram."""
    ids, _ = markov_text(400, 5)
    counts = NGrams(ids, V)
    first = Batch(torch.tensor([[3]]), torch.tensor([[2]]))
    losses = baseline_losses(counts, first, "clm")
    assert losses["trigram"] == losses["bigram"] != losses["unigram"]


def test_short_texts_and_wrong_ids() -> None:
    for ids in ([0], [0, 1], [0, 0, 0]):
        counts = NGrams(ids, V)
        assert np.isfinite(np.log(counts.probs(np.array([[0, 0]]), np.array([5]), 3))).all()
    with pytest.raises(ValueError, match="at least 1 token"):
        NGrams([], V)
    with pytest.raises(ValueError, match="between 0 and 5, and this text has 6"):
        NGrams([1, 6], V)


def test_one_symbol_is_certain() -> None:
    counts = NGrams([0] * 100, 1)
    batch = clm_rows(torch.zeros(1, 11, dtype=torch.int64))
    assert baseline_losses(counts, batch, "clm") == pytest.approx(dict.fromkeys(NAMES, 0.0))
