"""Training only the last blocks: what is frozen, what is kept in memory for it, and how much that is."""

import math

import pytest
import torch

from engine.aims import AnswersAim, PreferencesAim
from engine.config import ModelConfig, TrainConfig
from engine.instructions import Pair, encode_pairs, framing_for
from engine.model import Transformer
from engine.optimizers import Optimizer
from engine.preferences import Preference, encode_preferences
from engine.tokenizers import byte_tokenizer
from engine.trained_part import freeze, learns, trained_parameters
from engine.training import CheckpointEvent, EvalEvent, train
from engine.tuning_plan import recipe
from engine.tuning_size import activation_bytes, check_memory, need_of, update_bytes
from engine.tuning_view import Share, answer_loss, pair_tokens, rewards, share_of, text_loss, write_answers
from tests.engine.conftest import rough
from tests.engine.small_training import evals_of, same_weights, settings, some_ids, tiny

SHAPES = (
    {},
    {"tie_head": False, "positions": "rotary", "bias": False},
    {"norm_place": "post", "head_transform": True, "head_bias": True},
    {"activation": "swiglu", "norm": "rmsnorm", "n_kv_head": 1, "qk_norm": True, "mix_previous": True},
)


def model_of(**changes):
    return rough(tiny(n_layer=3, **changes))


def trained(model, **changes):
    config = settings(**{"steps": 6, "learning_rate": 1e-2, "weight_decay": 0.3, **changes})
    return list(train(model, some_ids(), some_ids(seed=9), config))


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_frozen_stays_bit_for_bit_and_all_the_rest_moves(shape, optimizer):
    model = model_of(**shape)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    trained(model, last_blocks=1, optimizer=optimizer)
    moved = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert moved == {name for name in before if learns(name, model.config, 1)}
    assert not any(name.startswith(("blocks.0.", "blocks.1.", "embedding", "position")) for name in moved)
    assert any(name.startswith("blocks.2.mlp") for name in moved)
    assert ("head.weight" in moved) is not model.config.tie_head
    assert all(p.requires_grad and p.grad is None for p in model.parameters())  # as it was before


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("last_blocks", [None, 1, 3])
def test_trained_numbers_are_those_that_the_optimizer_holds(shape, last_blocks):
    model = model_of(**shape)
    freeze(model, model.config, last_blocks)
    optimizer = Optimizer(model, settings())
    for p in model.parameters():
        if p.requires_grad:
            p.grad = torch.ones_like(p)
    optimizer.step(0.0, 0)
    held = sum(value.numel() for name, value in optimizer.state().items() if name.startswith("exp_avg/"))
    assert held == trained_parameters(model.config, last_blocks)
    if last_blocks is None:
        assert held == model.n_parameters()


def test_the_last_block_by_hand():
    # d_model 8: attention 4·(8·8 + 8), MLP 8·32 + 32 + 32·8 + 8, two norms of the block and the final one 2·8
    config = ModelConfig(vocab_size=50, context_length=8, n_layer=2, n_head=2, d_model=8)
    assert trained_parameters(config, 1) == 288 + 552 + 3 * 16
    assert trained_parameters(config, 2) == 2 * (288 + 552 + 32) + 16


@pytest.mark.parametrize("last_blocks", [0, 4, -1])
def test_a_number_of_blocks_that_the_model_does_not_have_is_refused(last_blocks):
    with pytest.raises(ValueError, match="last_blocks"):
        train(model_of(), some_ids(), [], settings(last_blocks=last_blocks))


def test_no_graph_is_built_below_the_first_block_that_learns():
    model = model_of()
    training = train(model, some_ids(), [], settings(last_blocks=1))
    asks = []

    def note(block, given, out):
        asks.append((given[0].requires_grad, out.requires_grad))

    hooks = [block.register_forward_hook(note) for block in model.blocks]
    training.gradients(training.draw())
    for hook in hooks:
        hook.remove()
    assert asks == [(False, False), (False, False), (False, True)]
    frozen = [p for name, p in model.named_parameters() if not learns(name, model.config, 1)]
    assert frozen and all(p.grad is None and not p.requires_grad for p in frozen)
    training.close()


