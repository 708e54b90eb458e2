"""What an imported run must be, so that pages and workers can rely on it as on one of their own."""

import math
from pathlib import Path
from typing import Any

from engine.checkpoints import JSON, MODEL, load_checkpoint, read_description
from engine.config import ModelConfig, TrainConfig
from engine.corpus import Corpus, split
from engine.folders import read_json
from engine.plan import parameter_count
from engine.records import read_records
from engine.run_spec import fingerprint
from engine.tokenizers import tokenizer_from_json

# A few digits in a setting can ask for more memory than there is.
MOST_WEIGHTS, LARGEST_TABLE, LARGEST_BATCH = 1_000_000_000, 100_000_000, 10_000_000
_NUMBERS: dict[str, tuple[str, ...]] = {
    "step": ("loss", "learning_rate", "grad_norm", "tokens", "seconds", "tokens_per_second"),
    "eval": ("train_loss", "val_loss", "bits_per_byte", "perplexity", "seconds"),
    "floor": ("value", "bits_per_byte"),
    "baseline": ("uniform", "unigram"),
}
_WORDS: dict[str, tuple[str, ...]] = {"notice": ("message",), "sample": ("text",)}


def check_settings(run: dict[str, Any], model: ModelConfig, train: TrainConfig) -> None:
    """What pages read without asking, and what can't be meant."""
    about, further = run["corpus"], run.get("also_scored") or {}
    numbers = [run["created"], *(about[name] for name in ("val_share", "train_tokens", "val_tokens"))]
    words = [about["name"], about["kind"], run["tokenizer"]["name"], run["name"], *further, *further.values()]
    words += [
        run.get("group", ""),
        run.get("label", ""),
        run.get("sample_prompt") or "",
        run.get("device", ""),
    ]
    if not all(map(_is_number, numbers)) or not all(isinstance(word, str) for word in words):
        raise ValueError("This zip is damaged: an entry of its run.json is not what Loupe writes.")
    table, batch = model.context_length * model.d_model, model.context_length * train.batch_size
    weights = parameter_count(model)
    for what, number, most in (
        ("weights", weights, MOST_WEIGHTS),
        ("numbers in its table of positions", table, LARGEST_TABLE),
        ("tokens in a step", batch, LARGEST_BATCH),
    ):
        if number > most:
            raise ValueError(
                f"This zip is refused: its run would have {number:,} {what}, and the limit is {most:,}."
            )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def check_records(folder: Path) -> None:
    """Pages rely on the entries of each kind of record; a number may also be null."""
    for record in read_records(folder / "metrics.jsonl")[0]:
        whole = type(record["step"]) is int and isinstance(record.get("kind"), str)
        numbers, words = (needs.get(str(record.get("kind")), ()) for needs in (_NUMBERS, _WORDS))
        whole &= all(
            name in record and (record[name] is None or _is_number(record[name])) for name in numbers
        )
        whole &= all(isinstance(record.get(name), str) for name in words)
        if not whole:
            raise ValueError("This zip is damaged: a record of its metrics.jsonl is not what Loupe writes.")


def check_texts(folder: Path, run: dict[str, Any]) -> None:
    """Its texts and its vocabulary are those that its settings name."""
    about, val_file = run["corpus"], folder / "corpus_val.txt"
    try:
        text = (folder / "corpus.txt").read_bytes().decode()
        val_text = val_file.read_bytes().decode() if val_file.exists() else None
        further = {path.name: path.read_bytes().decode() for path in (folder / "also").glob("*.txt")}
    except UnicodeDecodeError as error:
        raise ValueError("This zip is damaged: one of its texts is not UTF-8.") from error
    corpus = Corpus(str(about["name"]), str(about["kind"]), text, val_text)
    if corpus.sha256 != about["sha256"]:
        raise ValueError("This zip is damaged: its text is not the one that the run learned from.")
    if wanted := {f"{h[:16]}.txt" for h in dict(run.get("also_scored") or {}).values()} ^ set(further):
        raise ValueError(f"This zip is damaged: the text also/{wanted.pop()} is missing or unknown.")
    if any(not fingerprint(t).startswith(name[:16]) for name, t in further.items()):
        raise ValueError("This zip is damaged: a text that was also scored is not the one that it was.")
    split(corpus, about["val_share"])
    tokenizer = tokenizer_from_json(read_json(folder / "tokenizer.json"))
    if tokenizer.hash != run["tokenizer"]["hash"]:
        raise ValueError("This zip is damaged: its vocabulary is not the one of the run.")
    need, has = tokenizer.model_vocab_size(run["model"]["objective"]), run["model"]["vocab_size"]
    if has != need:
        raise ValueError(f"This zip is refused: its model has {has} ids and its vocabulary needs {need}.")


def check_checkpoints(folder: Path, model: ModelConfig) -> int:
    """Open each; gives the step of the newest, 0 without any."""
    newest = 0
    for path in sorted((folder / "checkpoints").glob("*"), key=lambda path: int(path.name)):
        if not {p.name for p in path.iterdir()} >= {JSON, MODEL}:
            raise ValueError(f"This zip is damaged: its checkpoint {path.name} is not complete.")
        about = read_description(path)
        if about["model"] != model.to_json():
            raise ValueError(
                f"This zip is refused: its checkpoint {path.name} is of another model than the run."
            )
        _check_size(path, model)
        checkpoint = load_checkpoint(path)
        if f"{checkpoint.step:07d}" != path.name:
            raise ValueError(f"This zip is refused: its checkpoint {path.name} is of step {checkpoint.step}.")
        newest = checkpoint.step
    return newest


def _check_size(path: Path, model: ModelConfig) -> None:
    """Before a model is made: no weight takes less than a byte."""
    weights, has = parameter_count(model), (path / MODEL).stat().st_size
    if weights > has:
        raise ValueError(
            f"This zip is refused: its model would have {weights:,} weights, but the checkpoint {path.name} "
            f"holds {has:,} bytes."
        )
