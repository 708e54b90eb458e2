"""Token vectors: every number against its formula, a brute-force loop or PyTorch."""

import math

import numpy as np
import pytest

from engine import embeddings


def rows(n: int, c: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, c)).astype(np.float32)


@pytest.mark.parametrize("token_id", [0, 17, 99])
def test_one_hot_times_matrix_is_the_row_to_the_last_bit(token_id: int) -> None:
    matrix = rows(100, 24)
    hot = embeddings.one_hot(token_id, 100)
    assert hot.sum() == 1 and hot[token_id] == 1
    assert np.array_equal(embeddings.look_up(matrix, token_id), matrix[token_id])


@pytest.mark.parametrize("token_id", [-1, 100])
def test_an_id_outside_the_vocabulary_is_refused(token_id: int) -> None:
    with pytest.raises(ValueError, match="0 to 99"):
        embeddings.one_hot(token_id, 100)


@pytest.mark.parametrize(("token_id", "first"), [(0, 0), (3, 0), (50, 46), (99, 91)])
def test_the_rows_drawn_hold_the_token(token_id: int, first: int) -> None:
    matrix = rows(100, 4)
    found = embeddings.rows_around(matrix, token_id, 9)
    assert found.ids.tolist() == list(range(first, first + 9))
    assert np.array_equal(found.values, matrix[found.ids])


def test_a_small_vocabulary_has_fewer_rows() -> None:
    assert embeddings.rows_around(rows(2, 4), 1, 9).ids.tolist() == [0, 1]


def test_many_rows_are_measured_a_piece_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = rows(50, 8)
    monkeypatch.setattr(embeddings, "ROWS", 7)
    exact = matrix.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1)
    np.testing.assert_allclose(embeddings.norms(matrix), lengths, rtol=1e-14)
    np.testing.assert_allclose(
        embeddings.cosines(matrix, 3), exact @ exact[3] / lengths / lengths[3], rtol=1e-12
    )
    basis = embeddings.fit_basis(matrix)
    np.testing.assert_allclose(basis.project(matrix), (exact - basis.mean) @ basis.directions.T, atol=1e-12)


def test_cosines_and_neighbours_by_brute_force() -> None:
    matrix = rows(60, 8)
    matrix[33] = matrix[7]  # the same direction: 1, and the lower id would come first
    matrix[34] = -2 * matrix[7]
    matrix[50] = 0
    found = embeddings.neighbours(matrix, 7, n_near=5, n_far=3)
    brute = {}
    for i, row in enumerate(matrix.astype(np.float64)):
        if i in (7, 50):
            continue
        a = matrix[7].astype(np.float64)
        brute[i] = sum(a * row) / math.sqrt(sum(a * a)) / math.sqrt(sum(row * row))
    order = sorted(brute, key=lambda i: -brute[i])
    assert found.near.tolist() == order[:5] and found.near[0] == 33
    assert found.far.tolist() == order[-3:] and found.far[-1] == 34
    for i, value in brute.items():
        assert found.cosines[i] == pytest.approx(value, abs=1e-12)
    assert found.cosines[7] == pytest.approx(1) and np.isnan(found.cosines[50])
    assert found.mean == pytest.approx(np.mean(list(brute.values())))
    assert found.spread == pytest.approx(np.std(list(brute.values())))


def test_no_token_is_near_and_far_at_once() -> None:
    found = embeddings.neighbours(rows(6, 4), 0, n_near=4, n_far=4)
    assert len(found.near) == 4 and len(found.far) == 1
    assert not set(found.near.tolist()) & set(found.far.tolist())


def test_a_single_token_has_no_neighbours() -> None:
    found = embeddings.neighbours(rows(1, 4), 0)
    assert not len(found.near) and not len(found.far) and math.isnan(found.mean)


def test_a_zero_vector_points_nowhere() -> None:
    with pytest.raises(ValueError, match="token 0 are 0"):
        embeddings.cosines(np.zeros((3, 4)), 0)


