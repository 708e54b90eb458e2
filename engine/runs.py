"""A run is a folder and a process: make it, queue it, start it, follow it, pause it, stop it, resume it.

The folder is the only link: pages read it, the worker writes it, neither holds the other's objects. So a run
outlives a page change, a closed tab and a restarted server. What lies in it: see `engine.run_folder`.
"""

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine import plain_log
from engine.checkpoint_list import newest_checkpoint
from engine.config import TrainConfig
from engine.dead_runs import dead_status
from engine.folders import data_folder, read_json, told, write_file, write_json
from engine.owners import owner_hash
from engine.processes import process_mark, worker_lives
from engine.records import read_records as read_records
from engine.run_bin import make_room, sweep
from engine.run_folder import make_folder
from engine.run_info import ACTIVE, AT_WORK, PAUSE, STOP, pause_step
from engine.run_info import RunInfo as RunInfo
from engine.run_info import update_status as update_status
from engine.run_keeper import RunKeeper
from engine.run_spec import RunSpec as RunSpec
from engine.run_spec import spec_hash
from engine.tuning_size import NoRoomError, check_disk
from wording import words

say = words("engine.runs")

Names = list[str]

MOST_ACTIVE = 60  # runs of one person that run or wait; the largest study of the app has 15
MOST_RUNS = 500  # runs of one person that are kept


