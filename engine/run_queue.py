"""Which runs of a home folder run and which wait: places, workers that died, and who is next.

Several servers may share one home folder, and workers look at the queue too: whatever changes a run's state
happens under the home's lock.
"""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock

from engine import new_runs, plain_log, retention
from engine.checkpoint_list import newest_checkpoint
from engine.dead_runs import dead_status
from engine.folders import CLOCK_TICK, JsonReader, checked_name
from engine.processes import Workers, process_mark, worker_lives
from engine.run_bin import sweep
from engine.run_format import check_format, is_newer
from engine.run_info import ACTIVE, AT_WORK, update_status
from engine.turns import Turn, in_turn
from wording import words

say = words("engine.run_queue")

REWARM_SECONDS = 15.0  # after a start, so that the next worker's imports don't slow its first steps
PUMP_SECONDS = 1.0
TIDY_SECONDS = 60.0  # between two looks at what can be deleted for good


class RunQueue:
    """The runs of one home folder as the processes that train them see it.

    Attributes:
        home, root: the home folder and the folder of its runs.
        slots: how many runs may be at work at once.
        workers: the processes that this one started.
    """

    def __init__(self, home: Path) -> None:
        self.home, self.root = home, home / "runs"
        with suppress(OSError):  # it can't be written: there is nothing to look at, and Start says why
            self.root.mkdir(parents=True, exist_ok=True)
        self.slots = int(os.environ.get("LOUPE_MAX_RUNS") or max(2, (os.cpu_count() or 1) - 1))
        self.workers = Workers(home / "workers.log")
        self.json = JsonReader()
        self._mutex = threading.RLock()  # guards what is below, and `workers`
        self._keep_warm = False
        self._last_pump = self._last_launch = 0.0
        self._last_tidy = float("-inf")
        # When `root` last changed, the folders in it then, and which of them have a run.json.
        self._listed: tuple[int, list[str], dict[str, bool]] = (0, [], {})
        self._owners: dict[str, str] = {}  # whose a run is, which never changes

    def lock(self) -> FileLock:
        """Held by whoever changes the state of a run."""
        return FileLock(self.home / "runs.lock")

    def ids(self) -> list[str]:
        """All runs, in the order in which they were made; those of a newer version are left to it."""
        return [name for name in self._names() if not is_newer(self.settings(name))]

    def owned(self, owner_hash: str) -> list[str]:
        """The runs of one person, see `ids`. Of other people's no file is looked at, once it is known."""
        for name in self._names():
            if name not in self._owners and (settings := self.settings(name)):
                self._owners[name] = str(settings.get("owner"))
        return [
            name
            for name in self._names()
            if self._owners.get(name) == owner_hash and not is_newer(self.settings(name))
        ]

    def settings(self, run_id: str) -> dict[str, Any]:
        """What run.json says; not to be changed."""
        return self.json.read(f"{self.root}/{run_id}/run.json")

    def status(self, run_id: str) -> dict[str, Any]:
        """What status.json says; not to be changed."""
        return self.json.read(f"{self.root}/{run_id}/status.json")

    def _names(self) -> list[str]:
        """Folders with a run, by name; read anew when one came or went: that changes the time of `root`."""
        try:
            changed = self.root.stat().st_mtime_ns
        except FileNotFoundError:  # it could not be made
            return []
        known = self._listed
        if known[0] != changed:
            with os.scandir(self.root) as entries:
                known = (changed, sorted(e.name for e in entries if not e.name.startswith(".")), {})
            if time.time() - changed / 1e9 > CLOCK_TICK:  # within one tick more may come at the same time
                self._listed = known
        _, names, runs = known
        for name in names:
            if name not in runs and os.path.isfile(f"{self.root}/{name}/run.json"):
                runs[name] = True  # one that lacks it may be a copy that somebody is making
        return [name for name in names if name in runs] if len(runs) < len(names) else names

    def folder(self, run_id: str) -> Path:
        """Where a run lies.

        Raises:
            ValueError: if there is none of this name, or a newer version made it.
        """
        folder = self.root / checked_name(run_id)
        if not folder.is_dir():
            raise ValueError(say("no_run", run_id=run_id))
        check_format(self.json.read(folder / "run.json"), run_id)
        return folder

    def waiting(self) -> list[str]:
        """Runs that wait for a place, the next one first; see `engine.turns`."""
        turns, anybody = [], False
        for run_id in self._names():
            status = self.status(run_id)
            state = status.get("state")
            if state == "queued":
                turn, since = "waiting", status.get("queued_at")
            elif state in AT_WORK:
                turn, since = "at work", 0.0
            elif status.get("queued_at", 0) is None:  # it had a place: see `_launch`
                turn, since = "left", status.get("updated")
            else:
                continue
            settings = self.settings(run_id)
            if settings and not is_newer(settings):
                anybody |= turn == "waiting"
                turns.append(Turn(run_id, str(settings.get("owner")), turn, _number(since)))
        return in_turn(turns) if anybody else []

    def places(self) -> dict[str, int]:
        """Place of each waiting run in the queue, from 1."""
        return {run_id: place for place, run_id in enumerate(self.waiting(), start=1)}

    # ---- dead workers, free places

    def refresh(self, *run_ids: str) -> bool:
        """Notice dead workers and fill free places if one of these runs needs it; whether that was done.

        At most once a second, so that any number of pages may ask.
        """
        if not any(self._needs_pump(run_id) for run_id in run_ids):
            return False
        with self._mutex:
            if time.monotonic() - self._last_pump < PUMP_SECONDS:
                return False
            self._last_pump = time.monotonic()
        try:
            with self.lock():
                self.pump()
        except OSError:  # a full disk, or a folder that can't be written: what is there can be looked at
            return False
        return True

    def _needs_pump(self, run_id: str) -> bool:
        status = self.status(run_id)
        state = status.get("state")
        return not state or state == "queued" or (state in ACTIVE and not worker_lives(status))

    def pump(self) -> None:
        """Notice workers that died, then start waiting runs while places are free. Under the lock."""
        living = self.notice_dead()
        self.tidy()
        if not new_runs.may_begin(self.home):
            return
        for run_id in self.waiting()[: max(0, self.slots - living)]:
            self._launch(self.root / run_id)

    def tidy_due(self) -> bool:
        """Whether it is time for `tidy` again."""
        return time.monotonic() - self._last_tidy > TIDY_SECONDS

    def tidy(self) -> None:
        """Remove for good what was deleted a while ago, and once a day delete old runs. Under the lock."""
        if self.tidy_due():
            self._last_tidy = time.monotonic()
            sweep(self.root)
            self.json.forget_missing()
            for gone in self._owners.keys() - set(self._names()):
                self._owners.pop(gone, None)
            if retention.is_due(self.home):
                retention.tidy(self.home)

    def notice_dead(self) -> int:
        """Mark runs whose worker is gone; gives the number of those that live. Under the lock."""
        with self._mutex:
            self.workers.reap()
        living = 0
        for run_id in self.ids():
            folder = self.root / run_id
            status = self.status(run_id)
            dead = dead_status(folder, status)
            if dead is None:
                living += self.status(run_id).get("state") in AT_WORK
                continue
            with suppress(OSError):  # a full disk: readers see it all the same, see `RunReader`
                update_status(folder, **dead)
                what = "run killed" if status.get("state") else "run without a status"
                newest = newest_checkpoint(folder)
                kept = newest[0] if newest else None
                plain_log.warning(what, home=self.home, run=run_id, worker=status.get("pid"), kept=kept)
        return living

    def _launch(self, folder: Path) -> None:
        """Give a run to a worker. The status names the worker first, so that neither can overtake."""
        with self._mutex:
            worker = self.workers.take()
            mark = process_mark(worker.pid)
            update_status(folder, state="starting", message="", pid=worker.pid, mark=mark, queued_at=None)
            self.workers.send(worker, folder)
            self._last_launch = time.monotonic()
        plain_log.info("run started", home=self.home, run=folder.name, worker=worker.pid)

    # ---- a worker in readiness

    def warm(self) -> None:
        """Start a worker in the background, and keep one ready from now on."""
        with self._mutex:
            self._keep_warm = True
            with suppress(OSError):  # a folder that can't be written: whoever starts a run is told so
                self.workers.warm()

    def rewarm(self) -> None:
        """Let go of workers that ended, and have one ready again if that is wanted and nothing just began."""
        with self._mutex:
            self.workers.reap()
            if self._keep_warm and time.monotonic() - self._last_launch > REWARM_SECONDS:
                with suppress(OSError):
                    self.workers.warm()

    def close(self) -> None:
        """End the idle worker. Runs go on."""
        with self._mutex:
            self._keep_warm = False
            self.workers.close()


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