def test_principal_components_are_eigenvectors_of_the_covariance() -> None:
    x = rows(200, 10).astype(np.float64) @ np.diag(np.arange(1, 11)) + 5
    basis = embeddings.fit_basis(x, 4)
    values, vectors = np.linalg.eigh(np.cov(x.T))
    np.testing.assert_allclose(basis.mean, x.mean(axis=0))
    np.testing.assert_allclose(basis.shares, values[::-1][:4] / values.sum(), rtol=1e-10)
    for mine, theirs in zip(basis.directions, vectors.T[::-1], strict=False):
        assert abs(mine @ theirs) == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(basis.directions @ basis.directions.T, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(basis.project(x).var(axis=0, ddof=1), values[::-1][:4], rtol=1e-9)


def test_the_sign_of_a_direction_is_fixed() -> None:
    x = rows(50, 6)
    basis, flipped = embeddings.fit_basis(x), embeddings.fit_basis(-x)
    np.testing.assert_allclose(basis.directions, flipped.directions, atol=1e-9)
    for direction in basis.directions:
        assert direction[np.abs(direction).argmax()] > 0


def test_one_basis_serves_all_steps() -> None:
    """What moves on the map moves by exactly the part of its vector's motion that lies along the axes."""
    last, first = rows(30, 6), rows(30, 6, seed=1)
    basis = embeddings.fit_basis(last)
    motion = basis.project(last) - basis.project(first)
    np.testing.assert_allclose(motion, (last.astype(float) - first) @ basis.directions.T, atol=1e-12)
    np.testing.assert_allclose(basis.project(last).mean(axis=0), 0, atol=1e-12)
    assert np.abs(basis.project(first).mean(axis=0)).max() > 1e-3  # not fitted anew, not centred anew


@pytest.mark.parametrize("shape", [(1, 5), (4, 1), (2, 8)])
def test_too_few_vectors_leave_directions_empty(shape: tuple[int, int]) -> None:
    basis = embeddings.fit_basis(rows(*shape), 3)
    assert basis.directions.shape == (3, shape[1]) and basis.shares.shape == (3,)
    assert basis.shares[-1] == 0
    assert basis.project(rows(*shape)).shape == (shape[0], 3)
    assert np.isfinite(basis.project(rows(*shape))).all()


def test_equal_vectors_have_no_variance() -> None:
    assert embeddings.fit_basis(np.ones((5, 4))).shares.tolist() == [0, 0, 0]


def test_no_vectors_no_map() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        embeddings.fit_basis(np.zeros((0, 4)))


def test_limits_hold_every_point_of_every_step() -> None:
    points = np.random.default_rng(0).normal(size=(4, 20, 2))
    ends = embeddings.limits(points)
    assert (points >= ends[:, 0]).all() and (points <= ends[:, 1]).all()
    span = points[..., 0].max() - points[..., 0].min()
    assert ends[0, 1] - ends[0, 0] == pytest.approx(1.12 * span)
    assert embeddings.limits(np.zeros((1, 1, 2))).tolist() == [[-1, 1], [-1, 1]]


def test_lengths() -> None:
    assert embeddings.norms([[3, 4], [0, 0], [-5, 12]]).tolist() == [5, 0, 13]


def test_counts_and_the_most_frequent() -> None:
    counts = embeddings.token_counts([3, 1, 3, 0, 1], 6)
    assert counts.tolist() == [1, 2, 0, 2, 0, 0]
    assert embeddings.most_frequent(counts, 4).tolist() == [1, 3, 0, 2]
    assert embeddings.token_counts([], 3).tolist() == [0, 0, 0]


def test_correlations_of_what_occurs() -> None:
    # log10 of the counts: 0, 1, 2, 3; the token that never occurs is left out
    found = embeddings.relation([1, 10, 100, 1000, 0], [1.0, 3.0, 2.0, 4.0, 77.0])
    assert found.n == 4
    assert found.pearson == pytest.approx(4 / 5)  # Σ dx·dy / √(Σdx²·Σdy²) = 4 / √(5·5)
    assert found.spearman == pytest.approx(4 / 5)
    bent = embeddings.relation([1, 10, 100, 1000], [1.0, 2.0, 4.0, 50.0])
    assert bent.spearman == pytest.approx(1) and bent.pearson < 0.9


def test_equal_counts_share_their_rank() -> None:
    # ranks of the counts: 1, 2.5, 2.5, 4; of the lengths 1, 2, 3, 4: r = 4.5 / √(4.5·5)
    found = embeddings.relation([1, 5, 5, 9], [0.1, 0.2, 0.3, 0.4])
    assert found.spearman == pytest.approx(4.5 / math.sqrt(4.5 * 5))


@pytest.mark.parametrize("counts", [[0, 0, 0, 0], [3, 3, 3, 3], [1, 2, 0, 0]])
def test_too_little_for_a_correlation(counts: list[int]) -> None:
    found = embeddings.relation(counts, [1.0, 2.0, 3.0, 4.0])
    assert math.isnan(found.pearson) and math.isnan(found.spearman)
