"""Whether runs may begin now, or only wait: one switch for a whole server, as for an examination.

A file in the data folder, so that it holds for all servers and workers on it, and after a restart.
"""

import time
from pathlib import Path

from engine import plain_log
from engine.folders import read_json, write_json

FILE = "new-runs.json"


def may_begin(home: Path) -> bool:
    """Whether waiting runs may begin. Without a file, or with a damaged one, they may."""
    return read_json(home / FILE).get("only_waiting") is not True


def let_begin(home: Path, allowed: bool) -> None:
    """Allow runs to begin, or let new ones only wait; those that train go on."""
    if allowed:
        (home / FILE).unlink(missing_ok=True)
    else:
        home.mkdir(parents=True, exist_ok=True)
        write_json(home / FILE, {"only_waiting": True, "since": time.time()})
    plain_log.info("new runs", home=home, allowed=allowed)
