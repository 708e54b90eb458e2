"""What can be asked of any run that is there: stop it, delete it, bring it back, keep it, rename it.

Its owner may, by their word; whoever has the teacher's secret may stop and delete anybody's.
"""

import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from engine import plain_log
from engine.dead_runs import dead_status
from engine.folders import read_json, told, write_file, write_json
from engine.owners import owner_hash
from engine.processes import worker_lives
from engine.run_bin import UNDO_SECONDS, aside, put_aside, put_back
from engine.run_info import ACTIVE, AT_WORK, PAUSE, STOP, TEACHER, language_of, update_status
from engine.run_reader import RunReader
from wording import words

say = words("engine.run_keeper")

LET_GO_SECONDS = 20.0  # a paused worker leaves within a moment, unless its checkpoint is large


class RunKeeper(RunReader):
    """All runs of one home folder, to look at, to stop and to delete."""

    def pump(self) -> None:
        """Notice workers that died, then start waiting runs while places are free."""
        with self.queue.lock():
            self.queue.pump()

    @told()
    def stop(self, run_id: str, owner: str) -> None:
        """Ask a run to stop with a checkpoint: within one step when it runs, at once when it waits."""
        with self.queue.lock():
            self._stop(self._own(run_id, owner))

    @told()
    def stop_for_teacher(self, *run_ids: str) -> None:
        """Stop anybody's runs and note by whom: for whoever has the teacher's secret.

        What is no active run is passed.
        """
        with self.queue.lock():
            ids = self.queue.ids()
            active = [run_id for run_id in ids if run_id in run_ids and self._is_active(run_id)]
            for run_id in active:
                folder = self.root / run_id
                with suppress(OSError):  # on a full disk above all it must be possible to stop
                    write_json(folder / "run.json", {**read_json(folder / "run.json"), "stopped_by": TEACHER})
            self._stop_all(active, by="teacher")

    def _is_active(self, run_id: str) -> bool:
        return read_json(self.root / run_id / "status.json").get("state") in ACTIVE

    @told()
    def stop_group(self, group: str, owner: str) -> None:
        """Stop all runs of an experiment."""
        if not group:
            raise ValueError(say("name_the_experiment"))
        with self.queue.lock():
            mine = self.queue.owned(owner_hash(owner))
            self._stop_all([run_id for run_id in mine if self.queue.settings(run_id).get("group") == group])

    def _stop_all(self, run_ids: Iterable[str], by: str = "") -> None:
        """Stop runs. Under the lock, so that none that waits takes a place that becomes free.

        Raises:
            OSError: of the first that could not be stopped, after all have been tried.
        """
        problem: OSError | None = None
        for run_id in run_ids:
            try:
                self._stop(self.root / run_id)
            except OSError as error:  # a full disk takes no new status, but whoever is at work hears of it
                problem = problem or error
                continue
            if by:
                plain_log.info("run stopped", home=self.home, run=run_id, by=by)
        if problem:
            raise problem

    def _stop(self, folder: Path) -> None:
        state = read_json(folder / "status.json").get("state")
        if state == "queued":
            (folder / PAUSE).unlink(missing_ok=True)
            message = say.written("taken_out_queue", language_of(folder))  # the teacher may speak another
            update_status(folder, state="stopped", message=message)
            plain_log.info("run taken out of the queue", home=self.home, run=folder.name)
        elif state in AT_WORK:
            (folder / STOP).touch()

    @told()
    def delete(self, run_id: str, owner: str) -> None:
        """Delete a run; a paused one is let go first. For some minutes `restore` brings it back.

        Raises:
            ValueError: if it is active.
        """
        self._delete(self._own(run_id, owner))
        plain_log.info("run deleted", home=self.home, run=run_id, by="owner")

    @told()
    def delete_for_teacher(self, run_id: str) -> None:
        """Delete anybody's run: for whoever has the teacher's secret.

        Raises:
            ValueError: if it is active.
        """
        self._delete(self.queue.folder(run_id))
        plain_log.info("run deleted", home=self.home, run=run_id, by="teacher")

    def _delete(self, folder: Path) -> None:
        self._let_go(folder)  # with a checkpoint: it may be brought back
        with self.queue.lock():
            status = read_json(self.queue.folder(folder.name) / "status.json")
            if status.get("state") in ACTIVE and dead_status(folder, status) is None:
                raise ValueError(say("still_active"))
            put_aside(folder)  # gone from every list at once
        with self._mutex:
            self._histories.pop(folder.name, None)

    @told()
    def restore(self, run_id: str, owner: str) -> None:
        """Bring back a run that was deleted a moment ago.

        Raises:
            ValueError: if it is gone for good.
        """
        self._bring_back(run_id, lambda folder: self._check_owner(folder, owner))

    @told()
    def restore_for_teacher(self, run_id: str) -> None:
        """Bring back anybody's run: for whoever has the teacher's secret.

        Raises:
            ValueError: if it is gone for good.
        """
        self._bring_back(run_id, lambda folder: None)

    def _bring_back(self, run_id: str, check: Callable[[Path], None]) -> None:
        folder = aside(self.root, run_id)
        with self.queue.lock():
            try:
                if not folder.is_dir():
                    raise FileNotFoundError(folder)
                check(folder)
                put_back(self.root, run_id)
            except FileNotFoundError as error:  # or a server that begins sweeps at this very moment
                raise ValueError(say("gone_for_good", minutes=UNDO_SECONDS / 60)) from error

    def _let_go(self, folder: Path, *, unless_total: int | None = None) -> None:
        """Have the worker of a paused run leave, and wait until it has; other runs are left alone."""
        with self.queue.lock():
            self.queue.folder(folder.name)  # somebody else may have deleted it meanwhile
            if unless_total and unless_total == read_json(folder / "run.json")["train"]["steps"]:
                return
            status = read_json(folder / "status.json")
            if status.get("state") != "paused":
                return
            write_file(folder / STOP, b"", durable=False)
        end = time.monotonic() + LET_GO_SECONDS
        while time.monotonic() < end:
            status = read_json(folder / "status.json")
            if status.get("state") != "paused" or not worker_lives(status):
                break
            time.sleep(0.01)
        self.pump()  # marks it if it was killed

    @told()
    def rename(self, run_id: str, owner: str, name: str) -> None:
        """Give a run another name; the id stays."""
        with self.queue.lock():
            folder = self._own(run_id, owner)
            write_json(
                folder / "run.json", {**read_json(folder / "run.json"), "name": name.strip() or run_id}
            )

    @told()
    def keep(self, run_id: str, owner: str, wanted: bool) -> None:
        """Let a run never be deleted by itself, or let it be again; see `engine.retention`."""
        with self.queue.lock():
            folder = self._own(run_id, owner)
            write_json(folder / "run.json", {**read_json(folder / "run.json"), "keep": bool(wanted)})

    def _own(self, run_id: str, owner: str) -> Path:
        folder = self.queue.folder(run_id)
        self._check_owner(folder, owner)
        return folder

    def _check_owner(self, folder: Path, owner: str) -> None:
        stored = read_json(folder / "run.json").get("owner")
        if not isinstance(stored, str) or not secrets.compare_digest(stored, owner_hash(owner)):
            raise PermissionError(say("somebody_elses"))
