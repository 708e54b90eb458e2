"""How a batch is cut, and that neither threads nor parts change what a step learns."""

import threading

import pytest
import torch

import engine.training
from engine import parts
from engine.parts import MOST_PARTS, Threads, n_parts, slices, wanted_threads
from engine.training import CheckpointEvent, DivergedError, StepEvent, train
from tests.engine.small_training import same_weights, settings, some_ids, tiny, together


@pytest.fixture(autouse=True)
def one_thread_of_torch():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def cut(monkeypatch):
    """Small batches are cut too."""
    monkeypatch.setattr(parts, "LEAST_WORK", 1)


def running():
    return [t for t in threading.enumerate() if t.name.startswith("training")]


def test_the_rule_by_hand():
    # 150 million for each part: 1024 tokens x 300,000 weights are 307 million
    assert n_parts(16, 1024, 300_000) == 2
    assert n_parts(16, 1024, 290_000) == 1
    assert n_parts(1, 10**6, 10**6) == 1  # one row can't be cut
    assert n_parts(16, 10**6, 10**6) == MOST_PARTS
    assert n_parts(16, 16, 0) == 1
    assert slices(5, 2) == [slice(0, 2), slice(2, 5)]


def test_how_many_threads(monkeypatch):
    monkeypatch.delenv("LOUPE_TRAIN_THREADS", raising=False)
    monkeypatch.setattr(parts, "cores", lambda: 1)
    assert wanted_threads() == 1
    monkeypatch.setattr(parts, "cores", lambda: 64)
    assert wanted_threads() == MOST_PARTS
    monkeypatch.setenv("LOUPE_TRAIN_THREADS", "3")
    assert wanted_threads() == 3
    for wrong in ("0", "two", "-1"):
        monkeypatch.setenv("LOUPE_TRAIN_THREADS", wrong)
        with pytest.raises(ValueError, match=f"LOUPE_TRAIN_THREADS is '{wrong}'.*at least 1"):
            wanted_threads()


def test_processes_on_one_machine_share_its_cores(monkeypatch):
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    found = parts.cores()
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert parts.cores() == max(1, found // 2)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(4 * found))
    assert parts.cores() == 1


@pytest.mark.parametrize("n_threads", [1, 2, 3, 5])
def test_results_come_in_order_from_so_many_threads(n_threads):
    threads = Threads(n_threads)
    meet = threading.Barrier(min(n_threads, 5), timeout=30)
    seen = set()

    def work(k):
        if k < n_threads:
            meet.wait()  # passes only if as many threads are at work
        seen.add(threading.current_thread().name)
        return k * k

    assert threads.each(work, 5) == [0, 1, 4, 9, 16]
    assert len(seen) == n_threads
    threads.close()
    assert not running()


def test_with_threads_of_torch_the_caller_does_it_alone():
    torch.set_num_threads(2)
    names = Threads(2).each(lambda k: threading.current_thread().name, 2)
    assert set(names) == {threading.current_thread().name} and not running()


def test_an_error_reaches_the_caller_once_all_have_ended():
    threads, ended = Threads(2), []

    def work(k):
        if k == 1:
            raise ZeroDivisionError("part 1")
        ended.append(k)

    with pytest.raises(ZeroDivisionError, match="part 1"):
        threads.each(work, 4)
    assert ended == [0, 2]
    assert threads.each(lambda k: k, 2) == [0, 1]  # and it goes on
    threads.close()


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"optimizer": "muon"},
        {"last_blocks": 1},
    ],
    ids=["adamw", "muon", "last block"],
)
@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_one_thread_and_two_give_the_same_run_bit_for_bit(cut, objective, how):
    vocab = 20 + (objective == "mlm")

    def run(threads):
        model = tiny(vocab, objective=objective, dropout=0.2)
        training = train(model, some_ids(), some_ids(300), settings(**how), threads=threads)
        assert len(training.passes(training.draw())) == 2
        events = [(e.step, e.loss, e.grad_norm) for e in training if isinstance(e, StepEvent)]
        return model, events

    (one, first), (two, second) = run(1), run(2)
    assert same_weights(one, two) and first == second and len(first) == 20
    assert not running()


@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_the_parts_give_the_gradients_of_the_whole_batch(monkeypatch, objective):
    """Also where chance hides far more tokens in one part than in the other."""
    models, norms = [], []
    for most in (1, 2):
        monkeypatch.setattr(engine.training, "n_parts", lambda *_, n=most: n)
        model = tiny(21, objective=objective)
        run = train(model, some_ids(), [], settings(batch_size=3, mask_prob=0.3), threads=2)
        norms.append(run.gradients(run.draw()))
        models.append([p.grad.clone() for p in model.parameters()])
        run.close()
    assert norms[0] == pytest.approx(norms[1], rel=1e-5)
    for a, b in zip(*models, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


def test_with_dropout_each_part_drops_different_numbers(cut):
    run = train(tiny(dropout=0.5), some_ids(), [], settings())
    first, second = run.passes(run.draw())
    draws = [torch.rand(50, generator=one.dropout) for one in (first, second)]
    assert not torch.equal(*draws)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_a_run_in_parts_with_dropout_goes_on_bit_for_bit(cut, optimizer):
    def run(resume=None):
        model = tiny(dropout=0.3)
        config = settings(checkpoint_every=7, optimizer=optimizer)
        return model, list(train(model, some_ids(), some_ids(300), config, resume=resume, threads=2))

    model, events = run()
    state = next(e.state for e in events if isinstance(e, CheckpointEvent) and e.step == 7)
    again, _ = run(state)
    assert same_weights(model, again)


def test_processes_with_parts_train_like_one(cut):
    def run(processes):
        model = tiny()
        run = train(model, some_ids(), [], settings(batch_size=5), processes=processes, threads=2)
        return model, [e.loss for e in run if isinstance(e, StepEvent)]

    ((first, losses), (second, _)), _ = together(2, run)
    assert same_weights(first, second)
    alone = tiny()
    expected = [
        e.loss for e in train(alone, some_ids(), [], settings(batch_size=5)) if isinstance(e, StepEvent)
    ]
    assert losses == pytest.approx(expected, rel=1e-4)


def test_a_divergence_in_a_part_is_named_and_leaves_no_thread(cut):
    config = settings(steps=500, learning_rate=1e3, warmup_steps=0, schedule="constant")
    with pytest.raises(DivergedError, match=r"Step \d+ failed: .* not a finite number"):
        list(train(tiny(), some_ids(), [], config, threads=2))
    assert not running()


def test_an_error_inside_a_part_ends_the_run_and_leaves_no_thread(cut):
    model = tiny()
    run = train(model, some_ids(), [], settings(), threads=2)
    for event in run:
        if isinstance(event, StepEvent):
            break
    assert running()
    model.config = None  # what the passes need
    with pytest.raises(AttributeError):
        list(run)
    assert not running()


def test_leaving_the_loop_ends_the_threads(cut):
    run = train(tiny(), some_ids(), [], settings(), threads=2)
    next(run), next(run)
    assert running()
    run.close()
    assert not running()
