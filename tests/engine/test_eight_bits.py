"""Weights of 8 bits: what they are, that nothing else is rounded, and what a comparison says."""

import time
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from engine import eight_bits as eight
from engine.cache import KVCache
from engine.compact import round_rows
from engine.config import ModelConfig
from engine.decoding import Decoder, fits
from engine.eight_bits import Comparison, Rounded, RoundedHead, compare, eight_bits, trouble
from engine.model import Transformer
from engine.sampling import Held, generate

SHAPE = ModelConfig(
    vocab_size=50, context_length=32, n_layer=2, n_head=4, n_kv_head=2, d_model=32, positions="rotary",
    norm="rmsnorm", activation="swiglu", d_ff=96, qkv_bias=True, bias=False,
)  # fmt: skip


@pytest.fixture(scope="module")
def model() -> Transformer:
    made = Transformer(SHAPE, torch.Generator().manual_seed(3))
    with torch.no_grad():
        for weights in made.parameters():
            weights.mul_(6 if weights.ndim == 2 else 1)
    made = made.eval().requires_grad_(False)
    if why := trouble(made):
        pytest.skip(why)
    return made


def distance(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found - expected).abs().max() / expected.abs().max())


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("kind", "near"), [(Rounded, 1e-2), (RoundedHead, 5e-4)])
def test_a_rounded_matrix_is_whole_numbers_times_scales(kind: Any, near: float, bias: bool) -> None:
    """In 16 bits a number keeps 8 binary places; in two times 8 bits it is off by 1.5e-5 of the largest."""
    dice = torch.Generator().manual_seed(1)
    linear = nn.Linear(64, 7, bias=bias).requires_grad_(False)
    linear.weight.copy_(torch.randn(7, 64, generator=dice))
    linear.weight[3] = 0
    whole, scale = round_rows(linear.weight)
    x = torch.randn(5, 64, generator=dice)
    x[:, 11] *= 300  # one entry that is far larger than all others
    x[4] = 0
    expected = nn.functional.linear(x, whole.float() * scale, linear.bias)
    line, off = kind(linear), near * float(expected.abs().max())
    torch.testing.assert_close(line(x), expected, rtol=0, atol=off)
    for row, wanted in zip(x, expected, strict=True):
        torch.testing.assert_close(line.of(line.ready(row)), wanted, rtol=0, atol=off)
        if kind is Rounded:
            out = torch.empty(7)
            line.into(line.ready(row), out)
            torch.testing.assert_close(out, line.of(line.ready(row)))
            torch.testing.assert_close(line.added(torch.ones(7), row), out + 1)


def test_a_model_that_learns_goes_on_learning() -> None:
    """The two share embeddings and norms: freezing the one froze the other."""
    learning = Transformer(SHAPE)
    if why := trouble(learning):
        pytest.skip(why)
    eight_bits(learning)
    assert all(weights.requires_grad for weights in learning.parameters())


def test_the_twin_shares_what_is_not_rounded_and_is_near_the_model(model: Transformer) -> None:
    twin, ids = eight_bits(model), torch.arange(30)[None]
    before = {name: weights.clone() for name, weights in model.named_parameters()}
    assert twin.embedding.weight is model.embedding.weight
    assert twin.blocks[0].attention_norm.weight is model.blocks[0].attention_norm.weight
    assert not [m for m in twin.modules() if isinstance(m, nn.Linear)] and fits(twin)
    plain = Transformer(SHAPE).eval().requires_grad_(False)
    for name, weights in model.named_parameters():
        rounded = weights
        if weights.ndim == 2 and name != "embedding.weight":
            whole, scale = round_rows(weights)
            rounded = whole.float() * scale
        plain.get_parameter(name).copy_(rounded)
    plain.head.weight = nn.Parameter((lambda w, s: w.float() * s)(*round_rows(model.head.weight)), False)
    assert distance(twin(ids), plain(ids)) < 2e-2
    assert 1e-4 < distance(twin(ids), model(ids)) < 0.1
    assert all(torch.equal(weights, before[name]) for name, weights in model.named_parameters())


def test_a_text_read_at_once_and_token_by_token_is_the_same(model: Transformer) -> None:
    twin, cache = eight_bits(model), KVCache(SHAPE)
    decoder = Decoder(twin)
    one_by_one = torch.stack([decoder.next_logits(i, cache) for i in range(30)])
    assert distance(one_by_one, twin(torch.arange(30)[None])[0]) < 1e-2  # where 16 bits round otherwise
    steps = list(generate(twin, [1, 2, 3], n_tokens=25, seed=4))
    held = Held(twin)
    parts = [*generate(twin, [1, 2, 3], n_tokens=9, seed=4, held=held)]
    ids = [1, 2, 3, *(step.id for step in parts)]
    parts += generate(twin, ids, n_tokens=16, seed=4, skip=9, held=held)
    assert [step.id for step in parts] == [step.id for step in steps]


def test_a_comparison_reads_with_both_and_writes_with_both(model: Transformer) -> None:
    ids = torch.randint(0, 50, (60,), generator=torch.Generator().manual_seed(2)).tolist()
    told: list[tuple[int, int]] = []
    found = compare(model, eight_bits(model), ids, lambda done, n: told.append((done, n)))
    assert len(found.full) == len(found.rounded) == 59
    assert found.full_speed > 0 and found.rounded_speed > 0 and told[-1] == (5, 5)
    same = compare(model, model, ids)
    assert same.cost == 0 and same.error == 0


def test_cost_and_error_by_hand() -> None:
    found = Comparison(np.array([1.0, 2.0, 3.0]), np.array([1.1, 2.0, 3.5]), 10.0, 25.0)
    assert found.cost == pytest.approx(0.2) and found.speedup == 2.5
    assert found.error == pytest.approx(np.sqrt(0.07) / np.sqrt(3))  # differences 0.1, 0, 0.5


def test_who_can_not_write_with_8_bits_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    masked = Transformer(ModelConfig(vocab_size=5, d_model=8, n_layer=1, objective="mlm"))
    assert "masked model" in trouble(masked)
    odd = Transformer(ModelConfig(vocab_size=5, d_model=32, d_ff=85, n_layer=1))
    assert "rows of 85" in trouble(odd)
    with pytest.raises(ValueError, match="multiple of 32"):
        eight_bits(odd)
    causal = Transformer(ModelConfig(vocab_size=5, d_model=32, n_layer=1))
    monkeypatch.setattr(eight, "_products_are_exact", lambda: False)
    assert "the processor lacks" in trouble(causal)
    assert "another device" in trouble(causal.to("meta"))


@pytest.mark.parametrize("slow", [Rounded, RoundedHead])
def test_one_slow_kind_of_product_is_enough_to_refuse(monkeypatch: pytest.MonkeyPatch, slow: Any) -> None:
    """Some processors have instructions for one of the two only: the logits alone then took a second each."""
    calls: list[Any] = []

    def of(self: Any, x: Any) -> torch.Tensor:
        calls.append(x)
        time.sleep(0.5)
        return torch.zeros(1)

    monkeypatch.setattr(slow, "of", of)
    assert not eight._faster_now()
    assert len(calls) == 1, "and nobody waits for it nine times"
