"""Before a run starts: vocabulary, size, split, time."""

import itertools
from dataclasses import replace

import pytest

from engine.config import ModelConfig, TrainConfig
from engine.corpus import own_text
from engine.model import Transformer
from engine.parameter_parts import parameter_count
from engine.plan import FLOPS_PER_SECOND, SIZES, Timing, make_plan, make_tokenizer, step_seconds
from engine.tokenizers import byte_tokenizer, char_tokenizer
from engine.trained_part import trained_parameters

SWITCHES = itertools.product(
    ("learned", "sinusoidal", "rotary"),
    ("layernorm", "rmsnorm"),
    ("gelu", "swiglu"),
    ("pre", "post"),
    (True, False),
)


@pytest.mark.parametrize(("positions", "norm", "activation", "place", "bias"), list(SWITCHES))
def test_parameter_count_is_that_of_the_model(positions, norm, activation, place, bias):
    config = ModelConfig(
        50, 8, 2, 4, 16, n_kv_head=2, positions=positions, norm=norm, activation=activation, norm_place=place,
        bias=bias, tie_head=bias, qk_norm=not bias,
    )  # fmt: skip
    assert parameter_count(config) == Transformer(config).n_parameters()


def test_sizes_grow_and_are_legal():
    counts = [
        parameter_count(
            ModelConfig(512, s.context_length, s.n_layer, s.n_head, s.d_model, positions="rotary")
        )
        for s in SIZES
    ]
    assert counts == sorted(counts) and counts[0] < 200_000 and counts[-1] < 5_000_000


def test_r02_a_validation_part_of_less_than_a_row_is_given_to_training_and_said():
    text = own_text("a" * 60)
    plan = make_plan(text, byte_tokenizer(), context_length=32, val_share=0.1)
    assert (plan.train_tokens, plan.val_tokens, plan.val_share, plan.val_rows) == (60, 0, 0.0, 0)
    assert "6 tokens" in plan.notice and "33" in plan.notice and plan.notice.startswith("No validation")


def test_a_validation_part_of_one_row_is_kept():
    plan = make_plan(own_text("a" * 330), byte_tokenizer(), context_length=32, val_share=0.1)
    assert (plan.train_tokens, plan.val_tokens, plan.train_rows, plan.val_rows) == (297, 33, 9, 1)
    assert plan.val_share == 0.1 and plan.notice == ""


def test_no_validation_asked_for_is_no_notice():
    assert make_plan(own_text("a" * 60), byte_tokenizer(), 32, val_share=0.0).notice == ""


def test_a_text_that_is_too_short_is_refused_with_the_numbers():
    with pytest.raises(ValueError, match="20 tokens.*needs 33.*at most 19"):
        make_plan(own_text("a" * 20), byte_tokenizer(), context_length=32)
    with pytest.raises(ValueError, match=r"1 token, .*Add text\.$"):
        make_plan(own_text("a"), byte_tokenizer(), context_length=32)


def test_r03_one_symbol():
    text = own_text("a" * 1000)
    assert make_tokenizer("characters", text).vocab_size == 1
    learned = make_tokenizer("bpe", text, 300)
    with pytest.raises(ValueError, match="needs 65"):
        make_plan(text, learned, context_length=64)


def test_t17_more_ids_asked_than_the_text_gives():
    assert make_tokenizer("bpe", own_text("the cat sat on the mat"), 1000).vocab_size == 268


def test_t18_fewer_ids_than_bytes_is_refused():
    with pytest.raises(ValueError, match="at least 256"):
        make_tokenizer("bpe", own_text("the cat"), 100)


def test_t16_blank_text_and_unknown_kind_are_refused():
    for kind in ("bpe", "characters"):
        with pytest.raises(ValueError, match="text"):
            make_tokenizer(kind, own_text(""))
    with pytest.raises(ValueError, match="Known kinds"):
        make_tokenizer("words", own_text("a"))


def test_characters_of_the_validation_text_are_known():
    text = own_text("a" * 95 + "b" * 5)
    assert make_tokenizer("characters", text).vocab_size == char_tokenizer("ab").vocab_size


def test_time_grows_with_the_model_and_follows_what_was_measured():
    small, large = ModelConfig(512, 64, 2, 2, 64), ModelConfig(512, 128, 6, 6, 192)
    train = TrainConfig(batch_size=16)
    assert step_seconds(small, train) < step_seconds(large, train) < 10
    guess = step_seconds(small, train)
    measured = Timing(small, train, 16 * 64 / (3 * guess))  # three times as slow as guessed
    assert step_seconds(small, train, [measured]) == pytest.approx(3 * guess)
    assert step_seconds(large, train, [measured]) == pytest.approx(3 * step_seconds(large, train))


def test_two_threads_share_a_large_batch_and_muon_takes_longer(monkeypatch):
    """Four square matrices of M = 128: 4 · 3 · 6 M³; two of 128 by 512: 2 · 3 · (16 + 2) M³; 4 layers."""
    model, muon = ModelConfig(512, 128, 4, 4, 128), TrainConfig(optimizer="muon")
    monkeypatch.setenv("LOUPE_TRAIN_THREADS", "1")
    alone, adamw = step_seconds(model, muon), step_seconds(model, replace(muon, optimizer="adamw"))
    assert alone - adamw == pytest.approx(4 * (72 + 108) * 128**3 / 80e9)
    monkeypatch.setenv("LOUPE_TRAIN_THREADS", "2")
    assert alone / 1.6 < step_seconds(model, muon) < 0.75 * alone
    tiny = ModelConfig(64, 8, 1, 1, 8)  # its batch is not cut
    assert step_seconds(tiny, muon) > 0.005
    monkeypatch.setenv("LOUPE_TRAIN_THREADS", "many")  # what is wrong with it is the run's to say
    assert step_seconds(model, muon) == alone


def test_with_few_blocks_that_learn_only_these_are_gone_back_through(monkeypatch):
    """Each token costs 2 operations a weight on the way there and 4 a weight that learns on the way back."""
    monkeypatch.setenv("LOUPE_TRAIN_THREADS", "1")
    model = ModelConfig(512, 128, 12, 4, 128, bias=False)
    whole, last = (TrainConfig(batch_size=16, last_blocks=n) for n in (None, 1))
    frozen = parameter_count(model) - trained_parameters(model, 1)
    saved = (4 * frozen + 8 * 11 * 128 * 128) * 128 * 16 / FLOPS_PER_SECOND
    assert step_seconds(model, whole) - step_seconds(model, last) == pytest.approx(saved)