def kept_bytes(model, last_blocks, config):
    """What autograd keeps for a step, each piece of memory once, without the weights themselves."""
    training = train(model, some_ids(4000, vocab=model.config.vocab_size), [], config)
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)  # held: its place is not given to another
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        training.gradients(training.draw())
    training.close()
    return sum(n for n, _ in kept.values())


@pytest.mark.parametrize("last_blocks", [None, 1])
@pytest.mark.parametrize(
    "shape",
    [
        {"positions": "rotary"},
        {"activation": "swiglu", "norm": "rmsnorm", "bias": False, "n_kv_head": 2, "positions": "rotary"},
        {"activation": "relu2", "positions": "learned"},
    ],
)
def test_the_estimate_of_the_activations_is_near_what_autograd_keeps(shape, last_blocks):
    config = {"vocab_size": 300, "context_length": 64, "n_layer": 4, "n_head": 4, "d_model": 64, **shape}
    model = Transformer(ModelConfig(**config))
    found = kept_bytes(model, last_blocks, settings(batch_size=4, last_blocks=last_blocks))
    told = activation_bytes(model.config, 4 * 64, last_blocks)
    logits = 4 * 2 * 300 * 4 * 64  # themselves and their gradient, which autograd does not keep
    assert 0.75 * (found + logits) < told < 1.35 * (found + logits)


def test_the_parts_of_the_memory_by_hand():
    config = ModelConfig(vocab_size=50, context_length=8, n_layer=2, n_head=2, d_model=8)
    n, last = trained_parameters(config), trained_parameters(config, 1)
    need = need_of(config, TrainConfig(last_blocks=1), 8)
    assert (need.weights, need.gradients, need.optimizer) == (4 * n, 4 * last, 8 * last)
    assert need.saving == 2 * (4 * n + 8 * last)
    muon = need_of(config, TrainConfig(optimizer="muon"), 8)
    matrices = 2 * (4 * 64 + 2 * 256)
    assert muon.optimizer == 8 * n - 4 * matrices
    one, two = (need_of(config, TrainConfig(aim=aim), 8).activations for aim in ("answers", "preferences"))
    assert two == 2 * one


def test_each_part_of_a_batch_has_a_row_of_gradients():
    """A step with two parts took 756 MB where 424 were told: rows and what goes into them were forgotten."""
    config = ModelConfig(vocab_size=300, context_length=16, n_layer=8, n_head=8, d_model=512)
    n = 4 * trained_parameters(config)  # 102 MB
    train = TrainConfig(batch_size=4)  # 64 tokens of 25 M weights: two parts on a processor
    here, there = need_of(config, train, 16), need_of(config, train, 16, on_gpu=True)
    assert (here.gradients, there.gradients) == (2 * n, n)
    assert here.activations < n  # so what goes back outweighs what was kept for it
    assert here.on_device == n + 2 * n + here.optimizer + 2 * n
    assert there.on_device == n + n + there.optimizer + n


def test_what_does_not_fit_is_refused_with_the_numbers():
    need = need_of(ModelConfig(vocab_size=50000, d_model=512, n_head=8), TrainConfig(), 128)
    check_memory(need, machine=need.total)
    with pytest.raises(ValueError, match=rf"needs about {need.total / 1e9:.1f} GB of memory, and 0.1 GB"):
        check_memory(need, machine=100_000_000)
    with pytest.raises(ValueError, match="on the GPU, and 0.1 GB are free there"):
        check_memory(need, on_gpu=100_000_000, machine=10**12)


# ---- rows, the first evaluation, and going on


