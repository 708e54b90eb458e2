"""`python -m benchmarks`: Loupe beside its peers, one table with ratios and goals.

Every row is measured in a process of its own, one after the other; within a row the programs take turns.
A row that fails says why, and the others go on. The exit status is 0 if every row was measured, 1 if one
failed; whether goals are reached is in the table. Nothing is written unless `--save` names a file.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
from itertools import groupby
from json import loads
from pathlib import Path
from typing import Any

from benchmarks.one_row import MODULES, ROOT, environment, options_to_json
from benchmarks.results import FILE, Result, merge, results
from benchmarks.rows import Options, Row
from benchmarks.table import README, lines, markdown, with_table


def rows_named(text: str) -> list[str]:
    """The rows of a list such as "P1,P6", in the order of the table."""
    asked = {name.strip().upper() for name in text.split(",") if name.strip()}
    if unknown := asked - MODULES.keys():
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: rows are {', '.join(MODULES)}")
    return [row for row in MODULES if row in asked]


def existing(text: str) -> Path:
    """A path that is there."""
    if not (path := Path(text)).exists():
        raise argparse.ArgumentTypeError(f"there is no {path}")
    return path.resolve()


def command_line() -> argparse.ArgumentParser:
    """All options."""
    usual = Options()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", type=rows_named, default=list(MODULES), metavar="ROWS", help="P1,P6")
    parser.add_argument("--toy", action="store_true", help="smallest size: for correctness, not for times")
    parser.add_argument("--rounds", type=int, default=usual.rounds, help="how often each program is measured")
    parser.add_argument("--seeds", type=int, nargs="+", default=usual.seeds, help="of rows about learning")
    parser.add_argument("--nanogpt", type=existing, metavar="PATH", help="a checkout of nanoGPT")
    parser.add_argument("--text", type=existing, metavar="PATH", help="a file with tinyshakespeare")
    parser.add_argument("--models", type=existing, metavar="PATH", help="folder of published models")
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help=f"put the rows into FILE, such as benchmarks/{FILE.name}"
    )
    parser.add_argument(
        "--readme",
        action="store_true",
        help=f"write the table of the results file ({FILE.name}, or that of --save) into README.md; "
        "without --save nothing is measured",
    )
    return parser


def process(rows: list[str], options: Options, answer: Path) -> str:
    """Measure rows in one new process, which adds to the file; gives its last words if it failed."""
    command = [sys.executable, "-m", "benchmarks.one_row", ",".join(rows), options_to_json(options)]
    with tempfile.TemporaryFile() as errors:
        done = subprocess.run([*command, str(answer)], cwd=ROOT, env=environment(rows[0]), stderr=errors)
        errors.seek(0)
        told = errors.read().decode("utf-8", "replace").strip()
    if not done.returncode:
        return ""
    if done.returncode < 0:
        told += f"\nits process was ended by {signal.Signals(-done.returncode).name}"
    return told or f"its process ended with status {done.returncode}"


def measured(rows: list[str], options: Options) -> dict[str, Any]:
    """Rows that share a process, by id: what `one_row.measure` gave, or {"failed": why}."""
    found: dict[str, Any] = {}
    while waiting := [row for row in rows if row not in found]:
        with tempfile.TemporaryDirectory() as folder:
            answer = Path(folder) / "rows.jsonl"
            words = process(waiting, options, answer)
            told = answer.read_text("utf-8").splitlines() if answer.exists() else []
        found |= {line["row"]["id"]: line for line in map(loads, told)}
        failed = next((row for row in waiting if row not in found), None)
        if failed is not None:
            found[failed] = {"failed": words or "its process wrote nothing"}
    return found


def show(row: str, answer: dict[str, Any]) -> None:
    """Print a row, or why there is none."""
    if "failed" not in answer:
        print("\n".join(lines(Row.from_json(answer["row"]))), flush=True)
        return
    *before, last = answer["failed"].splitlines()
    print(f"{row}  FAILED: {last}")
    print("".join(f"      {line}\n" for line in before[-12:]), end="", flush=True)


def summary(answers: dict[str, Any]) -> str:
    """The last line: how many goals are reached, and which rows failed."""
    there = [Result.from_json(answer) for answer in answers.values() if "failed" not in answer]
    goals = [goal for result in there for goal in result.row.goals]
    reached = f"{sum(goal.reached for goal in goals)} of {len(goals)} goals reached"
    failed = [row for row, answer in answers.items() if "failed" in answer]
    return reached + (f"; failed: {', '.join(failed)}" if failed else "")


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; gives the exit status."""
    asked = command_line().parse_args(arguments)
    names = ("toy", "rounds", "nanogpt", "text", "models")
    options = Options(**{name: getattr(asked, name) for name in names}, seeds=tuple(asked.seeds))
    answers: dict[str, Any] = {}
    if asked.save or not asked.readme:
        # At toy size the rows of a module share a process: it is only about whether they are right.
        groups = groupby(asked.only, key=lambda row: MODULES[row] if options.toy else row)
        for rows in [list(group) for _, group in groups]:
            for row, answer in measured(rows, options).items():
                show(row, answer)
                answers[row] = answer
                if asked.save and "failed" not in answer:
                    merge(asked.save, {row: answer})  # at once: a later row may take an hour
        print(summary(answers))
    if asked.readme:
        table = markdown(results(asked.save or FILE))
        README.write_text(with_table(README.read_text("utf-8"), table), encoding="utf-8")
    return int(any("failed" in answer for answer in answers.values()))


if __name__ == "__main__":
    sys.exit(main())
