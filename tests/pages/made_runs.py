"""Runs that were never trained, for tests of the Training page: folders with records of their own making."""

import json
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from engine.config import ModelConfig, TrainConfig
from engine.corpus import Corpus, own_text
from engine.runs import RunSpec, RunStore
from engine.tokenizers import Tokenizer, byte_tokenizer

MINE, YOURS = "a" * 32, "b" * 32
STORY = "Once upon a time there was a fox. The fox had a hat and the hat had a hole. "


def make_run(
    home: Path,
    owner: str = MINE,
    *,
    name: str = "a run",
    objective: str = "clm",
    corpus: Corpus | None = None,
    tokenizer: Tokenizer | None = None,
    records: list | None = None,
    **train: Any,
) -> str:
    """A run's folder with these records; its id. Bytes of four stories unless said otherwise."""
    tokenizer, corpus = tokenizer or byte_tokenizer(), corpus or own_text(STORY * 4, name=name)
    config = ModelConfig(tokenizer.model_vocab_size(objective), 16, 1, 1, 8, objective=objective)
    run_id = RunStore(home).create(
        RunSpec(name, corpus, tokenizer, config, TrainConfig(**{"steps": 20, **train})), owner
    )
    write_records(home, run_id, records or [])
    return run_id


def write_records(home: Path, run_id: str, records: list) -> None:
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (home / "runs" / run_id / "metrics.jsonl").write_text(lines, "utf-8")


def set_status(home: Path, run_id: str, **changes: object) -> None:
    path = home / "runs" / run_id / "status.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changes}), "utf-8")


def said(at: AppTest) -> str:
    """All that the page says."""
    kinds = ("title", "markdown", "caption", "text", "error", "warning", "info", "success", "metric")
    return "\n".join(str(e.value) for kind in kinds for e in at.get(kind))


def metrics(at: AppTest) -> dict[str, str]:
    return {m.label: m.value for m in at.metric}


EVALS = [
    {"kind": "eval", "step": 0, "train_loss": 5.6, "val_loss": 5.55, "bits_per_byte": 8.007, "seconds": 0.0},
    {"kind": "step", "step": 1, "loss": 5.5, "seconds": 0.5},
    {"kind": "eval", "step": 10, "train_loss": 2.5, "val_loss": 2.0, "bits_per_byte": 2.885, "seconds": 5.0},
]