def test_the_first_evaluation_is_the_models_own_loss():
    model = rough(tiny(vocab=256, context_length=16))
    rows = encode_pairs([Pair("ab", "xyz"), Pair("c", "d")], framing_for(byte_tokenizer()), 16)
    config = settings(aim="answers")
    before = AnswersAim(model, rows, rows, config).score(rows.batch([0, 1])).loss
    first = next(train(model, [], [], config, aim=AnswersAim(model, rows, rows, config)))
    assert isinstance(first, EvalEvent) and first.val_loss == before


def test_shorter_rows_leave_the_context_as_it_is():
    model = tiny()
    training = train(model, some_ids(), some_ids(seed=9), settings(row_length=5))
    assert training.draw().inputs.shape == (4, 5) and training.val_batch.inputs.shape == (4, 5)
    assert model.config.context_length == 16
    longer = train(tiny(), some_ids(), [], settings(row_length=500))
    assert longer.draw().inputs.shape == (4, 16)
    with pytest.raises(ValueError, match="needs"):
        train(tiny(), some_ids(5), [], settings(row_length=5))


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_with_frozen_blocks_it_goes_on_bit_for_bit(optimizer):
    whole, half = model_of(), model_of()
    events = trained(whole, last_blocks=1, optimizer=optimizer, checkpoint_every=3)
    state = next(e.state for e in events if isinstance(e, CheckpointEvent) and e.step == 3)
    config = settings(
        steps=6, learning_rate=1e-2, weight_decay=0.3, last_blocks=1, optimizer=optimizer, checkpoint_every=3
    )
    rest = list(train(half, some_ids(), some_ids(seed=9), config, resume=state))
    assert same_weights(whole, half) and evals_of(rest)[-1] == evals_of(events)[-1]
    assert {name.partition("/")[2] for name in state["optimizer"]} == {
        name for name, _ in whole.named_parameters() if learns(name, whole.config, 1)
    }


def test_an_optimizer_of_another_part_is_refused():
    model = model_of()
    events = trained(model, last_blocks=1, checkpoint_every=3)
    state = next(e.state for e in events if isinstance(e, CheckpointEvent) and e.step == 3)
    with pytest.raises(ValueError, match="optimizer"):
        train(model_of(), some_ids(), [], settings(last_blocks=2), resume=state)


def test_old_settings_keep_their_form():
    assert not {"aim", "last_blocks", "beta", "framing", "row_length"} & set(TrainConfig().to_json())
    config = TrainConfig(aim="preferences", beta=0.3, last_blocks=2)
    assert TrainConfig.from_json(config.to_json()) == config
    assert config.to_json().items() >= {"aim": "preferences", "beta": 0.3, "last_blocks": 2}.items()


@pytest.mark.parametrize("aim", ["text", "answers", "preferences"])
def test_recipes_can_be_made_for_each_aim(aim):
    config = recipe(aim, 2)
    assert (config.aim, config.last_blocks) == (aim, 2) and config.warmup_steps < config.steps


# ---- what the page shows


def test_the_tokens_of_a_pair_add_up_to_its_loss():
    framing = framing_for(byte_tokenizer())
    one, other = rough(tiny(vocab=256)), rough(tiny(vocab=256), 0.5)
    tokens = pair_tokens(Pair("ab", "xy"), framing, one, other)
    assert [t.text for t in tokens] == list("ab\nxy\n")
    assert [t.counted for t in tokens] == [False, False, False, True, True, True]
    assert tokens[0].before is None and tokens[1].before is not None
    rows = encode_pairs([Pair("ab", "xy")], framing, 16)
    for model, which in ((one, "before"), (other, "after")):
        aim = AnswersAim(model, rows, rows, settings())
        assert answer_loss(tokens, which) == pytest.approx(aim.score(aim.val).loss, rel=1e-5)


def test_answers_with_the_same_dice_are_the_same_for_the_same_model():
    framing, model = framing_for(byte_tokenizer()), rough(tiny(vocab=256))
    pairs = [Pair("a", ""), Pair("b", "")]
    one, again, other = (
        list(write_answers(model, framing, pairs, lambda pair, text: pair.prompt == "a", seed=s, n_tokens=5))
        for s in (1, 1, 2)
    )
    assert one == again != other
    assert share_of(one) == Share(2, 1)


