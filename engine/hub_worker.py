"""The process that brings a model, or asks the hub about one: `python -m engine.hub_worker bring MODELS`.

`engine.hub_download` starts it, with surroundings that hold no person's token.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from engine import folders, hub_remote, plain_log, smollm2
from engine.hub_download import FETCH, LOCK, SMOLLM2, STATUS, parts, write_status
from engine.hub_offer import HubError, Offer
from engine.processes import process_mark

EVERY = 0.25  # seconds between two notes of how far it is


class _Notes:
    """Writes how far it is, a few times a second."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._last = folder, 0.0
        pid = os.getpid()
        self.content = folders.read_json(folder / STATUS) | {"pid": pid, "mark": process_mark(pid) or ""}
        self.write()

    def write(self, **entries: Any) -> None:
        self.content |= entries
        self._last = time.monotonic()
        write_status(self._folder, self.content)

    def stage(self, stage: str, share: float) -> None:
        news = stage != self.content.get("stage")
        self.content |= {"stage": stage, "share": share}
        if news or time.monotonic() - self._last > EVERY:
            self.write()

    def bytes(self, stage: str, n: int) -> None:
        size = max(int(self.content.get("size", 0)), 1)
        self.content["n_bytes"] = n
        self.stage(stage, n / size)


def _bring(models: Path) -> None:
    folder = models / FETCH
    try:
        with FileLock(folder / LOCK, timeout=0):
            notes = _Notes(folder)
            outcome = _outcome(models, notes)
            notes.write(**outcome)
            plain_log.info(f"model {outcome['state']}", home=models.parent, why=outcome.get("failed"))
    except Timeout:  # a process that was left over from a server that died
        return


def _outcome(models: Path, notes: _Notes) -> dict[str, Any]:
    try:
        if notes.content["what"] == SMOLLM2:
            smollm2.obtain(models, tell=notes.stage)
        else:
            offer = Offer.from_json(notes.content["offer"])
            hub_remote.bring(offer, models, parts(models, offer.name), notes.bytes)
    except HubError as error:
        return {"state": "failed", "failed": error.kind, "details": error.details}
    except ValueError as error:
        return {"state": "failed", "message": str(error)}
    except OSError as error:
        details = {"why": str(error.strerror or error)}
        return {"state": "failed", "failed": "not_written", "details": details}
    return {"state": "done", "share": 1.0}


def _look(name: str) -> dict[str, Any]:
    try:
        return hub_remote.ask(name).to_json()
    except HubError as error:
        return {"failed": error.kind, "details": error.details}
    except OSError as error:
        return {"failed": "not_written", "details": {"why": str(error.strerror or error)}}


def main(task: str, about: str) -> None:
    """Either `bring MODELS`, as status.json there says, or `look NAME`, which prints what was found."""
    if task == "bring":
        _bring(Path(about))
    else:
        print(json.dumps(_look(about)))


if __name__ == "__main__":
    main(*sys.argv[1:])
