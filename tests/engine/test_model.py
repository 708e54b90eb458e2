import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from engine.cache import KVCache
from engine.config import ModelConfig
from engine.metrics import cross_entropy, perplexity
from engine.model import Transformer, attend, dropped
from engine.recorder import Recorder
from engine.rotary import rotary_turns, rotate, sinusoidal_positions

from .conftest import rough

SWITCHES = {
    "norm": ("layernorm", "rmsnorm"),
    "activation": ("gelu", "relu2", "swiglu"),
    "norm_place": ("pre", "post"),
    "bias": (True, False),
    "tie_head": (True, False),
    "qk_norm": (True, False),
    "n_kv_head": (None, 2),
}
POSITIONS = ("learned", "sinusoidal", "rotary")
V, T = 11, 7


def every_model(**fixed):
    """A small rough model for each of the 192 settings of the switches."""
    for values in itertools.product(*SWITCHES.values()):
        settings = dict(zip(SWITCHES, values, strict=True))
        yield rough(Transformer(ModelConfig(V, T, 1, 4, 16, **settings, **fixed)))


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def some_ids(*shape, vocab=V, seed=0):
    return torch.randint(vocab, shape, generator=torch.Generator().manual_seed(seed))


def close(a, b, within):
    return float((a - b).detach().abs().max()) <= within


# -- parity with PyTorch's own modules -----------------------------------------------------------------------


@pytest.mark.parametrize("causal", [True, False])
def test_attention_equals_pytorchs(causal):
    q, k, v = randn(2, 3, 9, 8), randn(2, 3, 9, 8, seed=1), randn(2, 3, 9, 8, seed=2)
    bars = torch.full((9, 9), -math.inf).triu(1) if causal else None
    output, weights = attend(q, k, v, bars)
    assert close(output, F.scaled_dot_product_attention(q, k, v, is_causal=causal), 1e-5)
    assert close(weights.sum(-1), torch.ones(2, 3, 9), 1e-6)


@pytest.mark.parametrize("place", ["pre", "post"])
@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_a_block_equals_pytorchs_encoder_layer(small_model, place, objective):
    ours = small_model(objective=objective, norm_place=place).requires_grad_(False).blocks[1]
    theirs = nn.TransformerEncoderLayer(
        32, 4, 128, dropout=0.0, activation="gelu", batch_first=True, norm_first=place == "pre"
    ).requires_grad_(False)
    attention = ours.attention
    theirs.self_attn.in_proj_weight.copy_(
        torch.cat([f.weight for f in (attention.q, attention.k, attention.v)])
    )
    theirs.self_attn.in_proj_bias.copy_(torch.cat([f.bias for f in (attention.q, attention.k, attention.v)]))
    for mine, other in [
        (attention.out, theirs.self_attn.out_proj),
        (ours.mlp.up, theirs.linear1),
        (ours.mlp.down, theirs.linear2),
        (ours.attention_norm, theirs.norm1),
        (ours.mlp_norm, theirs.norm2),
    ]:
        other.weight.copy_(mine.weight)
        other.bias.copy_(mine.bias)
    x = randn(2, 10, 32)
    mask = nn.Transformer.generate_square_subsequent_mask(10) if objective == "clm" else None
    assert close(ours(x, 0, None, None, None, None), theirs(x, src_mask=mask), 1e-5)


def test_rms_norm_follows_its_formula(small_model):
    norm = small_model(norm="rmsnorm").requires_grad_(False).final_norm
    x = randn(3, 32)
    expected = x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * norm.weight
    assert norm.bias is None and close(norm(x), expected, 1e-6)


@pytest.mark.parametrize(
    ("name", "bend"),
    [("gelu", lambda x: x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))), ("relu2", lambda x: x.clamp(0) ** 2)],
)
def test_the_mlp_follows_its_formula(small_model, name, bend):
    mlp = small_model(activation=name).requires_grad_(False).blocks[0].mlp
    x = randn(3, 32)
    hidden = bend(x @ mlp.up.weight.T + mlp.up.bias)
    assert close(mlp(x), hidden @ mlp.down.weight.T + mlp.down.bias, 1e-5)


def test_swiglu_follows_its_formula(small_model):
    mlp = small_model(activation="swiglu").requires_grad_(False).blocks[0].mlp
    x = randn(3, 32)
    gate = x @ mlp.gate.weight.T + mlp.gate.bias
    hidden = gate * torch.sigmoid(gate) * (x @ mlp.up.weight.T + mlp.up.bias)
    assert close(mlp(x), hidden @ mlp.down.weight.T + mlp.down.bias, 1e-5)


def test_two_query_heads_on_one_key_head_equal_four_key_heads_in_pairs(small_model):
    shared = small_model(n_kv_head=2)
    full = small_model()
    weights = shared.state_dict()
    for name, tensor in weights.items():
        if ".attention.k." in name or ".attention.v." in name:  # heads 0, 1 -> 0, 0, 1, 1
            weights[name] = tensor.unflatten(0, (2, 8)).repeat_interleave(2, dim=0).flatten(0, 1)
    full.load_state_dict(weights)
    ids = some_ids(2, 16, vocab=256)
    assert close(shared(ids), full(ids), 1e-5)


