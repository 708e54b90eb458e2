"""Several processes train like one: as threads, where much is asked; as real ones, where it counts."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine import parallel
from engine.batches import Batch
from engine.checkpoints import load_checkpoint
from engine.folders import read_json
from engine.parallel import ALONE, InStep, LostProcessError, Processes
from engine.runs import RunStore
from engine.training import CheckpointEvent, DivergedError, train
from tests.engine.small_runs import REPO, spec, train_here, wait_for
from tests.engine.small_training import (
    Table,
    Threads,
    evals_of,
    same_weights,
    settings,
    some_ids,
    steps_of,
    tiny,
    together,
)


@given(st.integers(0, 100), st.integers(1, 20))
def test_the_shares_are_all_rows_once_and_nearly_equal(n_rows, n):
    shares = [list(range(n_rows))[Processes(rank, n).share(n_rows)] for rank in range(n)]
    assert sum(shares, []) == list(range(n_rows))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_alone_nothing_is_exchanged():
    row = torch.tensor([1.0, 2.0])
    ALONE.sum(row)
    assert row.tolist() == [1.0, 2.0]
    assert (ALONE.total(0.1), ALONE.most(3), ALONE.tell("ä"), ALONE.agree(5)) == (0.1, 3, "ä", True)


def test_what_processes_tell_each_other():
    def work(processes):
        row = torch.tensor([1.0, 10.0 * processes.rank])
        processes.sum(row)
        own = 0.1 * (processes.rank + 1)
        said = processes.tell("übung" if processes.rank == 0 else "something else")
        return row.tolist(), processes.total(own), processes.most(processes.rank), said

    results, _ = together(3, work)
    for row, total, most, said in results:
        assert (row, most, said) == ([3.0, 30.0], 2, "übung")
        assert total == pytest.approx(0.6, abs=1e-15)  # float64: float32 would be off by 2e-8
    agreed, _ = together(2, lambda processes: (processes.agree(4), processes.agree(processes.rank)))
    assert agreed == [(True, False), (True, False)]


# ---- the arithmetic


@pytest.mark.parametrize("objective", ["clm", "mlm"])
@pytest.mark.parametrize(("n", "batch_size"), [(2, 4), (2, 5), (3, 5), (3, 2)])
def test_gradients_are_those_of_the_whole_batch(objective, n, batch_size):
    """Also with 3 processes and 2 rows, where one has nothing to do."""
    ids, vocab = some_ids(), 20 + (objective == "mlm")
    config = settings(batch_size=batch_size)

    def step(processes):
        model = tiny(vocab, objective=objective)
        run = train(model, ids, [], config, processes=processes)
        batch = run.draw()
        loss, norm = run.gradients(batch)
        return loss, norm, [p.grad.clone() for p in model.parameters()], batch

    loss, norm, gradients, batch = step(ALONE)
    results, table = together(n, step)
    for other_loss, other_norm, others, same_batch in results:
        assert torch.equal(same_batch.inputs, batch.inputs)
        assert other_loss == pytest.approx(loss, rel=1e-6)
        assert other_norm == pytest.approx(norm, rel=1e-5)
        for a, b in zip(gradients, others, strict=True):
            assert torch.allclose(a, b, atol=1e-7, rtol=1e-4)
    assert [len(log) for log in table.log] == [1] * n  # a single exchange
    n_weights = sum(p.numel() for p in tiny(vocab, objective=objective).parameters())
    assert table.log[0][0].shape == (n_weights + 1,)


def test_each_target_counts_the_same_however_unequally_they_are_spread():
    """One row with 1 hidden token, one with 8: a mean of the two means would weigh the first 4.5 times."""
    ids = some_ids(32).view(2, 16)
    targets = torch.full((2, 16), -100)
    targets[0, 3] = ids[0, 3]
    targets[1, :8] = ids[1, :8]
    batch = Batch(torch.where(targets >= 0, 20, ids), targets)

    def step(processes):
        model = tiny(21, objective="mlm")
        return train(model, some_ids(), [], settings(), processes=processes).gradients(batch)

    model = tiny(21, objective="mlm")
    surprisals = -model(batch.inputs).detach().log_softmax(-1).gather(2, ids[..., None])[..., 0]
    expected = float((surprisals[0, 3] + surprisals[1, :8].sum()) / 9)
    wrong = float((surprisals[0, 3] + surprisals[1, :8].mean()) / 2)
    results, _ = together(2, step)
    assert [loss for loss, _ in results] == pytest.approx([expected] * 2, rel=1e-6)
    assert abs(wrong - expected) > 1e-3


@pytest.mark.parametrize("objective", ["clm", "mlm"])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_losses_and_evaluations_are_those_of_one_process(objective, optimizer):
    ids, vocab = some_ids(), 20 + (objective == "mlm")
    config = settings(steps=25, batch_size=5, eval_rows=7, optimizer=optimizer, moments=4)
    lengths = [1] * vocab

    def run(processes):
        model = tiny(vocab, objective=objective)
        how = {"bytes_per_token": lengths, "processes": processes}
        return model, list(train(model, ids[:1800], ids[1800:], config, **how))

    _, alone = run(ALONE)
    results, _ = together(2, run)
    for _, events in results:
        assert [type(e) for e in events] == [type(e) for e in alone]
        for a, b in zip(steps_of(alone), steps_of(events), strict=True):
            assert (b.loss, b.grad_norm) == pytest.approx((a.loss, a.grad_norm), rel=1e-3)
            assert (b.step, b.learning_rate, b.tokens) == (a.step, a.learning_rate, a.tokens)
        for a, b in zip(evals_of(alone), evals_of(events), strict=True):
            assert (b.train_loss, b.val_loss, b.perplexity) == pytest.approx(
                (a.train_loss, a.val_loss, a.perplexity), rel=1e-3
            )
            assert b.bits_per_byte == (a.bits_per_byte and pytest.approx(a.bits_per_byte, rel=1e-3))
    (first, events), (second, others) = results
    assert same_weights(first, second)  # to the last bit, without ever being sent
    assert evals_of(events) == evals_of(others)


def test_with_dropout_each_process_drops_different_numbers():
    ids = some_ids(17)  # a single window: both rows of a batch are the same, so their losses tell

    def losses(dropout):
        def step(processes):
            run = train(tiny(dropout=dropout), ids, [], settings(batch_size=2), processes=processes)
            run.gradients(run.draw())

        _, table = together(2, step)
        return [float(log[0][-1]) for log in table.log]

    same, different = losses(0.0), losses(0.5)
    assert same[0] == same[1]
    assert abs(different[0] - different[1]) > 1e-3


def test_with_dropout_each_step_drops_anew_and_the_same_again_when_it_is_repeated():
    ids = some_ids()

    def step(processes):
        run = train(tiny(dropout=0.5), ids, [], settings(), processes=processes)
        batch = run.draw()
        for at in (0, 1, 1):  # no update in between: only what is dropped may differ
            run.step = at
            run.gradients(batch)

    _, table = together(2, step)
    first, second, again = (float(row[-1]) for row in table.log[1])
    assert abs(first - second) > 1e-3 and second == again


def test_a_parallel_run_with_dropout_goes_on_bit_for_bit_from_what_process_0_kept():
    ids, config = some_ids(), settings(steps=20, checkpoint_every=8, batch_size=5)

    def run(processes, resume=None):
        return list(train(tiny(dropout=0.3), ids, ids[:200], config, resume=resume, processes=processes))

    (events, _), _ = together(2, run)
    state = next(e.state for e in events if isinstance(e, CheckpointEvent))
    (later, _), _ = together(2, lambda processes: run(processes, state))
    assert [e.loss for e in steps_of(later)] == [e.loss for e in steps_of(events) if e.step > 8]


def test_a_divergence_ends_all_at_the_same_step():
    config = settings(steps=500, learning_rate=1e3, warmup_steps=0, schedule="constant")

    def run(processes):
        return list(train(tiny(), some_ids(), [], config, processes=processes))

    results, _ = together(2, run)
    assert all(isinstance(error, DivergedError) for error in results)
    assert results[0].step == results[1].step


# ---- in step


def test_when_process_0_leaves_all_leave_at_the_same_event():
    def work(processes):
        seen, events = [], InStep(iter(range(100)), processes)
        for event in events:
            seen.append(event)
            if processes.rank == 0 and event == 4:
                break
        if processes.rank == 0:
            events.leave()
        return seen

    assert together(3, work)[0] == [[0, 1, 2, 3, 4]] * 3


def test_process_0_hears_that_another_was_asked_to_stop_and_decides():
    def work(processes):
        heard, seen = [], []
        events = InStep(iter(range(100)), processes, lambda: heard.append(seen[-1]))
        for event in events:
            seen.append(event)
            if processes.rank == 1 and event == 4:
                events.ask()
            if processes.rank == 0 and heard:
                break
        if processes.rank == 0:
            events.leave()
        return seen, heard

    (seen, heard), (others, _) = together(2, work)[0]
    assert heard == [4]
    assert seen == others == [0, 1, 2, 3, 4, 5]


def test_at_the_end_nobody_waits_for_a_word():
    def work(processes):
        events = InStep(iter(range(3)), processes)
        seen = list(events)
        if processes.rank == 0:
            events.leave()
        return seen

    assert together(2, work)[0] == [[0, 1, 2]] * 2


# ---- real processes


REAL = """
import json, sys
from engine import parallel
from engine.training import train
from tests.engine.small_training import evals_of, settings, some_ids, steps_of, tiny

