"""`python -m engine.training`: train the run in a folder, or a new one made of options."""

import argparse
import os
import secrets
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from engine.checkpoint_list import newest_checkpoint
from engine.config import TrainConfig
from engine.events import DivergedError
from engine.folders import read_json, write_json
from engine.parallel import InStep, LostProcessError, Processes, join, leave
from engine.run_options import make_spec, read_options
from engine.run_setup import set_up
from engine.runs import RunStore
from engine.worker import run_folder, start_next


def main(arguments: Sequence[str] | None = None) -> None:
    """Train in the foreground; the exit status is 0 unless the run failed."""
    try:
        options = read_options(sys.argv[1:] if arguments is None else arguments)
    except SystemExit:
        if os.environ.get("RANK", "0") != "0":  # one sentence is enough
            sys.exit(2)
        raise
    torch.set_num_threads(1)
    try:
        processes = join()
        if processes.rank:
            accompany(processes)
        else:
            lead(options, processes, say)
    except DivergedError as error:  # in all processes alike: told once
        sys.exit(1 if os.environ.get("RANK", "0") != "0" else str(error))
    except (ValueError, MemoryError, OSError, LostProcessError) as error:
        sys.exit(str(error))
    finally:
        leave()


def say(text: str) -> None:
    """Print a line at once, also into a pipe."""
    print(text, flush=True)


def lead(options: argparse.Namespace, processes: Processes, report: Callable[[str], None]) -> None:
    """What process 0 does, or a process alone: it makes the run, writes its folder and tells how it goes.

    Raises:
        ValueError: if there is no such run or there can't be, or it diverged.
    """
    folder = None
    try:
        given = options.folder
        folder = new_run(options, report) if given is None else claim(given, options.steps)
    finally:
        processes.tell(str(folder or ""))  # with nothing to do, the others leave
    try:
        run_folder(folder, report, processes)
    finally:
        start_next(folder)


def accompany(processes: Processes) -> None:
    """What the other processes do: their part of every step, and no writing."""
    name = processes.tell()
    if not name:
        return
    ready = set_up(Path(name), read_json(Path(name) / "run.json"), report=lambda text: None)
    if ready.finished:
        return
    events = InStep(ready.training(processes), processes)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, events.ask)
    for _ in events:
        pass


def new_run(options: argparse.Namespace, report: Callable[[str], None]) -> Path:
    """Make a run and take it; gives its folder.

    Raises:
        ValueError: if there can't be such a run.
    """
    if options.home is not None:
        os.environ["LOUPE_HOME"] = str(options.home.absolute())  # where published vocabularies may lie, too
    spec, notice = make_spec(options)
    store = RunStore()
    run_id = store.create(spec, owner=secrets.token_hex(16))
    folder = store.claim(run_id)
    if notice:
        report(notice)
    report(f"Run folder: {folder}")
    report(f"In the app, with the same data folder, follow it at /training?run={run_id}")
    return folder


def claim(folder: Path, steps: int | None) -> Path:
    """Take a run that has a folder, and make it longer if a new total of steps is given.

    Raises:
        ValueError: if it is no run, is being trained elsewhere, or has nothing left to do.
    """
    folder = folder.resolve()
    if not (folder / "run.json").is_file():
        raise ValueError(
            f"{folder} is no run: it has no run.json. Give the folder of a run, as the Training page makes "
            "it, or --text for a new one."
        )
    if steps is not None:
        settings, newest = read_json(folder / "run.json"), newest_checkpoint(folder)
        if newest is not None and steps <= newest[0]:
            raise ValueError(f"This run has done {newest[0]} of {steps} steps. Give more steps to train on.")
        train = TrainConfig.from_json({**settings["train"], "steps": steps})
    RunStore(folder.parent.parent).claim(folder.name)
    if steps is not None:
        write_json(folder / "run.json", {**settings, "train": train.to_json()})
    return folder