# -- positions -----------------------------------------------------------------------------------------------


def test_the_sinusoidal_table_follows_its_formula():
    table = sinusoidal_positions(2048, 16)
    for position, column in itertools.product((0, 1, 100, 2047), range(16)):
        angle = position / 10000 ** (column // 2 * 2 / 16)
        expected = math.sin(angle) if column % 2 == 0 else math.cos(angle)
        assert abs(float(table[position, column]) - expected) < 1e-6


def test_rotary_turns_each_pair_by_its_angle():
    x = randn(1, 1, 50, 6)
    turned = rotate(x, rotary_turns(50, 6))
    for position, pair in itertools.product((0, 1, 49), range(3)):
        a, b = x[0, 0, position, 2 * pair : 2 * pair + 2].tolist()
        angle = position * 10000 ** (-2 * pair / 6)
        expected = (a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle))
        assert turned[0, 0, position, 2 * pair : 2 * pair + 2].tolist() == pytest.approx(expected, abs=1e-6)


def test_rotary_scores_depend_only_on_the_distance():
    turns = rotary_turns(1024, 16)
    q, k = (randn(16, seed=seed).expand(1, 1, 1024, 16) for seed in (0, 1))
    scores = rotate(q, turns)[0, 0] @ rotate(k, turns)[0, 0].T
    for distance in (0, 1, 7, 300):
        line = scores.diagonal(-distance)
        assert close(line, line[:1], 1e-4)
    assert not close(scores[10, :11], scores[10, 10], 0.1)  # and they do depend on it


@pytest.mark.parametrize("positions", POSITIONS)
def test_order_matters(small_model, positions):
    model = small_model(objective="mlm", positions=positions)
    ids = torch.tensor([[1, 2, 3]])
    swapped = model(ids[:, [1, 0, 2]])[0, 2]
    assert not close(model(ids)[0, 2], swapped, 1e-3)


# -- every combination of switches ---------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["clm", "mlm"])
@pytest.mark.parametrize("positions", POSITIONS)
@torch.no_grad()
def test_explicit_equals_fused_cached_equals_full_and_who_sees_whom(objective, positions):
    ids = some_ids(2, T)
    changed = ids.clone()
    changed[:, 4] = (ids[:, 4] + 1) % V
    for model in every_model(objective=objective, positions=positions):
        logits, recorder = model(ids), Recorder()
        unit = max(
            1.0, float(logits.abs().max())
        )  # with rough weights logits reach 20: the error is relative
        assert logits.shape == (2, T, V) and logits.dtype == torch.float32
        assert close(model(ids, recorder=recorder), logits, 1e-5 * unit), model.config
        weights = torch.stack(recorder.kept["weights"])
        assert close(weights.sum(-1), torch.ones(1, 2, 4, T), 1e-5), model.config
        ahead = weights.triu(1)
        moved = (model(changed) - logits).abs().amax(dim=(0, 2))
        assert (moved[4:] > 1e-6).all(), model.config
        if objective == "clm":
            assert (ahead == 0).all() and (moved[:4] == 0).all(), model.config
            cache = KVCache(model.config, batch_size=2)
            parts = [model(part, cache=cache) for part in ids.split((1, 5, 1), dim=1)]
            assert close(torch.cat(parts, dim=1), logits, 1e-4 * unit), model.config
        else:
            assert (ahead.sum() > 0) and (moved[:4] > 1e-6).all(), model.config


@pytest.mark.parametrize("chunks", [[1] * 32, [20, 12], [31, 1], [1, 31], [7, 1, 1, 13, 10], [32]], ids=str)
@torch.no_grad()
def test_k01_any_chunking_of_32_tokens_equals_one_pass(small_model, chunks):
    model = small_model(context_length=32, positions="rotary", n_kv_head=2)
    ids, cache = some_ids(3, 32, vocab=256), KVCache(model.config, batch_size=3)
    parts = [model(part, cache=cache) for part in ids.split(chunks, dim=1)]
    assert close(torch.cat(parts, dim=1), model(ids), 1e-4)
    assert cache.length == 32


def test_a_recorder_sees_the_same_weights_through_a_cache(small_model):
    model, ids = small_model(), some_ids(1, 10, vocab=256)
    full, late, cache = Recorder(), Recorder(), KVCache(model.config)
    model(ids, recorder=full)
    model(ids[:, :6], cache=cache)
    model(ids[:, 6:], cache=cache, recorder=late)
    for whole, part in zip(full.kept["weights"], late.kept["weights"], strict=True):
        assert close(whole[:, :, 6:], part, 1e-5)


