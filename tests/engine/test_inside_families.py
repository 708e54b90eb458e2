"""What looks inside is exact for every published architecture, and for mixtures of their switches."""

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
import torch

from engine.ablation import each_alone, effect, logits_without, loss
from engine.config import ModelConfig, Rotary
from engine.contributions import Part, contributions
from engine.heads import RULES, attention_cell, best_example, head_measures
from engine.hub_families import shape_of
from engine.inside import lens, lens_logits, stream
from engine.metrics import softmax
from engine.model import Transformer
from engine.parameter_parts import parameter_count
from engine.tokenizers import byte_tokenizer
from engine.trace import Trace, trace
from tests.engine.conftest import rough
from tests.engine.test_hub import CASES

BYTES = byte_tokenizer()
TEXT = "the cat the mat"
KINDS = {"GPT2": "gpt2", "GPTNeoX": "gpt_neox", "GPTNeo": "gpt_neo", "DistilBert": "distilbert"}


def published(name: str) -> ModelConfig:
    """Our settings of one of the tiny published models, with a vocabulary of bytes."""
    begin, _, settings = CASES[name]
    return shape_of({"model_type": KINDS.get(begin, begin.lower()), **settings, "vocab_size": 257})


def mixed(seed: int) -> ModelConfig:
    """Switches drawn by chance."""
    dice = random.Random(seed)
    place = dice.choice(["pre", "post"])
    shape: dict[str, Any] = {
        "positions": dice.choice(["learned", "sinusoidal", "rotary"]),
        "norm": dice.choice(["layernorm", "rmsnorm"]),
        "activation": dice.choice(["gelu", "relu2", "swiglu", "gelu_tanh"]),
        "objective": dice.choice(["clm", "mlm"]),
        "norm_place": place,
        "n_kv_head": dice.choice([None, 1, 2]),
        "head_width": dice.choice([None, 4, 12]),
        "norm_eps": dice.choice([1e-12, 1e-5, 0.3]),
        "rotary": dice.choice([Rotary(), Rotary(300.0, 0.5), Rotary(1e5, 1.0, 8.0, 1.0, 4.0, 16)]),
        "windows": dice.choice([(), (3, 0), (2, 2)]),
        "score_scale": dice.choice([None, 1.0]),
        "parallel": place == "pre" and dice.random() < 0.5,
        "qkv_bias": dice.choice([None, True, False]),
        "out_bias": dice.choice([None, True, False]),
        **{name: dice.random() < 0.5 for name in ("embedding_norm", "head_transform", "head_bias")},
        **{name: dice.random() < 0.5 for name in ("bias", "tie_head", "qk_norm", "mix_previous")},
    }
    return ModelConfig(257, 24, 2, 4, 32, **shape)


CONFIGS = {name: published(name) for name in CASES} | {f"mixed {seed}": mixed(seed) for seed in range(24)}


@pytest.fixture(params=CONFIGS)
def model(request) -> Transformer:
    return rough(Transformer(CONFIGS[request.param])).eval().requires_grad_(False)


def traced_by(model: Transformer) -> Trace:
    hidden = (4, 9) if model.config.objective == "mlm" else ()
    return trace(model, BYTES, TEXT, hidden=hidden)


def test_all_ten_families_are_among_them():
    assert len({CASES[name][0] for name in CASES}) == 10


def test_contributions_sum_to_the_logit(model):
    traced = traced_by(model)
    for position, token_id in itertools.product((0, 4, 14), (0, 101, 255)):
        for against in (None, 32):
            found = contributions(model, traced, position, token_id, against)
            total = float(traced.logits[position, token_id])
            total -= 0.0 if against is None else float(traced.logits[position, against])
            assert found.total == pytest.approx(total)
            most = max(abs(found.total), abs(found.values).max())
            assert abs(found.values.sum() - found.total) < 1e-4 * most
            assert len(set(found.parts)) > 2 * (model.config.n_head + 1)


@pytest.mark.parametrize("name", ["gpt_neo", "bert", "llama 3", "gpt_neox"])
def test_a_contribution_is_the_slope_of_the_logit_once_norms_and_gates_are_held(name):
    """What a part adds is linear in it: half of the MLP's output adds half as much, by autograd."""
    model = rough(Transformer(CONFIGS[name])).double().requires_grad_(False)
    traced = trace(model, BYTES, TEXT)
    found = contributions(model, traced, 6, 101)
    x = torch.tensor(traced.residual[-1][6], dtype=torch.float64, requires_grad=True)
    held_logit(model, x)[101].backward()
    expected = traced.mlp_out[1, 6].astype(np.float64)
    if model.config.norm_place == "post":
        before = traced.middle[1, 6].astype(np.float64) + expected
        norm = model.blocks[1].mlp_norm
        away = (expected - expected.mean()) / np.sqrt(before.var() + norm.eps) * norm.weight.numpy()
        expected = away
    assert found.of("mlp", 1) == pytest.approx(float(expected @ x.grad.numpy()), rel=1e-4)


