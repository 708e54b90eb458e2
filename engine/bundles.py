"""A run as one zip: everything in its folder but whose it is; and such a zip as a run again, checked first.

A zip may come from anywhere, so what is in it is believed only after it was looked at: names, sizes and
checksums before anything is written, then every checkpoint, in a folder that nobody sees yet.
"""

import hashlib
import io
import json
import re
import shutil
import stat
import time
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.bundle_checks import (
    check_checkpoints,
    check_records,
    check_settings,
    check_start_copy,
    check_texts,
)
from engine.checkpoint_files import JSON, MODEL, OPTIMIZER, read_description
from engine.checkpoint_list import list_checkpoints
from engine.config import ModelConfig, TrainConfig
from engine.folders import read_json, write_json
from engine.owners import owner_hash
from engine.run_folder import hidden_folder, new_id
from engine.run_format import check_format
from engine.run_info import info_of, update_status
from engine.runs import RunStore
from engine.tuning_data import REFERENCE
from engine.tuning_start import FOLDER as START
from wording import words

say = words("engine.bundles")

FORMAT, KIND = 1, "loupe-run"
CONTENTS = "contents.json"  # every other file with its length and checksum
README = "README.txt"
MOST_FILES, MOST_BYTES = 1000, 500_000_000  # unpacked
MOST_RATIO, SMALL_ENOUGH = 100, 20_000_000  # a text may shrink a lot; a few megabytes hurt nobody
LONGEST_NAME = 200
_STORED = (".safetensors",)  # numbers hardly shrink
_FILES = re.compile(
    r"run\.json|tokenizer\.json|corpus\.txt|corpus_val\.txt|metrics\.jsonl|README\.txt|contents\.json"
    r"|also/[0-9a-f]{16}\.txt|checkpoints/[0-9]{7,12}/(checkpoint\.json|(model|optimizer)\.safetensors)"
    r"|start/(checkpoint\.json|model\.safetensors)|reference\.safetensors"
)
_FOLDERS = re.compile(r"(also|start|checkpoints(/[0-9]{7,12})?)/")  # some programs list them
_NEEDED = ("run.json", "tokenizer.json", "corpus.txt", CONTENTS)
_PRIVATE = ("owner", "spec_hash", "imported", "keep", "stopped_by")
_PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")

TEXT = """{name}

A run of Loupe, {step} of {steps} steps. Import it on the page Training, view Runs; or unpack it and read:

run.json         settings of the model and of the training, seeds
corpus.txt       the text that it learns from, UTF-8; with corpus_val.txt, if there, it is checked
also/            texts that were only scored, never learned from
tokenizer.json   the vocabulary
metrics.jsonl    one JSON object a line: losses of steps and evaluations, samples; losses in nats per token
start/           the model that it started from, if it didn't begin with new weights
reference.safetensors   of a run on preferences: what its start gives each answer, log-probabilities in nats
checkpoints/     one folder for each kept step: model.safetensors holds the weights, checkpoint.json says what
                 they are. The newest two are float32, with the optimizer's state, and training goes on from
                 them bit for bit. Older ones are in 8 bits: each row of a matrix is whole numbers times the
                 row's .scale
contents.json    length and sha256 of all these files
"""


def export_run(store: RunStore, run_id: str) -> bytes:
    """A run as a zip. One that is being trained is taken as it stands: its complete checkpoints and records.

    Raises:
        ValueError: if there is no such run, or it can't be read.
    """
    info = store.info(run_id)
    size = sum(_size(path) for path in info.folder.glob("checkpoints/*/*.safetensors"))
    if size > MOST_BYTES:
        raise ValueError(say("run_too_large", size=size / 1e6, most=MOST_BYTES / 1e6))
    files = _snapshot(info.folder)
    run = {k: v for k, v in json.loads(files["run.json"]).items() if k not in _PRIVATE}
    if isinstance(run.get("start"), dict):  # where it lies is nobody's business
        run["start"].pop("folder", None)
    files["run.json"] = json.dumps(run, indent=1).encode()
    files[README] = TEXT.format(name=info.name, step=info.step, steps=info.steps).encode()
    listed = {name: {"bytes": len(data), "sha256": _sha256(data)} for name, data in files.items()}
    contents = {"kind": KIND, "format": FORMAT, "files": listed}
    files[CONTENTS] = json.dumps(contents, indent=1).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name in sorted(files):
            how = zipfile.ZIP_STORED if name.endswith(_STORED) else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name, time.localtime()[:6]), files[name], how)
    return packed.getvalue()


