"""A run as one zip: everything in its folder but whose it is; and such a zip as a run again, checked first.

A zip may come from anywhere, so what is in it is believed only after it was looked at: names, sizes and
checksums before anything is written (engine/bundle_zip.py), then every checkpoint, in a folder that nobody
sees yet.
"""

import io
import json
import shutil
import time
import zipfile
from pathlib import Path

from engine.bundle_checks import (
    check_checkpoints,
    check_records,
    check_settings,
    check_start_copy,
    check_texts,
)
from engine.bundle_zip import CONTENTS, FORMAT, KIND, MOST_BYTES, README, read_bundle, sha256
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

LONGEST_NAME = 200
_STORED = (".safetensors",)  # numbers hardly shrink
_PRIVATE = ("owner", "spec_hash", "imported", "keep", "stopped_by")

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
    listed = {name: {"bytes": len(data), "sha256": sha256(data)} for name, data in files.items()}
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
        same = all(sha256(found[n]) == content["files"][n]["sha256"] for n in names if n != JSON)
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
