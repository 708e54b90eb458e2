"""A worker that is killed with signal 9, again and again, wherever the blow falls."""

import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from engine.checkpoint_list import list_checkpoints
from engine.checkpoints import load_checkpoint
from engine.folders import read_json
from engine.runs import RunStore
from trials.faults_kit import (
    ME,
    Tally,
    at_work,
    ended,
    kill,
    spec,
    wait_until,
    whole_run,
    worker_of,
    wrong_after,
    wrong_at_end,
)
from trials.outcomes import Options

ROOT = Path(__file__).parent.parent
# A worker that dies right before the nth file gets its name, of those that a pattern fits; "begin": at once.
DYING = """
import os, signal, sys
from pathlib import Path
from engine import run_session, worker
from engine.runs import RunStore

home, run_id, pattern, nth = sys.argv[1:]
left, replace, evaluation = int(nth), os.replace, run_session.RunLog.evaluation

def blow(name):
    global left
    if Path(name).match(pattern):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

def dying(old, new, **named):
    blow(str(new))
    replace(old, new, **named)

def dying_evaluation(self, *rest):
    evaluation(self, *rest)
    blow("evaluation")

os.replace, run_session.RunLog.evaluation = dying, dying_evaluation
folder = RunStore(home).claim(run_id)
blow("begin")
worker.run_folder(folder, report=lambda text: None)
"""
MOMENTS = {
    "at its start": ("begin", 1),
    "when it says that it runs": ("*/status.json", 3),
    "after an evaluation": ("evaluation", 2),
    "at its end": ("checkpoints/0000030", 1),
    "while an older one is made small": ("checkpoints/*/checkpoint.json", 1),
    "between its new weights and their name": ("*/model.safetensors", 1),
    "while a checkpoint is saved": ("checkpoints/[0-9]*", 2),
}
SLOW = {
    "steps": 48,
    "d_model": 48,
    "context_length": 24,
    "batch_size": 24,
    "checkpoint_every": 4,
    "moments": 6,
}


def trial(options: Options) -> Tally:
    """At chosen moments, then at drawn ones, several times in the same run; resumed each time."""
    tally, dice = Tally("worker killed with signal 9"), random.Random(options.seed)
    with at_work() as store:
        _at_chosen_moments(store, tally, 1 if options.toy else len(MOMENTS))
        if not options.toy:
            _in_a_pause(store, tally)
            for i in range(2):
                _at_drawn_moments(store, tally, dice, 10, seed=i)
    return tally.promise(
        "After each kill the newest checkpoint loads, the curve has each step once, and a run that goes on "
        "ends with the same losses bit for bit"
    )


def _at_chosen_moments(store: RunStore, tally: Tally, n: int) -> None:
    """Each moment in a run of its own, in which it is then killed once more."""
    whole = whole_run(store, moments=4)
    for name, (pattern, nth) in list(MOMENTS.items())[-n:]:
        run_id = store.create(spec(moments=4), ME)
        command = [sys.executable, "-c", DYING, str(store.home), run_id, pattern, str(nth)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        wrong = "" if done.returncode == -9 else f"it did not die {name}: {done.stderr[-300:]}"
        wrong = wrong or wrong_after(store.root / run_id, store.root / whole) or _not_said(store, run_id)
        if not wrong:
            store.resume(run_id, ME)
            ended(store, run_id)
            wrong = wrong_at_end(store, run_id, whole)
        tally.count(wrong and f"killed {name}: {wrong}")


def _not_said(store: RunStore, run_id: str) -> str:
    info = store.info(run_id)
    said = "was killed" in info.message and info.can_resume
    return "" if said else f"it is said to be {info.state}: {info.message}"


def _in_a_pause(store: RunStore, tally: Tally) -> None:
    whole = whole_run(store)
    run_id = store.start(spec(), ME)
    store.step(run_id, ME, 7) if _paused_at_once(store, run_id) else None
    wait_until(lambda: store.info(run_id).state == "paused" and store.info(run_id).step == 7)
    kill(worker_of(store.root / run_id))
    info = ended(store, run_id)
    wrong = "" if info.state == "failed" else f"it is {info.state}"
    store.resume(run_id, ME)
    ended(store, run_id)
    tally.count(wrong or wrong_at_end(store, run_id, whole))


def _paused_at_once(store: RunStore, run_id: str) -> bool:
    """Pause it before it has done much; it may have been quicker."""
    store.pause(run_id, ME)
    return wait_until(lambda: store.info(run_id).state == "paused") and store.info(run_id).step < 7


def _at_drawn_moments(store: RunStore, tally: Tally, dice: random.Random, n: int, seed: int) -> None:
    """Many blows in one run, each at a drawn record and then a drawn part of a step later."""
    whole, run_id = whole_run(store, **SLOW, seed=seed), store.create(spec(**SLOW, seed=seed), ME)
    folder = store.root / run_id
    for _ in range(n):
        begin = _n_records(folder)
        store.resume(run_id, ME)
        store.warm()  # the next worker comes up while this one trains
        _wait_for(store, run_id, begin + dice.randrange(1, 9))
        time.sleep(dice.random() * 0.03)
        pid = worker_of(folder)
        if not pid or not store.info(run_id).active:
            break
        with suppress(ProcessLookupError):
            kill(pid)
        if ended(store, run_id).state != "failed":
            break  # it had just ended: no blow fell
        tally.count(wrong_after(folder, store.root / whole) or _damaged(folder))
    if store.info(run_id).state != "finished":
        store.resume(run_id, ME)
        ended(store, run_id)
    tally.look(wrong_at_end(store, run_id, whole))


def _n_records(folder: Path) -> int:
    file = folder / "metrics.jsonl"
    return len(file.read_bytes().splitlines()) if file.exists() else 0


def _wait_for(store: RunStore, run_id: str, lines: int) -> None:
    folder = store.root / run_id
    wait_until(lambda: _n_records(folder) >= lines or not store.info(run_id).active)


def _damaged(folder: Path) -> str:
    """A checkpoint that is listed must open, whichever it is."""
    for _, path in list_checkpoints(folder):
        try:
            load_checkpoint(path)
        except ValueError as error:
            return f"a listed checkpoint does not open: {error}"
    return "" if read_json(folder / "run.json") else "run.json does not open"
