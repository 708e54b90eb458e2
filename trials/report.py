"""The report: for a terminal, and as a page that keeps the newest outcome of each part."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from engine.folders import write_file
from trials.outcomes import Options, Part

FILE = Path(__file__).parent.parent / "docs" / "trials.md"
TITLES = {
    "load": "A class at work",
    "faults": "Faults",
    "inputs": "Bad input",
    "strangers": "Strangers",
}


def lines(part: Part) -> list[str]:
    """One part for a terminal."""
    told = [TITLES[part.name]]
    told += [f"  {'+' if check.kept else '-'} {check.what}: {check.seen}" for check in part.checks]
    told += [f"    {name}: {_figures(columns)}" for name, columns in part.figures.items()]
    return [*told, *(f"    {note}" for note in part.notes)]


def _figures(columns: Mapping[str, Any]) -> str:
    return ", ".join(f"{column} {value}" for column, value in columns.items())


def _cells(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def table(figures: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Lines and columns as a Markdown table; a line that lacks a column has an empty cell there."""
    columns = list(dict.fromkeys(column for line in figures.values() for column in line))
    told = [_cells(["", *columns]), _cells("---" for _ in ["", *columns])]
    return told + [_cells([name, *(line.get(c, "") for c in columns)]) for name, line in figures.items()]


def section(part: Part, conditions: Mapping[str, Any]) -> list[str]:
    """One part of the page."""
    told = [f"## {TITLES[part.name]}", ""]
    told += [_cells(["promise", "seen", ""]), _cells(["---"] * 3)]
    told += [_cells([c.what, c.seen, "kept" if c.kept else "broken"]) for c in part.checks]
    if part.figures:
        told += ["", *table(part.figures)]
    told += ["", *(f"- {note}" for note in part.notes)]
    toy = " AT TOY SIZE: these times mean nothing." if conditions["toy"] else ""
    return [
        *told,
        f"- Tried on {conditions['date']}, {conditions['cores']} cores, seed {conditions['seed']}.{toy}",
    ]


def read(path: Path) -> dict[str, Any]:
    """The outcomes beside a report, by part; none if there are none."""
    file = path.with_suffix(".json")
    found: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return found


def merge(path: Path, part: Part, options: Options) -> None:
    """Put a part into a report and the outcomes beside it; the other parts stay.

    Raises:
        ValueError: if a part at toy size would take the place of a real one.
    """
    there = read(path)
    if options.toy and part.name in there and not there[part.name]["conditions"]["toy"]:
        raise ValueError(f"{path.name} has this part at its real size; name another file for toy outcomes.")
    conditions = {**asdict(options), "date": date.today().isoformat(), "cores": os.cpu_count()}
    new = {**there, part.name: {"part": part.to_json(), "conditions": conditions}}
    ordered = {name: new[name] for name in TITLES if name in new}
    write_file(path.with_suffix(".json"), (json.dumps(ordered, indent=1, ensure_ascii=False) + "\n").encode())
    told = ["# What was tried on Loupe", "", "`python -m trials --save` writes this page.", ""]
    for saved in ordered.values():
        told += [*section(Part.from_json(saved["part"]), saved["conditions"]), ""]
    write_file(path, "\n".join(told).encode())
