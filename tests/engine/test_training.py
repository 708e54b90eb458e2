import math
import os

import numpy as np
import pytest
import torch

from engine.optimizers import FlatGradients, Optimizer
from engine.schedule import learning_rate_at
from engine.training import (
    CheckpointEvent,
    DivergedError,
    EvalEvent,
    NoticeEvent,
    StepEvent,
    train,
)
from tests.engine.small_training import evals_of, seeded, settings, some_ids, steps_of, tiny


@pytest.mark.parametrize("objective", ["clm", "mlm"])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_a_resumed_run_goes_on_bit_for_bit(objective, optimizer):
    ids, vocab = some_ids(), 20 + (objective == "mlm")
    config = settings(steps=100, optimizer=optimizer, checkpoint_every=40, eval_every=15)
    whole = tiny(vocab, dropout=0.3, objective=objective)
    all_events = list(train(whole, ids[:1800], ids[1800:], config))
    state = next(e.state for e in all_events if isinstance(e, CheckpointEvent))
    assert state["step"] == 40

    again = tiny(vocab, dropout=0.3, objective=objective)
    later = list(train(again, ids[:1800], ids[1800:], config, resume=state))

    assert [(e.step, e.loss, e.grad_norm) for e in steps_of(later)] == [
        (e.step, e.loss, e.grad_norm) for e in steps_of(all_events) if e.step > 40
    ]
    assert len(steps_of(later)) == 60
    assert evals_of(later) == [e for e in evals_of(all_events) if e.step > 40]  # means since the last one too
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), again.parameters(), strict=True))


def test_dropout_takes_part_in_training():
    ids = some_ids()
    losses = [steps_of(train(tiny(dropout=p), ids, [], settings(steps=3)))[0].loss for p in (0.0, 0.5)]
    assert losses[0] != losses[1]


def test_the_state_is_a_copy():
    model, ids = tiny(), some_ids()
    run = train(model, ids, [], settings(steps=6, checkpoint_every=3))
    state = next(e.state for e in run if isinstance(e, CheckpointEvent))
    kept = {name: value.clone() for name, value in {**state["model"], **state["optimizer"]}.items()}
    list(run)
    assert all(
        torch.equal(kept[name], value) for name, value in {**state["model"], **state["optimizer"]}.items()
    )
    assert not torch.equal(kept["embedding.weight"], model.embedding.weight)


def test_leaving_the_loop_stops_it():
    model = tiny()
    run = train(model, some_ids(), [], settings())
    for event in run:
        if isinstance(event, StepEvent) and event.step == 3:
            break
    weights = [p.detach().clone() for p in model.parameters()]
    run.close()
    assert list(run) == []
    assert run.step == 3
    assert all(torch.equal(a, b) for a, b in zip(weights, model.parameters(), strict=True))
    assert all(p.grad is None for p in model.parameters())


def test_an_abandoned_loop_does_not_disturb_the_next_one():
    model, ids = tiny(), some_ids()
    first = train(model, ids, [], settings())
    next(first), next(first)
    second = train(model, ids, [], settings())
    next(second)
    first.close()
    before = model.embedding.weight.detach().clone()
    next(second)
    assert not torch.equal(before, model.embedding.weight)


def test_one_batch_can_be_overfitted():
    row = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2])  # context 16: a single window
    events = list(
        train(tiny(), row, [], settings(steps=150, batch_size=1, schedule="constant", learning_rate=1e-2))
    )
    assert steps_of(events)[-1].loss < 0.02


@pytest.mark.parametrize(("vocab", "ln_v"), [(65, 4.174), (256, 5.545), (512, 6.238), (50257, 10.825)])
@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_the_first_loss_is_about_ln_v(vocab, ln_v, objective):
    ids = torch.randint(vocab - 1, (200,), generator=seeded())
    model = tiny(vocab, context_length=8, objective=objective)
    first = next(train(model, ids[:150], ids[150:], settings(eval_rows=2)))
    assert first.step == 0
    assert first.val_loss == pytest.approx(ln_v, abs=0.2)
    assert first.train_loss == pytest.approx(ln_v, abs=0.2)


