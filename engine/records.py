"""metrics.jsonl of a run: one JSON object a line, only ever appended to."""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from engine.setting_checks import is_number

Records = list[dict[str, Any]]

MOST_STEPS = 10**12  # what tables can hold
# What a worker writes of each kind, and pages read without asking; a number that was not finite is null.
NUMBERS: Mapping[str, tuple[str, ...]] = {
    "step": ("loss", "learning_rate", "grad_norm", "tokens", "seconds", "tokens_per_second"),
    "eval": ("train_loss", "val_loss", "bits_per_byte", "perplexity", "seconds"),
    "floor": ("value", "bits_per_byte"),
    "baseline": ("uniform", "unigram"),
}
_FURTHER = ("joules", "margin", "accuracy", "bigram", "trigram")
_WORDS: Mapping[str, tuple[str, ...]] = {"notice": ("message",), "sample": ("text",)}
_FURTHER_WORDS = ("prompt", "masked", "truth")


def fits(record: Any) -> bool:
    """Whether a line is a record that can be read without asking; entries may be missing, see `completed`."""
    if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
        return False
    least = -1 if record["kind"] == "resume" else 0  # -1: anew, with nothing kept
    if type(record.get("step")) is not int or not least <= record["step"] <= MOST_STEPS:
        return False
    kind, words = record["kind"], _WORDS.get(record["kind"], ())
    numbers = [record.get(name) for name in (*NUMBERS.get(kind, ()), *_FURTHER) if not _is_bits(record, name)]
    tables = [record.get("also"), record.get("bits_per_byte") if kind == "baseline" else None]
    return (
        all(x is None or _is_float(x) for x in numbers)
        and all(isinstance(record.get(name), str) for name in words)
        and all(isinstance(record.get(name, ""), str) for name in _FURTHER_WORDS)
        and all(table is None or _is_table(table) for table in tables)
    )


def _is_bits(record: Mapping[str, Any], name: str) -> bool:
    return name == "bits_per_byte" and record["kind"] == "baseline"


def _is_float(value: Any) -> bool:
    return is_number(value) or isinstance(value, float)  # `completed` makes null of what is not finite


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and all(x is None or _is_float(x) for x in value.values())


def completed(record: dict[str, Any]) -> dict[str, Any]:
    """A record in which all entries of its kind stand: null for a number that is missing or not finite."""
    found = {**dict.fromkeys(NUMBERS.get(record["kind"], ())), **_finite(record)}
    if found.get("seconds", 0.0) is None:
        found["seconds"] = 0.0
    return found


def merge_records(records: Records, new: Iterable[dict[str, Any]]) -> None:
    """Append new records; at a resume, forget what came after the checkpoint that it went on from."""
    for record in new:
        if record.get("kind") == "resume":
            records[:] = [r for r in records if r["step"] <= record["step"]]
        else:
            records.append(record)


def read_records(path: Path, offset: int = 0) -> tuple[Records, int]:
    """Records in a metrics file from `offset` on, and where to go on; half a line has to wait.

    A line that is none, such as half of one that a killed worker left, is passed over.
    """
    lines, end = read_lines(path, offset)
    return [completed(line) for line in lines if fits(line)], end


def read_lines(path: Path, offset: int = 0) -> tuple[list[Any], int]:
    """The JSON in whole lines from `offset` on, whatever it is, and where to go on.

    Of a file that can't be read just now nothing is new; of one that is gone it is to be begun anew.
    """
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            data = file.read()
    except FileNotFoundError:
        return [], 0
    except OSError:  # too many files are open, or what is there is none
        return [], offset
    whole = data[: data.rfind(b"\n") + 1]
    found = []
    for line in whole.splitlines():
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return found, offset + len(whole)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


class Metrics:
    """metrics.jsonl: one record a line, flushed, so that a page sees it and a crash loses nothing.

    Attributes:
        begun: whether the file had something in it before.
    """

    def __init__(self, path: Path) -> None:
        """Open for appending; half a line that a killed worker left is closed off."""
        self._path = path
        self.begun = path.exists() and path.stat().st_size > 0
        torn = self.begun and path.read_bytes()[-1:] != b"\n"
        self._file: TextIO = open(path, "a", encoding="utf-8")  # noqa: SIM115 open as long as the run
        if torn:
            self._file.write("\n")

    def write(self, kind: str, step: int, **values: Any) -> None:
        """Append a record. JSON knows no infinity: such a number becomes null."""
        record = _finite({"kind": kind, "step": step, **values})
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()

    def keep(self) -> None:
        """See that all is on the disk: a checkpoint must never outlive the curve that leads to it."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def last(self, kind: str, up_to: int) -> dict[str, Any]:
        """The newest record of a kind at a step of at most `up_to`, or {}."""
        found = [r for r in read_records(self._path)[0] if r["kind"] == kind and r["step"] <= up_to]
        return found[-1] if found else {}

    def close(self) -> None:
        """Close the file. What a full disk does not take is left out."""
        with suppress(OSError):
            self._file.close()
