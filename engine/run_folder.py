"""The folder of a run: what lies in it, and how a new one is made so that nobody ever sees half of it.

run.json        settings, seeds, whose it is        metrics.jsonl   one record a line, appended
corpus.txt      the text (and corpus_val.txt)       status.json     state, step, heartbeat
also/           further texts that are scored       checkpoints/    one folder for each kept step
tokenizer.json  the vocabulary                      stop, pause     asked of the worker: see run_info
start/          of a run that starts from a small model, that model: see tuning_start
reference.safetensors   of a run on preferences, what its start gives each answer: see tuning_data
"""

import os
import secrets
import shutil
import time
from pathlib import Path
from typing import Any

from engine.corpus import PAIRS, split
from engine.folders import write_json
from engine.owners import owner_hash
from engine.run_format import FORMAT
from engine.run_info import update_status
from engine.run_spec import RunSpec, also_file, spec_hash
from engine.tuning_start import copy_start
from wording import language


def new_id() -> str:
    """A name for a run: when it was made, and something that nobody else has."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"


def hidden_folder(root: Path, run_id: str) -> Path:
    """Where a run lies among the others while it is being made: no list shows it."""
    return root / f".{run_id}.new"


def make_folder(root: Path, spec: RunSpec, owner: str, sizes: tuple[int, int], status: dict[str, Any]) -> str:
    """Write a run's folder under a hidden name, then show it; gives the new run's id.

    Args:
        root: the folder of all runs.
        spec: what is to be trained.
        owner: whose it is.
        sizes: tokens of the training text and of the validation text.
        status: how it stands at first.
    """
    run_id = new_id()
    run = {
        "format": FORMAT,
        "id": run_id,
        "name": spec.name.strip() or run_id,
        "created": time.time(),
        "language": language(),
        **spec.to_json(),
    }
    run |= {"owner": owner_hash(owner), "spec_hash": spec_hash(spec)}
    run["corpus"] |= {"train_tokens": sizes[0], "val_tokens": sizes[1]}
    if spec.corpus.kind in PAIRS:
        run["corpus"] |= {
            name: sum(bool(line.strip()) for line in text.split("\n"))
            for name, text in zip(("pairs", "val_pairs"), split(spec.corpus, spec.val_share), strict=True)
        }
    hidden = hidden_folder(root, run_id)
    try:
        _fill(hidden, spec, run, status)
        os.replace(hidden, root / run_id)
    except BaseException:  # a full disk, above all: then every byte counts
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    return run_id


def _fill(hidden: Path, spec: RunSpec, run: dict[str, Any], status: dict[str, Any]) -> None:
    """Write what a new run begins with."""
    hidden.mkdir(parents=True)  # also the folder of all runs, which could not be made before
    (hidden / "corpus.txt").write_bytes(spec.corpus.text.encode())
    if spec.corpus.val_text is not None:
        (hidden / "corpus_val.txt").write_bytes(spec.corpus.val_text.encode())
    for text in spec.also_scored.values():
        file = hidden / also_file(text)
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(text.encode())
    write_json(hidden / "tokenizer.json", spec.tokenizer.to_json())
    if spec.start is not None:
        run["start"] |= {"folder": spec.start.folder}
        copy_start(hidden, spec.start)
    write_json(hidden / "run.json", run)
    update_status(hidden, **{"step": 0, "message": "", "pid": None, "device": "", **status})
