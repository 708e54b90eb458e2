"""Self-test of the machine: Python and its packages, processors, memory, disk."""

import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from engine.memory import free_disk, memory
from engine.processes import REPO
from engine.selftest_result import FAILED, OK, WARNING, Fact, Outcome

OLDEST_PYTHON = (3, 11)
PINNED, OPTIONAL = "requirements.txt", "requirements-models.txt"
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)\s*(;.*)?$")
FEW_MB, TOO_FEW_MB = {"memory": 500, "disk": 1000}, {"memory": 200, "disk": 100}


def loupe_version(repo: Path = REPO) -> str:
    """The commit of this checkout, short; "unknown" where there is none. Reads two files, starts nothing."""
    try:
        head = (repo / ".git" / "HEAD").read_text("ascii").strip()
        if not head.startswith("ref: "):
            return head[:10]
        name = head.removeprefix("ref: ")
        loose = repo / ".git" / name
        if loose.is_file():
            return loose.read_text("ascii").strip()[:10]
        packed = (repo / ".git" / "packed-refs").read_text("ascii").splitlines()
    except (OSError, ValueError):
        return "unknown"
    return next((line.split()[0][:10] for line in packed if line.endswith(f" {name}")), "unknown")


def system() -> str:
    """Kind of system, processor and Python; not the machine's name."""
    return (
        f"{platform.system()} {platform.release()}, {platform.machine()}, Python {platform.python_version()}"
    )


def python(_: Path) -> Outcome:
    """Whether this Python is new enough."""
    state = OK if sys.version_info[:2] >= OLDEST_PYTHON else FAILED
    oldest = Fact("or_newer", {"version": ".".join(map(str, OLDEST_PYTHON))})
    return Outcome(state, Fact("python", {"version": platform.python_version()}), oldest)


def pins(file: str, repo: Path = REPO) -> dict[str, str]:
    """Package and version of each pinned line that is for this system."""
    found = {}
    for line in (repo / file).read_text("utf-8").splitlines():
        pin = _PIN.match(line.strip())
        if pin and not (pin[3] and 'sys_platform != "win32"' in pin[3] and sys.platform == "win32"):
            found[pin[1]] = pin[2]
    return found


def order_of(text: str) -> tuple[int, ...]:
    """A version as numbers that compare; what follows a + says only how it was built.

    >>> order_of("2.13.0+cpu") < order_of("2.13.1"), order_of("2.9") < order_of("2.13")
    (True, True)
    """
    return tuple(int(part) for part in re.findall(r"\d+", text.partition("+")[0]))


def compared(file: str, *, needed: bool, repo: Path = REPO) -> Outcome:
    """The installed packages beside the pinned ones; whatever differs is named, and in which direction."""
    wanted, odd, missing = pins(file, repo), [], []
    for name, pinned in wanted.items():
        try:
            here = version(name)
        except PackageNotFoundError:
            missing.append(Fact("missing", {"name": name, "pinned": pinned}))
            continue
        if order_of(here) != order_of(pinned):
            way = "newer" if order_of(here) > order_of(pinned) else "older"
            odd.append(Fact(way, {"name": name, "here": here, "pinned": pinned}))
    as_pinned = {"n": len(wanted) - len(odd) - len(missing), "all": len(wanted)}
    state = FAILED if missing and needed else WARNING if odd else OK
    return Outcome(
        state, Fact("as_pinned", as_pinned, (*missing, *odd)), Fact("pinned" if needed else "pinned_if_there")
    )


def packages(_: Path) -> Outcome:
    """What Loupe needs to run."""
    return compared(PINNED, needed=True)


def model_packages(_: Path) -> Outcome:
    """What only published models need."""
    return compared(OPTIONAL, needed=False)


def free_memory(_: Path) -> Outcome:
    """Whether there is room for a model and a run."""
    there = memory()
    cores = os.cpu_count() or 1
    if there.free is None:
        return Outcome(OK, Fact("unknown_memory", {"cores": cores}), enough("memory"))
    sizes = {"free": there.free / 1e6, "total": (there.total or there.free) / 1e6, "cores": cores}
    return Outcome(judged(there.free, "memory"), Fact("memory", sizes), enough("memory"))


def free_space(home: Path) -> Outcome:
    """Whether the disk of the data folder has room for checkpoints."""
    free = free_disk(home)
    return Outcome(judged(free, "disk"), Fact("disk", {"free": free / 1e6}), enough("disk"))


def judged(n_bytes: int, what: str) -> str:
    """How much is too little."""
    if n_bytes < TOO_FEW_MB[what] * 1e6:
        return FAILED
    return WARNING if n_bytes < FEW_MB[what] * 1e6 else OK


def enough(what: str) -> Fact:
    """What `judged` calls fine."""
    return Fact("at_least_mb", {"limit": FEW_MB[what]})
