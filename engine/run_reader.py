"""What pages read of the runs of a home folder: how they stand, their records, their checkpoints."""

import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine import new_runs, retention
from engine.checkpoint_list import list_checkpoints, newest_checkpoint
from engine.dead_runs import dead_status
from engine.folders import checked_name
from engine.owners import owner_hash
from engine.records import Records, merge_records, read_records
from engine.run_info import Configs, RunInfo, configs_of, info_of
from engine.run_queue import RunQueue
from engine.run_sizes import RunSizes
from wording import words

say = words("engine.run_reader")

HISTORIES = 200  # so many runs' records are kept in memory

Kept = list[tuple[int, Path]]  # step, checkpoint folder
Infos = list[RunInfo]  # named here, since inside RunReader `list` is a method
Names = list[str]


class RunReader:
    """All runs of one home folder, to look at. Looking also notices dead workers and fills free places.

    Attributes:
        queue: who runs and who waits.
        home, root, slots: the home folder, the folder of its runs, and how many may be at work at once.
    """

    def __init__(self, home: Path) -> None:
        self.queue = RunQueue(home)
        self.home, self.root, self.slots = self.queue.home, self.queue.root, self.queue.slots
        self._mutex = threading.Lock()  # guards what is below
        self._histories: dict[str, tuple[int, Records]] = {}
        self._have_checkpoint: dict[str, tuple[int, bool]] = {}
        self._sizes = RunSizes()
        self._configs: dict[str, tuple[dict[str, Any], Configs | None]] = {}  # of a run.json as it was read

    def list(self, owner: str | None = None, group: str | None = None) -> Infos:
        """Runs, newest first; with an owner only theirs, with a group only those of that experiment."""
        ids = self._ids_of(owner)
        self.queue.refresh(*ids)
        if self.queue.tidy_due():
            self._tidy()
            ids = self._ids_of(owner)
        infos = [
            i for i in map(self._read_info, ids) if i is not None and (group is None or i.group == group)
        ]
        if any(i.state == "queued" for i in infos):
            places, held = self.queue.places(), not new_runs.may_begin(self.home)
            infos = [
                replace(i, queue_place=places.get(i.id), held=held) if i.state == "queued" else i
                for i in infos
            ]
        return sorted(infos, key=lambda i: (i.created, i.id), reverse=True)

    def _ids_of(self, owner: str | None) -> Names:
        return self.queue.ids() if owner is None else self.queue.owned(owner_hash(owner))

    def info(self, run_id: str) -> RunInfo:
        """How a run stands now. Dead workers are noticed and free places filled on the way.

        Raises:
            ValueError: if there is no such run.
        """
        self.queue.folder(run_id)
        self.queue.refresh(run_id)
        self.queue.rewarm()
        info = self._read_info(run_id)
        if info is None:
            raise ValueError(say("run_cant_read_run", run_id=run_id))
        if info.state != "queued":
            return info
        held = not new_runs.may_begin(self.home)
        return replace(info, queue_place=self.queue.places().get(run_id), held=held)

    def size(self, run_id: str) -> int:
        """Bytes of a run's folder; 0 if it is gone.

        Raises:
            ValueError: if that is no name of a run.
        """
        return self._sizes.of(self.root / checked_name(run_id))

    def opened(self, run_id: str) -> None:
        """Note that somebody looks at a run: it is not deleted by itself for a while."""
        folder = self.root / checked_name(run_id)
        if (folder / "run.json").is_file():
            retention.opened(folder)

    def unreadable(self) -> Names:
        """Folders among the runs that this version can't read: damaged, or of a newer one."""
        folders = (p for p in self.root.glob("*") if p.is_dir() and not p.name.startswith("."))
        readable = {run_id for run_id in self.queue.ids() if self._read_info(run_id) is not None}
        return sorted(p.name for p in folders if p.name not in readable)

    def _tidy(self) -> None:
        """Delete what is due, and forget what was kept of runs that are gone."""
        with suppress(OSError), self.queue.lock():  # a folder that can't be written is still looked at
            self.queue.tidy()
        ids = set(self.queue.ids())
        self._sizes.keep_only(ids)
        with self._mutex:
            for kept in (self._have_checkpoint, self._configs, self._histories):
                for gone in set(kept) - ids:
                    kept.pop(gone, None)

    def metrics(self, run_id: str, offset: int = 0) -> tuple[Records, int]:
        """Records appended since `offset`, and the next offset. See `merge_records` for "resume" records."""
        return read_records(self.queue.folder(run_id) / "metrics.jsonl", offset)

    def history(self, run_id: str) -> Records:
        """All records of a run in order; after a resume none is there twice."""
        with self._mutex:
            offset, records = self._histories.pop(run_id, (0, []))
            new, end = self.metrics(run_id, offset)
            if end < offset:  # the file is gone: what comes next begins anew
                records = []
            merge_records(records, new)
            self._histories[run_id] = (end, records)  # now the newest entry
            while len(self._histories) > HISTORIES:
                self._histories.pop(next(iter(self._histories)))
            return list(records)

    def checkpoints(self, run_id: str) -> Kept:
        """Complete checkpoints as (step, folder), oldest first."""
        return list_checkpoints(self.queue.folder(run_id))

    def latest_checkpoint(self, run_id: str) -> Path | None:
        """Folder of the newest complete checkpoint."""
        newest = newest_checkpoint(self.queue.folder(run_id))
        return newest[1] if newest else None

    def _read_info(self, run_id: str) -> RunInfo | None:
        folder = self.root / run_id
        run, status = self.queue.settings(run_id), self.queue.status(run_id)
        if not run:
            return None
        status = {**status, **(dead_status(folder, status) or {})}  # also where that can't be written down
        kept = self._configs.get(run_id)
        if kept is None or kept[0] is not run:
            kept = self._configs[run_id] = (run, configs_of(run))
        info = kept[1] and info_of(folder, run, status, self._has_checkpoint(folder), kept[1])
        return info and replace(info, due=retention.due_at(folder, run, status))

    def _has_checkpoint(self, folder: Path) -> bool:
        """Whether it has a complete one; looked at again only when one comes or goes."""
        try:
            changed = (folder / "checkpoints").stat().st_mtime_ns
        except OSError:
            return False
        kept = self._have_checkpoint.get(folder.name)
        if kept is None or kept[0] != changed:
            kept = self._have_checkpoint[folder.name] = (changed, newest_checkpoint(folder) is not None)
        return kept[1]
