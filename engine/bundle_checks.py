"""What an imported run must be, so that pages and workers can rely on it as on one of their own."""

from pathlib import Path
from typing import Any

from engine.checkpoint_files import JSON, MODEL, read_description
from engine.checkpoints import load_checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.corpus import Corpus, split
from engine.folders import read_json
from engine.parameter_parts import parameter_count
from engine.records import completed, fits, read_lines
from engine.run_shape import run_fits
from engine.run_spec import fingerprint
from engine.tokenizers import has_known_pattern, tokenizer_from_json
from engine.tuning_start import FOLDER as START
from wording import words

say = words("engine.bundle_checks")

# A few digits in a setting can ask for more memory than there is.
MOST_WEIGHTS, LARGEST_TABLE, LARGEST_BATCH = 1_000_000_000, 100_000_000, 10_000_000


def check_settings(run: dict[str, Any], model: ModelConfig, train: TrainConfig) -> None:
    """What pages read without asking, and what can't be meant."""
    if not run_fits({**run, "owner": ""}) or not _fully(run):
        raise ValueError(say("zip_damaged_entry_run"))
    table, batch = model.context_length * model.d_model, model.context_length * train.batch_size
    weights = parameter_count(model)
    for what, number, most in (
        ("weights", weights, MOST_WEIGHTS),
        ("positions", table, LARGEST_TABLE),
        ("batch", batch, LARGEST_BATCH),
    ):
        if number > most:
            raise ValueError(say(f"too_large.{what}", number=number, most=most))


def _fully(run: dict[str, Any]) -> bool:
    """Whether the vocabulary's fingerprint is there, too, by which it is checked."""
    return isinstance(run["tokenizer"].get("hash"), str) and isinstance(run["corpus"].get("sha256"), str)


def check_records(folder: Path) -> None:
    """Pages rely on the entries of each kind of record; a number may also be null."""
    for record in read_lines(folder / "metrics.jsonl")[0]:
        if not fits(record) or completed(record) != record:
            raise ValueError(say("zip_damaged_record_metrics"))


def check_texts(folder: Path, run: dict[str, Any]) -> None:
    """Its texts and its vocabulary are those that its settings name."""
    about, val_file = run["corpus"], folder / "corpus_val.txt"
    try:
        text = (folder / "corpus.txt").read_bytes().decode()
        val_text = val_file.read_bytes().decode() if val_file.exists() else None
        further = {path.name: path.read_bytes().decode() for path in (folder / "also").glob("*.txt")}
    except UnicodeDecodeError as error:
        raise ValueError(say("zip_damaged_one_texts")) from error
    corpus = Corpus(str(about["name"]), str(about["kind"]), text, val_text)
    if corpus.sha256 != about["sha256"]:
        raise ValueError(say("zip_damaged_text_not"))
    if wanted := {f"{h[:16]}.txt" for h in dict(run.get("also_scored") or {}).values()} ^ set(further):
        raise ValueError(say("zip_damaged_text_also", name=wanted.pop()))
    if any(not fingerprint(t).startswith(name[:16]) for name, t in further.items()):
        raise ValueError(say("zip_damaged_text_also_2"))
    split(corpus, about["val_share"])
    tokenizer = tokenizer_from_json(read_json(folder / "tokenizer.json"))
    if not has_known_pattern(tokenizer):
        raise ValueError(say("zip_refused_pattern"))
    if tokenizer.hash != run["tokenizer"]["hash"]:
        raise ValueError(say("zip_damaged_vocabulary_not"))
    need, has = tokenizer.model_vocab_size(run["model"]["objective"]), run["model"]["vocab_size"]
    if has != need:
        raise ValueError(say("zip_refused_model_has", has=has, need=need))


def check_start_copy(folder: Path, run: dict[str, Any], model: ModelConfig) -> None:
    """A run that says what it started from says it in words, and a copy of its start is of its shape."""
    about, copy = run.get("start"), folder / START
    if about is not None and not all(isinstance(about[name], str) for name in ("kind", "name", "identity")):
        raise ValueError(say("zip_damaged_entry_run"))
    if not copy.exists():
        return
    if about is None or not (copy / MODEL).exists() or read_description(copy)["model"] != model.to_json():
        raise ValueError(say("zip_refused_start"))
    _check_size(copy, model)
    load_checkpoint(copy)


def check_checkpoints(folder: Path, model: ModelConfig) -> int:
    """Open each; gives the step of the newest, 0 without any."""
    newest = 0
    for path in sorted((folder / "checkpoints").glob("*"), key=lambda path: int(path.name)):
        if not {p.name for p in path.iterdir()} >= {JSON, MODEL}:
            raise ValueError(say("zip_damaged_checkpoint_not", name=path.name))
        about = read_description(path)
        if about["model"] != model.to_json():
            raise ValueError(say("zip_refused_checkpoint_another", name=path.name))
        _check_size(path, model)
        checkpoint = load_checkpoint(path)
        if f"{checkpoint.step:07d}" != path.name:
            raise ValueError(say("zip_refused_checkpoint_step", name=path.name, step=checkpoint.step))
        newest = checkpoint.step
    return newest


def _check_size(path: Path, model: ModelConfig) -> None:
    """Before a model is made: no weight takes less than a byte."""
    weights, has = parameter_count(model), (path / MODEL).stat().st_size
    if weights > has:
        raise ValueError(say("zip_refused_model_would", weights=weights, name=path.name, has=has))
