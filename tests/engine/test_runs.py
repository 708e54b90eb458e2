import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch

from engine import command_line, run_queue, run_session, run_setup, worker
from engine.checkpoints import load_checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.corpus import own_text, stories
from engine.folders import read_json
from engine.model import Transformer
from engine.processes import process_mark, worker_lives
from engine.records import merge_records, read_records
from engine.run_info import language_of
from engine.runs import RunSpec, RunStore, update_status
from engine.tokenizers import byte_tokenizer, char_tokenizer, train_bpe
from engine.training import EvalEvent, StepEvent, train
from tests.engine.small_runs import (
    REPO,
    TEXT,
    of_kind,
    spec,
    train_here,
    wait_for,
    wait_for_step,
    without_times,
)

# ---- one run, in this process


def test_a_run_from_start_to_end(store):
    run_id = store.create(spec(), "me")
    before = store.info(run_id)
    assert (before.state, before.step, before.steps, before.has_checkpoint) == ("stopped", 0, 30, False)
    info = train_here(store, run_id)
    assert (info.state, info.step, info.message, info.device) == ("finished", 30, "", "cpu")
    records = store.history(run_id)
    assert [r["step"] for r in of_kind(records, "step")] == list(range(1, 31))
    assert [r["step"] for r in of_kind(records, "eval")] == [0, 10, 20, 30]
    assert records[0]["kind"] == "eval"  # the start line comes first
    assert of_kind(records, "sample")[-1]["step"] == 30 and of_kind(records, "sample")[-1]["text"]
    assert of_kind(records, "step")[-1]["tokens"] == 30 * 4 * 16
    assert [step for step, _ in store.checkpoints(run_id)] == [10, 20, 30]
    checkpoint = load_checkpoint(store.latest_checkpoint(run_id))
    assert checkpoint.step == 30
    assert checkpoint.info["val_loss"] == of_kind(records, "eval")[-1]["val_loss"]


def test_the_folder_gives_the_numbers_of_the_plain_loop(store):
    one = spec()
    run_id = store.create(one, "me")
    train_here(store, run_id)
    ids = one.tokenizer.encode(TEXT)
    cut = len(TEXT) - round(len(TEXT) * 0.1)
    model = Transformer(one.model, torch.Generator().manual_seed(0))
    events = list(train(model, ids[:cut], ids[cut:], one.train, bytes_per_token=[1] * 30))
    records = store.history(run_id)
    assert [r["loss"] for r in of_kind(records, "step")] == [
        e.loss for e in events if isinstance(e, StepEvent)
    ]
    evals = [(e.val_loss, e.bits_per_byte) for e in events if isinstance(e, EvalEvent)]
    assert [(r["val_loss"], r["bits_per_byte"]) for r in of_kind(records, "eval")] == evals
    trained = load_checkpoint(store.latest_checkpoint(run_id)).model
    assert all(torch.equal(a, b) for a, b in zip(trained.parameters(), model.parameters(), strict=True))


def test_a_masked_run_shows_a_filled_sentence(store):
    run_id = store.create(spec(objective="mlm"), "me")
    assert train_here(store, run_id).state == "finished"
    sample = of_kind(store.history(run_id), "sample")[-1]
    assert "[MASK]" in sample["masked"] and "[MASK]" not in sample["text"] + sample["truth"]
    assert len(sample["text"]) == len(sample["truth"])  # characters: one token each
    assert all(r["bits_per_byte"] is None for r in of_kind(store.history(run_id), "eval"))


@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_a_run_on_stories_knows_its_floor(store, objective):
    corpus = stories(150, seed=5)
    tokenizer = train_bpe(corpus.text, 400)
    one = spec(
        text=corpus,
        tokenizer=tokenizer,
        objective=objective,
        steps=2,
        eval_every=1,
        aligned_share=1.0,
        context=24,
        eval_rows=8,
    )
    run_id = store.create(one, "me")
    assert train_here(store, run_id).state == "finished"
    floors = of_kind(store.history(run_id), "floor")
    assert len(floors) == 1  # computed once
    assert 0 <= floors[0]["value"] < of_kind(store.history(run_id), "eval")[0]["val_loss"]
    assert load_checkpoint(store.latest_checkpoint(run_id)).info["floor"] == floors[0]["value"]


