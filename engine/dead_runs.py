"""A run whose worker is gone, or whose status was lost: what its status has to say, in words."""

import time
from pathlib import Path
from typing import Any

from engine.checkpoint_list import newest_checkpoint
from engine.folders import read_json, room_problem
from engine.processes import worker_lives
from engine.run_info import AT_WORK, language_of
from wording import words

say = words("engine.dead_runs")

LOOKS, BETWEEN = 3, 0.02  # a status that can't be read is looked at again: some systems refuse for a moment


def dead_status(folder: Path, status: dict[str, Any]) -> dict[str, Any] | None:
    """What has to change in the status of a run; None if its worker lives, or nobody has to have it.

    Args:
        folder: of the run.
        status: as it was read a moment ago; {} if it could not be.
    """
    if not status.get("state"):
        return _lost(folder)
    if status["state"] not in AT_WORK or worker_lives(status):
        return None
    now = read_json(folder / "status.json")  # a worker ends right after it has written its last words
    if (now.get("state"), now.get("pid")) != (status["state"], status.get("pid")):
        return None
    return {"state": "failed", "pid": None, "message": _sentences(folder, "killed")}


def _lost(folder: Path) -> dict[str, Any] | None:
    """After a power cut a status may be empty: the run itself, its curve and its checkpoints are whole."""
    for _ in range(LOOKS):
        if read_json(folder / "status.json").get("state"):
            return None
        time.sleep(BETWEEN)
    newest = newest_checkpoint(folder)
    step = {"step": newest[0] if newest else 0}
    return {"state": "failed", "pid": None, "message": _sentences(folder, "status_lost"), **step}


def _sentences(folder: Path, what: str) -> str:
    """What happened, how it can go on, and what has to be done before."""
    of, newest = language_of(folder), newest_checkpoint(folder)
    told = [say.written(f"what.{what}", of)]
    if newest:
        told.append(say.written("can_go_on", of, step=newest[0]))
    else:
        told.append(say.written("can_start_again", of))
    return " ".join([*told, room_problem(folder.parent.parent)]).strip()
