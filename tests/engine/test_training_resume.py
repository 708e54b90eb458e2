"""Which moments are kept, and that stopping, resuming and extending change no number."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.schedule import learning_rate_at, moment_steps
from engine.training import CheckpointEvent, EvalEvent, StepEvent, train
from tests.engine.small_training import evals_of, same_weights, settings, some_ids, steps_of, tiny


def kinds(events):
    return [(type(e).__name__[:-5], e.step) for e in events]


def state_at(events, step):
    return next(e.state for e in events if isinstance(e, CheckpointEvent) and e.step == step)


def numbers(events):
    """All that a run says, without the times."""
    return [
        (e.step, e.loss, e.grad_norm, e.learning_rate) if isinstance(e, StepEvent) else e
        for e in events
        if isinstance(e, StepEvent | EvalEvent)
    ]


@given(st.integers(0, 20_000), st.integers(0, 60))
def test_moments_are_so_many_from_the_first_to_the_last_and_denser_early(steps, n):
    kept = moment_steps(steps, n)
    assert len(kept) == min(n, steps + 1)
    assert kept == sorted(set(kept))
    if n >= 1:
        assert kept[0] == 0
    if n >= 2:
        assert kept[-1] == steps
    gaps = [b - a for a, b in pairwise(kept)]
    assert all(later >= earlier - 1 for earlier, later in pairwise(gaps))  # but for rounding
    if n >= 8 and steps >= n * n:
        assert sum(step <= steps / 4 for step in kept) >= n / 2  # 4^(-1/2.5) = 0.57 of them


def test_moments_by_hand():
    # 1000 · (k/4)^2.5 for k = 1, 2, 3: 31.25, 176.78, 487.14
    assert moment_steps(1000, 5) == [0, 31, 177, 487, 1000]
    assert moment_steps(3, 24) == [0, 1, 2, 3]
    assert moment_steps(10, 1) == [0] and moment_steps(10, 0) == []
    with pytest.raises(ValueError, match="at least 0, not 10 and -1"):
        moment_steps(10, -1)


def test_a_run_keeps_its_moments_and_its_regular_checkpoints():
    events = train(tiny(), some_ids(), [], settings(steps=9, eval_every=5, checkpoint_every=4, moments=3))
    # 9 · (1/2)^2.5 = 1.59
    assert moment_steps(9, 3) == [0, 2, 9]
    assert kinds(events) == [
        ("Eval", 0), ("Checkpoint", 0), ("Step", 1), ("Step", 2), ("Checkpoint", 2), ("Step", 3),
        ("Step", 4), ("Checkpoint", 4), ("Step", 5), ("Eval", 5), ("Step", 6), ("Step", 7),
        ("Step", 8), ("Checkpoint", 8), ("Step", 9), ("Eval", 9), ("Checkpoint", 9),
    ]  # fmt: skip


def test_the_first_moment_holds_the_first_weights():
    events = list(train(tiny(), some_ids(), [], settings(steps=3, moments=2)))
    first = state_at(events, 0)
    assert first["optimizer"] == {} and first["losses"] == [0.0, 0.0]
    assert all(torch.equal(first["model"][name], value) for name, value in tiny().state_dict().items())


@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_moments_change_no_number_and_a_run_goes_on_from_each_of_them(objective):
    ids, vocab = some_ids(), 20 + (objective == "mlm")

    def run(resume=None, **changes):
        model = tiny(vocab, dropout=0.2, objective=objective)
        config = settings(steps=30, eval_every=8, checkpoint_every=11, **changes)
        return model, list(train(model, ids[:1800], ids[1800:], config, resume=resume))

    plain_model, plain = run()
    model, events = run(moments=8)
    assert numbers(events) == numbers(plain) and same_weights(model, plain_model)
    states = [e.state for e in events if isinstance(e, CheckpointEvent) and e.step < 30]
    assert {0, *moment_steps(30, 8), 11, 22} - {30} == {state["step"] for state in states}
    for state in states:
        later_model, later = run(state, moments=5)  # other moments than before
        from_step = state["step"]
        assert numbers(later) == [e for e in numbers(events) if from_step == 0 or step_of(e) > from_step]
        assert same_weights(later_model, model)


def step_of(entry):
    return entry[0] if isinstance(entry, tuple) else entry.step


@pytest.mark.parametrize("kept", ["all", "weights only"])
def test_from_a_checkpoint_of_step_0_the_events_are_those_of_a_fresh_run(kept):
    ids, config = some_ids(), settings(steps=12, moments=4)
    fresh_model, again_model = tiny(dropout=0.1), tiny(dropout=0.1)
    fresh = list(train(fresh_model, ids, ids[:200], config))
    state = state_at(fresh, 0)
    if kept == "weights only":  # what an older checkpoint shrinks to
        state = {**state, "optimizer": None, "generators": None}
    again = list(train(again_model, ids, ids[:200], config, resume=state))
    assert kinds(again) == kinds(fresh) and numbers(again) == numbers(fresh)
    assert same_weights(fresh_model, again_model)


@pytest.mark.parametrize("objective", ["clm", "mlm"])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_30_steps_extended_to_50_at_a_constant_rate_are_50_bit_for_bit(objective, optimizer):
    ids, vocab = some_ids(), 20 + (objective == "mlm")
    how = {"schedule": "constant", "optimizer": optimizer, "moments": 6}
    whole, parts = (tiny(vocab, objective=objective, dropout=0.1) for _ in range(2))
    at_once = list(train(whole, ids, ids[:200], settings(steps=50, **how)))
    first = list(train(parts, ids, ids[:200], settings(steps=30, **how)))
    then = list(train(parts, ids, ids[:200], settings(steps=50, **how), resume=state_at(first, 30)))
    # 30 is a multiple of eval_every, so also the means between two evaluations are the same.
    assert numbers(first) + numbers(then) == numbers(at_once)
    assert same_weights(whole, parts)


def test_extended_between_two_evaluations_only_the_mean_train_loss_covers_other_steps():
    ids, how = some_ids(), {"schedule": "constant", "eval_every": 20}
    at_once = list(train(tiny(), ids, ids[:200], settings(steps=50, **how)))
    model = tiny()
    first = list(train(model, ids, ids[:200], settings(steps=30, **how)))
    then = list(train(model, ids, ids[:200], settings(steps=50, **how), resume=state_at(first, 30)))
    assert steps_losses(first) + steps_losses(then) == steps_losses(at_once)
    assert [e.step for e in evals_of(first) + evals_of(then)] == [0, 20, 30, 40, 50]  # 30 was an end
    at_40, same = (next(e for e in evals_of(events) if e.step == 40) for events in (then, at_once))
    assert at_40.val_loss == same.val_loss
    losses = steps_losses(at_once)
    assert at_40.train_loss == pytest.approx(sum(losses[30:40]) / 10, abs=1e-12)
    assert same.train_loss == pytest.approx(sum(losses[20:40]) / 20, abs=1e-12)


def steps_losses(events):
    return [e.loss for e in steps_of(events)]


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_an_extended_falling_schedule_is_that_of_the_new_total_from_there_on(schedule):
    ids = some_ids()
    short, long = (settings(steps=steps, schedule=schedule) for steps in (30, 60))
    model = tiny()
    first = list(train(model, ids, [], short))
    extended = train(model, ids, [], long, resume=state_at(first, 30))
    reference = train(tiny(), ids, [], long)
    for event in reference:
        if isinstance(event, StepEvent) and event.step == 30:
            break
    expected = state_at(train(tiny(), ids, [], settings(steps=30, schedule=schedule)), 30)["generators"]
    assert all(torch.equal(extended.state()["generators"][n], s) for n, s in expected.items())
    then = steps_of(extended)
    assert [e.learning_rate for e in steps_of(first)] == [learning_rate_at(s, short) for s in range(30)]
    assert [e.learning_rate for e in then] == [learning_rate_at(s, long) for s in range(30, 60)]
    assert then[0].learning_rate > 2 * steps_of(first)[-1].learning_rate  # it rises again at the seam
    # The same batches as a run of 60 steps, from other weights: so other losses.
    assert torch.equal(*(t.state()["generators"]["data"] for t in (extended, finish(reference))))
    assert steps_losses(then) != steps_losses(reference)


def finish(run):
    for _ in run:
        pass
    return run


def test_draw_gradients_update_add_up_to_a_step():
    ids, config = some_ids(), settings(steps=10, grad_clip=0.5)
    whole, parts = tiny(dropout=0.2), tiny(dropout=0.2)
    events = steps_of(train(whole, ids, [], config))
    run = train(parts, ids, [], config)
    for event in events:
        before = {name: value.clone() for name, value in parts.named_parameters()}
        loss, norm = run.gradients(run.draw())
        assert (loss, norm) == (event.loss, event.grad_norm)
        squares = sum(float(p.grad.double().square().sum()) for p in parts.parameters())
        assert norm == pytest.approx(squares**0.5, rel=1e-5)  # not yet clipped
        assert all(torch.equal(before[name], value) for name, value in parts.named_parameters())
        assert run.update(norm) == event.learning_rate
        squares = sum(float(p.grad.double().square().sum()) for p in parts.parameters())
        assert squares**0.5 == pytest.approx(min(norm, 0.5), rel=1e-5)
        assert run.step == event.step
    assert same_weights(whole, parts)
    run.close()
    assert all(p.grad is None for p in parts.parameters())


def test_steps_by_hand_and_the_iteration_may_alternate():
    ids, config = some_ids(), settings(steps=12, eval_every=4)
    whole, mixed = tiny(), tiny()
    events = list(train(whole, ids, ids[:200], config))
    run = train(mixed, ids, ids[:200], config)
    next(run)
    for _ in range(3):
        run.update(run.gradients(run.draw())[1])
    assert numbers(run) == [e for e in numbers(events) if step_of(e) > 3]
    assert same_weights(whole, mixed)
