"""A token at a time through `Decoder`: the numbers of the forward pass, for every shape that it serves."""

import random
import threading
from typing import Any

import pytest
import torch

from engine.cache import KVCache
from engine.config import ModelConfig, Rotary
from engine.decoding import Decoder, fits
from engine.model import Transformer
from engine.sampling import Continuation, Held, generate

LIMIT = 24


def random_config(dice: random.Random) -> ModelConfig:
    """Any causal shape."""
    n_kv_head = dice.choice([1, 2, 3])
    n_head, width = n_kv_head * dice.choice([1, 2, 3]), 2 * dice.randint(2, 6)
    norm_place, positions = (
        dice.choice(["pre", "pre", "post"]),
        dice.choice(["learned", "sinusoidal", "rotary"]),
    )
    n_layer = dice.randint(1, 3)
    more: dict[str, Any] = {}
    if dice.random() < 0.5:
        more = {
            "head_width": width + 2 * dice.randint(-1, 2), "norm_eps": 10 ** dice.uniform(-7, -3),
            "windows": tuple(dice.choice([0, 1, 3, 9, 40]) for _ in range(n_layer)),
            "score_scale": dice.choice([None, 0.2]), "parallel": norm_place == "pre" and dice.random() < 0.5,
            "qkv_bias": dice.choice([None, True, False]), "out_bias": dice.choice([None, True, False]),
            "embedding_norm": dice.random() < 0.5, "head_transform": dice.random() < 0.3,
            "head_bias": dice.random() < 0.5, "rotary": Rotary(share=dice.choice([1.0, 0.5])),
        }  # fmt: skip
        if int(more["head_width"] * more["rotary"].share) % 2:
            more["rotary"] = Rotary()
    return ModelConfig(
        vocab_size=dice.randint(2, 40), context_length=LIMIT, n_layer=n_layer, n_head=n_head,
        d_model=n_head * width, n_kv_head=n_kv_head, d_ff=dice.randint(1, 50), positions=positions,
        norm=dice.choice(["layernorm", "rmsnorm"]), norm_place=norm_place, bias=dice.random() < 0.5,
        activation=dice.choice(["gelu", "relu2", "swiglu", "gelu_tanh"]), tie_head=dice.random() < 0.5,
        qk_norm=dice.random() < 0.3, mix_previous=dice.random() < 0.3, **more,
    )  # fmt: skip


def made(config: ModelConfig, seed: int = 0) -> Transformer:
    """A model whose weights are all but zero: also the biases, the norms and what starts at nothing."""
    model, dice = Transformer(config), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in model.parameters():
            spread = 0.3 if weights.ndim == 2 else 0.5
            weights.copy_(spread * torch.randn(weights.shape, generator=dice) + (weights.ndim == 1))
    return model.eval()


@torch.no_grad()
def apart(model: Transformer, ids: list[int], n_before: int) -> float:
    """The largest distance to `forward` of logits that come one by one, as a share of the largest logit."""
    cache, decoder = KVCache(model.config, room=4), Decoder(model)
    found = []
    if n_before:
        found.append(model.next_logits(torch.tensor([ids[:n_before]]), cache=cache)[0])
    found += [decoder.next_logits(i, cache) for i in ids[n_before:]]
    expected = model(torch.tensor([ids]))[0, max(0, n_before - 1) :]
    assert cache.length == len(ids)
    return float((torch.stack(found) - expected).abs().max() / expected.abs().max())


@pytest.mark.parametrize("seed", range(60))
def test_the_logits_are_those_of_the_forward_pass(seed: int) -> None:
    dice = random.Random(seed)
    config = random_config(dice)
    model = made(config, seed)
    ids = [dice.randrange(config.vocab_size) for _ in range(LIMIT)]
    assert fits(model)
    assert apart(model, ids, dice.choice([0, 1, 5])) < 1e-5, config


def test_weights_are_read_as_they_are_now() -> None:
    model = made(ModelConfig(vocab_size=20, context_length=LIMIT, n_layer=2, d_model=16))
    decoder, cache = Decoder(model), KVCache(model.config)
    decoder.next_logits(3, cache)
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(1.1)
        model.blocks[0].mlp.up.weight.data = torch.randn(64, 16, generator=torch.Generator().manual_seed(8))
    cache = KVCache(model.config)
    found = [decoder.next_logits(i, cache) for i in (3, 4)][-1]
    with torch.no_grad():
        torch.testing.assert_close(found, model(torch.tensor([[3, 4]]))[0, -1], rtol=0, atol=1e-5)


def test_training_goes_on_after_a_text_was_written() -> None:
    """What is made while writing may not stand in the way of gradients, nor a cache in that of a pass."""
    model = made(ModelConfig(vocab_size=20, context_length=LIMIT, n_layer=1, d_model=16, mix_previous=True))
    held = Held(model)
    list(generate(model, [1, 2], n_tokens=9, seed=1, held=held))
    model(torch.tensor([[1, 2, 3]])).sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    with torch.no_grad():
        model.next_logits(torch.tensor([[4, 5]]), cache=held.cache)


def test_a_token_without_a_length_is_refused_as_the_forward_pass_does() -> None:
    """With an eps of 0 its norm is no number; it was a division by zero, which no page expects."""
    shape: dict[str, Any] = {"norm": "rmsnorm", "norm_eps": 0.0, "positions": "rotary"}
    model = made(ModelConfig(vocab_size=20, context_length=LIMIT, n_layer=1, d_model=16, **shape))
    with torch.no_grad():
        model.embedding.weight[3] = 0.0
    assert bool(model(torch.tensor([[3]])).isnan().all())
    assert bool(Decoder(model).next_logits(3, KVCache(model.config)).isnan().all())


def test_what_it_can_not_do_is_refused_as_the_model_does() -> None:
    model = made(ModelConfig(vocab_size=20, context_length=4, n_layer=1, d_model=16))
    decoder, cache = Decoder(model), KVCache(model.config)
    with pytest.raises(ValueError, match="20"):
        decoder.next_logits(20, cache)
    assert cache.length == 0
    for i in range(4):
        decoder.next_logits(i, cache)
    with pytest.raises(ValueError, match="context_length is 4"):
        decoder.next_logits(1, cache)


def test_who_is_not_served_goes_the_way_of_the_forward_pass() -> None:
    shape = ModelConfig(vocab_size=20, context_length=LIMIT, n_layer=1, n_head=2, d_model=8)
    model = made(shape).double()
    assert not fits(model) and not fits(Transformer(shape).to("meta"))
    ids = [1, 2, 3]
    text, whole = Continuation(model, ids), Continuation(model, ids, use_cache=False)
    for token_id in (4, 5, 6):
        torch.testing.assert_close(text.logits(), whole.logits(), rtol=0, atol=1e-5)
        text.ids.append(token_id)
        whole.ids.append(token_id)


def test_two_texts_at_once_share_no_place() -> None:
    model = made(ModelConfig(vocab_size=20, context_length=64, n_layer=2, d_model=16, positions="rotary"))
    model.requires_grad_(False)

    def written(seed: int) -> list[int]:
        return [step.id for step in generate(model, [seed], n_tokens=60, seed=seed)]

    expected = {seed: written(seed) for seed in range(4)}
    found: dict[int, list[int]] = {}
    threads = [threading.Thread(target=lambda s=s: found.update({s: written(s)})) for s in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected
