"""Models that mix the previous token's vector into each position: the same numbers on every way through."""

import itertools
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from engine.ablation import each_alone, effect, logits_without
from engine.cache import KVCache
from engine.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from engine.compact import pack, unpack
from engine.config import ModelConfig, TrainConfig
from engine.contributions import contributions, entering_parts
from engine.hub_layout import our_shapes
from engine.inside import lens_logits
from engine.model import Transformer
from engine.one_step import part_of, part_title
from engine.optimizers import Optimizer
from engine.parameter_parts import parameter_count, parameter_parts
from engine.recorder import Recorder
from engine.row_reading import RowReading
from engine.run_sets import differences
from engine.sampling import Continuation, Held, generate, next_logits
from engine.tokenizers import byte_tokenizer
from engine.trace import trace
from engine.trained_part import learns
from engine.training import train
from engine.windows import cut, score_parts
from tests.engine.conftest import rough

BYTES = byte_tokenizer()
TEXT = "the cat the mat"
V, T = 19, 12


def mixed_model(seed: int = 0, **fixed: Any) -> Transformer:
    """A small rough model whose other switches are drawn by chance."""
    dice = random.Random(seed)
    shape: dict[str, Any] = {
        "positions": dice.choice(["learned", "sinusoidal", "rotary"]),
        "norm": dice.choice(["layernorm", "rmsnorm"]),
        "activation": dice.choice(["gelu", "relu2", "swiglu"]),
        "norm_place": dice.choice(["pre", "post"]),
        "n_kv_head": dice.choice([None, 1, 2]),
        "windows": dice.choice([(), (3, 0), (2, 2)]),
        **{n: dice.random() < 0.5 for n in ("bias", "tie_head", "qk_norm", "embedding_norm", "head_bias")},
    }
    settings = {"vocab_size": V, "context_length": T, "n_layer": 2, "n_head": 4, "d_model": 16}
    config = ModelConfig(**{**settings, **shape, **fixed, "mix_previous": True})
    return rough(Transformer(config)).eval().requires_grad_(False)


def some_ids(rows: int, n: int = T, vocab: int = V, seed: int = 0) -> torch.Tensor:
    return torch.randint(vocab, (rows, n), generator=torch.Generator().manual_seed(seed))


def by_hand(model: Transformer, ids: torch.Tensor) -> torch.Tensor:
    """What enters the first block, position by position: E[t] + w E[t-1], scaled and with its position."""
    rows, w, c = model.embedding.weight, model.previous.weight, model.config
    found = []
    for t in range(ids.shape[1]):
        x = rows[ids[:, t]] + (w * rows[ids[:, t - 1]] if t else 0)
        if c.positions == "learned":
            x = x + model.position.weight[t]
        if c.positions == "sinusoidal":
            x = x * c.d_model**0.5 + model.sinusoid[t]
        found.append(x)
    x = torch.stack(found, dim=1)
    return x if model.embedding_norm is None else model.embedding_norm(x)


def with_zeros(model: Transformer) -> tuple[Transformer, Transformer]:
    """The model with factors of 0, and one of the same weights that mixes nothing in."""
    plain = Transformer(replace(model.config, mix_previous=False))
    plain.load_state_dict({n: v for n, v in model.state_dict().items() if not n.startswith("previous")})
    with torch.no_grad():
        model.previous.weight.zero_()
    return model, plain


