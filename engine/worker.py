"""The process that trains a run: reads its folder, writes its metrics, checkpoints and heartbeat.

`python -m engine.worker` imports everything, takes one tiny step, and waits for the path of a run folder on
its standard input; at the end of input it leaves. `python -m engine.training RUN_FOLDER` trains in the
foreground.
"""

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

# Both before torch is imported: two threads beside a busy app are far slower than one.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch

from engine.checkpoints import Checkpoint, drop_optimizer, list_checkpoints, load_checkpoint, save_checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.corpus import Corpus, split
from engine.folders import read_json
from engine.metrics import bits_per_byte
from engine.model import Transformer
from engine.processes import process_mark
from engine.records import Metrics
from engine.runs import RunStore, update_status
from engine.samples import Sampler
from engine.tokenizers import Tokenizer, tokenizer_from_json
from engine.training import (
    CheckpointEvent,
    DivergedError,
    EvalEvent,
    Event,
    NoticeEvent,
    StepEvent,
    Training,
    TrainState,
    train,
)

NICENESS = int(os.environ.get("LOUPE_NICE") or 10)  # 19 gives way to everything, 0 to nothing
FIRST_STEPS = 50  # so many steps are all written down, later ones every LINE_SECONDS
LINE_SECONDS = 0.2
HEARTBEAT_SECONDS = 0.5
SAMPLE_SHARE = 0.1  # of the time, at most, goes into samples
FULL_CHECKPOINTS = (
    2  # so many keep their optimizer state; a run is only ever resumed from the newest good one
)


def token_lengths(tokenizer: Tokenizer, vocab_size: int) -> list[int]:
    """Bytes of each id; 0 for the mask and for gaps in a published vocabulary."""
    lengths = []
    for token_id in range(vocab_size):
        try:
            lengths.append(0 if token_id == tokenizer.mask_id else len(tokenizer.token_bytes(token_id)))
        except ValueError:
            lengths.append(0)
    return lengths


