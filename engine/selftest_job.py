"""The self-test in a process of its own: one at a time for a server, its result for everybody.

A check that hangs, or brings its process down, costs this server nothing: the process is ended after a while,
and the check that it was at is the one that failed.
"""

import atexit
import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from engine import plain_log
from engine.processes import REPO, surroundings
from engine.selftest_result import FAILED, Fact, Result

LONGEST = 300.0  # seconds for all checks
LEAVE = 10.0  # seconds for a process that was asked to end
PAUSE = 60.0  # seconds after one, in which nobody begins the next: its result is everybody's
_COMMAND = [sys.executable, "-m", "engine.selftest", "--json"]


@dataclass(eq=False)
class Job:
    """A self-test under way, or done; `results` grows while it goes on.

    Attributes:
        began: seconds since 1970.
        results: so far, in the order of the checks.
        total: how many there will be; 0 before the process has said so.
        at: the check that is being carried out, "" between two.
        ended: seconds since 1970; None while it goes on.
        over: when that was by time.monotonic(), a clock that nobody sets.
    """

    began: float
    results: list[Result] = field(default_factory=list)
    total: int = 0
    at: str = ""
    ended: float | None = None
    over: float = 0.0
    process: "subprocess.Popen[str] | None" = field(default=None, repr=False)

    @property
    def running(self) -> bool:
        """Whether it goes on."""
        return self.ended is None


_gate = threading.Lock()
_job: Job | None = None  # under way
_last: Job | None = None  # that is done


def running() -> Job | None:
    """The self-test under way."""
    job = _job
    return job if job is not None and job.running else None


def last() -> Job | None:
    """The newest one that is done."""
    return _last


def pause() -> float:
    """Seconds until the next may begin; 0 if it may."""
    return 0.0 if _last is None else max(0.0, _last.over + PAUSE - time.monotonic())


def start(*, longest: float = LONGEST, command: list[str] | None = None) -> Job:
    """Begin a self-test, unless one is under way or was a moment ago; gives it.

    Args:
        longest: seconds, then it is ended.
        command: another one, for tests.
    """
    global _job
    with _gate:
        if (job := running()) is not None:
            return job
        if _last is not None and pause() > 0:
            return _last
        job = _job = Job(time.time())
        follow = (job, longest, command or _COMMAND)
        threading.Thread(target=_follow, args=follow, name="self-test", daemon=True).start()
        return job


def _follow(job: Job, longest: float, command: list[str]) -> None:
    """Hear what the process says until it ends. In a thread, which belongs to no reader."""
    global _last
    try:
        late = _listen(job, longest, command)
        code = job.process.returncode if job.process else None
        if late or code not in (0, 1) or len(job.results) < job.total or not job.results:
            fact = Fact("late", {"x": longest}) if late else Fact("crashed", {"code": code})
            _fail(job, fact)
    except (OSError, ValueError, LookupError, TypeError, RuntimeError) as error:  # or it spoke nonsense
        _fail(job, Fact("refused", {"kind": plain_log.kind_of(error)}))
    finally:
        job.over = time.monotonic()
        job.at, job.ended, _last = "", time.time(), job


def _listen(job: Job, longest: float, command: list[str]) -> bool:
    """Take results as they come; gives whether the process had to be ended."""
    job.process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        encoding="utf-8", cwd=REPO, env=surroundings(), start_new_session=True,
    )  # fmt: skip
    late = threading.Event()

    def too_late() -> None:
        late.set()
        end(job)

    timer = threading.Timer(longest, too_late)
    timer.daemon = True
    timer.start()
    try:
        assert job.process.stdout is not None
        with job.process.stdout as lines:
            for line in lines:
                _take(job, json.loads(line))
        job.process.wait()
    finally:
        timer.cancel()
        end(job)
    return late.is_set()


def _take(job: Job, told: dict[str, Any]) -> None:
    if "total" in told:
        job.total = int(told["total"])
    elif "begun" in told:
        job.at = str(told["begun"])
    else:
        job.results.append(Result.from_json(told["result"]))
        job.at = ""


def _fail(job: Job, measured: Fact) -> None:
    """The check that the process was at is what failed."""
    slug, seconds = job.at or "process", time.time() - job.began
    job.results.append(Result(slug, "machine", FAILED, measured, Fact("no_error"), seconds))
    plain_log.warning("self-test broke off", at=slug, why=measured.name)


def end(job: Job) -> None:
    """End the process of a self-test that goes on: first it may clean up."""
    if job.process is None or job.process.poll() is not None:
        return
    job.process.terminate()
    try:
        job.process.wait(LEAVE)
    except subprocess.TimeoutExpired:
        job.process.kill()
        job.process.wait()


@atexit.register
def _leave() -> None:
    if (job := running()) is not None:
        end(job)
