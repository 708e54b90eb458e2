"""Self-test of runs: a worker process starts and answers, runs at work, workers that nobody needs."""

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from engine.checkpoint_list import newest_checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.corpus import own_text
from engine.folders import read_json
from engine.plain_log import kind_of
from engine.processes import Workers, worker_lives
from engine.run_info import AT_WORK
from engine.run_spec import RunSpec
from engine.runs import RunStore
from engine.selftest_result import FAILED, OK, WARNING, Fact, Outcome
from engine.tokenizers import char_tokenizer

STEPS = 2
PATIENCE = 45.0  # seconds for a worker; a machine that is busy with others may take longer
GRACE = 60.0  # seconds; a younger worker may just be starting, or starting the next run
PROC = Path("/proc")
_TEXT = "the cat sat on the mat.\n" * 20


class Trial:
    """A worker process with a run of two steps, in a folder that is thrown away."""

    def __init__(self, place: Path) -> None:
        """Start it."""
        self._began = time.monotonic()
        store = RunStore(place)
        tokenizer = char_tokenizer(_TEXT)
        model = ModelConfig(tokenizer.vocab_size, context_length=8, n_layer=1, n_head=1, d_model=8)
        config = TrainConfig(steps=STEPS, batch_size=1, eval_rows=1, eval_every=STEPS)
        run = RunSpec("self-test", own_text(_TEXT), tokenizer, model, config, device="cpu")
        self._folder = store.queue.folder(store.create(run, "self-test"))
        self._workers = Workers(place / "workers.log")
        self._process = self._workers.take()
        self._workers.send(self._process, self._folder)

    def end(self) -> Outcome:
        """Wait for the worker to leave, and see what it did. Ends it if it takes too long."""
        expected = Fact("worker_done", {"steps": STEPS})
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return Outcome(WARNING, Fact("worker_silent", {"x": PATIENCE}), expected)
        finally:
            self.stop()
        status, newest = read_json(self._folder / "status.json"), newest_checkpoint(self._folder)
        if status.get("state") == "finished" and newest is not None and newest[0] == STEPS:
            seconds = time.monotonic() - self._began
            return Outcome(OK, Fact("worker_answered", {"x": seconds}), expected)
        return Outcome(FAILED, Fact("worker_left", {"code": self._process.returncode}), expected)

    def stop(self) -> None:
        """No process is left behind."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._workers.close()


def begin(place: Path | None) -> "Trial | Outcome":
    """Start the trial, or say why it can't be."""
    expected = Fact("worker_done", {"steps": STEPS})
    if place is None:
        return Outcome(FAILED, Fact("no_folder"), expected)
    try:
        return Trial(place)
    except (OSError, ValueError) as error:  # no room for it
        return Outcome(FAILED, Fact("refused", {"kind": kind_of(error)}), expected)


def at_work(home: Path) -> Outcome:
    """Runs at work and waiting, and whether those at work have a worker that lives."""
    n_work = n_wait = n_dead = 0
    for status in statuses(home):
        if status.get("state") == "queued":
            n_wait += 1
        elif status.get("state") in AT_WORK:
            lives = worker_lives(status)
            n_work, n_dead = n_work + lives, n_dead + (not lives)
    counts = {"work": n_work, "wait": n_wait, "dead": n_dead}
    return Outcome(WARNING if n_dead else OK, Fact("runs_dead" if n_dead else "runs", counts), Fact("alive"))


def statuses(home: Path) -> list[dict[str, object]]:
    """status.json of each run."""
    return [read_json(path) for path in sorted((home / "runs").glob("[!.]*/status.json"))]


def orphans(home: Path) -> Outcome:
    """Workers of this data folder that have no run and whose server is gone."""
    if not (PROC / "self" / "stat").exists():
        return Outcome(OK, Fact("cant_tell"), Fact("no_orphans"))
    found = _orphans(home)
    if found:  # one may have been about to leave
        time.sleep(0.5)
        found &= _orphans(home)
    n = {"n": len(found)}
    none = Fact("no_orphans")
    return Outcome(WARNING, Fact("orphans", n), none) if found else Outcome(OK, none, none)


def _orphans(home: Path) -> set[int]:
    place = Path(os.path.abspath(home))
    mine = {int(str(status["pid"])) for status in statuses(home) if status.get("pid")}
    found = set()
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):  # it ended, or belongs to somebody else
            pid = int(folder.name)
            command = (folder / "cmdline").read_bytes().split(b"\0")
            if pid in mine or command[1:3] != [b"-m", b"engine.worker"]:
                continue
            if _home_of(folder) == place and _age(folder) > GRACE and not _has_server(folder):
                found.add(pid)
    return found


def _home_of(process: Path) -> Path:
    """The data folder of a worker: what its environment says, or the one beside the program."""
    entries = (process / "environ").read_bytes().split(b"\0")
    named = [entry.partition(b"=")[2] for entry in entries if entry.startswith(b"LOUPE_HOME=")]
    folder = Path(os.readlink(process / "cwd"))
    return Path(os.path.abspath(folder / os.fsdecode(named[0] if named and named[0] else b".loupe")))


def _stat(process: Path) -> list[str]:
    """What the system tells of a process, from its state on: proc(5), field 3 and those after it."""
    return (process / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()


def _age(process: Path) -> float:
    """Seconds since it was started."""
    since_boot = float((PROC / "uptime").read_text().split()[0])
    return since_boot - int(_stat(process)[19]) / os.sysconf("SC_CLK_TCK")


def _has_server(process: Path) -> bool:
    """Whether the process that started it lives: it is Python's, as this one is."""
    parent = PROC / _stat(process)[1]
    return b"python" in (parent / "cmdline").read_bytes().split(b"\0")[0]
