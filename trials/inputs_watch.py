"""What a case touches: files outside its data folder, connections, programs; and how much memory it takes.

Python's audit hook sees what Python code does; a listing of the folders around sees what other code did.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
# Events of CPython that change files, and which of their arguments are paths.
_CHANGES = {
    "os.rename": (0, 1),
    "os.mkdir": (0,),
    "os.rmdir": (0,),
    "os.remove": (0,),
    "os.symlink": (1,),
    "os.link": (0, 1),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.utime": (0,),
    "shutil.rmtree": (0,),
    "shutil.copyfile": (1,),
    "shutil.move": (0, 1),
}
_WITHIN = ("os.remove", "os.rmdir", "os.mkdir")  # their last argument may be an open folder
_NEVER = ("socket.connect", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "pickle.find_class")
_HARMLESS = ("/dev/null", "/proc/self/clear_refs")
CANARY = b"nobody reads or changes this\n"


class Watch:
    """Folders for cases, and what was touched that shouldn't be.

    Attributes:
        seen: what the newest case touched.
    """

    def __init__(self, folder: Path) -> None:
        """Put up the hook. It can't be taken down: only for a process of its own.

        Args:
            folder: an empty one; each case's data folder lies in it, beside one that belongs to nobody.
        """
        self.around = folder.resolve()
        self.outside = self.around / "outside"
        self._put_up()
        self.seen: list[str] = []
        self._place: Path | None = None
        sys.addaudithook(self._heard)

    @contextmanager
    def place(self) -> Iterator[Path]:
        """A fresh data folder, watched while the block runs."""
        self.seen = []
        home = self.around / "home"
        home.mkdir()
        self._place = home
        try:
            yield home
        finally:
            self._place = None
            left = sorted(path.name for path in self.around.iterdir())
            kept = {path.name: path.read_bytes() for path in self.outside.iterdir()}
            if left != ["home", "outside"]:
                self.seen.append(f"left beside the data folder: {left}")
            if len(kept) != 3 or set(kept.values()) != {CANARY}:
                self.seen.append(f"changed in a folder outside: {sorted(kept)}")
                self._put_up()
            for name in set(left) - {"home", "outside"}:
                shutil.rmtree(self.around / name, ignore_errors=True)
                (self.around / name).unlink(missing_ok=True)
            shutil.rmtree(home)

    def _put_up(self) -> None:
        """Make the folder that belongs to nobody, as it should be."""
        shutil.rmtree(self.outside, ignore_errors=True)
        self.outside.mkdir()
        for name in ("config.json", "secret.txt", "model.safetensors"):
            (self.outside / name).write_bytes(CANARY)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._place is None:
            return
        if event in _NEVER:
            self.seen.append(f"{event} {str(arguments)[:200]}")
        elif event == "open":
            path, mode, flags = arguments
            writes = bool(flags & _WRITE) if isinstance(flags, int) else bool(set(mode or "") & set("wax+"))
            self._looked(event, path, writes)
        elif event in _CHANGES:
            if event in _WITHIN and isinstance(arguments[-1], int) and arguments[-1] >= 0:
                return  # named from within a folder that is open: the listing sees what it leads to
            for i in _CHANGES[event]:
                self._looked(event, arguments[i], True)

    def _looked(self, event: str, path: object, writes: bool) -> None:
        """Note a path outside: any change there, and even a look into the folder that belongs to nobody."""
        if isinstance(path, int) or path is None:
            return
        name = os.fsdecode(path)  # type: ignore[arg-type]
        if not (writes or "outside" in name) or name in _HARMLESS:
            return
        folder, last = os.path.split(os.path.abspath(name))
        real = os.path.join(os.path.realpath(folder), last)
        foreign = real.startswith(str(self.outside)) or (
            writes and not f"{real}{os.sep}".startswith(f"{self._place}{os.sep}")
        )
        if foreign and not real.startswith(os.path.join(tempfile.gettempdir(), "torch")):
            self.seen.append(f"{event} {real}")


class Memory:
    """How far the memory of this process rises while a block runs; 0 where the system does not say."""

    def __enter__(self) -> Self:
        self.megabytes = 0.0
        try:
            Path("/proc/self/clear_refs").write_text("5")  # the highest so far counts from now on
            self._before = _status("VmRSS")
        except OSError:
            self._before = float("inf")
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.megabytes = max(0.0, (_status("VmHWM") - self._before) / 1000)
        except OSError:
            self.megabytes = 0.0


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"{name}:")))