def test_what_happens_when():
    kinds = [
        (type(e).__name__[:-5], e.step)
        for e in train(tiny(), some_ids(), [], settings(steps=5, eval_every=2, checkpoint_every=3))
    ]
    assert kinds == [
        ("Eval", 0), ("Step", 1), ("Step", 2), ("Eval", 2), ("Step", 3), ("Checkpoint", 3),
        ("Step", 4), ("Eval", 4),
        ("Step", 5), ("Eval", 5), ("Checkpoint", 5),
    ]  # fmt: skip


def test_train_loss_is_the_mean_since_the_last_evaluation():
    events = list(train(tiny(), some_ids(), [], settings(steps=15, eval_every=10)))
    losses = [e.loss for e in steps_of(events)]
    assert evals_of(events)[1].train_loss == pytest.approx(np.mean(losses[:10]), abs=1e-12)
    assert evals_of(events)[2].train_loss == pytest.approx(np.mean(losses[10:]), abs=1e-12)


@torch.no_grad()
def test_validation_scores_the_whole_text_once_when_it_is_small():
    ids, model = some_ids(2000 + 65), tiny()
    lengths = [1 + i % 3 for i in range(20)]
    event = next(train(model, ids[:2000], ids[2000:], settings(eval_rows=99), bytes_per_token=lengths))
    val = ids[2000:]  # 65 tokens: 4 rows of 16 targets
    surprisals = []
    for at in range(0, 64, 16):
        log_probs = model(val[None, at : at + 16])[0].double().log_softmax(-1)
        surprisals += [-float(log_probs[t, val[at + t + 1]]) for t in range(16)]
    n_bytes = sum(1 + int(i) % 3 for i in val[1:])
    assert event.val_loss == pytest.approx(np.mean(surprisals), abs=1e-6)
    assert event.perplexity == pytest.approx(math.exp(np.mean(surprisals)), rel=1e-6)
    assert event.bits_per_byte == pytest.approx(sum(surprisals) / math.log(2) / n_bytes, abs=1e-6)


def test_validation_rows_do_not_depend_on_the_seed():
    ids = some_ids()
    runs = [train(tiny(21, objective="mlm"), ids, ids, settings(seed=s)) for s in (1, 2)]
    assert torch.equal(runs[0].val_batch.inputs, runs[1].val_batch.inputs)
    assert torch.equal(runs[0].val_batch.targets, runs[1].val_batch.targets)


def test_masked_validation_shows_only_masks_in_place_of_targets():
    batch = train(tiny(21, objective="mlm"), some_ids(), some_ids(), settings(eval_rows=50)).val_batch
    hidden = batch.targets != -100
    assert 0.1 < hidden.float().mean() < 0.2
    assert (batch.inputs[hidden] == 20).all()
    assert (batch.inputs[~hidden] != 20).all()


def test_aligned_rows_begin_with_a_line_end():
    ids = some_ids()
    ids[ids == 7] = 8
    ids[::25] = 7  # ends a line
    run = train(tiny(), ids, ids, settings(aligned_share=0.5, batch_size=8), line_end_ids=[7])
    assert (run.val_batch.inputs[:, 0] == 7).all()
    rows = run.draw().inputs[:4]
    assert ((rows[:, 0] == 7) | torch.isin(rows[:, 0], ids[torch.nonzero(ids == 7).flatten() + 1])).all()
    mixed = train(tiny(), ids, ids, settings(), line_end_ids=[7])
    assert not (mixed.val_batch.inputs[:, 0] == 7).all()


def test_learning_rate_rises_then_falls():
    linear = settings(steps=6, warmup_steps=2, learning_rate=1.0)
    assert [learning_rate_at(s, linear) for s in range(7)] == [0.5, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0]
    cosine = settings(steps=4, warmup_steps=0, learning_rate=1.0, schedule="cosine", min_lr_share=0.1)
    # 0.1 + 0.9 · (1 + cos(π s/4)) / 2
    assert [round(learning_rate_at(s, cosine), 6) for s in range(5)] == [1.0, 0.868198, 0.55, 0.231802, 0.1]
    constant = settings(steps=4, warmup_steps=0, learning_rate=0.3, schedule="constant")
    assert learning_rate_at(3, constant) == 0.3
    assert [e.learning_rate for e in steps_of(train(tiny(), some_ids(), [], linear))] == [
        0.5,
        1.0,
        1.0,
        0.75,
        0.5,
        0.25,
    ]