def _size(path: Path) -> int:
    """Bytes of a file; 0 if it is gone by now, or a link to nothing."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _snapshot(folder: Path) -> dict[str, bytes]:
    """The files of a run by name. Checkpoints come first, so that no record that leads to them is missing."""
    files: dict[str, bytes] = {}
    for _, path in list_checkpoints(folder):
        files |= _checkpoint_files(path, f"checkpoints/{path.name}")
    if (folder / START).exists():
        files |= _checkpoint_files(folder / START, START)
    names = ["run.json", "tokenizer.json", "corpus.txt"]
    names += [n for n in ("corpus_val.txt", "metrics.jsonl", REFERENCE) if (folder / n).exists()]
    names += [f"also/{path.name}" for path in sorted((folder / "also").glob("*.txt"))]
    try:
        files |= {name: (folder / name).read_bytes() for name in names}
    except OSError as error:
        raise ValueError(
            say("run_incomplete_missing", name=folder.name, file=Path(error.filename).name)
        ) from error
    if "metrics.jsonl" in files:
        whole = files["metrics.jsonl"]
        files["metrics.jsonl"] = whole[: whole.rfind(b"\n") + 1]  # half a line may be just being written
    return files


def _checkpoint_files(path: Path, within: str) -> dict[str, bytes]:
    """One checkpoint, if it holds still for a moment; the run may be making it small. {} if it is damaged."""
    for _ in range(5):
        try:
            content = read_description(path)
            names = [JSON, *(n for n in (MODEL, OPTIMIZER) if n in content["files"])]
            found = {name: (path / name).read_bytes() for name in names}
        except (OSError, ValueError):
            time.sleep(0.01)
            continue
        same = all(_sha256(found[n]) == content["files"][n]["sha256"] for n in names if n != JSON)
        if same and json.loads(found[JSON]) == content:
            return {f"{within}/{name}": data for name, data in found.items()}
    return {}


def import_run(store: RunStore, data: bytes, owner: str) -> str:
    """Make a run of a zip that `export_run` made; gives its new id. It is the new owner's, and not active.

    Raises:
        ValueError: one sentence, if it is anything else, or damaged. Nothing is kept then.
    """
    files = read_bundle(data)
    run_id = new_id()
    hidden = hidden_folder(store.root, run_id)
    try:
        for name, content in files.items():
            if name in (CONTENTS, README):
                continue
            path = hidden / name  # the names are known to be harmless
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        _adopt(hidden, run_id, owner)
        with store.queue.lock():
            hidden.rename(store.root / run_id)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    return run_id


# ---- what may be in a zip


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
        if not isinstance(about, dict) or about.get("sha256") != _sha256(files[name]):
            raise ValueError(say("zip_damaged_not_what", name=name))


def _json(files: Mapping[str, bytes], name: str) -> dict[str, Any]:
    try:
        content = json.loads(files[name])
    except (ValueError, RecursionError) as error:
        raise ValueError(say("zip_damaged_not_valid", name=name)) from error
    if not isinstance(content, dict):
        raise ValueError(say("zip_damaged_not_what_2", name=name))
    return content


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# ---- what a run must be


def _adopt(folder: Path, run_id: str, owner: str) -> None:
    """Check a run that was just unpacked, and make it its new owner's.

    Raises:
        ValueError: one sentence, if it is no run that could be trained on.
    """
    run = read_json(folder / "run.json")
    check_format(run, "run.json")
    if isinstance(run.get("start"), dict):
        run["start"].pop("folder", None)
    for name in ("keep", "stopped_by"):
        run.pop(name, None)
    try:
        model, train = ModelConfig.from_json(run["model"]), TrainConfig.from_json(run["train"])
        check_settings(run, model, train)
        check_texts(folder, run)
        check_records(folder)
        check_start_copy(folder, run, model)
        step = check_checkpoints(folder, model)
        run["name"] = str(run["name"])[:LONGEST_NAME].strip() or run_id
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(say("zip_no_run_loupe_3")) from error
    run |= {
        "id": run_id,
        "created": min(max(0.0, run["created"]), time.time()),  # another machine's clock, or anything at all
        "owner": owner_hash(owner),
        "spec_hash": "",
        "imported": True,
        "group": str(run.get("group", "")),
    }
    write_json(folder / "run.json", run)
    status = update_status(
        folder,
        state="finished" if step >= train.steps else "stopped",
        step=step,
        steps=train.steps,
        message="" if step >= train.steps else say("imported_step_can_go", step=step),
        pid=None,
        device="",
    )
    if info_of(folder, run, status, True) is None:
        raise ValueError(say("zip_no_run_loupe_4"))
