"""Old runs are deleted, if whoever runs the server wants that: $LOUPE_KEEP_DAYS, and what dead writers left.

Without it runs are kept for ever. With it, a run that has ended, is not marked to be kept, and that nobody
opened or changed for so many days, is deleted: at the earliest a day after it was first found to be due. So a
clock that was wrong for a moment, or a server that was off all summer, deletes nothing that was not said
beforehand. That day has to have passed: it begins anew where the clock moved by more than this machine was
on, and where a machine that was off meanwhile, or can't tell, was not looked after for some days.
"""

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine import plain_log
from engine.folders import clean, read_json, write_file
from engine.run_bin import put_aside
from engine.run_format import is_newer

VARIABLE = "LOUPE_KEEP_DAYS"
DAY = 86_400.0
HOUR = 3600.0
LONGEST_PAUSE = 3 * DAY  # between two looks of a machine that was off: after more, a clock may have been set
WARNING = DAY - HOUR  # from when a run is found due until it is deleted; looked for once a day
ENDED = ("stopped", "finished", "failed")
OPENED = "opened"  # a file in a run's folder whose time says when somebody last looked at it
BOOT = Path("/proc/sys/kernel/random/boot_id")  # another one after each start of the machine
RECORD = "retention.json"  # in the data folder: when it was last looked, and which runs were due
BLOCK = 4096  # bytes
LEFTOVER = DAY  # age of a half-written file that belongs to nobody any more
_HALF_WRITTEN = re.compile(r"\..+\.\d+-\d+")


def keep_days() -> float | None:
    """For how many days ended runs are kept; None for ever, also where the setting is no such number."""
    try:
        days = float(os.environ.get(VARIABLE, "").strip() or 0)
    except ValueError:
        return None
    return days if 1 <= days < 100_000 else None


def opened(folder: Path) -> None:
    """Note that somebody looks at a run; at most once an hour, and not on a folder that can't be written."""
    file = folder / OPENED
    with suppress(OSError):
        if not file.exists() or not 0 <= time.time() - file.stat().st_mtime < 3600:
            file.touch()


def last_use(folder: Path, run: Mapping[str, Any], status: Mapping[str, Any]) -> float:
    """When somebody last opened or changed a run, in seconds since 1970."""
    times = [_number(run.get("created")), _number(status.get("updated"))]
    for name in (OPENED, "run.json", "status.json"):
        with suppress(OSError):
            times.append((folder / name).stat().st_mtime)
    return max(times)


def due_at(folder: Path, run: Mapping[str, Any], status: Mapping[str, Any]) -> float | None:
    """When a run will be deleted if nobody opens, changes or keeps it; None if never."""
    days = keep_days()
    if days is None or status.get("state") not in ENDED or run.get("keep") is True:
        return None
    return last_use(folder, run, status) + days * DAY


def is_due(home: Path) -> bool:
    """Whether it is a day since somebody looked."""
    return not 0 <= time.time() - _number(read_json(home / RECORD).get("looked")) < DAY


def tidy(home: Path) -> list[str]:
    """Delete the runs whose time is over, and what dead writers left; gives their ids. Under the lock."""
    now, record = time.time(), read_json(home / RECORD)
    before = record.get("due") if _went_on(record, now) else None
    found: dict[str, float] = {}
    gone: list[str] = []
    for folder, run, status in _runs(home / "runs"):
        at = due_at(folder, run, status)
        if at is None or now < at:
            continue
        since = min(now, _number(before.get(folder.name)) or now) if isinstance(before, dict) else now
        if now - since < WARNING:
            found[folder.name] = since
            continue
        with suppress(OSError):  # a folder that can't be written: it stays
            put_aside(folder)
            gone.append(folder.name)
            plain_log.info("run deleted", home=home, run=folder.name, by="retention", days=keep_days())
    _clean(home, now)
    _keep(home / RECORD, {"looked": now, "due": found, **_uptime()})
    return gone


def _uptime() -> dict[str, Any]:
    """How long this machine has been on, also asleep, and since which start; {} where that is not known.

    No setting of a clock changes it.
    """
    with suppress(OSError, AttributeError):  # not Linux
        boot = BOOT.read_text("ascii").strip()
        return {"boot": boot, "uptime": time.clock_gettime(time.CLOCK_BOOTTIME)}
    return {}


def _went_on(record: Mapping[str, Any], now: float) -> bool:
    """Whether the time since the last look has passed as the clock says."""
    passed, uptime = now - _number(record.get("looked")), _uptime()
    if uptime and uptime["boot"] == record.get("boot"):
        return abs(passed - (uptime["uptime"] - _number(record.get("uptime")))) < HOUR
    return 0 <= passed <= LONGEST_PAUSE  # as far as anybody can tell


def _keep(file: Path, record: dict[str, Any]) -> None:
    """Write the record, also on a disk that is full: else nothing old would ever be deleted there.

    So it is as long as a block of the disk from the beginning, and if no new file can be written, the old one
    is written over. Who dies in the middle of that leaves none, and the runs are found due anew.
    """
    data = json.dumps(record).encode()
    data += b" " * (BLOCK - len(data) % BLOCK)
    with suppress(OSError):
        try:
            write_file(file, data)
        except OSError:
            if len(data) <= file.stat().st_size:
                with open(file, "rb+") as there:
                    there.write(data)
                    there.truncate()


def _runs(root: Path) -> Iterator[tuple[Path, dict[str, Any], dict[str, Any]]]:
    """Folder, run.json and status.json of the runs that this version can read."""
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if folder.name.startswith(".") or folder.is_symlink():
            continue
        run, status = read_json(folder / "run.json"), read_json(folder / "status.json")
        if run and status and not is_newer(run):
            yield folder, run, status


def _clean(home: Path, now: float) -> None:
    """Remove what writers left behind that died in the middle of a file or a checkpoint."""
    folders = [home, *(home / name for name in ("people", "classes", "predictions", "vocab"))]
    folders += (home / "vocab" / "own").glob("*")
    for folder, _, status in _runs(home / "runs"):
        folders.append(folder)
        if status.get("state") in ENDED:
            clean(folder / "checkpoints")
    for folder in folders:
        for left in folder.glob(".*"):
            with suppress(OSError):
                old = now - left.lstat().st_mtime > LEFTOVER
                if old and _HALF_WRITTEN.fullmatch(left.name) and left.is_file():
                    left.unlink()


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
