"""How much memory and disk are free, from the system itself.

Linux tells in /proc/meminfo and, for a container with a limit, in its control group; the smaller counts.
Elsewhere only the whole of the memory is known, or nothing: then nothing is refused for want of it.
"""

import ctypes
import gc
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

MEMINFO = Path("/proc/meminfo")  # docs.kernel.org/filesystems/proc.html
CGROUP = Path("/sys/fs/cgroup")  # docs.kernel.org/admin-guide/cgroup-v2.html
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # parameters of mallopt(3)
KEPT = 128 * 1024 * 1024
KEPT_OF_MANY = 8 * 1024 * 1024  # where many threads work: for each of the heaps
KEPT_AT_ONCE = 32 * 1024 * 1024  # larger pieces go back at once; glibc allows no larger ones here


@dataclass(frozen=True)
class Memory:
    """Bytes of memory.

    Attributes:
        total: of this machine or container; None if it doesn't tell.
        free: that programs can have now without swapping; None if it doesn't tell.
    """

    total: int | None
    free: int | None

    @property
    def bound(self) -> int | None:
        """More than this does not fit, as far as is known."""
        return self.total if self.free is None else self.free


def memory(meminfo: Path = MEMINFO, cgroup: Path = CGROUP) -> Memory:
    """What there is now."""
    told = _told(meminfo)
    total, free = told.get("MemTotal"), told.get("MemAvailable")
    limit, used = _number(cgroup / "memory.max"), _number(cgroup / "memory.current")
    if limit is not None and used is not None and (total is None or limit < total):
        reclaimable = _statistics(cgroup / "memory.stat").get("inactive_file", 0)
        left = max(limit - used + reclaimable, 0)
        return Memory(limit, left if free is None else min(free, left))
    return Memory(_physical() if total is None else total, free)


def _told(meminfo: Path) -> dict[str, int]:
    """Lines such as `MemAvailable:  123 kB`, in bytes."""
    found = {}
    for line in _lines(meminfo):
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdecimal():
            found[name] = int(words[0]) * (1024 if words[-1] == "kB" else 1)
    return found


def _statistics(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in _lines(path))
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _number(path: Path) -> int | None:
    """A file that holds one whole number; None for the word `max` or no file."""
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdecimal() else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("ascii", "replace").splitlines()
    except OSError:
        return []


def _physical() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on Windows
        return None


def keep_freed(most: int = KEPT) -> bool:
    """Let this process keep the memory that it frees, so that the next step or picture takes it again.

    glibc gives the free end of its heap back at once; a moment later the system must clear each page anew. Of
    a training step of 0.8 M parameters that was 500 to 1000 pages, 3 to 6 % of its time.

    glibc begins a heap for each thread that has none, up to eight for a core, and `give_back` can't give
    back the ends of those: from now on threads share the heaps that there are. A server, which begins a
    thread for each run of a page, calls this early and keeps less, `KEPT_OF_MANY`.

    Args:
        most: bytes that are kept free at the end of a heap.

    Returns:
        Whether there was a glibc to tell.
    """
    tell = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    wanted = {_ARENA_MAX: 1, _MMAP_THRESHOLD: KEPT_AT_ONCE, _TRIM_THRESHOLD: most}
    return tell is not None and all(tell(name, value) for name, value in wanted.items())


def give_back() -> None:
    """Give memory that this process no longer uses back to the system, where its C library would keep it.

    Of glibc: what was freed in small pieces stays with the process otherwise, 150 MB after SmolLM2.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def free_disk(folder: Path) -> int:
    """Bytes free on the disk of a folder, which need not exist yet."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free
