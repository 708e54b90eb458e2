"""What the system says of the server and of what it has started: memory, threads, processes."""

import asyncio
import math
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from benchmarks.app import App


class Standing(NamedTuple):
    """How a server stands.

    Attributes:
        memory: MB.
        threads: of the server.
        processes: command lines of all that work on its data folder, without the server itself.
    """

    memory: float
    threads: int
    processes: list[str]


def standing(app: App) -> Standing:
    """How a server stands now. For Linux; elsewhere there are no threads and processes to see."""
    tasks = Path(f"/proc/{app.process.pid}/task")
    threads = len(list(tasks.iterdir())) if tasks.is_dir() else 0
    return Standing(app.memory(), threads, processes(app.home, app.process.pid))


def end_all(home: str) -> None:
    """Kill what still works on a data folder: after a trial, above all one that was itself ended."""
    wanted = f"LOUPE_HOME={home}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0") and int(folder.name) != os.getpid():
                os.kill(int(folder.name), signal.SIGKILL)


def named(command: bytes) -> str:
    r"""A command line as the system gives it, without folders: those of one machine are nobody's business.

    >>> named(b"/usr/bin/python3\0-m\0engine.worker\0")
    'python3 -m engine.worker'
    """
    parts = command.decode(errors="replace").split("\0")
    return " ".join(Path(part).name if part.startswith("/") else part for part in parts).strip()


def processes(home: str, without: int = 0) -> list[str]:
    """Command lines of the processes that work on a data folder, zombies of the server's included."""
    wanted = f"LOUPE_HOME={home}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended, or is somebody else's
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            mine = wanted in (folder / "environ").read_bytes().split(b"\0")
            zombie = fields[0] == "Z" and int(fields[1]) in (without, os.getpid())
            if (mine or zombie) and int(folder.name) not in (without, os.getpid()):
                found.append(named((folder / "cmdline").read_bytes()) or f"a zombie, {folder.name}")
    return sorted(found)


async def settled(app: App, seconds: float, most: float, n_processes: float = math.inf) -> Standing:
    """Wait until the server's memory is the same for a moment, at most so long.

    Args:
        app: the server.
        seconds: to wait at least, since sessions are forgotten only after a while.
        most: to wait.
        n_processes: beside the server, wait until there are no more of them.
    """
    await asyncio.sleep(seconds)
    before, passed = standing(app), seconds
    while passed < most:
        await asyncio.sleep(1.0)
        passed += 1.0
        now = standing(app)
        if abs(now.memory - before.memory) < 1 and len(now.processes) <= n_processes:
            return now
        before = now
    return before
