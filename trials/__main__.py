"""`python -m trials`: a class at work, faults, bad input and strangers, and one report of what was kept.

Each part runs in a process of its own, one after the other, on data folders of its own. A part that fails
says why, and the others go on. `--save` writes the report (docs/trials.md unless another file is named). The
exit status is 0 if all parts ran and every promise was kept.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from trials.outcomes import Options, Part, Trial
from trials.report import FILE, lines, merge

ROOT = Path(__file__).parent.parent
PARTS = ("load", "faults", "inputs", "strangers")  # trials/<name>.py: its `trial`


def trial(name: str) -> Trial:
    """What runs a part."""
    found: Trial = import_module(f"trials.{name}").trial
    return found


def parts_named(text: str) -> list[str]:
    """The parts of a list such as "load,inputs", in the report's order."""
    asked = {name.strip() for name in text.split(",") if name.strip()}
    if unknown := asked - set(PARTS):
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: parts are {', '.join(PARTS)}")
    return [name for name in PARTS if name in asked]


def command_line() -> argparse.ArgumentParser:
    """All options."""
    usual = Options()
    parser = argparse.ArgumentParser(prog="python -m trials", description=__doc__)
    parser.add_argument("--only", type=parts_named, default=list(PARTS), metavar="PARTS", help="load,inputs")
    parser.add_argument("--toy", action="store_true", help="the smallest amount: its times mean nothing")
    parser.add_argument("--minutes", type=float, default=usual.minutes, help="of the class at work")
    parser.add_argument("--people", type=int, default=usual.people, help="of the class")
    parser.add_argument("--cases", type=int, default=usual.cases, help="made up for each kind of input")
    parser.add_argument("--seed", type=int, default=usual.seed)
    parser.add_argument(
        "--save", type=Path, nargs="?", const=FILE, metavar="FILE", help=f"write the report ({FILE.name})"
    )
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)  # of a part's own process
    return parser


def in_own_process(name: str, options: Options) -> Part | str:
    """Run a part; gives it, or why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "part.json"
        given = [f"--{key}={value}" for key, value in asdict(options).items() if key != "toy"]
        command = [sys.executable, "-m", "trials", "--only", name, "--answer", str(answer), *given]
        command += ["--toy"] if options.toy else []
        # One thread in torch, as workers have it: with two, sums come out otherwise. And in a session of
        # its own: Ctrl-C comes here alone.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
        with subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True) as process:
            try:
                process.wait()
            except BaseException:
                process.terminate()  # it ends what it has started; the end of this block waits for it
                raise
        if answer.exists():
            return Part.from_json(json.loads(answer.read_text("utf-8")))
        return f"its process ended with status {process.returncode}"


def leave_in_order() -> None:
    """Let SIGTERM be an exit, so that a part first ends its servers, its workers and its disks."""

    def leave(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one would break into that
        sys.exit("The trial was ended.")

    signal.signal(signal.SIGTERM, leave)


def main(arguments: list[str] | None = None) -> int:
    """Try, print and write; gives the exit status."""
    asked = command_line().parse_args(arguments)
    options = Options(**{name: getattr(asked, name) for name in asdict(Options())})
    if asked.answer:
        (name,) = asked.only
        asked.answer.write_text(json.dumps(trial(name)(options).to_json()), "utf-8")
        return 0
    good = True
    for name in asked.only:
        part = in_own_process(name, options)
        if isinstance(part, str):
            print(f"{name}  FAILED: {part}", flush=True)
            good = False
            continue
        print("\n".join(lines(part)), flush=True)
        good &= part.kept
        if asked.save:
            merge(asked.save, part, options)
    return 0 if good else 1


if __name__ == "__main__":
    leave_in_order()
    sys.exit(main())