processes = parallel.join()
said = processes.tell("hello" if processes.rank == 0 else "")
for objective in ("clm", "mlm"):
    model = tiny(20 + (objective == "mlm"), objective=objective)
    config = settings(steps=15, batch_size=5, eval_every=5)
    events = list(train(model, some_ids(), some_ids(300, seed=8), config, processes=processes))
    digest = float(sum(p.detach().double().sum() for p in model.parameters()))
    numbers = [[e.loss, e.grad_norm] for e in steps_of(events)], [e.val_loss for e in evals_of(events)]
    print(json.dumps([said, processes.rank, processes.n, digest, *numbers]))
parallel.leave()
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def start(n, *arguments):
    """Processes as torchrun would start them."""
    shared = {"WORLD_SIZE": str(n), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    shared |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "PYTHONPATH": str(REPO)}
    return [
        subprocess.Popen(
            [sys.executable, *arguments],
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPO,
        )
        for rank in range(n)
    ]  # fmt: skip


def ended(processes, seconds=300):
    """(exit status, output, errors) of each; none is left running."""
    try:
        said = [process.communicate(timeout=seconds) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    return [(process.returncode, *both) for process, both in zip(processes, said, strict=True)]


def test_two_real_processes_train_like_one():
    results = ended(start(2, "-c", REAL))
    assert [status for status, _, _ in results] == [0, 0], results
    per_rank = [[json.loads(line) for line in output.splitlines()] for _, output, _ in results]
    for k, objective in enumerate(("clm", "mlm")):
        model = tiny(20 + (objective == "mlm"), objective=objective)
        config = settings(steps=15, batch_size=5, eval_every=5)
        events = list(train(model, some_ids(), some_ids(300, seed=8), config))
        expected = [x for e in steps_of(events) for x in (e.loss, e.grad_norm)]
        for rank in range(2):
            said, own_rank, n, digest, steps, evals = per_rank[rank][k]
            assert (said, own_rank, n) == ("hello", rank, 2)
            assert [x for pair in steps for x in pair] == pytest.approx(expected, rel=1e-3)
            assert evals == pytest.approx([e.val_loss for e in evals_of(events)], rel=1e-3)
            assert digest == per_rank[0][k][3]


@pytest.fixture
def store(tmp_path):
    store = RunStore(tmp_path / "home")
    yield store
    store.close()


def test_torchrun_makes_one_run_and_it_is_that_of_one_process(store, tmp_path):
    text = tmp_path / "cats.txt"
    text.write_text("the cat sat on the mat, the dog sat on the log.\n" * 60)
    options = [
        "--text", text, "--tokenizer", "characters", "--size", "nano", "--objective", "mlm", "--n-layer", "1",
        "--steps", "12", "--batch-size", "5", "--eval-every", "6", "--home", store.home, "--name", "Two",
    ]  # fmt: skip
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "engine.training"]
    command = [sys.executable, *torchrun, *map(str, options)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, capture_output=True, text=True, cwd=REPO, env=env, check=False)
    assert result.returncode == 0, result.stderr
    (info,) = store.list()  # one folder, not two
    assert (info.state, info.step, info.name) == ("finished", 12, "Two")
    assert f"?run={info.id}" in result.stdout
    assert result.stdout.count("step 12/12") == 1  # one of them speaks
    assert read_json(info.folder / "status.json")["processes"] == 2

    again = store.create(spec_of(info), "me")
    train_here(store, again)
    for kind, name in (("step", "loss"), ("step", "grad_norm"), ("eval", "val_loss"), ("eval", "train_loss")):
        two, one = ([r[name] for r in store.history(i) if r["kind"] == kind] for i in (info.id, again))
        assert two == pytest.approx(one, rel=1e-3) and two != []
    assert [s for s, _ in store.checkpoints(info.id)] == [s for s, _ in store.checkpoints(again)]
    assert load_checkpoint(store.latest_checkpoint(info.id)).info["precision"] == "float32"


