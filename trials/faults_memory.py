"""Too little memory: a worker that may have no more of it, and one that the system kills for it."""

import os
import subprocess
import sys

from benchmarks.app import ROOT
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
    wrong_at_end,
)
from trials.outcomes import Options

# A worker that may have so many more MB of addresses than it has at its start.
BOUND = """
import resource, sys
from pathlib import Path
from engine import worker
from engine.runs import RunStore

worker.warm_up()
store = RunStore(sys.argv[1])
has = next(int(l.split()[1]) * 1024 for l in Path("/proc/self/status").read_text().splitlines()
           if l.startswith("VmSize"))
limit = has + int(sys.argv[3]) * 1024 * 1024
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
worker.run_folder(store.claim(sys.argv[2]), report=lambda text: None)
"""
LARGE = {"batch_size": 8192, "context_length": 64, "d_model": 64}


def trial(options: Options) -> Tally:
    """Bound the memory of a run that is far too large, and of one that fits."""
    tally = Tally("out of memory")
    with at_work() as store:
        whole = whole_run(store)
        if os.path.exists("/proc/self/status"):
            for megabytes in (400,) if options.toy else (60, 200, 400, 800):
                tally.count(_bound(store, megabytes))
            tally.look(_normal_afterwards(store, whole))
        else:
            tally.left_out = "this system does not tell how much memory a process has"
        tally.count(_killed(store))
    return tally.promise(
        "A run that needs too much memory ends with a sentence that names memory and a smaller size, and the "
        "next run is trained as if nothing had been"
    )


def _bound(store: RunStore, megabytes: int) -> str:
    run_id = store.create(spec(**LARGE), ME)
    command = [sys.executable, "-c", BOUND, str(store.home), run_id, str(megabytes)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    info = store.info(run_id)
    said = "memory" in info.message and ("batch_size 2048" in info.message or "fewer rows" in info.message)
    if info.state == "failed" and said and info.can_resume:
        return ""
    return f"{megabytes} MB more: {info.state}, {info.message!r}, {done.stderr[-200:]}"


def _normal_afterwards(store: RunStore, whole: str) -> str:
    run_id = store.start(spec(), ME)
    ended(store, run_id)
    return wrong_at_end(store, run_id, whole)


def _killed(store: RunStore) -> str:
    """As the system does it: signal 9, without a word."""
    run_id = store.start(spec(steps=100_000), ME)
    wait_until(lambda: bool(store.checkpoints(run_id)))
    kill(worker_of(store.root / run_id))
    info = ended(store, run_id)
    said = "memory" in info.message and "smaller model" in info.message and "It can go on" in info.message
    return "" if said and info.can_resume else f"killed, it says: {info.message}"
