"""Words for the settings of runs: their names as the form of the next run has them, and their values."""

from typing import Any

from engine.run_sets import Difference, Key
from ui.words import OBJECTIVES, objective_name
from wording import words

say = words("ui.runs_words")

LETTERS = "ABCDEFGH"
_MAIN = (  # what is said of what is alike, before the rest
    "text", "tokenizer", "vocab_size", "objective", "n_layer", "n_head", "d_model", "context_length", "steps",
    "batch_size", "optimizer", "learning_rate", "seed",
)  # fmt: skip


def name(setting: str) -> str:
    """A setting as the screen calls it."""
    return say.table("name").get(setting, setting)


def part(of: str) -> str:
    """A part of the settings as the screen calls it."""
    return say(f"part.{of}")


def value(given: Any) -> str:
    """A value of a setting in words.

    >>> [value(v) for v in (0.004, 12000, True, None, "clm")]
    ['0.004', '12,000', 'yes', 'standard', 'next token']
    """
    if given is None:
        return say("standard")
    if isinstance(given, bool):
        return say("yes") if given else say("no")
    if isinstance(given, int):
        return f"{given:,}"
    if isinstance(given, float):
        return f"{given:g}"
    # not isinstance: the class is another one after a change of the code
    named = getattr(given, "name", None)
    if named is not None:
        return str(named)
    if given in OBJECTIVES:
        return objective_name(str(given))
    return say.table("value").get(str(given), str(given))


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
    short = say.table("short").get(row.name) or name(row.name)
    return f"{short} {value(given)}"


def alike(settings: dict[Key, Any], *, main: bool) -> str:
    """What is alike in all runs: the main settings, or the others."""
    shown = {key[1]: v for key, v in settings.items() if (key[1] in _MAIN) is main and v is not None}
    order = [n for n in _MAIN if n in shown] if main else list(shown)
    return " · ".join(f"{name(n)} {value(shown[n])}" for n in order if n != "checked_on")