def held_logit(model: Transformer, x: torch.Tensor) -> torch.Tensor:
    """The read-out (V,) of a stream (C,), with each norm's divisor and each gate taken as given."""

    def norm(of: Any, y: torch.Tensor) -> torch.Tensor:
        if of.rms:
            return y / (y.detach().square().mean() + of.eps).sqrt() * of.weight
        bias = 0.0 if of.bias is None else of.bias
        return (y - y.mean()) / (y.detach().var(correction=0) + of.eps).sqrt() * of.weight + bias

    x = x if model.final_norm is None else norm(model.final_norm, x)
    if model.head_dense is not None:
        h = model.head_dense(x)
        x = norm(model.head_norm, h * (1 + torch.erf(h.detach() / math.sqrt(2))) / 2)
    return model.head(x)


def test_a_head_transform_holds_its_gates():
    model = rough(Transformer(CONFIGS["bert"]))
    traced = traced_by(model)
    found = contributions(model, traced, 4, 101)
    h = model.head_dense(torch.tensor(traced.residual[-1, 4])).detach().double()
    phi = (1 + torch.erf(h / math.sqrt(2))) / 2
    assert found.gates == pytest.approx(phi.numpy(), abs=1e-6)
    assert [part for part in found.parts if part.kind == "head bias"] == [Part("head bias")] * 2
    plain = contributions(rough(Transformer(CONFIGS["gpt2"])), traced_by(model), 4, 101)
    assert plain.gates.shape == (0,)


def test_the_lens_ends_in_the_models_output(model):
    traced = traced_by(model)
    found, probs = lens(model, traced, most=3), softmax(traced.logits)
    assert found.probs[-1] == pytest.approx(np.sort(probs)[:, ::-1][:, :3], abs=1e-5)
    first = lens_logits(model, traced, 0, 7)
    with torch.no_grad():
        expected = model.read_out(model.embed(torch.tensor(traced.ids[None])))[0, 7].numpy()
    assert first == pytest.approx(expected, abs=1e-4)
    assert found.probs[0, 7] == pytest.approx(np.sort(softmax(first))[::-1][:3], abs=1e-5)


def test_the_stream_is_the_sum_of_its_updates(model):
    traced = traced_by(model)
    found = stream(traced)
    if model.config.norm_place == "pre":
        for layer in range(2):
            grown = traced.residual[layer] + traced.attention_out[layer] + traced.mlp_out[layer]
            assert traced.residual[layer + 1] == pytest.approx(grown, abs=1e-4)
    assert found.lengths == pytest.approx(np.linalg.norm(traced.residual, axis=-1), rel=1e-5)


def test_a_pass_that_begins_at_the_cut_is_the_pass_from_the_start(model):
    traced = traced_by(model)
    for cuts in ({"ablate": [(0, 1), (1, 3)]}, {"ablate_parts": [("mlp", 1)]}, {"ablate": [(1, 0)]}):
        hidden = traced.hidden
        expected = trace(model, BYTES, TEXT, hidden=hidden, **cuts).logits
        found = logits_without(model, traced, **cuts)
        assert found == pytest.approx(expected, abs=1e-4)
        assert effect(traced, found).after == pytest.approx(
            loss(trace(model, BYTES, TEXT, hidden=hidden, **cuts))
        )
    assert logits_without(model, traced) is traced.logits


def test_each_part_alone_is_the_pass_without_it(model):
    traced = traced_by(model)
    for alone in each_alone(model, traced):
        cuts = (
            {"ablate": [(alone.layer, alone.head)]}
            if alone.kind == "head"
            else {"ablate_parts": [(alone.kind, alone.layer)]}
        )
        cut = logits_without(model, traced, **cuts)
        assert alone.change == pytest.approx(effect(traced, cut).change, abs=2e-4)


def test_an_attention_weight_can_be_worked_out(model):
    traced = traced_by(model)
    for layer, head, query in itertools.product((0, 1), (0, 3), (0, 7, 14)):
        cell = attention_cell(traced, layer, head, query, query)
        assert cell.row_weights == pytest.approx(traced.attentions[layer, head, query], abs=1e-5)
        assert cell.score == pytest.approx(cell.dot * traced.scale)
        assert not cell.row_weights[~traced.visible(layer)[query]].any()


def test_habits_count_what_a_window_shows():
    """In a window of 3 tokens a query sees itself and two before it; from 3 on the first is out of sight."""
    config = ModelConfig(257, 24, 2, 4, 32, windows=(3, 0))
    traced = trace(rough(Transformer(config)), BYTES, "abcdabcd")
    found = head_measures(traced)
    assert found["first"][0] == pytest.approx(traced.attentions[0, :, 1:3, 0].mean(axis=1))
    assert found["first"][1] == pytest.approx(traced.attentions[1, :, 1:, 0].mean(axis=1))
    for rule in ("same", "induction"):  # equal letters are 4 apart, and what came after one 3
        assert np.isnan(found[rule][0]).all() and np.isfinite(found[rule][1]).all()
    for rule in RULES:
        example = best_example(traced, rule)
        if example is not None:
            assert traced.visible(example.layer)[example.query, example.key]


def test_a_block_that_sees_only_itself_has_no_habits():
    traced = trace(rough(Transformer(ModelConfig(257, 24, 2, 4, 32, windows=(1, 0)))), BYTES, TEXT)
    assert all(np.isnan(values[0]).all() for values in head_measures(traced).values())


@pytest.mark.parametrize("seed", range(200))
def test_the_number_of_weights_is_that_of_the_model(seed):
    config = mixed(seed)
    assert parameter_count(config) == sum(p.numel() for p in Transformer(config, initial=False).parameters())
