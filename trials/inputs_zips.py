"""Zips that are brought in as runs: bombs, names that lead out, links, damage, forged contents."""

import hashlib
import io
import json
import stat
import struct
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as some

from engine.bundle_zip import CONTENTS
from engine.bundles import import_run
from engine.runs import RunStore
from trials import inputs_made as made
from trials.inputs_changes import Change, Cut, as_json, changed, changes, cut_up, cuts
from trials.inputs_kind import Broken, Kind
from trials.inputs_runs import read_all

NAMES = (
    "../evil.txt",
    "/etc/evil",
    "C:\\evil.txt",
    "..\\evil.txt",
    "also/../../evil.txt",
    "checkpoints/../run.json",
    "RUN.JSON",
    "run.json ",
    "run.json\x00.txt",
    "CON",
    "aux.txt",
    "nul",
    "model.pkl",
    "start/model.pt",
    "also/",
    "also/0123456789abcdef.txt",
    "checkpoints/0000006/model.bin",
    "a" * 300,
    "",
    ".",
    "..",
    "run.json/",
    "./run.json",
    "checkpoints/9999999999999/checkpoint.json",
    "\u202etxt.json",
    "status.json",
    "stop",
    "README.txt",
    "x/y/z",
    "checkpoints/0000006/",
    "checkpoints\\0000006\\model.safetensors",
)
JSONS = ("run.json", "tokenizer.json", CONTENTS, "checkpoints/0000006/checkpoint.json")


class Bytes(NamedTuple):
    """Changes of the zip's bytes."""

    cuts: tuple[Cut, ...]


class Entry(NamedTuple):
    """One more entry, or another name, kind or content of one that is there."""

    name: str
    do: str = "add"
    data: bytes = b"x"
    listed: bool = True


class Json(NamedTuple):
    """Changes of a JSON file in it; the list of contents fits."""

    file: str
    changes: tuple[Change, ...]


class Record(NamedTuple):
    """Lines added to its records; the list of contents fits."""

    lines: tuple[bytes, ...]


class Bomb(NamedTuple):
    """A file of many times its packed size, or a zip within zips."""

    megabytes: int
    file: str = "corpus.txt"
    levels: int = 0


class Lie(NamedTuple):
    """A field of an entry in the zip's list says something else: which entry, which field, what."""

    at: int
    field: str
    value: int


cases = some.one_of(
    some.builds(Bytes, cuts.map(tuple)),
    some.builds(
        Entry,
        some.sampled_from(NAMES),
        some.sampled_from(("add", "twice", "link", "device", "encrypted", "rename", "pickle")),
        some.binary(max_size=20),
        some.booleans(),
    ),
    some.builds(Json, some.sampled_from((*JSONS, "run.json")), changes.map(tuple)),
    some.builds(Record, some.lists(some.binary(max_size=40), min_size=1, max_size=3).map(tuple)),
    some.builds(
        Lie,
        some.integers(0, 50),
        some.sampled_from(("size", "packed", "crc", "how", "flags", "offset", "mode", "extra")),
        some.one_of(
            some.integers(0, 2**32 - 1), some.sampled_from((0, 1, 8, 12, 14, 93, 99, 2**31, 2**32 - 1))
        ),
    ),
)
KNOWN: tuple[Any, ...] = (
    Bytes(()),
    Bytes((Cut("cut", 0),)),
    Bytes((Cut("start", 0, b"MZ"),)),
    *(Entry(name) for name in NAMES),
    *(Entry("run.json", do) for do in ("twice", "link", "device", "encrypted", "pickle")),
    Bomb(25, "metrics.jsonl"),
    Bomb(1, "also/0123456789abcdef.txt", 5),
    Record((b"[" * 100_000,)),
    Record((b'{"a":' * 50_000,)),
    Json("run.json", (Change(0, "set", 2),)),
    *(Lie(i, "size", 2**32 - 1) for i in range(4)),
)
HEAVY = (
    Bomb(60),
    Bomb(600),
    Bomb(60, "metrics.jsonl"),
    Bomb(30, "tokenizer.json"),
    Bomb(30, "run.json"),
)