class RunStore(RunKeeper):
    """All runs of one home folder. One object serves all sessions and threads of a process."""

    def __init__(self, home: str | Path | None = None) -> None:
        """Open a home folder; None is $LOUPE_HOME, or .loupe beside app.py."""
        super().__init__(data_folder(home).absolute())
        sweep(self.root)

    def warm(self) -> None:
        """Start a worker in the background, and keep one ready from now on: then a run begins at once."""
        self.queue.warm()

    def close(self) -> None:
        """End the idle worker. Runs go on."""
        self.queue.close()

    # ---- making runs

    @told()
    def create(self, spec: RunSpec, owner: str) -> str:
        """Make a run without starting it; gives its id.

        Raises:
            ValueError: if it could not be trained, with the numbers.
        """
        sizes = spec.check()
        self._check_disk(spec)
        with self.queue.lock():
            return make_folder(
                self.root, spec, owner, sizes, {"state": "stopped", "message": say("not_started_yet")}
            )

    def start(self, spec: RunSpec, owner: str) -> str:
        """Make a run and start it, or queue it; gives its id.

        The same settings from the same owner while such a run is active are that run: a double click starts
        one. If it is paused, it goes on.

        Raises:
            ValueError: if it could not be trained, with the numbers.
        """
        return self.start_many([spec], owner)[0]

    @told()
    def start_many(self, specs: Sequence[RunSpec], owner: str) -> Names:
        """Make several runs and start or queue them, all or none; gives their ids in the same order.

        The same set again while one of it is active is that set, runs that ended already included.

        Raises:
            ValueError: if one of them could not be trained, with the numbers.
        """
        known = self._same(specs, owner)
        if not known:
            counted: dict[tuple[str, str], int] = {}
            sizes = [spec.check(counted) for spec in specs]
            for spec in specs:
                self._check_disk(spec)
            with self.queue.lock():
                known = self._same(specs, owner)
                if not known:
                    return self._queue_new(specs, owner, sizes)
        for run_id in known:
            if self.info(run_id).state == "paused":
                with suppress(ValueError):  # it ended at this very moment
                    self.resume(run_id, owner)
        return known

    def _check_disk(self, spec: RunSpec) -> None:
        """See that there is room; what was deleted makes way, as far as that helps."""
        try:
            check_disk(self.root, spec.model, spec.train)
        except NoRoomError as error:
            if not make_room(self.root, error.missing):
                raise
            check_disk(self.root, spec.model, spec.train)

    def _queue_new(self, specs: Sequence[RunSpec], owner: str, sizes: Sequence[tuple[int, int]]) -> Names:
        """Make what isn't active yet. Under the lock."""
        there = self._of(owner)
        alive = {key: run_id for key, run_id, lives in there if lives}
        n_new = len({spec_hash(spec) for spec in specs} - alive.keys())
        if len(alive) + n_new > MOST_ACTIVE:
            raise ValueError(say("too_many_active", n=len(alive), most=MOST_ACTIVE))
        if len(there) + n_new > MOST_RUNS:
            raise ValueError(say("too_many_kept", n=len(there), most=MOST_RUNS))
        made: Names = []
        try:
            for spec, size in zip(specs, sizes, strict=True):
                key = spec_hash(spec)
                if key not in alive:
                    queued = {"state": "queued", "queued_at": time.time()}
                    alive[key] = make_folder(self.root, spec, owner, size, queued)
                    made.append(alive[key])
        except BaseException:  # a disk that became full: none of them has begun yet
            for run_id in made:
                shutil.rmtree(self.root / run_id, ignore_errors=True)
            raise
        for run_id in made:
            steps = self.queue.settings(run_id)["train"]["steps"]
            plain_log.info("run queued", home=self.home, run=run_id, steps=steps)
        self.queue.pump()
        return [alive[spec_hash(spec)] for spec in specs]

    def _of(self, owner: str) -> list[tuple[str, str, bool]]:
        """(spec hash, id, whether it is active) of an owner's runs, oldest first."""
        whose, found = owner_hash(owner), []
        for run_id in self.queue.ids():
            run, status = (self.queue.json.read(self.root / run_id / n) for n in ("run.json", "status.json"))
            if run.get("owner") == whose:
                lives = status.get("state") == "queued" or (
                    status.get("state") in AT_WORK and worker_lives(status)
                )
                found.append((str(run.get("spec_hash")), run_id, lives))
        return found

    def _same(self, specs: Sequence[RunSpec], owner: str) -> Names:
        """The runs of a set of which at least one is active; [] if there is no such set."""
        wanted = {spec_hash(spec) for spec in specs}
        found: dict[str, tuple[bool, str]] = {}
        for key, run_id, lives in self._of(owner):
            if key in wanted:
                found[key] = max(found.get(key, (False, "")), (lives, run_id))  # an active one, or the newest
        if len(found) < len(wanted) or not any(lives for lives, _ in found.values()):
            return []
        return [found[spec_hash(spec)][1] for spec in specs]

    # ---- what its owner asks of a run, besides what `RunKeeper` has

    @told()
    def pause(self, run_id: str, owner: str) -> None:
        """Ask a run to wait after this step. One in the queue leaves it; one that isn't active is left alone.

        A paused run keeps its process, and its place, for 30 s or until another run needs the place; then it
        is stopped with a checkpoint, from which `step` and `resume` go on just as well.
        """
        with self.queue.lock():
            folder = self._own(run_id, owner)
            state = read_json(folder / "status.json").get("state")
            if state == "queued":
                self._stop(folder)
            elif state in AT_WORK:
                write_file(folder / PAUSE, b"0", durable=False)

    @told()
    def step(self, run_id: str, owner: str, n: int = 1) -> None:
        """Take `n` more steps, then pause. Asked again while they are being taken, it adds to them.

        Raises:
            ValueError: if it runs freely, or there is nothing left to do.
        """
        if n < 1:
            raise ValueError(say("one_step_or_more", n=n))
        with self.queue.lock():
            folder = self._own(run_id, owner)
            self.queue.notice_dead()
            run, status = read_json(folder / "run.json"), self._status(folder)
            asked = pause_step(folder)
            if status.get("state") in ACTIVE:
                if asked is None:
                    raise ValueError(say(f"pause_first.{status['state']}", run=run["name"]))
                begin = max(asked, status.get("step", 0))
            else:
                self._check_diverged(run, status)
                begin = (newest_checkpoint(folder) or (0,))[0]
            self._check_left(run, begin, run["train"]["steps"])
            write_file(folder / PAUSE, str(begin + n).encode(), durable=False)
            if status.get("state") not in ACTIVE:
                self._requeue(folder, run["train"]["steps"])

    @told()
    def resume(self, run_id: str, owner: str, steps: int | None = None) -> None:
        """Go on, from a pause or from the newest good checkpoint; `steps` is a new total, to train longer.

        Raises:
            ValueError: if it runs already, or there is nothing left to do.
        """
        if steps is not None:  # the schedule changes: the worker must begin anew
            self._let_go(self._own(run_id, owner), unless_total=steps)
        with self.queue.lock():
            folder = self._own(run_id, owner)
            self.queue.notice_dead()
            run, status = read_json(folder / "run.json"), self._status(folder)
            total = run["train"]["steps"] if steps is None else steps
            if status.get("state") in ACTIVE:
                if pause_step(folder) is None or total != run["train"]["steps"]:
                    raise ValueError(say(f"stop_first.{status['state']}", run=run["name"]))
                (folder / PAUSE).unlink(missing_ok=True)
                return
            self._check_diverged(run, status)
            done = (newest_checkpoint(folder) or (0,))[0]
            if status.get("state") == "finished" or steps is not None:
                self._check_left(
                    run, done, total
                )  # else a worker was killed between its last save and its end
            run["train"] = TrainConfig.from_json({**run["train"], "steps": total}).to_json()
            write_json(folder / "run.json", run)
            (folder / PAUSE).unlink(missing_ok=True)
            self._requeue(folder, total)

    def _status(self, folder: Path) -> dict[str, Any]:
        """How a run stands; of a dead one also if a full disk kept that from being written down."""
        status = read_json(folder / "status.json")
        return {**status, **(dead_status(folder, status) or {})}

    def _requeue(self, folder: Path, steps: int) -> None:
        (folder / STOP).unlink(missing_ok=True)
        self._forget_who_stopped(folder)
        update_status(folder, state="queued", queued_at=time.time(), message="", pid=None, steps=steps)
        plain_log.info("run queued again", home=self.home, run=folder.name, steps=steps)
        self.queue.pump()

    def _forget_who_stopped(self, folder: Path) -> None:
        run = read_json(folder / "run.json")
        if run.pop("stopped_by", None):
            write_json(folder / "run.json", run)

    def _check_diverged(self, run: dict[str, Any], status: dict[str, Any]) -> None:
        if status.get("state") == "failed" and status.get("diverged") is True:
            raise ValueError(say("would_diverge_again", run=run["name"]))

    def _check_left(self, run: dict[str, Any], done: int, total: int) -> None:
        if total <= done:
            raise ValueError(say("steps_are_done", run=run["name"], done=done, total=total))

    # ---- training without a worker

    def claim(self, run_id: str) -> Path:
        """Take a run for the calling process itself; gives its folder.

        Raises:
            ValueError: if it is active in another process.
        """
        with self.queue.lock():
            self.queue.notice_dead()
            folder = self.queue.folder(run_id)
            if self._status(folder).get("state") in AT_WORK:
                raise ValueError(say("trained_elsewhere", run_id=run_id))
            for asked in (STOP, PAUSE):
                (folder / asked).unlink(missing_ok=True)
            self._forget_who_stopped(folder)
            update_status(
                folder, state="starting", message="", pid=os.getpid(), mark=process_mark(os.getpid())
            )
        plain_log.info("run started", home=self.home, run=run_id, process=os.getpid())
        return folder
