"""metrics.jsonl of a run: one JSON object a line, only ever appended to."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

Records = list[dict[str, Any]]


def merge_records(records: Records, new: Iterable[dict[str, Any]]) -> None:
    """Append new records; at a resume, forget what came after the checkpoint that it went on from."""
    for record in new:
        if record.get("kind") == "resume":
            records[:] = [r for r in records if r["step"] <= record["step"]]
        else:
            records.append(record)


def read_records(path: Path, offset: int = 0) -> tuple[Records, int]:
    """Whole lines of a metrics file from `offset` on, and where to go on; half a line has to wait."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            data = file.read()
    except FileNotFoundError:
        return [], 0
    whole = data[: data.rfind(b"\n") + 1]
    records = []
    for line in whole.splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # half a line that a killed worker left
            continue
        if isinstance(record, dict) and "step" in record:
            records.append(record)
    return records, offset + len(whole)


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

    def last(self, kind: str, up_to: int) -> dict[str, Any]:
        """The newest record of a kind at a step of at most `up_to`, or {}."""
        found = [r for r in read_records(self._path)[0] if r["kind"] == kind and r["step"] <= up_to]
        return found[-1] if found else {}

    def close(self) -> None:
        """Close the file."""
        self._file.close()
