"""What the entries of run.json and status.json must be, so that pages can read them without asking.

Anybody may have edited a run's files, or unpacked them from somewhere: one odd entry must not take the list
of all runs down.
"""

from collections.abc import Mapping
from typing import Any

from engine.records import MOST_STEPS
from engine.setting_checks import is_number

_NAMED = ("name", "owner")
_WORDS = ("group", "label", "device")  # of run.json; may be missing
_STATUS_WORDS = ("device", "message", "joules_of")
_STATUS_NUMBERS = ("tokens_per_second", "eta_s", "joules", "queued_at")
_PARTS = ("model", "train", "corpus", "tokenizer")


def fits(run: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether both hold what a run is shown with; the settings of model and training check themselves."""
    return run_fits(run) and _status_fits(status)


def run_fits(run: Mapping[str, Any]) -> bool:
    """Whether run.json holds what a run is shown with."""
    if not all(isinstance(run.get(part), dict) for part in _PARTS):
        return False
    about, start, further = run["corpus"], run.get("start"), run.get("also_scored") or {}
    if not isinstance(further, dict) or not isinstance(start, dict | None):
        return False
    words = [*(run.get(name) for name in _NAMED), about.get("name"), about.get("kind")]
    words += [run["tokenizer"].get("name"), run.get("sample_prompt") or "", about.get("sha256", "")]
    words += [*(run.get(name, "") for name in _WORDS), *further, *further.values()]
    words += [start.get(name) for name in ("name", "identity")] if start else []
    numbers = [run.get("created"), *(about.get(name) for name in ("val_share", "train_tokens", "val_tokens"))]
    return all(map(_is_word, words)) and str(run["owner"]).isascii() and all(map(is_number, numbers))


def _status_fits(status: Mapping[str, Any]) -> bool:
    numbers = [status.get(name) for name in _STATUS_NUMBERS]
    step = status.get("step", 0)
    return (
        _is_word(status.get("state"))
        and type(step) is int
        and 0 <= step <= MOST_STEPS
        and is_number(status.get("updated", 0))
        and all(number is None or is_number(number) for number in numbers)
        and all(_is_word(status.get(name, "")) for name in _STATUS_WORDS)
    )


def _is_word(value: Any) -> bool:
    """A text that can stand on a page: no half of a character, no end of it."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