def choose_device(wanted: str) -> torch.device:
    """A GPU when there is one and it isn't refused, else the CPU."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            "This run asks for a GPU (cuda), and there is none here. Start it with device auto or cpu."
        )
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")


class Status:
    """status.json of a run with a heartbeat: a thread writes it anew twice a second, in long steps too."""

    def __init__(self, folder: Path, **entries: Any) -> None:
        """Begin at once; the entries are in the file when this returns."""
        self._folder, self._entries = folder, dict(entries)
        self._lock, self._end = threading.Lock(), threading.Event()
        self.write()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def set(self, **entries: Any) -> None:
        """Change entries; they are written at the next beat."""
        self._entries |= entries

    def write(self, **entries: Any) -> None:
        """Change entries and write them now."""
        with self._lock:
            self._entries |= entries
            update_status(self._folder, durable=False, **self._entries)

    def close(self, **entries: Any) -> None:
        """Stop beating and write the last entries."""
        self.end()
        self.write(**entries)

    def end(self) -> None:
        """Stop beating; the last entries stay."""
        self._end.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._end.wait(HEARTBEAT_SECONDS):
            with suppress(OSError):  # a full disk: the main thread reports it when a checkpoint fails
                self.write()


class Run:
    """A run folder while it is trained."""

    def __init__(self, folder: Path, report: Callable[[str], None]) -> None:
        """Read the settings; nothing heavy yet, so that the heartbeat can begin."""
        self.folder, self.report = folder, report
        self.settings_file = folder / "run.json"
        self.settings = read_json(self.settings_file)
        self.model_config = ModelConfig.from_json(self.settings["model"])
        self.config = TrainConfig.from_json(self.settings["train"])
        self.status = Status(
            folder,
            state="running",
            message="",
            pid=os.getpid(),
            mark=process_mark(os.getpid()),
            steps=self.config.steps,
        )
        self.metrics = Metrics(folder / "metrics.jsonl")
        self._asked = False
        self._floor: float | None = None

    def train(self) -> None:
        """From the newest good checkpoint, or from the start, to the end or to a stop."""
        self.tokenizer = tokenizer_from_json(read_json(self.folder / "tokenizer.json"))
        train_ids, val_ids = self._ids()
        checkpoint = self._newest()
        if (
            checkpoint is not None and checkpoint.step >= self.config.steps
        ):  # killed between the last save and its end
            return self._end("finished", checkpoint.step)
        device = choose_device(self.settings.get("device", "auto"))
        if checkpoint is None:
            self.model = Transformer(self.model_config, torch.Generator().manual_seed(self.config.seed))
        else:
            self.model = checkpoint.model
        self.model.to(device)
        self.status.set(device=str(self.model.device), step=0 if checkpoint is None else checkpoint.step)
        self._resume_metrics(checkpoint)
        self._training = train(
            self.model,
            train_ids,
            val_ids,
            self.config,
            resume=None if checkpoint is None else checkpoint.train_state(),
            line_end_ids=self.tokenizer.line_end_ids,
            mask_id=self.tokenizer.mask_id if self.model_config.objective == "mlm" else None,
            bytes_per_token=token_lengths(self.tokenizer, self.model_config.vocab_size),
        )
        kind = self.settings["corpus"]["kind"]
        sample_ids = val_ids if len(val_ids) else train_ids
        self._sampler = Sampler(
            self.model, self.tokenizer, sample_ids, self.settings.get("sample_prompt"), kind
        )
        self._val_ids = val_ids
        self._follow(self._training)
        return None

    def stop_asked(self) -> bool:
        """Whether the user, or the system, wants this run to stop."""
        return self._asked or (self.folder / "stop").exists()

    def ask_to_stop(self, *_: object) -> None:
        """Stop after this step, with a checkpoint: what SIGTERM and Ctrl-C do."""
        self._asked = True

    def fail(self, error: BaseException) -> None:
        """Say in one sentence what happened."""
        steps = [step for step, _ in list_checkpoints(self.folder)]
        kept = f" The checkpoint of step {steps[-1]} is intact." if steps else ""
        self._finish(
            state="failed",
            message=describe(error, self.config, self.model_config) + kept,
            diverged=isinstance(error, DivergedError),
        )

    def release(self) -> None:
        """Close the metrics and end the heartbeat, if that has not happened."""
        self.metrics.close()
        self.status.end()

    # ---- inside

    def _ids(self) -> tuple[torch.Tensor, torch.Tensor]:
        val_file = self.folder / "corpus_val.txt"
        about = self.settings["corpus"]
        text = (self.folder / "corpus.txt").read_bytes().decode()
        val_text = val_file.read_bytes().decode() if val_file.exists() else None
        texts = split(Corpus(about["name"], about["kind"], text, val_text), about["val_share"])
        first, second = (torch.tensor(self.tokenizer.encode(t), dtype=torch.int64) for t in texts)
        return first, second

    def _newest(self) -> Checkpoint | None:
        """The newest checkpoint that opens; damaged ones are passed over and named."""
        for _, path in reversed(list_checkpoints(self.folder)):
            try:
                return load_checkpoint(path)
            except ValueError as error:
                self.report(str(error))
        return None

    def _resume_metrics(self, checkpoint: Checkpoint | None) -> None:
        """Mark where the curve goes on; readers forget what came after the checkpoint."""
        step = -1 if checkpoint is None else checkpoint.step
        old = self.metrics.last("step", max(0, step))
        self._seconds = float(old.get("seconds") or 0.0) if checkpoint is not None else 0.0
        self._floor = (
            self.metrics.last("floor", max(0, step)).get("value") if checkpoint is not None else None
        )
        if (self.folder / "metrics.jsonl").stat().st_size:
            self.metrics.write("resume", step)

    def _follow(self, events: Training) -> None:
        self._rate: float | None = None
        self._next_line = self._sample_seconds = 0.0
        self._began = time.monotonic()
        if self.stop_asked():
            return self._stop()
        for event in events:
            if not self.settings_file.exists():
                return None  # somebody deleted the run: there is nobody to train for
            self._take(event)
            if events.step < self.config.steps and self.stop_asked():
                return self._stop()
        return self._end("finished", events.step)

    def _take(self, event: Event) -> None:
        if isinstance(event, StepEvent):
            self._take_step(event)
        elif isinstance(event, EvalEvent):
            self._take_eval(event)
        elif isinstance(event, CheckpointEvent):
            self._save(event.state)
        elif isinstance(event, NoticeEvent):
            self.metrics.write("notice", event.step, message=event.message)
            self.report(event.message)

    def _take_step(self, event: StepEvent) -> None:
        self._seconds += event.seconds
        rate = event.tokens / event.seconds
        self._rate = rate if self._rate is None else 0.95 * self._rate + 0.05 * rate
        eta = (self.config.steps - event.step) * event.tokens / self._rate
        self.status.set(step=event.step, tokens_per_second=round(self._rate, 1), eta_s=round(eta, 1))
        if event.step > FIRST_STEPS and event.step < self.config.steps and time.monotonic() < self._next_line:
            return
        self._next_line = time.monotonic() + LINE_SECONDS
        self.metrics.write(
            "step",
            event.step,
            loss=event.loss,
            learning_rate=event.learning_rate,
            grad_norm=event.grad_norm,
            tokens=event.step * event.tokens,
            seconds=round(self._seconds, 3),
            tokens_per_second=round(self._rate, 1),
        )

    def _take_eval(self, event: EvalEvent) -> None:
        values = {
            "train_loss": event.train_loss,
            "val_loss": event.val_loss,
            "bits_per_byte": event.bits_per_byte,
        }
        self.metrics.write(
            "eval", event.step, **values, perplexity=event.perplexity, seconds=round(self._seconds, 3)
        )
        self._last_eval = values
        val = "no validation" if event.val_loss is None else f"validation {event.val_loss:.4f}"
        left = (self.config.steps - event.step) * self._seconds / max(1, event.step)
        eta = f", about {left:.0f} s left" if event.step else ""
        self.report(f"step {event.step}/{self.config.steps}: train {event.train_loss:.4f}, {val}{eta}")
        if event.step and self._floor is None:
            self._find_floor(event.step)
        if event.step == self.config.steps or self._sample_seconds <= SAMPLE_SHARE * (
            time.monotonic() - self._began
        ):
            began = time.monotonic()
            self.metrics.write("sample", event.step, **self._sampler.record())
            self._sample_seconds += time.monotonic() - began

    def _find_floor(self, step: int) -> None:
        """Once, after the first curve points, for the stories, whose true distribution is known."""
        training = self._training
        if (
            self.settings["corpus"]["kind"] != "stories"
            or training.val_batch is None
            or training.val_at is None
        ):
            return
        from engine.floor import validation_floor  # reads the grammar: only the stories need it

        try:
            floor = validation_floor(
                self.tokenizer,
                self._val_ids.tolist(),
                training.val_at,
                training.val_batch,
                self.model_config.objective,
                lambda: not self.stop_asked(),
            )
        except ValueError as error:
            self._floor = float("nan")  # don't try again
            self.metrics.write("notice", step, message=f"The floor is not known here: {error}")
            return
        if floor is not None:
            self._floor = floor
            scored = training.val_batch.targets.flatten().tolist()
            n_bytes = sum(len(self.tokenizer.token_bytes(t)) for t in scored if t >= 0)
            clm = self.model_config.objective == "clm"
            per_byte = bits_per_byte(floor * sum(t >= 0 for t in scored), n_bytes) if clm else None
            self.metrics.write("floor", step, value=floor, bits_per_byte=per_byte)
            self.report(f"floor {floor:.4f}: no model can do better on this validation text")

    def _save(self, state: TrainState) -> None:
        info = {"run": self.settings["id"], "name": self.settings["name"], "corpus": self.settings["corpus"]}
        info |= {
            "device": str(self.model.device),
            "floor": self._floor if self._floor == self._floor else None,
        }
        info |= {"seconds": round(self._seconds, 1), **getattr(self, "_last_eval", {})}
        save_checkpoint(
            self.folder / "checkpoints" / f"{state['step']:07d}",
            Checkpoint(
                self.model,
                self.tokenizer,
                step=state["step"],
                train_config=self.config,
                optimizer_state=state["optimizer"],
                generator_states=state["generators"],
                losses=state["losses"],
                info=info,
            ),
        )
        for _, path in list_checkpoints(self.folder)[:-FULL_CHECKPOINTS]:
            drop_optimizer(path)

    def _stop(self) -> None:
        step = self._training.step
        if step not in {s for s, _ in list_checkpoints(self.folder)}:
            self._save(self._training.state())
        self._end("stopped", step)

    def _end(self, state: str, step: int) -> None:
        message = "" if state == "finished" else f"Stopped at step {step}. Resume goes on from there."
        self._finish(state=state, message=message, step=step)

    def _finish(self, **entries: Any) -> None:
        self.metrics.close()
        with suppress(FileNotFoundError):
            (self.folder / "stop").unlink()
        self.status.close(pid=None, **entries)
        self.report(entries["message"] or entries["state"])


def describe(error: BaseException, config: TrainConfig, model_config: ModelConfig) -> str:
    """One sentence for the page."""
    text = str(error).split("\n")[0]
    no_memory = isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and ("allocate" in text or "out of memory" in text)
    )
    if no_memory:
        smaller = max(1, config.batch_size // 4)
        return (
            f"There was not enough memory for batch_size {config.batch_size} × context_length "
            f"{model_config.context_length}. Try batch_size {smaller}, a shorter context or a smaller model."
        )
    if isinstance(error, ValueError):
        return text
    if isinstance(error, OSError):
        return f"The run's folder could not be written: {text}. Make room on the disk, then resume."
    return f"Training failed with {type(error).__name__}: {text}. The details are in the run's worker.log."


def run_folder(folder: str | Path, report: Callable[[str], None] = print) -> None:
    """Train the run in a folder until it is finished, stopped or failed; its status.json says which.

    A line of progress goes to `report` at each evaluation. An error is raised again once the status tells of
    it.
    """
    run = Run(Path(folder), report)
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


def yield_to_others() -> None:
    """Let the app, and everybody else, have the processor first.

    A Linux desktop kernel weighs sessions before processes, and a worker is a session of its own: there its
    group must be niced as well, or the niceness has no effect.
    """
    if hasattr(os, "nice"):
        os.nice(max(0, NICENESS - os.nice(0)))
    with suppress(OSError):  # not Linux, or a kernel without session groups
        Path("/proc/self/autogroup").write_text(str(NICENESS))


def serve() -> None:
    """Wait for one run folder on standard input and train it; at the end of input leave."""
    yield_to_others()
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not already_asked():
        warm_up()
    line = sys.stdin.readline().strip()
    if not line:
        return
    folder = Path(line)
    with open(folder / "worker.log", "a", buffering=1, encoding="utf-8") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    try:
        run_folder(folder, report=lambda text: print(text, flush=True))
    finally:
        start_next(folder)


def start_next(folder: Path) -> None:
    """Start the next run in the queue, even if no browser is open."""
    store = RunStore(folder.parent.parent)
    store.pump()
    store.close()


def main(arguments: list[str] | None = None) -> None:
    """Train a run in the foreground: `python -m engine.training RUN_FOLDER`."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1 or not (Path(arguments[0]) / "run.json").is_file():
        sys.exit(
            "Usage: python -m engine.training RUN_FOLDER (a folder with run.json, as the Training page makes "
            "it)"
        )
    folder = Path(arguments[0]).resolve()
    torch.set_num_threads(1)
    try:
        RunStore(folder.parent.parent).claim(folder.name)
        run_folder(folder, report=lambda text: print(text, flush=True))
    except (ValueError, MemoryError, OSError) as error:  # told in one sentence already, or now
        sys.exit(str(error))
    finally:
        start_next(folder)


if __name__ == "__main__":
    serve()
