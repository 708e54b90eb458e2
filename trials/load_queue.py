"""The runs of the class, as the data folder shows them: who waits, whose turn it was, and what is left."""

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from engine.checkpoint_list import newest_checkpoint
from engine.checkpoints import load_checkpoint
from engine.folders import read_json
from engine.run_info import ACTIVE, AT_WORK
from engine.run_log import FIRST_STEPS
from engine.run_queue import RunQueue

LOOK_SECONDS = 0.2


@dataclass
class Watch:
    """What somebody saw who looked at the runs all the time.

    Attributes:
        looks: how often it was looked, and how often so many runs were at work.
        longest_queue: of all that was seen.
        turns: how many runs began out of the queue.
        unfair: those that began although somebody waited who had fewer runs at work.
        waits: seconds in the queue of the runs that began.
        first_waits: the same, of people who had no run at work.
    """

    looks: Counter[int] = field(default_factory=Counter)
    longest_queue: int = 0
    turns: int = 0
    unfair: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    first_waits: list[float] = field(default_factory=list)
    _queued: dict[str, float] = field(default_factory=dict)

    def look(self, queue: RunQueue) -> None:
        """Compare how all runs stand with how they stood at the last look."""
        ids = queue.ids()
        states = {run_id: str(queue.status(run_id).get("state")) for run_id in ids}
        owners = {run_id: str(queue.settings(run_id).get("owner")) for run_id in ids}
        at_work = Counter(owners[run_id] for run_id, state in states.items() if state in AT_WORK)
        still = {run_id for run_id in self._queued if states.get(run_id) == "queued"}
        for run_id, since in self._queued.items():
            if states.get(run_id) not in ("starting", "running"):
                continue
            others = at_work[owners[run_id]] - 1
            self.turns += 1
            self.waits.append(time.time() - since)
            if not others:
                self.first_waits.append(self.waits[-1])
            fewest = min((at_work[owners[waiting]] for waiting in still), default=others)
            if others > fewest:
                self.unfair.append(f"{run_id}: its owner had {others} at work, somebody who waited {fewest}")
        queued = {run_id for run_id, state in states.items() if state == "queued"}
        self._queued = {run_id: float(queue.status(run_id).get("queued_at") or 0) for run_id in queued}
        self.looks[sum(at_work.values())] += 1
        self.longest_queue = max(self.longest_queue, len(queued))

    async def go_on(self, queue: RunQueue, end: asyncio.Event) -> None:
        """Look until the end."""
        while not end.is_set():
            self.look(queue)
            await asyncio.sleep(LOOK_SECONDS)


def active(queue: RunQueue) -> list[str]:
    """The runs that are at work or wait."""
    return [run_id for run_id in queue.ids() if queue.status(run_id).get("state") in ACTIVE]


def damage(folder: Path) -> list[str]:
    """What is not whole in the folder of a run that has ended; [] if all is.

    Its curve has every step that was to be written, in order, to the last one; all its evaluations; and the
    newest checkpoint opens.
    """
    run, status = read_json(folder / "run.json"), read_json(folder / "status.json")
    step, found = int(status.get("step", -1)), list[str]()
    if status.get("state") not in ("finished", "stopped"):
        found.append(f"it is {status.get('state')}: {status.get('message')}")
    file = folder / "metrics.jsonl"
    if not file.exists():
        return found if step == 0 else [*found, f"{step} steps and no curve"]
    data = file.read_bytes()
    if data and not data.endswith(b"\n"):
        found.append("half a line")
    records = [json.loads(one) for one in data.splitlines()]
    steps = [record["step"] for record in records if record["kind"] == "step"]
    evals = [record["step"] for record in records if record["kind"] == "eval"]
    every = int(run["train"]["eval_every"])
    if steps != sorted(set(steps)) or steps[:FIRST_STEPS] != list(range(1, 1 + min(step, FIRST_STEPS))):
        found.append(f"steps are missing or double: {steps[:60]}")
    if step >= 1 and set(range(0, step, every)) - set(evals):
        found.append(f"evaluations at {evals}, one each {every} of {step} steps was due")
    newest = newest_checkpoint(folder)
    if step >= 1 and (newest is None or newest[0] != step):
        found.append(f"it ended at step {step}, the newest checkpoint is {newest and newest[0]}")
    if newest is not None:
        try:
            load_checkpoint(newest[1])
        except ValueError as error:
            found.append(f"the newest checkpoint does not open: {error}")
    return found
