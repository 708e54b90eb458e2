"""Muon against the formulas in float64, and what its orthogonal matrices are."""

import math

import pytest
import torch

from engine.muon import POLYNOMIALS, Muon, momentum_at, orthogonal
from engine.training import CheckpointEvent, train
from tests.engine.small_training import seeded, settings, some_ids, tiny


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=seeded(seed))


def after(values, n):
    """What n polynomials make of singular values."""
    for a, b, c in POLYNOMIALS[:n]:
        values = a * values + b * values**3 + c * values**5
    return values


@pytest.mark.parametrize(("n", "error"), [(1, 0.9918), (2, 0.9660), (3, 0.8658), (4, 0.5605), (5, 0.1236)])
def test_the_polynomials_are_best_for_values_from_a_thousandth_on(n, error):
    """The best one errs as far upwards as downwards (Chebyshev), and no other point errs more."""
    values = after(torch.logspace(-3, 0, 50_001, dtype=torch.float64), n)
    low, high = float(values.min()), float(values.max())
    assert high - 1 == pytest.approx(1 - low, rel=1e-3)
    assert high - 1 == pytest.approx(error, abs=1e-3)


@pytest.mark.parametrize("shape", [(3, 32, 32), (2, 16, 64), (2, 64, 16), (1, 2, 8)])
def test_a_random_matrix_becomes_nearly_orthogonal(shape):
    matrices = normal(*shape)
    found = orthogonal(matrices, 5)
    assert found.shape == shape
    U, values, Vh = torch.linalg.svd(matrices.double(), full_matrices=False)
    length = matrices.double().norm(dim=(-2, -1), keepdim=True)[..., 0]
    expected = U @ torch.diag_embed(after(values / length, 5)) @ Vh
    torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=1e-4)
    large = values / length > 1e-3
    made = torch.linalg.svdvals(found.double())
    assert bool(((made > 0.87) & (made < 1.13)).sum(-1).eq(large.sum(-1)).all())


def test_zeros_stay_zeros():
    assert torch.equal(orthogonal(torch.zeros(2, 4, 4)), torch.zeros(2, 4, 4))


def test_momentum_rises_over_200_steps():
    assert [momentum_at(s) for s in (0, 50, 200, 201)] == pytest.approx([0.85, 0.875, 0.95, 0.95])


def by_hand(weights, gradients, rate, decay):
    """Three updates of one matrix, by the formula, in float64."""
    p, buffer = weights.double(), torch.zeros_like(weights.double())
    for step, gradient in enumerate(gradients):
        g, m = gradient.double(), momentum_at(step)
        buffer = m * buffer + (1 - m) * g
        ahead = m * buffer + (1 - m) * g
        U, values, Vh = torch.linalg.svd(ahead, full_matrices=False)
        direction = U @ torch.diag(after(values / ahead.norm(), 3)) @ Vh
        p = p * (1 - rate * decay) - rate * 0.2 * math.sqrt(max(p.shape)) * direction
    return p


@pytest.mark.parametrize("shape", [(8, 8), (8, 24), (24, 8)])
def test_updates_are_the_formula(shape):
    weights, gradients = normal(*shape), [normal(*shape, seed=k) for k in (1, 2, 3)]
    p = torch.nn.Parameter(weights.clone())
    muon = Muon([p], 0.1)
    for step, gradient in enumerate(gradients):
        p.grad = gradient
        muon.step(0.02, step)
    torch.testing.assert_close(
        p.detach().double(), by_hand(weights, gradients, 0.02, 0.1), atol=1e-5, rtol=1e-4
    )


def test_stacked_is_one_by_one():
    together = [torch.nn.Parameter(normal(8, 8, seed=k)) for k in range(4)]
    alone = [torch.nn.Parameter(p.detach().clone()) for p in together]
    for k, (p, q) in enumerate(zip(together, alone, strict=True)):
        p.grad = q.grad = normal(8, 8, seed=10 + k)
    Muon(together, 0.1).step(0.02, 5)
    for q in alone:
        Muon([q], 0.1).step(0.02, 5)
    for p, q in zip(together, alone, strict=True):
        torch.testing.assert_close(p, q, atol=1e-6, rtol=1e-5)


def test_it_goes_on_from_the_state_of_pytorchs_own_muon():
    """What older checkpoints hold: the momentum of each matrix under the same name."""
    model = tiny()
    config = settings(optimizer="muon", checkpoint_every=10)
    state = next(e.state for e in train(model, some_ids(), [], config) if isinstance(e, CheckpointEvent))
    hidden = {n: p for n, p in tiny().named_parameters() if p.ndim == 2 and n.startswith("blocks.")}
    theirs = torch.optim.Muon(list(hidden.values()), lr=0.01)
    for p in hidden.values():
        p.grad = torch.ones_like(p)
    theirs.step()
    (key,) = {key for p in hidden.values() for key in theirs.state[p]}
    old = {f"{key}/{n}": theirs.state[p][key].clone() for n, p in hidden.items()}
    kept = {n: v for n, v in state["optimizer"].items() if not n.startswith("momentum_buffer/")}
    run = train(tiny(), some_ids(), [], config, resume={**state, "optimizer": {**kept, **old}})
    taken = run.state()["optimizer"]
    assert all(torch.equal(taken[name], value) for name, value in old.items())
    assert len(list(run)) > 0
