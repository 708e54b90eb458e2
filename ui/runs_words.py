"""Words for the settings of runs: their names as the form of the next run has them, and their values."""

from typing import Any

from engine.run_sets import Difference, Key
from ui.words import OBJECTIVES, objective_name

LETTERS = "ABCDEFGH"
PARTS = {"text": "Text", "tokenizer": "Tokenizer", "model": "Model", "training": "Training"}
NAMES = {
    "text": "text", "val_share": "validation share", "tokenizer": "tokenizer", "vocab_size": "vocabulary",
    "context_length": "context", "n_layer": "layers", "n_head": "heads", "d_model": "width",
    "n_kv_head": "key/value heads", "d_ff": "MLP width", "objective": "it guesses the",
    "positions": "positions", "norm": "norm", "activation": "activation", "norm_place": "place of the norm",
    "bias": "bias", "tie_head": "tied head", "qk_norm": "norm of queries and keys", "dropout": "dropout",
    "steps": "steps", "batch_size": "rows in a step", "optimizer": "optimizer",
    "learning_rate": "learning rate", "min_lr_share": "lowest rate’s share", "warmup_steps": "warm-up steps",
    "schedule": "schedule", "weight_decay": "weight decay", "grad_clip": "largest gradient",
    "eval_rows": "rows checked", "mask_prob": "share hidden", "aligned_share": "rows from a line’s start",
    "precision": "precision", "seed": "seed",
}  # fmt: skip
_SHORT = {"learning_rate": "rate", "context_length": "context", "batch_size": "rows", "weight_decay": "decay",
          "warmup_steps": "warm-up", "mask_prob": "hidden", "val_share": "validation"}  # fmt: skip
_MAIN = (  # what is said of what is alike, before the rest
    "text", "tokenizer", "vocab_size", "objective", "n_layer", "n_head", "d_model", "context_length", "steps",
    "batch_size", "optimizer", "learning_rate", "seed",
)  # fmt: skip


def name(setting: str) -> str:
    """A setting as the screen calls it."""
    return NAMES.get(setting, setting)


def value(given: Any) -> str:
    """A value of a setting in words.

    >>> [value(v) for v in (0.004, 12000, True, None, "clm")]
    ['0.004', '12,000', 'yes', 'standard', 'next token']
    """
    if given is None:
        return "standard"
    if isinstance(given, bool):
        return "yes" if given else "no"
    if isinstance(given, int):
        return f"{given:,}"
    if isinstance(given, float):
        return f"{given:g}"
    named = getattr(
        given, "name", None
    )  # not isinstance: the class is another one after a change of the code
    if named is not None:
        return str(named)
    return objective_name(str(given)) if given in OBJECTIVES else str(given)


def cells(row: Difference) -> list[str]:
    """The values of a difference; things of one name get the beginning of their fingerprints."""
    texts = ["–" if v is None and row.name == "mask_prob" else value(v) for v in row.values]
    marks = [getattr(v, "fingerprint", "") for v in row.values]
    told: dict[str, set[str]] = {}
    for text, mark in zip(texts, marks, strict=True):
        told.setdefault(text, set()).add(mark)
    return [
        f"{text} ({mark[:6]})" if len(told[text]) > 1 else text
        for text, mark in zip(texts, marks, strict=True)
    ]


def brief(row: Difference, i: int) -> str:
    """One value of a difference, short enough for the end of a line."""
    given = row.values[i]
    if hasattr(given, "fingerprint") or isinstance(given, str):
        return cells(row)[i]
    return f"{_SHORT.get(row.name, name(row.name))} {value(given)}"


def alike(settings: dict[Key, Any], *, main: bool) -> str:
    """What is alike in all runs: the main settings, or the others."""
    shown = {key[1]: v for key, v in settings.items() if (key[1] in _MAIN) is main and v is not None}
    order = [n for n in _MAIN if n in shown] if main else list(shown)
    return " · ".join(f"{name(n)} {value(shown[n])}" for n in order if n != "checked_on")
