"""A run while it is trained: reads its folder, keeps its moments, hears who asks it to pause or stop."""

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from engine import plain_log
from engine.checkpoint_list import compact_checkpoint, list_checkpoints, newest_checkpoint
from engine.checkpoints import Checkpoint, save_checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.events import CheckpointEvent, DivergedError, EvalEvent, Event, NoticeEvent, StepEvent, TrainState
from engine.folders import read_json, why_not
from engine.heartbeat import Status
from engine.parallel import ALONE, InStep, LostProcessError, Processes
from engine.processes import process_mark
from engine.run_info import PAUSE, STOP, pause_step
from engine.run_log import RunLog
from engine.run_queue import RunQueue
from engine.run_setup import set_up
from engine.run_spec import ALSO
from engine.tuning_start import is_large
from wording import words

say = words("engine.run_session")

FULL_CHECKPOINTS = 2  # so many can be resumed from; older ones are for looking at, in 8 bits
LINGER_SECONDS = 30.0  # a paused run keeps its process so long
KEEP_SECONDS = 0.5  # of a pause, then its moment is saved: a click on the next step comes sooner
LOOK_SECONDS = 0.5  # between two looks at the queue
POLL_SECONDS = 0.02
NO_MEMORY = ("allocate", "out of memory", "bad_alloc", "start new thread")  # as torch and others say it
SPARE, SPARE_BYTES = ".spare", 16_384  # given back so that a full disk still takes the last words