def test_a_masked_model_refuses_a_cache(small_model):
    model = small_model(objective="mlm")
    with pytest.raises(ValueError, match="can't use a cache"):
        model(torch.tensor([[1]]), cache=KVCache(model.config))


def test_k03_more_tokens_than_the_context_are_refused_with_both_numbers(small_model):
    model = small_model()
    with pytest.raises(ValueError, match="context_length is 16 but the text has 17 tokens"):
        model(some_ids(1, 17))
    cache = KVCache(model.config)
    model(some_ids(1, 16), cache=cache)
    with pytest.raises(ValueError, match="the text has 17 tokens"):
        model(some_ids(1, 1), cache=cache)


@pytest.mark.parametrize("wrong", [256, -1])
def test_ids_of_another_vocabulary_are_named(small_model, wrong):
    with pytest.raises(ValueError, match=f"run from 0 to 255, but the text has id {wrong}"):
        small_model()(torch.tensor([[3, wrong, 5]]))


def test_no_tokens_are_refused(small_model):
    with pytest.raises(ValueError, match="no tokens"):
        small_model()(torch.empty(1, 0, dtype=torch.long))


# -- the start, and the dice ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("vocab", "expected"), [(65, 4.174), (256, 5.545), (512, 6.238), (50257, 10.825)])
@torch.no_grad()
def test_r08_the_first_loss_is_about_ln_v(vocab, expected):
    model = Transformer(ModelConfig(vocab, 64, d_model=128))
    ids = some_ids(8, 65, vocab=vocab)
    assert cross_entropy(model(ids[:, :-1]), ids[:, 1:]).item() == pytest.approx(expected, abs=0.2)


@pytest.mark.parametrize("d_model", [128, 512])
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("place", ["pre", "post"])
@torch.no_grad()
def test_r08_the_first_loss_is_about_ln_v_for_wide_models_too(d_model, positions, place):
    """A tied embedding of the usual size gave 7.0 instead of 4.2 at a width of 512."""
    model = Transformer(ModelConfig(65, 32, 1, 4, d_model, positions=positions, norm_place=place))
    ids = some_ids(16, 33, vocab=65)
    assert cross_entropy(model(ids[:, :-1]), ids[:, 1:]).item() == pytest.approx(math.log(65), abs=0.2)


def test_r03_one_symbol_leaves_nothing_to_learn():
    ids = torch.zeros(2, 9, dtype=torch.long)
    loss = cross_entropy(Transformer(ModelConfig(1, 8))(ids[:, 1:]), ids[:, 1:]).item()
    assert loss == 0.0 and perplexity(loss) == 1.0


@pytest.mark.parametrize("positions", POSITIONS)
def test_d02_everything_is_float32(small_model, positions):
    model = small_model(positions=positions, qk_norm=True)
    assert {t.dtype for t in (*model.parameters(), *model.buffers())} == {torch.float32}
    assert {t.dtype for t in model.state_dict().values()} == {torch.float32}


@pytest.mark.parametrize("positions", POSITIONS)
def test_changing_the_type_and_back_keeps_the_positions(small_model, positions):
    """A complex table lost its sines in `model.to(torch.float32)`."""
    model, ids = small_model(positions=positions), some_ids(1, 16)
    before = model(ids)
    assert torch.equal(model.to(torch.float32)(ids), before)


def test_a_tied_head_is_the_embedding_and_counts_once(small_model):
    tied, free = small_model(), small_model(tie_head=False)
    assert tied.head.weight is tied.embedding.weight
    assert free.n_parameters() - tied.n_parameters() == 256 * 32


def test_one_seed_one_model_and_the_global_dice_stay_where_they_were(untouched_dice):
    config = ModelConfig(V, 8, d_model=16)
    one, same = (Transformer(config, torch.Generator().manual_seed(5)) for _ in "ab")
    other = Transformer(config, torch.Generator().manual_seed(6))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert not torch.equal(one.embedding.weight, other.embedding.weight)


def test_r09_dropout_comes_from_the_callers_dice_only(small_model, untouched_dice):
    model, ids = small_model(dropout=0.5), some_ids(2, 16)
    model.train()
    plain = model(ids)
    assert torch.equal(model(ids), plain)  # training mode alone drops nothing
    one, same, other = (model(ids, dropout=torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert torch.equal(one, same) and not torch.equal(one, other) and not torch.equal(one, plain)


def test_dropout_keeps_the_mean():
    kept = dropped(torch.ones(100_000), 0.25, torch.Generator().manual_seed(0))
    assert kept.unique().tolist() == pytest.approx([0, 1 / 0.75])
    assert abs(kept.mean() - 1) < 6 * math.sqrt(0.25 / 0.75 / 100_000)


def test_one_batch_can_be_learned_by_heart(small_model):
    model, ids = small_model(n_layer=1), some_ids(4, 17, vocab=256)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(150):
        loss = cross_entropy(model(ids[:, :-1]), ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1