def test_the_floor_is_the_surprisal_under_the_true_source():
    from engine.floor import validation_floor
    from engine.grammar import default_grammar
    from engine.oracle import Oracle

    corpus = stories(150, seed=5)
    tokenizer = train_bpe(corpus.text, 400)
    ids = tokenizer.encode(corpus.val_text)
    model = Transformer(
        ModelConfig(vocab_size=tokenizer.vocab_size, context_length=24, n_layer=1, n_head=1, d_model=8)
    )
    settings = TrainConfig(steps=1, aligned_share=1.0, eval_rows=6)
    run = train(model, ids, ids, settings, line_end_ids=tokenizer.line_end_ids)
    oracle, expected = Oracle(default_grammar(), tokenizer), []
    for row, targets in zip(run.val_batch.inputs.tolist(), run.val_batch.targets.tolist(), strict=True):
        probs = oracle.distributions(row)  # another way to the same number: whole distributions
        expected += [-float(torch.log(torch.tensor(probs[t, target]))) for t, target in enumerate(targets)]
    floor = validation_floor(tokenizer, ids, run.val_at, run.val_batch, "clm")
    assert floor == pytest.approx(sum(expected) / len(expected), abs=1e-9)


def test_a_diverged_run_names_the_step_and_keeps_its_checkpoint(store):
    run_id = store.create(
        spec(
            steps=300,
            learning_rate=1e3,
            warmup_steps=0,
            schedule="constant",
            checkpoint_every=1,
            eval_every=300,
        ),
        "me",
    )
    with pytest.raises(ValueError):
        train_here(store, run_id)
    info = store.info(run_id)
    assert info.state == "failed"
    last = store.checkpoints(run_id)[-1][0]
    assert (
        f"Step {last + 1} failed" in info.message and f"checkpoint of step {last} is intact" in info.message
    )
    assert all(
        p.isfinite().all() for p in load_checkpoint(store.latest_checkpoint(run_id)).model.parameters()
    )
    assert info.diverged and not info.can_resume
    with pytest.raises(ValueError, match="would diverge again.*lower learning rate"):
        store.resume(run_id, "me")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
)
def test_out_of_memory_suggests_a_smaller_batch_and_the_next_run_works(store, monkeypatch, error):
    def too_large(*args, **kwargs):
        raise error

    monkeypatch.setattr(run_setup, "train", too_large)
    run_id = store.create(spec(), "me")
    with pytest.raises(type(error)):
        train_here(store, run_id)
    assert store.info(run_id).state == "failed"
    assert "not enough memory for batch_size 4" in store.info(run_id).message
    assert "Try batch_size 1" in store.info(run_id).message
    monkeypatch.undo()
    assert train_here(store, run_id).state == "finished"


