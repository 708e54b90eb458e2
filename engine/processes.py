"""Worker processes: started warm, handed a run, told apart from later ones with the same number."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.folders import data_folder
from engine.setting_checks import is_number

REPO = Path(__file__).resolve().parent.parent
NICENESS = 10  # unless LOUPE_NICE says another: 19 gives way to everything, 0 to nothing
STALE_SECONDS = 60.0  # only where the system can't tell whether a process lives
_seen: dict[int, tuple[float, float]] = {}  # of a process: its last heartbeat, and when it came


def process_mark(pid: int) -> str | None:
    """Something that tells a process from a later one with the same number: when it started.

    Returns:
        "" if no such process lives (a zombie doesn't), None if this system can't tell.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return ""
    except ProcessLookupError:
        return ""
    if os.name != "posix":
        return None
    shown = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return shown.stdout.strip()


def wanted_niceness() -> int:
    """Of workers: $LOUPE_NICE, or `NICENESS`; also where the variable is no number."""
    try:
        return int(os.environ.get("LOUPE_NICE") or NICENESS)
    except ValueError:
        return NICENESS


def yield_to_others(pid: int = 0) -> None:
    """Let the app, and everybody else, have the processor before a worker; 0 is this process.

    A Linux desktop kernel weighs sessions before processes, and a worker is a session of its own: there its
    group must be niced as well, or the niceness has no effect.
    """
    niceness = wanted_niceness()
    with suppress(OSError, AttributeError):  # it has ended, or this is not a Unix
        os.setpriority(os.PRIO_PROCESS, pid, max(niceness, os.getpriority(os.PRIO_PROCESS, pid)))
    with suppress(OSError):  # not Linux, or a kernel without session groups
        Path(f"/proc/{pid or 'self'}/autogroup").write_text(str(niceness))


def worker_lives(status: dict[str, Any]) -> bool:
    """Whether the process that a status names is still that process."""
    pid, updated = status.get("pid"), status.get("updated")
    if type(pid) is not int or pid < 1:
        return False  # none, or no number of a process: anybody may have edited the file
    mark = process_mark(pid)
    if mark is None:
        return _beats(pid, float(updated or 0) if is_number(updated) else 0.0)
    return mark != "" and mark == str(status.get("mark"))


def surroundings() -> dict[str, str]:
    """Of a process of this program, which begins in `REPO`: one thread, and the data folder of this one."""
    one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    return {**os.environ, **one_thread, "LOUPE_HOME": str(data_folder().absolute())}


def _beats(pid: int, updated: float) -> bool:
    """Whether a heartbeat still changes, by the clock of this process: the one on the wall may be set."""
    seen, now = _seen.get(pid), time.monotonic()
    if seen is None or seen[0] != updated:
        _seen[pid] = seen = (updated, now)
    return now - seen[1] < STALE_SECONDS


class Workers:
    """The processes that this process started: at most one idle and warm, and those that have a run."""

    def __init__(self, log: Path) -> None:
        """None yet. What a worker says before it has a run, such as a failed import, goes to `log`."""
        self._log = log
        self.idle: subprocess.Popen[bytes] | None = None
        self._busy: list[subprocess.Popen[bytes]] = []

    def warm(self) -> None:
        """Start an idle worker, unless there is one: its imports are done when a run comes."""
        if self.idle is None or self.idle.poll() is not None:
            self.idle = self._spawn()

    def take(self) -> subprocess.Popen[bytes]:
        """A worker that waits for its run."""
        worker, self.idle = self.idle, None
        if worker is None or worker.poll() is not None:
            worker = self._spawn()
        return worker

    def send(self, worker: subprocess.Popen[bytes], folder: Path) -> None:
        """Hand a run to a worker that was taken."""
        self._busy.append(worker)
        assert worker.stdin is not None
        with suppress(BrokenPipeError), worker.stdin:  # it died a moment ago: noticed like any dead worker
            worker.stdin.write(f"{folder}\n".encode())

    def reap(self) -> None:
        """Let go of those that ended, so that none stays as a zombie."""
        self._busy = [w for w in self._busy if w.poll() is None]

    def close(self) -> None:
        """End the idle one. Those with a run go on, and are no longer ours to wait for."""
        if self.idle is not None and self.idle.stdin is not None:
            self.idle.stdin.close()  # end of input: it leaves
            self.idle.terminate()  # it may still be busy with its imports
            self.idle.wait()
            self.idle = None
        self.reap()
        for worker in self._busy:
            worker.returncode = 0  # or Popen would complain about leaving it
        self._busy = []

    def _spawn(self) -> subprocess.Popen[bytes]:
        with open(self._log, "ab") as log:
            worker = subprocess.Popen(
                [sys.executable, "-m", "engine.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=REPO,
                env=surroundings(),
                start_new_session=True,  # Ctrl-C in the server's terminal doesn't reach it
            )
        yield_to_others(worker.pid)  # from its very start: its imports take seconds of a processor
        return worker
