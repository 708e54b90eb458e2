"""The file of results: the newest measurement of each row, and what it was measured on."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.one_row import MODULES, Conditions
from benchmarks.rows import Row
from engine.folders import write_file

FILE = Path(__file__).parent / "results.json"


@dataclass(frozen=True)
class Result:
    """A row, and what it was measured on."""

    row: Row
    conditions: Conditions

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> "Result":
        """What `benchmarks.one_row.measure` gave."""
        return cls(Row.from_json(saved["row"]), Conditions(**saved["conditions"]))


def in_order(results: Mapping[str, Any]) -> dict[str, Any]:
    """By the number of the row."""
    return {row: results[row] for row in MODULES if row in results}


def read(path: Path) -> dict[str, Any]:
    """The results of a file as JSON, by row; none if there is no file."""
    return in_order(json.loads(path.read_text("utf-8"))) if path.exists() else {}


def results(path: Path) -> list[Result]:
    """The results of a file."""
    return [Result.from_json(saved) for saved in read(path).values()]


def merge(path: Path, measured: Mapping[str, Any]) -> None:
    """Put rows into a file, in place of those of the same id; the others stay.

    Raises:
        ValueError: if a row at toy size would take the place of a real one.
    """
    there = read(path)
    for row, new in measured.items():
        if new["conditions"]["toy"] and row in there and not there[row]["conditions"]["toy"]:
            raise ValueError(f"{path.name} has {row} at its real size; name another file for toy results.")
    told = json.dumps(in_order({**there, **measured}), indent=1, ensure_ascii=False)
    write_file(path, (told + "\n").encode())