def test_another_error_becomes_one_sentence(store, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr(run_setup, "train", broken)
    run_id = store.create(spec(), "me")
    with pytest.raises(RuntimeError):
        train_here(store, run_id)
    assert "RuntimeError: first line. The details" in store.info(run_id).message
    assert "second" not in store.info(run_id).message


def test_no_validation_is_none_not_nan(store):
    run_id = store.create(spec(val_share=0.0), "me")
    assert train_here(store, run_id).state == "finished"
    evals = of_kind(store.history(run_id), "eval")
    assert {(r["val_loss"], r["perplexity"]) for r in evals} == {(None, None)}
    assert "NaN" not in (store.info(run_id).folder / "metrics.jsonl").read_text()


def test_one_symbol(store):
    letters = "a" * 1000
    run_id = store.create(spec(text=letters, tokenizer=char_tokenizer(letters)), "me")
    assert train_here(store, run_id).state == "finished"
    assert {r["loss"] for r in of_kind(store.history(run_id), "step")} == {0.0}
    with pytest.raises(ValueError, match=r"training text has \d tokens"):
        store.create(spec(text=letters, tokenizer=train_bpe(letters, 300, pattern=r"[\s\S]+")), "me")


# ---- resume


def stop_after(store, run_id, step, monkeypatch):
    """Train here and stop after a step, as if the user had pressed Stop."""
    monkeypatch.setattr(run_session.Run, "stop_asked", lambda run: run._training.step >= step)
    worker.run_folder(store.claim(run_id), report=lambda text: None)
    monkeypatch.undo()


def test_stop_and_resume_make_the_same_run(store, monkeypatch):
    whole, parts = store.create(spec(steps=50), "me"), store.create(spec(steps=50), "me")
    train_here(store, whole)
    for step in (13, 40):
        stop_after(store, parts, step, monkeypatch)
        info = store.info(parts)
        assert (info.state, info.step) == ("stopped", step)
        assert info.message == f"Stopped at step {step}. It can go on from there."
        assert store.checkpoints(parts)[-1][0] == step
    train_here(store, parts)
    pick = ("step", "eval")
    assert without_times(r for r in store.history(parts) if r["kind"] in pick) == without_times(
        r for r in store.history(whole) if r["kind"] in pick
    )
    one, two = (load_checkpoint(store.latest_checkpoint(i)).model for i in (whole, parts))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_the_curve_has_no_double_steps_after_a_crash(store, monkeypatch):
    run_id = store.create(spec(), "me")
    followed, offset = [], 0

    def crash(self, state):
        if state["step"] == 20:
            raise KeyboardInterrupt  # not caught: as if the process had gone
        save(self, state)

    save = run_session.Run._save
    monkeypatch.setattr(run_session.Run, "_save", crash)
    folder = store.claim(run_id)
    with pytest.raises(KeyboardInterrupt):
        worker.run_folder(folder, report=lambda text: None)
    monkeypatch.undo()
    with open(folder / "metrics.jsonl", "a") as file:
        file.write('{"kind": "step", "step": 2')  # and it died in the middle of a line
    new, offset = store.metrics(run_id, offset)
    merge_records(followed, new)
    assert store.history(run_id)[-1]["step"] == 20
    update_status(folder, state="failed")
    assert train_here(store, run_id).state == "finished"
    new, offset = store.metrics(run_id, offset)
    merge_records(followed, new)
    assert [r["step"] for r in of_kind(followed, "step")] == list(range(1, 31))
    assert followed == store.history(run_id) == RunStore(store.home).history(run_id)


def test_a_damaged_newest_checkpoint_is_passed_over(store, monkeypatch):
    run_id = store.create(spec(), "me")
    stop_after(store, run_id, 20, monkeypatch)
    path = store.latest_checkpoint(run_id) / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    said = []
    worker.run_folder(store.claim(run_id), report=said.append)
    assert "0000020 is damaged" in said[0]
    assert [r["step"] for r in of_kind(store.history(run_id), "step")] == list(range(1, 31))


def test_all_but_the_two_newest_checkpoints_are_made_small(store):
    run_id = store.create(spec(steps=50, moments=6), "me")
    train_here(store, run_id)
    kept = {step: load_checkpoint(path) for step, path in store.checkpoints(run_id)}
    assert list(kept) == sorted({0, 1, 5, 10, 14, 20, 29, 30, 40, 50})  # the moments, and every tenth step
    for step, checkpoint in kept.items():
        assert checkpoint.step == step
        assert checkpoint.dtype == ("float32" if step >= 40 else "int8")
        assert (checkpoint.optimizer_state is not None) == (step >= 40)


def test_no_room_to_make_one_small_is_no_reason_to_stop(store, monkeypatch):
    def full(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_session, "compact_checkpoint", full)
    run_id, said = store.create(spec(steps=50), "me"), []
    worker.run_folder(store.claim(run_id), report=said.append)
    assert store.info(run_id).state == "finished"
    assert any("0000010 was not made smaller" in line and "No space left" in line for line in said)
    assert {load_checkpoint(path).dtype for _, path in store.checkpoints(run_id)} == {"float32"}
    monkeypatch.undo()
    run = store.root / run_id / "run.json"
    run.write_text(run.read_text().replace('"steps": 50', '"steps": 60'))
    train_here(store, run_id)  # there is room again
    dtypes = [load_checkpoint(path).dtype for _, path in store.checkpoints(run_id)]
    assert dtypes == ["int8"] * 4 + ["float32"] * 2


def test_going_on_from_8_bits_is_said(store):
    run_id = store.create(spec(steps=30), "me")
    train_here(store, run_id)
    for _, path in store.checkpoints(run_id)[1:]:
        weights = path / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    update_status(store.root / run_id, state="failed")
    assert train_here(store, run_id).state == "finished"
    notices = [r["message"] for r in of_kind(store.history(run_id), "notice")]
    assert any("only a copy in 8 bits could be opened, that of step 10" in n for n in notices)
    assert any("optimizer restarted" in n for n in notices)
    assert [r["step"] for r in of_kind(store.history(run_id), "step")] == list(range(1, 31))


def test_killed_after_the_last_save_it_only_has_to_say_so(store, monkeypatch):
    run_id = store.create(spec(), "me")
    train_here(store, run_id)
    update_status(store.root / run_id, state="failed", message="killed")
    monkeypatch.setattr(store.queue, "slots", 0)
    store.resume(run_id, "me")
    assert train_here(store, run_id).state == "finished"
    assert [r["step"] for r in of_kind(store.history(run_id), "step")] == list(range(1, 31))


# ---- what is refused


def test_too_short_texts_are_refused_with_the_numbers(store):
    short = TEXT[:60]
    with pytest.raises(ValueError, match="validation text has 6 tokens, but a row needs 33"):
        store.create(spec(text=short, context=32), "me")
    with pytest.raises(ValueError, match="training text has 10 tokens, but a row needs 17"):
        store.start(spec(text=TEXT[:10], val_share=0.0), "me")
    assert store.list() == []
    assert store.create(spec(text=short, context=32, val_share=0.0), "me")


def test_settings_that_do_not_fit_are_refused(store):
    with pytest.raises(ValueError, match="needs a model with vocab_size 256 for clm, not 16"):
        store.create(RunSpec("x", own_text(TEXT), byte_tokenizer(), spec().model, spec().train), "me")
    with pytest.raises(ValueError, match="without 'X'"):
        store.create(
            RunSpec("x", own_text(TEXT), spec().tokenizer, spec().model, spec().train, sample_prompt="X"),
            "me",
        )


@pytest.mark.parametrize("run_id", ["../../etc", "..", "a/b", "", "no-such-run"])
def test_ids_can_not_leave_the_folder(store, run_id):
    for ask in (store.info, store.metrics, store.history, store.latest_checkpoint):
        with pytest.raises(ValueError):
            ask(run_id)
    for change in (store.stop, store.resume, store.delete):
        with pytest.raises(ValueError):
            change(run_id, "me")


def test_only_the_owner_may_change_a_run(store):
    run_id = store.create(spec(), "mine")
    for change in (store.stop, store.resume, store.delete, lambda i, o: store.rename(i, o, "x")):
        with pytest.raises(PermissionError, match="belongs to somebody else"):
            change(run_id, "yours")
    info = store.info(run_id)
    assert info.owned_by("mine") and not info.owned_by("yours")
    assert [i.id for i in store.list("mine")] == [run_id] and store.list("yours") == []
    assert [i.id for i in store.list()] == [run_id]
    assert "mine" not in (info.folder / "run.json").read_text()
    store.rename(run_id, "mine", "Better")
    assert store.info(run_id).name == "Better"
    store.delete(run_id, "mine")
    assert store.list() == [] and not info.folder.exists()


def test_a_damaged_run_does_not_hide_the_others(store):
    good, bad = store.create(spec(), "me"), store.create(spec(), "me")
    (store.root / bad / "run.json").write_text("{")
    (store.root / "stranger").mkdir()
    assert [i.id for i in store.list()] == [good]
    with pytest.raises(ValueError, match="can't be read"):
        store.info(bad)


def test_nothing_to_resume(store):
    run_id = store.create(spec(steps=10), "me")
    train_here(store, run_id)
    with pytest.raises(ValueError, match="has done 10 of 10 steps. Give more steps"):
        store.resume(run_id, "me")


# ---- records


def test_a_line_being_written_waits(tmp_path):
    path = tmp_path / "metrics.jsonl"
    assert read_records(path) == ([], 0)
    path.write_bytes(b'{"kind": "step", "step": 1}\n{"kind": "st')
    records, offset = read_records(path)
    assert [(r["kind"], r["step"]) for r in records] == [("step", 1)] and offset == 28
    with open(path, "ab") as file:
        file.write(b'ep", "step": 2}\nrubbish\n[1]\n')
    assert [(r["kind"], r["step"]) for r in read_records(path, offset)[0]] == [("step", 2)]


def test_infinity_becomes_null(tmp_path):
    from engine.records import Metrics

    metrics = Metrics(tmp_path / "m")
    metrics.write("eval", 1, perplexity=float("inf"), val_loss=800.0, other=float("nan"))
    metrics.close()
    line = json.loads((tmp_path / "m").read_text(), parse_constant=lambda c: pytest.fail(c))
    assert line == {"kind": "eval", "step": 1, "perplexity": None, "val_loss": 800.0, "other": None}


# ---- processes


def test_a_process_is_told_from_a_later_one_with_the_same_number():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    mark = process_mark(child.pid)
    assert mark and worker_lives({"pid": child.pid, "mark": mark})
    assert not worker_lives({"pid": child.pid, "mark": mark + "0"})
    child.kill()
    wait_for(lambda: process_mark(child.pid) == "")  # not even as a zombie, before it is waited for
    child.communicate()
    assert not worker_lives({"pid": None})


def test_start_watch_stop_resume_finish(store):
    """The whole way with real processes. The long run would take minutes: Stop must end it."""
    run_id = store.start(spec(steps=200_000, checkpoint_every=100_000), "me")
    assert store.start(spec(steps=200_000, checkpoint_every=100_000), "me") == run_id  # pressed twice
    wait_for_step(store, run_id, 60)
    records = store.history(run_id)
    assert records[0]["kind"] == "eval" and records[0]["step"] == 0
    info = store.info(run_id)
    assert info.state == "running" and info.tokens_per_second > 0 and info.eta_s > 0
    if hasattr(os, "getpriority"):
        pid = read_json(info.folder / "status.json")["pid"]
        assert os.getpriority(os.PRIO_PROCESS, pid) == max(1, os.nice(0))
    with pytest.raises(ValueError, match="is running already"):
        store.resume(run_id, "me")
    with pytest.raises(ValueError, match="Stop it first"):
        store.delete(run_id, "me")
    asked = time.monotonic()
    store.stop(run_id, "me")
    assert store.info(run_id).message.startswith("Stopping") or not store.info(run_id).active
    stopped = wait_for(lambda: (i := store.info(run_id)).state == "stopped" and i)
    assert time.monotonic() - asked < 2
    assert store.checkpoints(run_id)[-1][0] == stopped.step > 60
    store.resume(run_id, "me", steps=stopped.step + 20)
    info = wait_for(lambda: not (i := store.info(run_id)).active and i)
    assert (info.state, info.step, info.steps) == ("finished", stopped.step + 20, stopped.step + 20)
    steps = [r["step"] for r in of_kind(store.history(run_id), "step")]
    assert steps == sorted(set(steps)) and steps[:50] == list(range(1, 51))
    assert "Traceback" not in (info.folder / "worker.log").read_text()
    assert wait_for(lambda: store.queue.rewarm() or not store.queue.workers._busy)  # reaped: no zombie stays


def test_what_befalls_a_run_is_written_in_the_language_of_who_started_it(store, monkeypatch):
    monkeypatch.setenv("LOUPE_LANGUAGE", "es")
    killed, trained = store.create(spec(), "me"), store.start(spec(steps=2), "me")
    monkeypatch.delenv("LOUPE_LANGUAGE")
    update_status(store.root / killed, state="running", pid=1, mark="of another process")
    store.pump()
    assert store.info(killed).message.startswith("El proceso de entrenamiento se interrumpió")
    wait_for(lambda: store.info(trained).state == "finished")
    assert "paso 2/2: entrenamiento" in (store.root / trained / "worker.log").read_text("utf-8")
    (store.root / killed / "run.json").write_text('{"language": ["es"]}', "utf-8")
    assert language_of(store.root / killed) == "en"


def test_a_killed_worker_is_noticed_and_its_run_resumed(store):
    run_id = store.start(spec(steps=100_000, checkpoint_every=10), "me")
    wait_for_step(store, run_id, 30)
    os.kill(read_json(store.root / run_id / "status.json")["pid"], signal.SIGKILL)
    other = RunStore(store.home)  # as after a restart of the server
    info = wait_for(lambda: (i := other.info(run_id)).state == "failed" and i, 5)
    last = other.checkpoints(run_id)[-1][0]
    assert info.message == (
        "The training process was killed. If the machine ran out of memory, a smaller model, a shorter "
        "context or fewer rows in a step need less. "
        f"It can go on from step {last}."
    )
    other.resume(run_id, "me", steps=last + 15)
    assert wait_for(lambda: not (i := other.info(run_id)).active and i).state == "finished"
    steps = [r["step"] for r in of_kind(other.history(run_id), "step")]
    assert steps == sorted(set(steps))
    assert steps[-1] == last + 15
    other.close()


def test_runs_wait_in_line_and_workers_start_the_next(tmp_path, monkeypatch):
    monkeypatch.setenv("LOUPE_MAX_RUNS", "1")
    monkeypatch.setenv("LOUPE_NICE", "1")
    store = RunStore(tmp_path / "home")
    first = store.start(spec(steps=100_000), "a")
    second, third = (
        store.start(spec(steps=15), owner) for owner in ("b", "c")
    )  # the same settings, other people
    assert [store.info(i).queue_place for i in (first, second, third)] == [None, 1, 2]
    assert {i.id: i.queue_place for i in store.list()} == {first: None, second: 1, third: 2}
    store.stop(second, "b")
    assert store.info(second).state == "stopped" and store.info(third).queue_place == 1
    store.stop(first, "a")
    # From here on nobody looks through the store: the first worker's end starts what waits.
    wait_for(lambda: read_json(store.root / third / "status.json").get("state") == "finished")
    assert store.info(first).state == store.info(second).state == "stopped"
    store.close()


def test_many_starts_at_once_are_one_run(store, monkeypatch):
    started = []
    monkeypatch.setattr(
        run_queue.Workers,
        "take",
        lambda self: started.append(1) or subprocess.Popen(["sleep", "60"], stdin=-1),
    )
    stores = [store, RunStore(store.home)]
    ids = []
    threads = [threading.Thread(target=lambda s=s: ids.append(s.start(spec(), "me"))) for s in stores * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 1 and len(ids) == 8 and len(started) == 1
    for s in stores:
        for process in s.queue.workers._busy:
            process.kill()
            process.wait()


def test_a_warm_worker_leaves_when_the_server_is_gone(tmp_path):
    code = (
        "import pathlib, sys; from engine.processes import Workers; w = Workers(pathlib.Path(sys.argv[1])); "
        "w.warm(); print(w.idle.pid, flush=True); sys.stdin.read()"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "workers.log")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPO,
    )  # fmt: skip
    pid = int(server.stdout.readline())
    assert process_mark(pid)
    server.kill()
    server.communicate()
    wait_for(lambda: process_mark(pid) == "")


def test_the_command_line_prints_progress_and_an_estimate_and_needs_no_screen(store):
    run_id = store.create(spec(steps=20), "me")
    folder = store.info(run_id).folder
    command = [sys.executable, "-X", "importtime", "-m", "engine.training", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=REPO, check=True)
    lines = result.stdout.splitlines()
    assert lines[0].startswith("step 0/20: train 2.") and "validation" in lines[0]
    assert "s left" in lines[1] and lines[-1] == "finished"
    assert store.info(run_id).state == "finished"
    imported = {line.split("|")[-1].strip().split(".")[0] for line in result.stderr.splitlines()}
    assert "torch" in imported and not imported & {"streamlit", "plotly", "pandas"}


def test_the_command_line_says_what_it_needs(store):
    with pytest.raises(SystemExit, match="is no run: it has no run.json"):
        command_line.main([str(store.root)])
    run_id = store.create(spec(), "me")
    update_status(store.claim(run_id), state="running")
    with pytest.raises(SystemExit, match="is being trained by another process"):
        command_line.main([str(store.root / run_id)])
