"""The zip of a run, read: what may be in it, looked at before anything is believed or written.

A zip may come from anywhere: names, kinds, sizes and checksums are checked, in this order.
"""

import hashlib
import io
import json
import re
import stat
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

from wording import words

say = words("engine.bundle_zip")

FORMAT, KIND = 1, "loupe-run"
CONTENTS = "contents.json"  # every other file with its length and checksum
README = "README.txt"
MOST_FILES, MOST_BYTES = 1000, 500_000_000  # unpacked
MOST_RATIO, SMALL_ENOUGH = 100, 20_000_000  # a text may shrink a lot; a few megabytes hurt nobody
_FILES = re.compile(
    r"run\.json|tokenizer\.json|corpus\.txt|corpus_val\.txt|metrics\.jsonl|README\.txt|contents\.json"
    r"|also/[0-9a-f]{16}\.txt|checkpoints/[0-9]{7,12}/(checkpoint\.json|(model|optimizer)\.safetensors)"
    r"|start/(checkpoint\.json|model\.safetensors)|reference\.safetensors"
)
_FOLDERS = re.compile(r"(also|start|checkpoints(/[0-9]{7,12})?)/")  # some programs list them
_NEEDED = ("run.json", "tokenizer.json", "corpus.txt", CONTENTS)
_PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")


def sha256(data: bytes) -> str:
    """Of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def read_bundle(data: bytes) -> dict[str, bytes]:
    """The files of a zip by name, checked: known names, no links, not too large, right checksums.

    Raises:
        ValueError: one sentence, at the first thing that is wrong.
    """
    if data.count(b"PK\x01\x02") > 2 * MOST_FILES:  # before a list of them all is made
        raise ValueError(say("zip_holds_too_many", most=MOST_FILES))
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ValueError(say("file_no_zip_damaged")) from error
    entries = [e for e in entries if not _FOLDERS.fullmatch(e.filename) or e.file_size]
    with archive:
        _check_entries(entries, len(data))
        files = {entry.filename: _read(archive, entry) for entry in entries}
    _check_contents(files)
    return files


def _check_entries(entries: list[zipfile.ZipInfo], packed: int) -> None:
    if len(entries) > MOST_FILES:
        raise ValueError(say("zip_holds_files_run", n=len(entries), most=MOST_FILES))
    seen = set()
    for entry in entries:
        name = entry.filename
        shown = repr(name[:80])
        if name.endswith(_PICKLES):
            raise ValueError(say("zip_holds_pickle_file", shown=shown))
        if not _FILES.fullmatch(name):
            raise ValueError(say("zip_holds_which_no", shown=shown))
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise ValueError(say("zip_link_device_not", shown=shown))
        if name in seen:
            raise ValueError(say("zip_holds_twice_refused", shown=shown))
        if entry.flag_bits & 1:
            raise ValueError(say("zip_encrypted_export_run", shown=shown))
        seen.add(name)
    size = sum(entry.file_size for entry in entries)
    if size > MOST_BYTES:
        raise ValueError(say("unpacked_zip_would_have", size=size / 1e6, most=MOST_BYTES / 1e6))
    if size > SMALL_ENOUGH and size > MOST_RATIO * packed:
        raise ValueError(say("unpacked_zip_would_times", ratio=size / packed, most=MOST_RATIO))
    if missing := [name for name in _NEEDED if name not in seen]:
        raise ValueError(say("zip_no_run_loupe", missing=missing[0]))


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """One file, never more of it than its entry promises."""
    try:
        with archive.open(entry) as file:
            content = file.read(entry.file_size + 1)
    except (
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        OSError,
        EOFError,
        NotImplementedError,
        zlib.error,
        ValueError,  # a place in the file that can't be
    ) as error:
        raise ValueError(say("zip_damaged_export_run", filename=entry.filename)) from error
    if len(content) != entry.file_size:
        raise ValueError(say("zip_has_another_length", filename=entry.filename))
    return content


def _check_contents(files: Mapping[str, bytes]) -> None:
    contents = _json(files, CONTENTS)
    if contents.get("kind") != KIND:
        raise ValueError(say("zip_no_run_loupe_2", contents=CONTENTS))
    if contents.get("format") != FORMAT:
        raise ValueError(say("zip_has_format_version", found=str(contents.get("format"))[:20], format=FORMAT))
    listed = contents.get("files")
    if not isinstance(listed, dict) or set(listed) != set(files) - {CONTENTS}:
        raise ValueError(say("zip_damaged_doesnt_hold", contents=CONTENTS))
    for name, about in listed.items():
        if not isinstance(about, dict) or about.get("sha256") != sha256(files[name]):
            raise ValueError(say("zip_damaged_not_what", name=name))


def _json(files: Mapping[str, bytes], name: str) -> dict[str, Any]:
    try:
        content = json.loads(files[name])
    except (ValueError, RecursionError) as error:
        raise ValueError(say("zip_damaged_not_valid", name=name)) from error
    if not isinstance(content, dict):
        raise ValueError(say("zip_damaged_not_what_2", name=name))
    return content
