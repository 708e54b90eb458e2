"""What is added to token vectors, and how queries and keys turn: against formulas and the model."""

import math
from typing import Literal

import numpy as np
import pytest
import torch

from engine import positions
from engine.config import ModelConfig, Rotary
from engine.model import Transformer
from engine.rotary import rotary_turns, rotate
from engine.tokenizers import byte_tokenizer
from engine.trace import trace


def rows(n: int, c: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, c)).astype(np.float32)


def model(positions: Literal["learned", "sinusoidal", "rotary"], **more: object) -> Transformer:
    config = ModelConfig(
        vocab_size=256, context_length=24, n_layer=2, n_head=2, d_model=16, positions=positions, **more
    )
    return Transformer(config, torch.Generator().manual_seed(3)).eval()


@pytest.mark.parametrize("kind", ["learned", "sinusoidal", "rotary"])
def test_what_is_added_is_what_the_model_adds(kind: Literal["learned", "sinusoidal", "rotary"]) -> None:
    network, ids = model(kind), torch.tensor([[5, 5, 200, 7]])
    entered = network.embed(ids)[0].detach().numpy()
    tokens = network.embedding.weight.detach().numpy()[ids[0]] * positions.token_scale(network)
    table = positions.added_positions(network)
    if kind == "rotary":
        assert table is None
        np.testing.assert_array_equal(entered, tokens)
    else:
        assert table is not None and table.shape == (24, 16)
        np.testing.assert_allclose(entered, tokens + table[:4], atol=1e-6)


def test_sinusoids_follow_their_formula() -> None:
    table = positions.sinusoid(50, 12)
    for t in range(50):
        for j in range(12):
            wave = math.sin if j % 2 == 0 else math.cos
            assert table[t, j] == pytest.approx(wave(t / 10000 ** ((j - j % 2) / 12)), abs=1e-6)


@pytest.mark.parametrize("width", [1, 7])
def test_a_table_of_odd_width_is_cut(width: int) -> None:
    assert positions.sinusoid(5, width).shape == (5, width)


def test_turning_is_the_model_s_rotation() -> None:
    x = rows(24, 8)
    turned = rotate(torch.from_numpy(x)[None, None], rotary_turns(24, 8))[0, 0].numpy()
    mine = np.stack([positions.turn(x[t], t) for t in range(24)])
    np.testing.assert_allclose(mine, turned, atol=2e-6)
    assert not np.allclose(mine[5], x[5], atol=1e-2)


ROTARIES = [Rotary(300.0), Rotary(500.0, 0.5), Rotary(1e5, 1.0, 8.0), Rotary(1e4, 0.75, 8.0, 1.0, 4.0, 16)]


@pytest.mark.parametrize("rotary", ROTARIES)
def test_turning_knows_the_model_s_base_share_and_slowness(rotary: Rotary) -> None:
    x, width = rows(24, 16), rotary.width(16)
    turned = rotate(torch.from_numpy(x)[None, None], rotary_turns(24, width, rotary))[0, 0].numpy()
    mine = np.stack([positions.turn(x[t], t, rotary) for t in range(24)])
    np.testing.assert_allclose(mine, turned, atol=2e-6)
    assert np.array_equal(mine[:, width:], x[:, width:].astype(np.float64))
    network = model("rotary", head_width=16, rotary=rotary)
    traced = trace(network, byte_tokenizer(), "a long enough text")
    q, k = traced.q[1, 0, 9], traced.k[1, 0, 4]
    back = positions.turn(q, -9, rotary), positions.turn(k, -4, rotary)
    found = positions.shifted_scores(*back, 9, 4, [0, 3, 100], rotary)
    np.testing.assert_allclose(found.together, float(q @ k), rtol=1e-4, atol=1e-6)
    read = network.blocks[1].attention.q(
        network.blocks[1].attention_norm(torch.tensor(traced.residual[1, 9]))
    )
    np.testing.assert_allclose(back[0], read.detach().numpy()[:16], atol=1e-5)


def test_turning_back_undoes_it_and_keeps_the_length() -> None:
    x = rows(40, 16).astype(np.float64)
    for t, row in enumerate(x):
        there = positions.turn(row, 3 * t)
        np.testing.assert_allclose(positions.turn(there, -3 * t), row, atol=1e-12)
        assert np.linalg.norm(there) == pytest.approx(np.linalg.norm(row), abs=1e-12)


def test_the_score_depends_on_the_distance_alone() -> None:
    q, k = rows(2, 16)
    shifts = [0, 1, 7, 500, 9000]
    found = positions.shifted_scores(q, k, 11, 4, shifts)
    np.testing.assert_allclose(found.together, found.together[0], atol=1e-9)
    for shift, together, alone in zip(shifts, found.together, found.alone, strict=True):
        assert together == pytest.approx(complex_score(q, k, 7), abs=1e-9)
        assert alone == pytest.approx(complex_score(q, k, 7 + shift), abs=1e-9)
    assert np.ptp(found.alone) > 0.1


def complex_score(q: np.ndarray, k: np.ndarray, distance: int) -> float:
    """Su et al. 2021, eq. 16: Re Σ q_j k_j* e^(i·distance·speed_j), pairs as complex numbers."""
    a, b = q.astype(np.float64).view(np.complex128), k.astype(np.float64).view(np.complex128)
    speed = 10000.0 ** (-2 * np.arange(len(a)) / len(q))
    return float((a * b.conj() * np.exp(1j * distance * speed)).sum().real)


@pytest.mark.parametrize("more", [{}, {"qk_norm": True}, {"objective": "mlm"}, {"n_kv_head": 1}])
def test_the_model_s_own_scores_come_back(more: dict[str, object]) -> None:
    traced = trace(model("rotary", **more), byte_tokenizer(), "a long enough text")
    q, k = traced.q[1, 0, 9], traced.k[1, 0, 4]
    found = positions.shifted_scores(positions.turn(q, -9), positions.turn(k, -4), 9, 4, [0, 3])
    own = float(q.astype(np.float64) @ k.astype(np.float64))
    np.testing.assert_allclose(found.together, own, atol=1e-6 * max(1, abs(own)))


def test_factors_of_the_token_before_are_the_model_s() -> None:
    assert positions.previous_factors(model("rotary")) is None
    network = model("sinusoidal", mix_previous=True)
    with torch.no_grad():
        network.previous.weight.copy_(torch.arange(16) / 8)
    factors = positions.previous_factors(network)
    assert factors is not None
    entered = network.embed(torch.tensor([[5, 200]]))[0].detach().numpy()
    rows_of = network.embedding.weight.detach().numpy()
    tables = positions.added_positions(network)
    expected = positions.token_scale(network) * (rows_of[200] + factors * rows_of[5]) + tables[1]
    np.testing.assert_allclose(entered[1], expected, atol=1e-6)
