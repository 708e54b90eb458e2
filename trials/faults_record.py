"""The file operations of a save, written down one by one, and what a crash after any byte of them leaves.

    with recorded(folder) as operations:
        save_checkpoint(folder / "checkpoints" / "10", checkpoint)
    for crash in crashes(before, operations, cuts): ...

A process that dies leaves all that it has written up to then. A power cut may also lose what was written but
never flushed to the disk (`os.fsync`): such a file comes back empty, or with zeros in its length.
"""

import builtins
import io
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Tree = dict[str, bytes | None]  # paths below a folder; None for a folder


@dataclass(frozen=True)
class Operation:
    """One thing that was asked of the file system.

    Attributes:
        kind: "write" at an offset, "cut" to a length, "sync", "move", "remove" or "folder".
        path, to: relative to the folder; `to` only of a move.
        at: offset of a write, or the length that a file was cut to.
        data: what was written.
    """

    kind: str
    path: str
    to: str = ""
    at: int = 0
    data: bytes = b""


class _File(io.FileIO):
    """An open file that notes what is written to it."""

    def __init__(self, path: str, mode: str, note: Callable[..., None]) -> None:
        super().__init__(path, mode)
        self._note, self._where = note, path
        if "w" in mode or "x" in mode:
            note("cut", path)

    def write(self, data: Any) -> int:
        end = os.fstat(self.fileno()).st_size
        at = end if "a" in self.mode else self.tell()
        n = super().write(data)
        self._note("write", self._where, at=at, data=bytes(memoryview(data).cast("B")[:n]))
        return n


@contextmanager
def recorded(folder: Path) -> Iterator[list[Operation]]:
    """Note all that this process does to the files below a folder. Only one thread may work meanwhile."""
    found: list[Operation] = []
    root, real_open, opened = str(folder), builtins.open, dict[int, str]()

    def note(kind: str, path: Any, **more: Any) -> None:
        if str(path).startswith(root + os.sep):
            found.append(Operation(kind, os.path.relpath(path, root), **more))

    def open_(
        file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, *rest: Any, **named: Any
    ) -> Any:
        if not set(mode) & set("wxa+") or isinstance(file, int) or not str(file).startswith(root + os.sep):
            return real_open(file, mode, buffering, encoding, *rest, **named)
        raw = _File(str(file), mode.replace("b", "").replace("t", ""), note)
        opened[raw.fileno()] = str(file)
        both = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return both if "b" in mode else io.TextIOWrapper(both, encoding or "utf-8")

    def sync(handle: Any) -> None:
        fsync(handle)
        number = handle if isinstance(handle, int) else handle.fileno()
        path = opened.get(number, "")
        if path and os.path.exists(path) and os.fstat(number).st_ino == os.stat(path).st_ino:
            note("sync", path)

    def move(old: Any, new: Any, **named: Any) -> None:
        replace(old, new, **named)
        found.append(Operation("move", os.path.relpath(old, root), os.path.relpath(new, root)))

    def make(path: Any, *rest: Any, **named: Any) -> None:
        mkdir(path, *rest, **named)
        note("folder", path)

    def drop(path: Any, *rest: Any, **named: Any) -> None:
        unlink(path, *rest, **named)
        note("remove", path)

    def drop_all(path: Any, *rest: Any, **named: Any) -> None:
        if os.path.isdir(path):
            for inner in sorted(Path(path).rglob("*"), reverse=True):
                note("remove", inner)
            note("remove", path)
        rmtree(path, *rest, **named)

    fsync, replace, mkdir, unlink, rmtree = os.fsync, os.replace, os.mkdir, os.unlink, shutil.rmtree
    new = [(builtins, "open", open_), (io, "open", open_), (os, "fsync", sync), (os, "replace", move)]
    new += [(os, "rename", move), (os, "mkdir", make), (os, "unlink", drop), (os, "remove", drop)]
    new += [(shutil, "rmtree", drop_all)]
    old = [(where, name, getattr(where, name)) for where, name, _ in new]
    try:
        for where, name, value in new:
            setattr(where, name, value)
        yield found
    finally:
        for where, name, value in old:
            setattr(where, name, value)


