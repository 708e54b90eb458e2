"""A run is a folder and a process: make it, queue it, start it, follow it, stop it, resume it.

The folder is the only link: pages read it, the worker writes it, neither holds the other's objects. So a run
outlives a page change, a closed tab and a restarted server. Several servers may share one home folder;
whatever changes a run's state happens under the home's lock.

    run.json        settings, seeds, whose it is        metrics.jsonl   one record a line, appended
    corpus.txt      the text (and corpus_val.txt)       status.json     state, step, heartbeat
    tokenizer.json  the vocabulary                      checkpoints/    one folder for each kept step
"""

import hashlib
import json
import os
import secrets
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from engine.checkpoints import list_checkpoints
from engine.config import ModelConfig, TrainConfig
from engine.corpus import Corpus, split
from engine.folders import checked_name, read_json, write_json
from engine.processes import REPO, Workers, process_mark, worker_lives
from engine.records import Records, merge_records
from engine.records import read_records as read_records
from engine.tokenizers import Tokenizer
from engine.training import check_lengths

ACTIVE = ("queued", "starting", "running")
Kept = list[tuple[int, Path]]  # step, checkpoint folder
REWARM_SECONDS = 15.0  # after a start, so that the next worker's imports don't slow its first steps


@dataclass(frozen=True, eq=False)
class RunSpec:
    """Everything that makes a run.

    Attributes:
        val_share: end of the text kept for validation, unless the corpus has a validation text of its own.
        sample_prompt: what the samples on the way continue; None is the start of a line.
        device: "auto" is a GPU when there is one, else the CPU.
        group: names an experiment that several runs belong to; "" for a run of its own.
        label: what this run is in its group, such as "too low".
        also_scored: further texts by name that are scored at each evaluation and never learned from.
    """

    name: str
    corpus: Corpus
    tokenizer: Tokenizer
    model: ModelConfig
    train: TrainConfig
    val_share: float = 0.1
    sample_prompt: str | None = None
    device: str = "auto"
    group: str = ""
    label: str = ""
    also_scored: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> tuple[int, int]:
        """Number of training and validation tokens.

        Raises:
            ValueError: if such a run could not be trained: text too short, tokenizer and model that don't
                fit.
        """
        need = self.tokenizer.model_vocab_size(self.model.objective)
        if self.model.vocab_size != need:
            raise ValueError(
                f"The tokenizer {self.tokenizer.name} needs a model with vocab_size {need} for "
                f"{self.model.objective}, "
                f"not {self.model.vocab_size}."
            )
        if self.device not in ("auto", "cpu", "cuda"):
            raise ValueError(f"device must be auto, cpu or cuda, not {self.device!r}.")
        if self.sample_prompt:
            self.tokenizer.encode(self.sample_prompt)  # a character vocabulary may not know it
        sizes = [len(self.tokenizer.encode(text)) for text in split(self.corpus, self.val_share)]
        check_lengths(sizes[0], sizes[1], self.model.context_length)
        return sizes[0], sizes[1]

    def to_json(self) -> dict[str, Any]:
        """Settings as plain values; texts and vocabulary as fingerprints."""
        return {
            "model": self.model.to_json(),
            "train": self.train.to_json(),
            "corpus": {
                "name": self.corpus.name,
                "kind": self.corpus.kind,
                "val_share": self.val_share,
                "sha256": self.corpus.sha256,
            },
            "tokenizer": {"name": self.tokenizer.name, "hash": self.tokenizer.hash},
            "sample_prompt": self.sample_prompt,
            "device": self.device,
            "group": self.group,
            "label": self.label,
            "also_scored": {n: hashlib.sha256(t.encode()).hexdigest() for n, t in self.also_scored.items()},
        }