def test_only_matrices_decay():
    model = tiny()
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(1.0)
    gradients = FlatGradients(model.parameters())  # all 0: what moves is decay
    Optimizer(model, settings(weight_decay=0.5)).step(0.1, 0)
    gradients.release()
    for name, p in model.named_parameters():
        expected = 0.95 if p.ndim == 2 else 1.0
        assert torch.allclose(p, torch.full_like(p, expected)), name


def test_muon_takes_the_matrices_inside_the_blocks():
    run = train(tiny(), some_ids(), [], settings(steps=1, optimizer="muon"))
    state = [e for e in run if isinstance(e, CheckpointEvent)][0].state["optimizer"]
    muon = {n.split("/")[1] for n in state if n.startswith("momentum_buffer/")}
    model = tiny()
    assert muon == {n for n, p in model.named_parameters() if p.ndim == 2 and n.startswith("blocks.")}
    assert "embedding.weight" in {n.split("/")[1] for n in state if n.startswith("exp_avg/")}


def test_gradients_in_one_row_are_the_usual_ones():
    ids = some_ids(34).view(2, 17)
    usual, flat = tiny(), tiny()
    gradients = FlatGradients(flat.parameters())
    for model in (usual, flat):
        torch.nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).backward()
    pairs = list(zip(usual.parameters(), flat.parameters(), strict=True))
    assert all(torch.equal(a.grad, b.grad) for a, b in pairs)
    assert gradients.norm() == pytest.approx(
        math.sqrt(sum(float((a.grad**2).sum()) for a, _ in pairs)), rel=1e-5
    )


def test_clipping():
    weight = torch.nn.Parameter(torch.zeros(2))
    gradients = FlatGradients([weight])
    gradients.flat[:] = torch.tensor([3.0, 4.0])
    assert gradients.norm() == 5.0
    gradients.clip(5.0, 0.0)
    assert weight.grad.tolist() == [3.0, 4.0]  # 0 is off
    gradients.clip(5.0, 1.0)
    assert weight.grad.tolist() == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_a_learning_rate_of_1000_stops_with_the_step_and_finite_weights(optimizer):
    model = tiny()
    config = settings(steps=500, learning_rate=1e3, warmup_steps=0, schedule="constant", optimizer=optimizer)
    run = train(model, some_ids(), some_ids(), config)
    with pytest.raises(
        DivergedError, match=r"Step \d+ failed: .* not a finite number.*learning rate below 1000"
    ):
        list(run)
    assert 0 < run.step < 500


def test_a_nan_gradient_never_reaches_the_weights():
    model = tiny()
    run = train(model, some_ids(), [], settings())
    for event in run:
        if isinstance(event, StepEvent) and event.step == 4:
            break
    before = run.state()
    bad = torch.zeros_like(model.embedding.weight)
    bad[0, 0] = math.nan
    model.embedding.weight.register_hook(lambda gradient: gradient + bad)
    with pytest.raises(DivergedError, match="Step 5 failed: a gradient") as caught:
        next(run)
    assert caught.value.step == 5
    assert all(torch.equal(before["model"][n], v) for n, v in model.state_dict().items())


def test_60_tokens_with_a_context_of_32():
    ids = some_ids(60)
    with pytest.raises(ValueError, match=r"validation text has 6 tokens, but a row needs 33 .*share 0"):
        train(tiny(context_length=32), ids[:54], ids[54:], settings())
    events = list(train(tiny(context_length=32), ids[:54], [], settings(steps=3)))
    assert [e.val_loss for e in evals_of(events)] == [None, None]
    assert [e.perplexity for e in evals_of(events)] == [None, None]
    assert all(math.isfinite(e.train_loss) for e in evals_of(events))
    with pytest.raises(ValueError, match=r"training text has 32 tokens, but a row needs 33 .*at most 31"):
        train(tiny(context_length=32), ids[:32], [], settings())