# ---- what a crash leaves


def _moved(path: str, move: Operation) -> str:
    """Where a file is after a move of itself or of a folder above it."""
    inside = path == move.path or path.startswith(move.path + os.sep)
    return move.to + path[len(move.path) :] if inside else path


def tree_of(folder: Path) -> Tree:
    """All that is in a folder."""
    paths = sorted(folder.rglob("*"))
    return {os.path.relpath(p, folder): None if p.is_dir() else p.read_bytes() for p in paths}


def write_tree(folder: Path, tree: Mapping[str, bytes | None]) -> None:
    """Make a folder hold this and nothing else; files that are as they should be stay untouched."""
    there = tree_of(folder) if folder.is_dir() else {}
    for path in sorted(there.keys() - tree.keys(), reverse=True):
        gone = folder / path
        gone.rmdir() if there[path] is None else gone.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    for path, data in sorted(tree.items()):
        if data is None:
            (folder / path).mkdir(exist_ok=True)
        elif there.get(path) != data:
            (folder / path).write_bytes(data)


def apply(tree: Tree, done: Operation) -> None:
    """Let an operation happen in a tree."""
    if done.kind == "folder":
        tree[done.path] = None
    elif done.kind == "cut":
        tree[done.path] = (tree.get(done.path) or b"")[: done.at]
    elif done.kind == "write":
        before = tree.get(done.path) or b""
        tree[done.path] = (
            before[: done.at].ljust(done.at, b"\0") + done.data + before[done.at + len(done.data) :]
        )
    elif done.kind == "remove":
        tree.pop(done.path, None)
    elif done.kind == "move":
        inner = [p for p in tree if _moved(p, done) != p]
        for path in [p for p in tree if p == done.to or p.startswith(done.to + os.sep)]:
            del tree[path]
        for path in inner:
            tree[_moved(path, done)] = tree.pop(path)


@dataclass(frozen=True)
class Crash:
    """What is left on the disk.

    Attributes:
        where: how far the save was, in words.
        tree: what is left.
        done: whether all was done.
    """

    where: str
    tree: Tree
    done: bool = False


def crashes(
    before: Tree, operations: list[Operation], cuts: Callable[[Operation], list[int]]
) -> Iterator[Crash]:
    """What a crash leaves after each operation, and in the middle of those that write.

    Args:
        before: what was there.
        operations: of the save.
        cuts: after how many bytes of a write to cut, 0 up to all of them.
    """
    tree, unsafe = dict(before), set[str]()
    for i, one in enumerate(operations):
        name = f"{i + 1} of {len(operations)}, {one.kind} {Path(one.path).name}"
        if one.kind == "write":
            for n in cuts(one):
                part = dict(tree)
                apply(part, Operation("write", one.path, at=one.at, data=one.data[:n]))
                yield Crash(f"{name} after {n:,} bytes", part)
        apply(tree, one)
        if one.kind == "move":
            unsafe = {_moved(path, one) for path in unsafe}
        elif one.kind in ("write", "cut"):
            unsafe.add(one.path)
        elif one.kind == "sync":
            unsafe.discard(one.path)
        last = i == len(operations) - 1
        yield Crash(name, dict(tree), last)
        for path in sorted(unsafe & tree.keys()):
            size = len(tree[path] or b"")
            kept = len(before.get(path) or b"") if one.kind == "write" and one.at else 0  # an appended file
            start = (tree[path] or b"")[:kept]
            yield Crash(f"{name}, then a power cut empties {path}", {**tree, path: start})
            yield Crash(f"{name}, then a power cut zeroes {path}", {**tree, path: start.ljust(size, b"\0")})