@dataclass(frozen=True)
class RunInfo:
    """A run as a page shows it.

    Attributes:
        state: queued, starting, running, stopped, finished or failed.
        message: one sentence, or "".
        queue_place: 1 is next; None unless queued.
        corpus: name, kind, val_share, sha256, train_tokens, val_tokens.
        created, updated: seconds since 1970.
        device: that holds the weights; "" before it runs.
        eta_s: seconds left, estimated.
        diverged: whether it ended because a number was no longer finite.
        group, label: the experiment that it belongs to and what it is there, or "".
    """

    id: str
    name: str
    state: str
    step: int
    steps: int
    message: str
    queue_place: int | None
    model: ModelConfig
    train: TrainConfig
    corpus: dict[str, Any]
    tokenizer: str
    created: float
    updated: float
    owner_hash: str
    device: str
    tokens_per_second: float | None
    eta_s: float | None
    has_checkpoint: bool
    folder: Path
    diverged: bool = False
    group: str = ""
    label: str = ""

    @property
    def active(self) -> bool:
        """Whether it runs or waits to run."""
        return self.state in ACTIVE

    @property
    def can_resume(self) -> bool:
        """Whether `RunStore.resume` needs nothing but the id. A run that diverged would only do so again."""
        return self.state in ("stopped", "failed") and not self.diverged

    def owned_by(self, owner: str) -> bool:
        """Whether this token may stop, resume, rename and delete it."""
        return secrets.compare_digest(self.owner_hash, _owner_hash(owner))


Infos = list[RunInfo]  # named here, since inside RunStore `list` is a method
Names = list[str]


def _owner_hash(owner: str) -> str:
    return hashlib.sha256(owner.encode()).hexdigest()


def update_status(folder: Path, *, durable: bool = True, **changes: Any) -> dict[str, Any]:
    """Change some entries of a run's status.json, and the time in it."""
    status = {**read_json(folder / "status.json"), **changes, "updated": time.time()}
    write_json(folder / "status.json", status, durable=durable)
    return status


