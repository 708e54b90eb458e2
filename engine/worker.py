"""The process that trains a run: reads its folder, writes its metrics, checkpoints and heartbeat.

`python -m engine.worker` imports everything, takes one tiny step, and waits for the path of a run folder on
its standard input; at the end of input it leaves. `python -m engine.training RUN_FOLDER` trains in the
foreground: see `command_line`.
"""

import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

# Both before torch is imported. Training has threads of its own, see `engine.parts`: two that share every
# operation between them are far slower than one as soon as anybody else is busy.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch

from engine.config import ModelConfig, TrainConfig
from engine.memory import keep_freed
from engine.model import Transformer
from engine.parallel import ALONE, Processes
from engine.processes import yield_to_others
from engine.run_info import language_of
from engine.run_session import Run
from engine.runs import RunStore
from engine.training import train


def run_folder(
    folder: str | Path, report: Callable[[str], None] = print, processes: Processes = ALONE
) -> None:
    """Train the run in a folder until it is finished, stopped or failed; its status.json says which.

    A line of progress goes to `report` at each evaluation. An error is raised again once the status tells of
    it.
    """
    keep_freed()
    run = Run(Path(folder), report, processes)
    before = {}
    if threading.current_thread() is threading.main_thread():  # only there may handlers be set
        before = {s: signal.signal(s, run.ask_to_stop) for s in (signal.SIGTERM, signal.SIGINT)}
    try:
        run.train()
    except Exception as error:  # whatever it is, the page must hear of it
        run.fail(error)
        raise
    finally:
        run.release()
        for number, handler in before.items():
            signal.signal(number, handler)


def warm_up() -> None:
    """One step of a tiny model: torch loads much of itself only then."""
    model = Transformer(ModelConfig(vocab_size=8, context_length=4, n_layer=1, n_head=1, d_model=8))
    config = TrainConfig(steps=1, batch_size=1, eval_rows=1)
    for _ in train(model, list(range(8)), [], config):
        pass


def already_asked() -> bool:
    """Whether a run, or the end, is waiting already: then its first numbers come sooner without a warm-up."""
    return os.name == "posix" and bool(select.select([sys.stdin], [], [], 0)[0])


def serve() -> None:
    """Wait for one run folder on standard input and train it; at the end of input leave."""
    yield_to_others()  # again, as whoever started it may not have been allowed to say so
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not already_asked():
        warm_up()
    line = sys.stdin.readline().strip()
    if not line:
        return
    folder = Path(line)
    os.environ["LOUPE_LANGUAGE"] = language_of(folder)  # in which its messages are written
    with open(folder / "worker.log", "a", buffering=1, encoding="utf-8") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    try:
        run_folder(folder, report=_say)
    finally:
        start_next(folder)


def _say(text: str) -> None:
    with suppress(OSError):  # on a full disk: a log must not end a run
        print(text, flush=True)


def start_next(folder: Path) -> None:
    """Start the next run in the queue, even if no browser is open."""
    store = RunStore(folder.parent.parent)
    store.pump()
    store.close()


if __name__ == "__main__":
    serve()
