"""A run killed with -9 goes on to the very same losses, wherever the blow falls."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from engine.checkpoint_list import list_checkpoints
from engine.checkpoints import load_checkpoint
from engine.folders import read_json
from tests.engine.small_runs import REPO, losses, same_weights, spec, train_here, wait_for

# Large enough that a step takes some milliseconds, small enough for a test; all steps are written down.
SETTINGS = {"steps": 44, "d_model": 48, "context": 24, "batch_size": 24, "eval_every": 7}
SETTINGS |= {"checkpoint_every": 3, "moments": 6}


def test_ten_kills_at_random_moments(store):
    dice = random.Random(6)
    run_id, whole = store.create(spec(**SETTINGS), "me"), store.create(spec(**SETTINGS), "me")
    train_here(store, whole)
    metrics, kills = store.root / run_id / "metrics.jsonl", []
    while len(kills) < 10:
        lines = dice.randrange(1, 11)  # so many new lines, and then anywhere in what comes
        begin = len(metrics.read_bytes().splitlines()) if kills else 0
        store.resume(run_id, "me")
        store.warm()  # the next worker comes up while this one trains
        pid = read_json(store.root / run_id / "status.json")["pid"]

        def far_enough(n=begin + lines):
            return metrics.exists() and len(metrics.read_bytes().splitlines()) >= n

        wait_for(lambda far=far_enough: far() or not store.info(run_id).active)
        time.sleep(dice.random() * 0.03)
        if store.info(run_id).state == "finished":  # the blows fall late on a busy machine
            break
        assert store.info(run_id).active, f"it ended before the kill, after {kills}"
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not store.info(run_id).active)
        assert "was killed" in store.info(run_id).message
        kills.append(max((step for step, _ in store.checkpoints(run_id)), default=None))
    if store.info(run_id).state != "finished":
        store.resume(run_id, "me")
    wait_for(lambda: not store.info(run_id).active)
    assert store.info(run_id).state == "finished"
    assert losses(store, run_id) == losses(store, whole)
    assert same_weights(store, run_id, whole)
    assert [step for step, _ in store.checkpoints(run_id)] == [step for step, _ in store.checkpoints(whole)]
    assert len(set(kills)) > 3, "the blows fell on different moments"


DYING = """
import os, signal, sys
from pathlib import Path
from engine import worker
from engine.runs import RunStore

replace, left = os.replace, int(sys.argv[4])

def dying(old, new):
    global left
    if Path(new).match(sys.argv[3]):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
    replace(old, new)

os.replace = dying
worker.run_folder(RunStore(sys.argv[1]).claim(sys.argv[2]), report=lambda text: None)
"""


@pytest.mark.parametrize(
    ("file", "nth", "resumed_from"),
    [("checkpoints/[0-9]*", 4, 10), ("checkpoints/*/checkpoint.json", 2, 20), ("*/model.safetensors", 2, 20)],
)
def test_killed_in_the_middle_of_saving(store, file, nth, resumed_from):
    """When a folder gets its name; when an older moment is made small: its description, its weights."""
    changes = {"steps": 30, "checkpoint_every": 5}
    run_id, whole = store.create(spec(**changes), "me"), store.create(spec(**changes), "me")
    train_here(store, whole)
    command = [sys.executable, "-c", DYING, str(store.home), run_id, file, str(nth)]
    assert subprocess.run(command, cwd=REPO, check=False).returncode == -signal.SIGKILL
    found = list_checkpoints(store.root / run_id)
    assert [step for step, _ in found] == list(range(5, found[-1][0] + 1, 5))
    kept = [load_checkpoint(path) for _, path in found]  # all of them open
    assert [c.step for c in kept if c.optimizer_state][-1] == kept[-1].step
    assert train_here(store, run_id).state == "finished"
    assert losses(store, run_id) == losses(store, whole)
    assert same_weights(store, run_id, whole)
    assert {load_checkpoint(p).dtype for _, p in store.checkpoints(run_id)[:-2]} == {"int8"}
    leftovers = [p for p in (store.root / run_id).rglob(".*")]
    assert leftovers == []