class RunStore:
    """All runs of one home folder. One object serves all sessions and threads of a process."""

    def __init__(self, home: str | Path | None = None) -> None:
        """Open a home folder; None is $LOUPE_HOME, or .loupe beside app.py."""
        self.home = Path(home or os.environ.get("LOUPE_HOME") or REPO / ".loupe").absolute()
        self.root = self.home / "runs"
        self.root.mkdir(parents=True, exist_ok=True)
        self.slots = int(os.environ.get("LOUPE_MAX_RUNS") or max(2, (os.cpu_count() or 1) - 1))
        self._workers = Workers(self.home / "workers.log")
        self._mutex = threading.RLock()  # guards what is below, and `_workers`
        self._keep_warm = False
        self._last_pump = self._last_launch = 0.0
        self._histories: dict[str, tuple[int, Records]] = {}

    # ---- what a page asks for

    def warm(self) -> None:
        """Start a worker in the background, and keep one ready from now on: then a run begins at once."""
        with self._mutex:
            self._keep_warm = True
            self._workers.warm()

    def close(self) -> None:
        """End the idle worker. Runs go on."""
        with self._mutex:
            self._keep_warm = False
            self._workers.close()

    def create(self, spec: RunSpec, owner: str) -> str:
        """Make a run without starting it; gives its id.

        Raises:
            ValueError: if it could not be trained, with the numbers.
        """
        sizes = spec.check()
        with self._lock():
            return self._make(spec, owner, sizes, {"state": "stopped", "message": "Not started yet."})

    def start(self, spec: RunSpec, owner: str) -> str:
        """Make a run and start it, or queue it; gives its id.

        The same settings from the same owner while such a run is active are that run: a double click starts
        one.

        Raises:
            ValueError: if it could not be trained, with the numbers.
        """
        if running := self._same(spec, owner):
            return running
        sizes = spec.check()
        with self._lock():
            run_id = self._same(spec, owner) or self._make(
                spec, owner, sizes, {"state": "queued", "queued_at": time.time()}
            )
            self._pump()
        return run_id

    def stop(self, run_id: str, owner: str) -> None:
        """Ask a run to stop with a checkpoint: within one step when it runs, at once when it waits."""
        with self._lock():
            folder = self._own(run_id, owner)
            state = read_json(folder / "status.json").get("state")
            if state == "queued":
                update_status(folder, state="stopped", message="Taken out of the queue.")
            elif state in ACTIVE:
                (folder / "stop").touch()

    def resume(self, run_id: str, owner: str, steps: int | None = None) -> None:
        """Go on from the newest good checkpoint; `steps` is a new total, to make a run longer.

        Raises:
            ValueError: if it is active, or there is nothing left to do.
        """
        with self._lock():
            folder = self._own(run_id, owner)
            run, status = read_json(folder / "run.json"), read_json(folder / "status.json")
            if status.get("state") in ACTIVE:
                raise ValueError(f"The run {run['name']} is {status['state']} already. Stop it first.")
            if status.get("state") == "failed" and status.get("diverged") is True:
                raise ValueError(
                    f"The run {run['name']} would diverge again at the same step: it repeats itself exactly. "
                    "Start a new one with a lower learning rate."
                )
            total = run["train"]["steps"] if steps is None else steps
            done = max((step for step, _ in list_checkpoints(folder)), default=0)
            if total <= done:
                raise ValueError(
                    f"The run {run['name']} has done {done} of {total} steps. Give more steps to train on."
                )
            run["train"] = TrainConfig.from_json({**run["train"], "steps": total}).to_json()
            write_json(folder / "run.json", run)
            (folder / "stop").unlink(missing_ok=True)
            update_status(folder, state="queued", queued_at=time.time(), message="", pid=None, steps=total)
            self._pump()

    def delete(self, run_id: str, owner: str) -> None:
        """Remove a run and all its files.

        Raises:
            ValueError: if it is active.
        """
        with self._lock():
            folder = self._own(run_id, owner)
            if read_json(folder / "status.json").get("state") in ACTIVE:
                raise ValueError("This run is still active. Stop it first, then delete it.")
            aside = self.root / f".{run_id}.deleted"
            os.replace(folder, aside)  # gone from every list at once
        shutil.rmtree(aside, ignore_errors=True)
        with self._mutex:
            self._histories.pop(run_id, None)

    def rename(self, run_id: str, owner: str, name: str) -> None:
        """Give a run another name; the id stays."""
        with self._lock():
            folder = self._own(run_id, owner)
            write_json(
                folder / "run.json", {**read_json(folder / "run.json"), "name": name.strip() or run_id}
            )

    def list(self, owner: str | None = None) -> Infos:
        """Runs, newest first; with an owner, only theirs."""
        infos = [i for i in map(self._read_info, self._ids()) if i is not None]
        if any(self._needs_pump(i.folder) for i in infos) and self._pump_if_due():
            infos = [i for i in map(self._read_info, self._ids()) if i is not None]
        places = self._queue_places()
        shown = [
            replace(i, queue_place=places.get(i.id)) for i in infos if owner is None or i.owned_by(owner)
        ]
        return sorted(shown, key=lambda i: (i.created, i.id), reverse=True)

    def info(self, run_id: str) -> RunInfo:
        """How a run stands now. Dead workers are noticed and free slots filled on the way.

        Raises:
            ValueError: if there is no such run.
        """
        folder = self._folder(run_id)
        if self._needs_pump(folder):
            self._pump_if_due()
        self._rewarm()
        info = self._read_info(run_id)
        if info is None:
            raise ValueError(
                f"The run {run_id} can't be read: its run.json is missing or damaged. Delete its folder."
            )
        return replace(info, queue_place=self._queue_places().get(run_id)) if info.state == "queued" else info

    def metrics(self, run_id: str, offset: int = 0) -> tuple[Records, int]:
        """Records appended since `offset`, and the next offset. See `merge_records` for "resume" records."""
        return read_records(self._folder(run_id) / "metrics.jsonl", offset)

    def history(self, run_id: str) -> Records:
        """All records of a run in order; after a resume none is there twice."""
        with self._mutex:
            offset, records = self._histories.pop(run_id, (0, []))
            new, offset = self.metrics(run_id, offset)
            merge_records(records, new)
            self._histories[run_id] = (offset, records)  # now the newest entry
            while len(self._histories) > 50:
                self._histories.pop(next(iter(self._histories)))
            return list(records)

    def checkpoints(self, run_id: str) -> Kept:
        """Complete checkpoints as (step, folder), oldest first."""
        return list_checkpoints(self._folder(run_id))

    def latest_checkpoint(self, run_id: str) -> Path | None:
        """Folder of the newest complete checkpoint."""
        return next((path for _, path in reversed(self.checkpoints(run_id))), None)

    def pump(self) -> None:
        """Notice workers that died, then start waiting runs while slots are free."""
        with self._lock():
            self._pump()

    def claim(self, run_id: str) -> Path:
        """Take a run for the calling process itself; gives its folder.

        Raises:
            ValueError: if it is active in another process.
        """
        with self._lock():
            self._notice_dead()
            folder = self._folder(run_id)
            if read_json(folder / "status.json").get("state") in ("starting", "running"):
                raise ValueError(f"The run {run_id} is being trained by another process. Stop it first.")
            (folder / "stop").unlink(missing_ok=True)
            update_status(
                folder, state="starting", message="", pid=os.getpid(), mark=process_mark(os.getpid())
            )
        return folder

    # ---- inside

    def _lock(self) -> FileLock:
        return FileLock(self.home / "runs.lock")

    def _folder(self, run_id: str) -> Path:
        folder = self.root / checked_name(run_id)
        if not folder.is_dir():
            raise ValueError(f"There is no run {run_id} here. It may have been deleted.")
        return folder

    def _own(self, run_id: str, owner: str) -> Path:
        folder = self._folder(run_id)
        stored = str(read_json(folder / "run.json").get("owner"))
        if not secrets.compare_digest(stored, _owner_hash(owner)):
            raise PermissionError("This run belongs to somebody else, so you can watch it but not change it.")
        return folder

    def _ids(self) -> Names:
        return sorted(
            p.name for p in self.root.iterdir() if not p.name.startswith(".") and (p / "run.json").is_file()
        )

    def _same(self, spec: RunSpec, owner: str) -> str | None:
        wanted = (_spec_hash(spec), _owner_hash(owner))
        for run_id in self._ids():
            run, status = (read_json(self.root / run_id / name) for name in ("run.json", "status.json"))
            alive = status.get("state") == "queued" or (
                status.get("state") in ACTIVE and worker_lives(status)
            )
            if alive and (run.get("spec_hash"), run.get("owner")) == wanted:
                return run_id
        return None

    def _make(self, spec: RunSpec, owner: str, sizes: tuple[int, int], status: dict[str, Any]) -> str:
        """Write the folder under a hidden name, then show it: nobody ever sees half of it."""
        run_id = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        run = {
            "format": 1,
            "id": run_id,
            "name": spec.name.strip() or run_id,
            "created": time.time(),
            **spec.to_json(),
        }
        run |= {"owner": _owner_hash(owner), "spec_hash": _spec_hash(spec)}
        run["corpus"] |= {"train_tokens": sizes[0], "val_tokens": sizes[1]}
        hidden = self.root / f".{run_id}.new"
        hidden.mkdir()
        (hidden / "corpus.txt").write_bytes(spec.corpus.text.encode())
        if spec.corpus.val_text is not None:
            (hidden / "corpus_val.txt").write_bytes(spec.corpus.val_text.encode())
        write_json(hidden / "tokenizer.json", spec.tokenizer.to_json())
        write_json(hidden / "run.json", run)
        update_status(hidden, **{"step": 0, "message": "", "pid": None, "device": "", **status})
        os.replace(hidden, self.root / run_id)
        return run_id

    def _read_info(self, run_id: str) -> RunInfo | None:
        folder = self.root / run_id
        run, status = read_json(folder / "run.json"), read_json(folder / "status.json")
        try:
            state, message = status["state"], status.get("message", "")
            if state in ("starting", "running") and (folder / "stop").exists():
                message = "Stopping after this step …"
            return RunInfo(
                id=run_id,
                name=run["name"],
                state=state,
                step=status.get("step", 0),
                steps=run["train"]["steps"],
                message=message,
                queue_place=None,
                model=ModelConfig.from_json(run["model"]),
                train=TrainConfig.from_json(run["train"]),
                corpus=run["corpus"],
                tokenizer=run["tokenizer"]["name"],
                created=run["created"],
                updated=status.get("updated", run["created"]),
                owner_hash=run["owner"],
                device=status.get("device", ""),
                tokens_per_second=status.get("tokens_per_second"),
                eta_s=status.get("eta_s") if state == "running" else None,
                has_checkpoint=bool(list_checkpoints(folder)),
                folder=folder,
                diverged=state == "failed" and status.get("diverged", False) is True,
                group=run.get("group", ""),
                label=run.get("label", ""),
            )
        except (KeyError, TypeError, ValueError):  # not a run of ours, or a damaged one
            return None

    def _needs_pump(self, folder: Path) -> bool:
        status = read_json(folder / "status.json")
        state = status.get("state")
        return state == "queued" or (state in ACTIVE and not worker_lives(status))

    def _pump_if_due(self) -> bool:
        with self._mutex:
            if time.monotonic() - self._last_pump < 1.0:
                return False
            self._last_pump = time.monotonic()
        self.pump()
        return True

    def _rewarm(self) -> None:
        with self._mutex:
            self._workers.reap()
            if self._keep_warm and time.monotonic() - self._last_launch > REWARM_SECONDS:
                self._workers.warm()

    def _queue(self) -> Names:
        waiting = []
        for run_id in self._ids():
            status = read_json(self.root / run_id / "status.json")
            if status.get("state") == "queued":
                waiting.append((status.get("queued_at", 0.0), run_id))
        return [run_id for _, run_id in sorted(waiting)]

    def _queue_places(self) -> dict[str, int]:
        return {run_id: place for place, run_id in enumerate(self._queue(), start=1)}

    def _notice_dead(self) -> int:
        """Mark runs whose worker is gone; gives the number of those that live. Under the lock."""
        with self._mutex:
            self._workers.reap()
        living = 0
        for run_id in self._ids():
            folder = self.root / run_id
            status = read_json(folder / "status.json")
            if status.get("state") not in ("starting", "running"):
                continue
            if worker_lives(status):
                living += 1
                continue
            steps = [step for step, _ in list_checkpoints(folder)]
            way_out = (
                f"Resume goes on from step {steps[-1]}." if steps else "Resume starts again from step 0."
            )
            update_status(
                folder,
                state="failed",
                pid=None,
                message="The training process was killed (perhaps the machine ran out of memory). " + way_out,
            )
        return living

    def _pump(self) -> None:
        """Under the lock."""
        living = self._notice_dead()
        for run_id in self._queue()[: max(0, self.slots - living)]:
            self._launch(self.root / run_id)

    def _launch(self, folder: Path) -> None:
        """Give a run to a worker. The status names the worker first, so that neither can overtake."""
        with self._mutex:
            worker = self._workers.take()
            update_status(folder, state="starting", message="", pid=worker.pid, mark=process_mark(worker.pid))
            self._workers.send(worker, folder)
            self._last_launch = time.monotonic()


def _spec_hash(spec: RunSpec) -> str:
    return hashlib.sha256(json.dumps(spec.to_json(), sort_keys=True).encode()).hexdigest()[:16]
