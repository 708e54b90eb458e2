"""The tiny attention against torch line by line, the looked-up row, the mask."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine import worked_vectors as wv

TABLE = np.array([[0.5, -1.0], [2.0, 0.3], [-0.7, 1.2]])


def test_one_hot_times_the_table_is_a_row_of_it() -> None:
    for i in range(3):
        assert wv.one_hot(i, 3) == F.one_hot(torch.tensor(i), 3).tolist()
        assert wv.look_up(TABLE, i).tolist() == TABLE[i].tolist()


@pytest.mark.parametrize("index", [-1, 3])
def test_a_row_that_is_not_there_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match=f"no row {index}: .* last one is 2"):
        wv.look_up(TABLE, index)


@pytest.mark.parametrize("ids", [[0, 1], [1, 0], [2], [0, 1, 2, 2]])
@pytest.mark.parametrize("causal", [False, True])
def test_the_tiny_pass_is_the_code_of_the_first_text(ids: list[int], causal: bool) -> None:
    weights = wv.tiny_weights(3)
    found = wv.tiny_pass(weights, ids, causal=causal)
    embedded = F.embedding(torch.tensor(ids), torch.from_numpy(weights.embedding))
    q = k = v = embedded
    scaled = q @ k.T / 2**0.5
    if causal:
        scaled = scaled.masked_fill(torch.ones(len(ids), len(ids)).triu(1) > 0, -math.inf)
    attention = torch.softmax(scaled, dim=-1)
    context = attention @ v
    logits = F.linear(context[-1], torch.from_numpy(weights.weight), torch.from_numpy(weights.bias))
    assert found.scores == pytest.approx((q @ k.T).numpy())
    assert found.attention == pytest.approx(attention.numpy(), rel=1e-12)
    assert found.context == pytest.approx(context.numpy(), rel=1e-12)
    assert found.logits == pytest.approx(logits.numpy(), rel=1e-12)
    assert found.probs == pytest.approx(torch.softmax(logits, -1).numpy(), rel=1e-12)
    fused = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]
    assert found.context == pytest.approx(fused.numpy(), rel=1e-10)


def test_the_random_beginnings_have_the_laws_of_pytorch_and_a_generator_of_their_own() -> None:
    before = torch.random.get_rng_state()
    weights = wv.tiny_weights(0, vocab_size=4000, d_model=4)
    assert torch.equal(before, torch.random.get_rng_state())
    assert abs(weights.embedding.mean()) < 0.05 and abs(weights.embedding.std() - 1) < 0.05
    bound = 4**-0.5
    for part in (weights.weight, weights.bias):
        assert np.abs(part).max() <= bound and abs(part.std() - bound / 3**0.5) < 0.02
    again = wv.tiny_weights(0, vocab_size=4000, d_model=4)
    assert (again.weight == weights.weight).all()
    assert (wv.tiny_weights(1).embedding != wv.tiny_weights(2).embedding).any()


def test_no_ids_and_broken_matrices_are_refused() -> None:
    with pytest.raises(ValueError, match="no numbers"):
        wv.tiny_pass(wv.tiny_weights(0), [])
    with pytest.raises(ValueError, match="no row 5"):
        wv.tiny_pass(wv.tiny_weights(0), [5])
    for bad, says in (
        ([], "no numbers"),
        ([[1.0], [1.0, 2.0]], "equally many"),
        ([[math.nan]], "not finite"),
    ):
        with pytest.raises(ValueError, match=says):
            wv.matrix(bad)


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_row_t_sees_1_to_t(n: int) -> None:
    masked = wv.causal_scores(np.zeros((n, n)))
    weights = torch.softmax(torch.from_numpy(masked), -1).numpy()
    for t in range(1, n + 1):
        assert weights[t - 1, :t] == pytest.approx(np.full(t, 1 / t))
        assert (weights[t - 1, t:] == 0).all()
    assert wv.pairs_seen(n) == (int(np.isfinite(masked).sum()), n * n)