def spec_of(info):
    """The spec of a run, as the one-process twin needs it."""
    from engine.corpus import own_text
    from engine.runs import RunSpec
    from engine.tokenizers import tokenizer_from_json

    text = own_text((info.folder / "corpus.txt").read_text())
    tokenizer = tokenizer_from_json(read_json(info.folder / "tokenizer.json"))
    share = info.corpus["val_share"]
    return RunSpec("One alone", text, tokenizer, info.model, info.train, val_share=share)


def at_work(store, run_id, pair, step):
    """Wait until a pair has done some steps."""

    def passed():
        assert all(process.poll() is None for process in pair), ended(pair)
        return store.info(run_id).step > step

    wait_for(passed)


def test_a_wish_to_stop_reaches_all_and_a_killed_one_leaves_none_behind(store):
    run_id = store.create(spec(steps=1_000_000, checkpoint_every=1_000_000, eval_every=500), "me")
    folder = store.info(run_id).folder

    pair = start(2, "-m", "engine.training", str(folder))
    at_work(store, run_id, pair, 5)
    pair[1].send_signal(signal.SIGTERM)  # not even the one that writes
    assert [status for status, _, _ in ended(pair)] == [0, 0]
    info = store.info(run_id)
    assert info.state == "stopped" and info.step > 5
    assert store.checkpoints(run_id)[-1][0] == info.step

    pair = start(2, "-m", "engine.training", str(folder))
    at_work(store, run_id, pair, info.step + 5)
    pair[1].kill()
    (status, _, errors), _ = ended(pair)
    assert status == 1 and "Another of the 2 processes of this run ended" in errors
    later = store.info(run_id)
    assert later.state == "failed" and later.can_resume
    assert later.message.startswith("Another of the 2 processes of this run ended")
    assert later.message.endswith(f"The checkpoint of step {info.step} is intact.")


