import json
import math

import pytest

from engine.config import ModelConfig, SamplingConfig, TrainConfig
from engine.model import Transformer
from engine.training import train

CHANGED = [
    ModelConfig(65, 32, 3, 6, 48, n_kv_head=2, d_ff=100, objective="mlm", positions="rotary", dropout=0.5),
    TrainConfig(steps=7, optimizer="muon", schedule="cosine", mask_prob=0.4, seed=3),
    SamplingConfig(0.7, top_k=5, top_p=0.9, min_p=0.05, seed=11, n_tokens=3),
]


@pytest.mark.parametrize("config", CHANGED)
def test_json_gives_the_same_settings_back(config):
    assert type(config).from_json(json.loads(json.dumps(config.to_json()))) == config


def test_json_with_an_unknown_name_is_refused_by_name():
    with pytest.raises(ValueError, match="n_heads"):
        ModelConfig.from_json({"vocab_size": 65, "n_heads": 4})


def test_json_without_a_needed_name_is_refused_by_name():
    with pytest.raises(ValueError, match="vocab_size"):
        ModelConfig.from_json({"n_layer": 2})


def test_a11_an_indivisible_width_names_heads_that_would_do():
    with pytest.raises(ValueError, match="100 is not divisible by n_head 8. Try n_head 4, 5, 10."):
        ModelConfig(65, d_model=100, n_head=8)


def test_a11_no_heads_are_refused():
    with pytest.raises(ValueError, match="n_head must be a whole number of at least 1, not 0"):
        ModelConfig(65, n_head=0)


WRONG_SHAPES = [
    {"vocab_size": 0},
    {"vocab_size": 65.0},
    {"n_layer": True},
    {"n_kv_head": 3},
    {"n_kv_head": 2.0},
    {"n_kv_head": 0},
    {"d_ff": 0},
    {"d_ff": "512"},
    {"dropout": 1.0},
    {"dropout": math.nan},
    {"objective": "both"},
    {"positions": "alibi"},
    {"norm": "batchnorm"},
    {"activation": "relu"},
    {"norm_place": "middle"},
    {"bias": "false"},
    {"positions": "rotary", "d_model": 12, "n_head": 4},
    {"positions": "sinusoidal", "d_model": 5, "n_head": 1},
]


@pytest.mark.parametrize("wrong", WRONG_SHAPES, ids=str)
def test_a_model_that_cannot_be_built_is_refused(wrong):
    with pytest.raises(ValueError):
        ModelConfig(**{"vocab_size": 65, **wrong})


WRONG_TRAINING = [
    {"steps": 0},
    {"batch_size": 2.5},
    {"learning_rate": 0.0},
    {"learning_rate": math.inf},
    {"learning_rate": math.nan},
    {"min_lr_share": 1.5},
    {"warmup_steps": -1},
    {"weight_decay": -0.1},
    {"grad_clip": -1.0},
    {"mask_prob": 0.0},
    {"mask_prob": 1.1},
    {"aligned_share": 2},
    {"schedule": "step"},
    {"optimizer": "sgd"},
    {"seed": 1.5},
]


@pytest.mark.parametrize("wrong", WRONG_TRAINING, ids=str)
def test_training_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError):
        TrainConfig(**wrong)


WRONG_SAMPLING = [
    {"temperature": -0.1},
    {"temperature": math.nan},
    {"temperature": math.inf},
    {"top_k": -1},
    {"top_k": 2.5},
    {"top_p": 1.1},
    {"top_p": -0.1},
    {"min_p": 2.0},
    {"n_tokens": -1},
]


@pytest.mark.parametrize("wrong", WRONG_SAMPLING, ids=str)
def test_sampling_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError):
        SamplingConfig(**wrong)


def test_the_mlp_is_four_times_as_wide_and_swiglu_has_as_many_weights():
    assert ModelConfig(65, d_model=96).ff_width == 384
    gated = ModelConfig(65, d_model=96, activation="swiglu").ff_width
    assert 3 * gated == 2 * 384  # three matrices against two


def test_a_seed_that_no_generator_can_hold_is_refused():
    config = TrainConfig(steps=1, batch_size=1, seed=2**62)
    model = Transformer(ModelConfig(vocab_size=5, context_length=4, n_layer=1, n_head=1, d_model=4))
    assert len(list(train(model, [1, 2, 3, 4, 0], [], config))) == 4  # two evaluations, a step, a checkpoint
    with pytest.raises(ValueError, match=r"seed can be at most 4,611,686,018,427,387,904"):
        TrainConfig(seed=2**62 + 1)