def test_ids_are_checked_before_the_first_step():
    with pytest.raises(ValueError, match="run from 0 to 19, but the text has id 20"):
        train(tiny(), [20] * 100, [], settings())
    with pytest.raises(ValueError, match=r"whole numbers, not torch\.float64"):
        train(tiny(), np.zeros(100), [], settings())


def test_masked_training_on_lines_of_four_tokens_is_never_nan():
    """With 4 tokens, chance hides none in 0.85⁴ = 52 % of the batches."""
    model = tiny(21, context_length=4, objective="mlm")
    events = list(train(model, some_ids(50), some_ids(50), settings(steps=200, batch_size=1, eval_rows=1)))
    assert len(steps_of(events)) == 200
    assert all(math.isfinite(e.loss) and math.isfinite(e.grad_norm) for e in steps_of(events))
    assert all(math.isfinite(e.val_loss) for e in evals_of(events))


def test_a_vocabulary_of_one_has_nothing_to_learn():
    events = list(train(tiny(1), [0] * 1000, [0] * 100, settings(steps=3)))
    assert {e.loss for e in steps_of(events)} == {0.0}
    assert {(e.val_loss, e.perplexity) for e in evals_of(events)} == {(0.0, 1.0)}


def test_the_global_random_state_is_left_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    losses = [e.loss for e in steps_of(train(tiny(dropout=0.2), some_ids(), [], settings(steps=3)))]
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    assert losses == [e.loss for e in steps_of(train(tiny(dropout=0.2), some_ids(), [], settings(steps=3)))]


def test_everything_is_float32_and_events_are_plain_numbers():
    model = tiny(positions="sinusoidal")
    events = list(
        train(model, some_ids().numpy(), some_ids().tolist(), settings(steps=2), bytes_per_token=[1] * 20)
    )
    state = events[-1].state
    assert {t.dtype for t in [*state["model"].values(), *state["optimizer"].values()]} == {torch.float32}
    for event in steps_of(events) + evals_of(events):
        assert {type(v) for v in vars(event).values()} <= {int, float, type(None)}


def test_weights_alone_can_be_resumed_with_a_notice():
    ids, config = some_ids(), settings(steps=20, checkpoint_every=10)
    state = next(e.state for e in train(tiny(), ids, [], config) if isinstance(e, CheckpointEvent))
    later = list(train(tiny(), ids, [], config, resume={**state, "optimizer": None, "generators": None}))
    assert isinstance(later[0], NoticeEvent)
    assert "optimizer restarted" in later[0].message
    assert [e.step for e in steps_of(later)] == list(range(11, 21))
    assert steps_of(later)[0].learning_rate == learning_rate_at(10, config)  # the schedule goes on


def test_a_state_of_another_optimizer_is_refused():
    state = [e for e in train(tiny(), some_ids(), [], settings(steps=1)) if isinstance(e, CheckpointEvent)][
        0
    ].state
    with pytest.raises(ValueError, match="doesn't fit.*now muon"):
        train(tiny(), some_ids(), [], settings(optimizer="muon"), resume=state)


def test_nothing_left_to_do_is_said():
    state = [e for e in train(tiny(), some_ids(), [], settings(steps=2)) if isinstance(e, CheckpointEvent)][
        0
    ].state
    with pytest.raises(ValueError, match="at step 2 and the run ends at step 2"):
        train(tiny(), some_ids(), [], settings(steps=2), resume=state)


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads the memory size from /proc")
def test_memory_does_not_grow():
    def megabytes():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    run = train(tiny(n_layer=1), some_ids(), [], settings(steps=400, eval_every=40, checkpoint_every=40))
    sizes = [megabytes() for event in run if isinstance(event, EvalEvent)]
    assert sizes[-1] - sizes[1] < 20