# ---- how they meet


def test_without_torchrun_there_is_one_process(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert parallel.join() is ALONE
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert parallel.join() is ALONE
    parallel.leave()


def test_a_process_that_does_not_answer_is_not_waited_for_for_ever(monkeypatch):
    import torch.distributed as dist

    given = {}
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(dist, "init_process_group", lambda backend, timeout: given.update(timeout=timeout))
    monkeypatch.setattr(dist, "get_rank", lambda: 1)
    monkeypatch.setattr(dist, "get_world_size", lambda: 2)
    assert parallel.join() == Processes(1, 2)
    assert given["timeout"].total_seconds() == 600

    def late(*arguments, **options):
        raise RuntimeError("Timed out waiting 600000ms for recv operation to complete")

    monkeypatch.setattr(dist, "all_reduce", late)
    with pytest.raises(LostProcessError, match="did not answer, so process 1 can't go on"):
        Processes(1, 2).most(0)


def test_processes_that_found_different_checkpoints_do_not_begin():
    from engine.run_setup import Setup
    from engine.tokenizers import byte_tokenizer

    class Found(Setup):
        @property
        def step(self):
            return self.config.seed

    def begin(processes):
        config, ids = settings(seed=processes.rank), (some_ids(), some_ids())
        return Found(config, byte_tokenizer(), ids, tiny(256), None).training(processes)

    results, _ = together(2, begin)
    assert all("found different checkpoints" in str(error) for error in results)


def test_too_few_gpus_is_said(monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "2")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match="has 2 GPUs, and this is its process 3.*--nproc-per-node=2"):
        parallel.own_gpu()


def test_the_threads_of_these_tests_are_processes_too():
    assert isinstance(Threads(0, 1, Table(1)), Processes)