def test_a_share_with_its_error_by_hand():
    assert Share(100, 20).error == pytest.approx(0.04)
    low, high = Share(10, 0).interval  # Wilson: 0 to z² / (n + z²)
    assert low == 0 and high == pytest.approx(1.959964**2 / (10 + 1.959964**2))


def test_without_training_all_rewards_are_0():
    framing, model, other = framing_for(byte_tokenizer()), rough(tiny(vocab=256)), rough(tiny(vocab=256), 0.5)
    preferences = [Preference("a", "xy", "z"), Preference("b", "v", "w")]
    same = rewards(preferences, framing, model, model, 0.3)
    assert not same.margins.any() and same.accuracy == Share(2, 0)
    assert same.n_tokens.tolist() == [[3, 2], [2, 2]]
    moved = rewards(preferences, framing, model, other, 0.3)
    assert moved.chosen == pytest.approx(0.3 * moved.log_ratios[:, 0]) and moved.margins.any()


def test_the_loss_of_a_text_is_its_mean_surprisal():
    model = rough(tiny(vocab=256))
    ids = torch.tensor(list(b"hello you"))
    with torch.no_grad():
        log_probs = torch.log_softmax(model(ids[None, :-1])[0], -1)
    by_hand = -log_probs[range(8), ids[1:]].mean().item()
    assert math.isclose(text_loss(model, byte_tokenizer(), "hello you"), by_hand, rel_tol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("precision, near", [("float32", 1e-3), ("bfloat16", 0.05)])
def test_a_gpu_gives_the_same_losses_for_pairs(precision, near):
    preferences = [Preference(a, a + "!", a + "?") for a in "abcdefgh"]
    rows = encode_preferences(preferences, framing_for(byte_tokenizer()), 16)
    found = []
    for device in ("cpu", "cuda"):
        model = rough(tiny(vocab=256)).to(device)
        kind = precision if device == "cuda" else "float32"
        config = settings(aim="preferences", steps=10, learning_rate=1e-3, precision=kind)
        events = train(model, [], [], config, aim=PreferencesAim(model, rows, rows, config))
        found.append([e.val_loss for e in evals_of(list(events))])
    assert found[1] == pytest.approx(found[0], abs=near) and found[0][-1] < found[0][0] - 0.01


def test_what_muon_computes_on_the_way_by_hand():
    """4 L matrices (C,C) take 4 C² + 2 C² each; L of (4C,C), and L of (C,4C), 16 C² + 2 C² each."""
    C, L = 8, 3
    config = ModelConfig(vocab_size=50, context_length=8, n_layer=L, n_head=2, d_model=C)
    assert update_bytes(config, TrainConfig(optimizer="muon")) == 4 * 4 * L * 6 * C * C
    assert update_bytes(config, TrainConfig(optimizer="muon", last_blocks=1)) == 4 * 4 * 6 * C * C
    assert update_bytes(config, TrainConfig()) == 0
    large = ModelConfig(vocab_size=300, context_length=16, n_layer=8, n_head=8, d_model=512)
    need = need_of(large, TrainConfig(optimizer="muon", batch_size=1), 16)
    assert need.update > max(need.gradients, need.activations)
    assert need.on_device == need.weights + need.gradients + need.optimizer + need.update


def test_a_run_that_can_not_begin_leaves_the_model_as_it_was(monkeypatch):
    model = model_of()
    with pytest.raises(RuntimeError, match="Missing key"):
        train(model, some_ids(), [], settings(last_blocks=1), resume={"step": 1, "model": {}})
    assert all(p.requires_grad for p in model.parameters())
    monkeypatch.setenv("LOUPE_TRAIN_THREADS", "many")
    with pytest.raises(ValueError, match="LOUPE_TRAIN_THREADS"):
        train(model, some_ids(), [], settings(last_blocks=1))
    assert all(p.requires_grad for p in model.parameters())