class Run:
    """A run folder while it is trained."""

    def __init__(self, folder: Path, report: Callable[[str], None], processes: Processes = ALONE) -> None:
        """Read the settings; nothing heavy yet, so that the heartbeat can begin.

        Of several processes that train together only number 0 has one of these: see `command_line`.
        """
        self.folder, self.report, self.processes = folder, report, processes
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
        self.log = RunLog(folder, self.status, self.config, report)
        with suppress(OSError):
            (folder / SPARE).write_bytes(os.urandom(SPARE_BYTES))
        self._asked = False
        self._kept: int | None = None  # the step of the newest moment that is known to be whole

    def train(self) -> None:
        """From the newest good checkpoint, or from the start, to the end or to a stop."""
        ready = set_up(self.folder, self.settings, self.report)
        if ready.finished:
            return self._end("finished", ready.step)
        self.tokenizer, self.model = ready.tokenizer, ready.model
        self._kept = None if ready.checkpoint is None or ready.rounded else ready.step
        self.status.set(device=str(self.model.device), step=ready.step)
        self.log.resume(ready.step or -1)  # a run that begins at step 0 says everything again
        if ready.rounded:
            self.log.notice(ready.step, say("from_rounded_weights", step=ready.step))
        elif ready.checkpoint is None:
            for message in ready.notices:
                self.log.notice(0, message)
        self.config = ready.config
        self._training = ready.training(self.processes)
        self.status.set(precision=self._training.precision, processes=self.processes.n)
        kind, prompt = self.settings["corpus"]["kind"], self.settings.get("sample_prompt")
        self.log.follow(self._training, ready, kind, prompt, self._further())
        together = InStep(self._training, self.processes, self.ask_to_stop)
        try:
            return self._follow(together)
        finally:
            together.leave()

    def stop_asked(self) -> bool:
        """Whether the user, or the system, wants this run to stop."""
        return self._asked or (self.folder / STOP).exists()

    def ask_to_stop(self, *_: object) -> None:
        """Stop after this step, with a checkpoint: what SIGTERM and Ctrl-C do."""
        self._asked = True

    def fail(self, error: BaseException) -> None:
        """Say in one sentence what happened."""
        newest = newest_checkpoint(self.folder)
        kept = newest[0] if newest else None
        plain_log.failure("run failed", error, home=self._home, run=self.folder.name, kept=kept)
        sentences = [describe(error, self.config, self.model_config)]
        if newest:
            sentences.append(say("checkpoint_intact", step=newest[0]))
        with suppress(OSError):  # not even that: whoever looks finds the worker gone, and the disk full
            self._finish(
                state="failed",
                message=" ".join(sentences),
                diverged=isinstance(error, DivergedError),
            )

    def release(self) -> None:
        """Close the metrics and end the heartbeat, if that has not happened."""
        self._give_room()
        self.log.metrics.close()
        self.status.end()

    def _give_room(self) -> None:
        with suppress(OSError):
            (self.folder / SPARE).unlink(missing_ok=True)

    # ---- its folder

    @property
    def _home(self) -> Path:
        return self.folder.parent.parent

    def _further(self) -> dict[str, str]:
        """Texts that are only scored, by name; a run of an older version may lack them."""
        files = {name: self.folder / ALSO.format(h[:16]) for name, h in self._also().items()}
        return {name: file.read_bytes().decode() for name, file in files.items() if file.exists()}

    def _also(self) -> dict[str, str]:
        return dict(self.settings.get("also_scored") or {})

    def _save(self, state: TrainState) -> None:
        info = {"run": self.settings["id"], "name": self.settings["name"], "corpus": self.settings["corpus"]}
        floor = self.log.floor
        self.log.metrics.keep()
        if not self.folder.is_dir():  # it was deleted meanwhile, and must not come back
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.folder))
        info |= {"device": str(self.model.device), "floor": floor if floor == floor else None}
        info |= {"precision": self._training.precision}
        info |= {"seconds": round(self.log.seconds, 1), **self.log.last_eval}
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
        self._kept = state["step"]
        self._compact(state["step"])

    def _compact(self, step: int) -> None:
        """Make the older moments small. Later ones than this are of a run that was damaged: left alone.

        Those of a large model would still fill the disk: they are removed.
        """
        older = [path for at, path in list_checkpoints(self.folder) if at <= step][:-FULL_CHECKPOINTS]
        if is_large(self.model_config):
            for path in older:
                shutil.rmtree(path, ignore_errors=True)
            return
        for path in older:
            try:
                compact_checkpoint(path)
            except (OSError, ValueError) as error:  # no room, or damaged: it stays as it is
                self.report(say("not_made_smaller", name=path.name, error=error))

    def _keep(self) -> None:
        """Save this moment, unless it is kept already."""
        if self._kept != self._training.step:
            self._save(self._training.state())

    # ---- the loop

    def _follow(self, events: Iterator[Event]) -> None:
        if self.stop_asked():
            return self._stop()
        for event in events:
            if self._gone():
                return None
            self._take(event)
            if self._training.step == self.config.steps:
                continue
            if self.stop_asked():
                return self._stop()
            if self._pause_due(event) and not self._linger():
                return None
        return self._end("finished", self._training.step)

    def _gone(self) -> bool:
        """Whether somebody deleted the run: then there is nobody to train for."""
        return not self.settings_file.exists()

    def _take(self, event: Event) -> None:
        if isinstance(event, StepEvent):
            self.log.step(event, always=pause_step(self.folder) is not None)
        elif isinstance(event, EvalEvent):
            self.log.evaluation(event, lambda: not self.stop_asked())
        elif isinstance(event, CheckpointEvent):
            self._save(event.state)
        elif isinstance(event, NoticeEvent):
            self.log.notice(event.step, event.message)

    def _pause_due(self, event: Event) -> bool:
        """Whether to wait now: not between a step and its evaluation, which belongs to it."""
        asked, step = pause_step(self.folder), self._training.step
        halfway = isinstance(event, StepEvent) and step % self.config.eval_every == 0
        return asked is not None and step >= asked and not halfway

    def _linger(self) -> bool:
        """Wait, with the model in memory, for what is wanted next; gives whether to go on.

        The process leaves when nothing comes for a while, when another run waits for its place, at a stop,
        and when the run was deleted. Whether it stays is decided under the home's lock: who asks for a step
        under that lock can rely on what the status says.
        """
        step, queue = self._training.step, RunQueue(self.folder.parent.parent)
        if self.log.meter:
            self.log.meter.rest()
        self.status.write(state="paused", step=step, message=say("paused", step=step), eta_s=None)
        plain_log.info("run paused", home=self._home, run=self.folder.name, step=step)
        began = time.monotonic()
        next_look, kept = began, False
        while not self._gone():
            now = time.monotonic()
            if self._more_asked():
                return self._go_on()
            leave = self.stop_asked() or now - began > LINGER_SECONDS
            if now >= next_look:
                leave, next_look = leave or bool(queue.waiting()), now + LOOK_SECONDS
            if leave and self._leave(queue, now - began > LINGER_SECONDS):
                return False
            if not kept and now - began > KEEP_SECONDS:
                self._keep()
                kept = True
            time.sleep(POLL_SECONDS)
        return False

    def _more_asked(self) -> bool:
        asked = pause_step(self.folder)
        return not self.stop_asked() and (asked is None or asked > self._training.step)

    def _go_on(self) -> bool:
        self.status.write(state="running", message="")
        if self.log.meter:
            self.log.meter.go_on()
        return True

    def _leave(self, queue: RunQueue, late: bool) -> bool:
        """Stop, unless something was asked for at the last moment, or the place isn't needed after all."""
        self._keep()
        with queue.lock():
            if self._gone() or self._more_asked() or not (late or self.stop_asked() or queue.waiting()):
                return False
            self._end("stopped", self._training.step)
            return True

    def _stop(self) -> None:
        self._keep()
        self._end("stopped", self._training.step)

    def _end(self, state: str, step: int) -> None:
        message = "" if state == "finished" else say("stopped", step=step)
        self._finish(state=state, message=message, step=step)
        plain_log.info(f"run {state}", home=self._home, run=self.folder.name, step=step)

    def _finish(self, **entries: Any) -> None:
        self._give_room()
        self.log.metrics.close()
        for asked in (STOP, PAUSE):
            with suppress(FileNotFoundError):
                (self.folder / asked).unlink()
        self.status.close(pid=None, **entries)
        self.report(entries["message"] or entries["state"])


def describe(error: BaseException, config: TrainConfig, model_config: ModelConfig) -> str:
    """One sentence for the page."""
    text = str(error).split("\n")[0]
    no_memory = isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(word in text for word in NO_MEMORY)
    )
    if no_memory:
        smaller = max(1, config.batch_size // 4)
        length = model_config.context_length
        return say("no_memory", batch_size=config.batch_size, context_length=length, smaller=smaller)
    if isinstance(error, ValueError | LostProcessError):
        return text
    if isinstance(error, OSError):
        return f"{say('had_to_stop')} {why_not(error)}"
    return say("training_failed", name=type(error).__name__, text=text)