@pytest.mark.parametrize("objective", ["clm", "mlm"])
@pytest.mark.parametrize("seed", range(12))
def test_each_position_gets_the_vector_before_it(seed: int, objective: str) -> None:
    model, ids = mixed_model(seed, objective=objective), some_ids(3)
    assert torch.allclose(model.embed(ids), by_hand(model, ids), atol=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_a_cache_changes_nothing_wherever_the_text_is_split(seed: int) -> None:
    model, ids = mixed_model(seed), some_ids(2, seed=seed)
    whole = model(ids)
    for split in range(1, T):
        cache = KVCache(model.config, 2, room=2)
        parts = [model(ids[:, :split], cache=cache), model(ids[:, split:], cache=cache)]
        assert torch.allclose(torch.cat(parts, dim=1), whole, atol=1e-5)
    one_by_one = KVCache(model.config, 2, room=1)
    found = [model(ids[:, t : t + 1], cache=one_by_one) for t in range(T)]
    assert torch.allclose(torch.cat(found, dim=1), whole, atol=1e-5)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_a_batch_is_its_rows_and_recording_changes_nothing(seed: int, objective: str) -> None:
    model, ids = mixed_model(seed, objective=objective), some_ids(4, seed=seed)
    whole = model(ids)
    for row in range(4):
        assert torch.allclose(model(ids[row : row + 1]), whole[row : row + 1], atol=1e-5)
    recorder = Recorder()
    assert torch.allclose(model(ids, recorder=recorder), whole, atol=1e-4)
    assert torch.allclose(recorder.kept["residual"][0], by_hand(model, ids), atol=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_a_later_token_changes_no_earlier_logit(seed: int) -> None:
    model, ids = mixed_model(seed), some_ids(1, seed=seed)
    changed = ids.clone()
    changed[0, 6] = (ids[0, 6] + 1) % V
    before, after = model(ids), model(changed)
    assert torch.equal(before[:, :6], after[:, :6]) and not torch.allclose(before[:, 7], after[:, 7])


@pytest.mark.parametrize("seed", range(4))
def test_going_back_in_a_cache_reads_the_right_token_before(seed: int) -> None:
    model = mixed_model(seed, windows=())
    first, other = some_ids(1, seed=seed)[0].tolist(), some_ids(1, seed=seed + 50)[0].tolist()
    held = Held(model)
    for ids in (first, first[:5], first[:8], first[:4] + other[:6], first[:2], other, other[:1]):
        found = Continuation(model, ids, held=held).logits()
        assert torch.allclose(found, model(torch.tensor([ids]))[0, -1], atol=1e-5)


def test_branches_know_the_token_before_their_first() -> None:
    model = mixed_model(3, windows=())
    rows = some_ids(3, 6)
    reading = RowReading(model, rows.tolist())
    pieces = some_ids(4, 3, seed=9)
    at = np.array([2, 0, 0, 1])
    found = reading.tails(at, pieces.tolist())
    for i, piece in enumerate(pieces):
        whole = model(torch.cat([rows[at[i]], piece])[None])[0].double().log_softmax(-1)
        expected = sum(float(whole[5 + n, piece[n]]) for n in (1, 2))
        assert found[i] == pytest.approx(expected, abs=1e-5)
    reading.go_on(at, pieces.tolist())
    for i, piece in enumerate(pieces):
        expected = model(torch.cat([rows[at[i]], piece])[None])[0, -1]
        assert torch.allclose(reading.last[i], expected, atol=1e-5)


@pytest.mark.parametrize("jump", [1, 4])
def test_writing_past_the_context_is_the_same_with_and_without_a_cache(jump: int) -> None:
    model = mixed_model(5, windows=())
    ways = [
        [(s.id, s.log_prob) for s in generate(model, [1, 2], n_tokens=30, seed=3, use_cache=c, jump=jump)]
        for c in (True, False)
    ]
    assert [i for i, _ in ways[0]] == [i for i, _ in ways[1]]
    assert [p for _, p in ways[0]] == pytest.approx([p for _, p in ways[1]], abs=1e-5)


def test_a_window_begins_without_a_token_before_it() -> None:
    """A model sees its window and nothing else: not even by way of the mixing."""
    model, ids = mixed_model(7, windows=()), some_ids(1, 30)[0]
    expected = model(ids[None, -T:])[0, -1].numpy()
    assert next_logits(model, ids.tolist()) == pytest.approx(expected, abs=1e-5)


def test_a_long_text_is_scored_in_parts_as_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model, ids = mixed_model(8, windows=(), context_length=100), some_ids(1, 150)[0]
    windows = cut(150, 100, 50)
    whole = np.concatenate(list(score_parts(model, ids, windows)))
    monkeypatch.setattr("engine.windows.WORK_AT_ONCE", 1)  # 64 tokens at a time, with a cache
    assert np.concatenate(list(score_parts(model, ids, windows))) == pytest.approx(whole, abs=1e-5)


@pytest.mark.parametrize("objective", ["clm", "mlm"])
@pytest.mark.parametrize("seed", range(6))
def test_factors_of_zero_are_the_textbook_model_bit_for_bit(seed: int, objective: str) -> None:
    mixing, plain = with_zeros(mixed_model(seed, objective=objective))
    ids = some_ids(2, seed=seed)
    assert torch.equal(mixing(ids), plain(ids))


def test_a_new_model_begins_as_the_textbook_model() -> None:
    config = ModelConfig(V, T, 2, 4, 16)
    plain, mixing = Transformer(config), Transformer(replace(config, mix_previous=True))
    assert not mixing.previous.weight.any()
    assert torch.equal(plain(some_ids(2)), mixing(some_ids(2)))


@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_the_gradient_reaches_the_factors(objective: str) -> None:
    model = Transformer(ModelConfig(V, T, 2, 4, 16, objective=objective, mix_previous=True)).double()
    ids = some_ids(2)

    def loss() -> torch.Tensor:
        return torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.roll(-1, 1).flatten())

    loss().backward()
    slopes, w = model.previous.weight.grad.clone(), model.previous.weight
    assert slopes.abs().min() > 0
    with torch.no_grad():  # one of them by difference
        w[3] = 1e-5
        above = loss()
        w[3] = -1e-5
        assert float((above - loss()) / 2e-5) == pytest.approx(float(slopes[3]), rel=1e-4)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_the_factors_learn_by_adamw_and_do_not_decay(optimizer: str) -> None:
    model = Transformer(ModelConfig(V, T, 1, 4, 16, mix_previous=True))
    with torch.no_grad():
        model.previous.weight.fill_(0.5)
    mine = Optimizer(model, TrainConfig(optimizer=optimizer, weight_decay=1.0))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    mine.step(0.1, 1)
    assert torch.equal(model.previous.weight, torch.full((16,), 0.5))
    assert "exp_avg/previous.weight" in mine.state()


@pytest.mark.parametrize("objective", ["clm", "mlm"])
@pytest.mark.parametrize("seed", range(8))
def test_parts_add_up_to_the_logit_and_to_what_enters(seed: int, objective: str) -> None:
    model = mixed_model(seed, objective=objective, vocab_size=257, context_length=24)
    traced = trace(model, BYTES, TEXT, hidden=(4, 9) if objective == "mlm" else ())
    for position, token_id in itertools.product((0, 1, 5, 14), (0, 101)):
        for against in (None, 32):
            found = contributions(model, traced, position, token_id, against)
            assert abs(found.values.sum() - found.total) < 1e-4 * max(
                abs(found.total), abs(found.values).max()
            )
            assert [part.kind for part in found.parts].count("previous") == (position > 0)
    if model.embedding_norm is None:
        for t in range(len(traced.ids)):
            entered = np.sum(list(entering_parts(model, traced.ids, t).values()), axis=0)
            assert entered == pytest.approx(traced.residual[0, t], abs=1e-5)


def test_a_masked_model_mixes_in_the_mask() -> None:
    model = mixed_model(2, objective="mlm", vocab_size=257, context_length=24)
    traced = trace(model, BYTES, TEXT, hidden=(4,))
    rows, w = model.embedding.weight.double(), model.previous.weight.double()
    scale = 4.0 if model.config.positions == "sinusoidal" else 1.0
    found = entering_parts(model, traced.ids, 5)["previous"]
    assert found == pytest.approx((scale * w * rows[BYTES.mask_id]).numpy(), abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_the_lens_and_switching_off_begin_with_what_is_mixed(seed: int) -> None:
    model = mixed_model(seed, vocab_size=257, context_length=24)
    traced = trace(model, BYTES, TEXT)
    expected = model.read_out(by_hand(model, torch.tensor(traced.ids[None])))[0, 7]
    assert lens_logits(model, traced, 0, 7) == pytest.approx(expected.numpy(), abs=1e-4)
    cuts = {"ablate": [(0, 1)], "ablate_parts": [("mlp", 1)]}
    assert logits_without(model, traced, **cuts) == pytest.approx(
        trace(model, BYTES, TEXT, **cuts).logits, abs=1e-4
    )
    for alone in list(each_alone(model, traced))[:3]:
        cut_off = trace(model, BYTES, TEXT, ablate=[(alone.layer, alone.head)])
        assert alone.change == pytest.approx(effect(traced, cut_off).change, abs=2e-4)


@pytest.mark.parametrize("seed", range(20))
def test_lists_of_weights_know_the_factors(seed: int) -> None:
    model = mixed_model(seed)
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
    assert our_shapes(model.config) == shapes
    parts = parameter_parts(model.config)
    assert parts["previous"] == 16 and sum(parts.values()) == parameter_count(model.config)
    assert sum(parts.values()) == sum(p.numel() for p in model.parameters())


def test_other_models_have_no_such_weights() -> None:
    assert parameter_parts(ModelConfig(V))["previous"] == 0
    assert Transformer(ModelConfig(V)).previous is None


def test_the_factors_are_named_and_frozen_with_the_embedding() -> None:
    assert part_of("previous.weight") == "previous"
    assert part_title("previous") == "previous token’s factors"
    config = ModelConfig(V, mix_previous=True)
    assert learns("previous.weight", config, None) and not learns("previous.weight", config, 1)


def test_settings_leave_it_out_unless_it_is_on() -> None:
    plain, mixing = ModelConfig(V), ModelConfig(V, mix_previous=True)
    assert "mix_previous" not in plain.to_json() and mixing.to_json()["mix_previous"] is True
    assert ModelConfig.from_json(plain.to_json()) == plain
    assert ModelConfig.from_json(mixing.to_json()) == mixing
    with pytest.raises(ValueError, match="mix_previous must be true or false"):
        ModelConfig(V, mix_previous=1)  # type: ignore[arg-type]


def test_runs_differ_by_it_in_words() -> None:
    shapes = [ModelConfig(V, mix_previous=on).to_json() for on in (False, True)]
    runs = [{("model", name): value for name, value in shape.items()} for shape in shapes]
    (found,) = differences(runs)
    assert (found.part, found.name, found.values) == ("model", "mix_previous", (False, True))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_checkpoint_keeps_the_factors(tmp_path: Any, dtype: Any) -> None:
    model = mixed_model(1, vocab_size=256)
    save_checkpoint(tmp_path / "kept", Checkpoint(model, BYTES), dtype=dtype)
    found = load_checkpoint(tmp_path / "kept").model
    assert found.config == model.config
    assert torch.equal(found.previous.weight, model.previous.weight)
    packed = unpack(pack(model.state_dict()))
    assert torch.equal(packed["previous.weight"], model.previous.weight)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_training_goes_on_bit_for_bit(tmp_path: Any, optimizer: Any) -> None:
    config = ModelConfig(BYTES.model_vocab_size("clm"), T, 2, 4, 16, mix_previous=True)
    ids = torch.tensor(BYTES.encode("Once upon a time, a cat sat on a mat. " * 20))
    how = TrainConfig(steps=8, batch_size=4, optimizer=optimizer, warmup_steps=2, eval_every=4)

    def fresh() -> Transformer:
        return Transformer(config, torch.Generator().manual_seed(3))

    whole = train(fresh(), ids, [], how)
    list(whole)
    first = train(fresh(), ids, [], how)
    for event in first:
        if getattr(event, "step", 0) == 5 and type(event).__name__ == "StepEvent":
            break
    state = first.state()
    saved = Checkpoint(
        first.model, BYTES, step=state["step"], train_config=how, optimizer_state=state["optimizer"],
        generator_states=state["generators"], losses=state["losses"],
    )  # fmt: skip
    save_checkpoint(tmp_path / "half", saved)
    half = load_checkpoint(tmp_path / "half")
    second = train(half.model.requires_grad_(True), ids, [], how, resume=half.train_state())
    list(second)
    ends = [dict(run.model.named_parameters()) for run in (whole, second)]
    assert all(torch.equal(p, ends[1][name]) for name, p in ends[0].items())
    assert whole.model.previous.weight.abs().min() > 0