def attempt(case: Any, home: Path) -> None:
    """Bring it in as the page Training does; what comes in must read like any run."""
    data = _zip(case)
    store = RunStore(home)
    try:
        try:
            run_id = import_run(store, data, made.OWNER)
        except ValueError:
            if left := [path.name for path in (home / "runs").iterdir()]:
                raise Broken(f"a refused zip left {left}") from None
            raise
        for path in (home / "runs").rglob("*"):
            if path.is_symlink() or path.stat().st_mode & 0o111 and path.is_file():
                raise Broken(f"{path.name} is a link or a program")
        if [info.id for info in store.list(made.OWNER)] != [run_id]:
            raise Broken("the run that was brought in is not listed")
        read_all(store, run_id)
    finally:
        store.close()


def _zip(case: Any) -> bytes:
    if isinstance(case, Bytes):
        return cut_up(made.run_zip(), case.cuts)
    files = made.unzipped(made.run_zip())
    if isinstance(case, Json):
        files[case.file] = as_json(changed(json.loads(files[case.file]), case.changes))
        return packed(files, seal=case.file != CONTENTS)
    if isinstance(case, Record):
        files["metrics.jsonl"] += b"\n".join(case.lines) + b"\n"
        return packed(files)
    if isinstance(case, Bomb):
        content = _filled(case, files)
        return packed({**files, case.file: content} if content else files, bomb=(case.file, case.megabytes))
    if isinstance(case, Lie):
        return _lied(packed(files), case)
    return _entry(files, case)


def _filled(case: Bomb, files: dict[str, bytes]) -> bytes:
    """The content of a bomb that is small enough to be made as a whole; b"" if it is not."""
    if case.levels:
        content = b"\0" * (case.megabytes * 1_000_000)
        for _ in range(case.levels):
            inner = io.BytesIO()
            with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("x.zip", content)
            content = inner.getvalue()
        return content
    return b""


def packed(files: dict[str, bytes], *, seal: bool = True, bomb: tuple[str, int] | None = None) -> bytes:
    """A zip of these files; with `seal` its list of contents fits; a bomb is written piece by piece."""
    if seal:
        contents = json.loads(files[CONTENTS])
        contents["files"] = {
            name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in files.items()
            if name != CONTENTS
        }
        files = {**files, CONTENTS: json.dumps(contents).encode()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            if bomb and name == bomb[0] and len(data) < 10_000_000 and bomb[1] > 1:
                with archive.open(name, "w", force_zip64=True) as file:
                    for _ in range(bomb[1]):
                        file.write(b"a" * 1_000_000)
                continue
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _entry(files: dict[str, bytes], case: Entry) -> bytes:
    if case.do == "rename":
        files[case.name] = files.pop("corpus.txt")
    elif case.listed and case.do == "add":
        files[case.name] = case.data
    whole = json.loads(files[CONTENTS])
    whole["files"] = {
        n: {"bytes": len(d), "sha256": hashlib.sha256(d).hexdigest()}
        for n, d in files.items()
        if n != CONTENTS
    }
    files[CONTENTS] = json.dumps(whole).encode()
    out = io.BytesIO()
    import warnings

    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name or "x"), data)
        more = zipfile.ZipInfo(case.name or "x")
        if case.do in ("link", "device"):
            more.external_attr = ((stat.S_IFLNK if case.do == "link" else stat.S_IFCHR) | 0o777) << 16
        if case.do == "pickle":
            more.filename = f"{case.name}.pkl"
        if case.do != "rename" and (case.do != "add" or not case.listed):
            archive.writestr(more, b"../../outside/secret.txt" if case.do == "link" else case.data)
    data = out.getvalue()
    if case.do == "encrypted":
        at = data.rfind(b"PK\x01\x02")
        data = data[: at + 8] + b"\x01\x00" + data[at + 10 :]
    return data


_FIELDS = {
    "flags": (8, "<H"),
    "how": (10, "<H"),
    "crc": (16, "<I"),
    "packed": (20, "<I"),
    "size": (24, "<I"),
    "extra": (30, "<H"),
    "mode": (38, "<I"),
    "offset": (42, "<I"),
}


def _lied(data: bytes, case: Lie) -> bytes:
    places = [i for i in range(len(data)) if data.startswith(b"PK\x01\x02", i)]
    offset, form = _FIELDS[case.field]
    at = places[case.at % len(places)] + offset
    value = struct.pack(form, case.value % (1 << (8 * struct.calcsize(form))))
    return data[:at] + value + data[at + len(value) :]


KIND = Kind("zips", cases, attempt, known=KNOWN, heavy=HEAVY, ready=made.run_zip)
