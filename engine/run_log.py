"""What a run tells while it is trained: its records, and the numbers in its status."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from engine.config import TrainConfig
from engine.energy import Meter
from engine.events import EvalEvent, StepEvent
from engine.framing import framing_for
from engine.heartbeat import Status
from engine.model import Transformer
from engine.records import Metrics
from engine.run_measures import FurtherTexts, baseline_record, floor_record
from engine.run_setup import Setup
from engine.samples import AnswerSampler, Sampler
from engine.training import Training
from wording import words

say = words("engine.run_log")

FIRST_STEPS = 50  # so many steps are all written down, later ones every LINE_SECONDS
LINE_SECONDS = 0.2
SAMPLE_SHARE = 0.1  # of the time, at most, goes into samples


def gpu_name(device: torch.device) -> str | None:
    """What NVIDIA's tools call a GPU, wherever torch counts it; None for another device."""
    return f"GPU-{torch.cuda.get_device_properties(device).uuid}" if device.type == "cuda" else None


class RunLog:
    """metrics.jsonl and status.json of a run, from the events of its training.

    Args:
        folder: of the run.
        status: its heartbeat.
        config: of the training.
        report: takes a line for people at each evaluation.

    Attributes:
        last_eval: losses of the newest evaluation.
        floor: of the stories, once it is known.
        seconds: spent in steps since step 0.
        meter: of energy since this process began.
    """

    def __init__(
        self, folder: Path, status: Status, config: TrainConfig, report: Callable[[str], None]
    ) -> None:
        self.status, self.config, self.report = status, config, report
        self.metrics = Metrics(folder / "metrics.jsonl")
        self.last_eval: dict[str, float | None] = {}
        self.floor: float | None = None
        self.seconds = 0.0
        self.meter: Meter | None = None
        self._joules_before = 0.0
        self._has_baseline = False
        self._pace, self._n_timed = 0.0, 0  # seconds a step, and how many steps that is the mean of
        self._next_line = self._sample_seconds = 0.0

    def resume(self, step: int) -> None:
        """Mark where the curve goes on; readers forget what came after. -1: from the beginning."""
        if step >= 0:
            old = self.metrics.last("step", step)
            self.seconds = float(old.get("seconds") or 0.0)
            self._joules_before = float(old.get("joules") or 0.0)
            self.floor = self.metrics.last("floor", step).get("value")
            self._has_baseline = bool(self.metrics.last("baseline", step))
        if self.metrics.begun:
            self.metrics.write("resume", step)

    def follow(
        self,
        training: Training,
        ready: Setup,
        kind: str,
        prompt: str | None,
        further: Mapping[str, str],
    ) -> None:
        """Say what is trained, before the first event.

        Args:
            training: about to begin.
            ready: what it is trained with.
            kind: of the corpus; only the stories have a floor.
            prompt: that the samples continue.
            further: texts by name that are scored at each evaluation.
        """
        texts, tokenizer = ready.ids, ready.tokenizer
        self._training, self._texts, self._tokenizer, self._kind = training, texts, tokenizer, kind
        model: Transformer = training.model
        self._sampler: Sampler | AnswerSampler
        if ready.rows is None:
            self._sampler = Sampler(model, tokenizer, texts[1] if len(texts[1]) else texts[0], prompt, kind)
        else:
            framing = framing_for(tokenizer, training.config.framing)
            self._sampler = AnswerSampler(model, framing, prompt or ready.first_prompt)
        self._further = FurtherTexts(further, tokenizer, model, self.config) if further else None
        self.meter = Meter(gpu_name(model.device))
        self.status.on_beat = self.meter.sample
        self._began = time.monotonic()

    # ---- events

    def notice(self, step: int, message: str) -> None:
        """Something the user should know."""
        self.metrics.write("notice", step, message=message)
        self.report(message)

    def step(self, event: StepEvent, *, always: bool = False) -> None:
        """A step; after the first ones a line only now and then, unless it is to be there `always`."""
        self.seconds += event.seconds
        self._n_timed += 1
        # The first step is slow: much is loaded only then. The second one takes its place.
        self._pace += max(0.05, 1 / max(1, self._n_timed - 1)) * (event.seconds - self._pace)
        rate = round(event.tokens / self._pace, 1)
        eta = round((self.config.steps - event.step) * self._pace, 1)
        self.status.set(step=event.step, tokens_per_second=rate, eta_s=eta)
        early = event.step <= FIRST_STEPS or event.step == self.config.steps
        if not (early or always or time.monotonic() >= self._next_line):
            return
        self._next_line = time.monotonic() + LINE_SECONDS
        self.metrics.write(
            "step",
            event.step,
            loss=event.loss,
            learning_rate=event.learning_rate,
            grad_norm=event.grad_norm,
            tokens=event.step * event.tokens,
            seconds=round(self.seconds, 3),
            tokens_per_second=rate,
            **self._energy(),
        )

    def evaluation(self, event: EvalEvent, still_wanted: Callable[[], bool]) -> None:
        """An evaluation, with further texts, a sample, and once the lines to compare with.

        Args:
            event: that came.
            still_wanted: whether there is time for what takes long.
        """
        self.last_eval = {
            "train_loss": event.train_loss,
            "val_loss": event.val_loss,
            "bits_per_byte": event.bits_per_byte,
        }
        also = {"also": self._further.losses()} if self._further else {}
        self.metrics.write(
            "eval",
            event.step,
            **self.last_eval,
            perplexity=event.perplexity,
            **({} if event.margin is None else {"margin": event.margin, "accuracy": event.accuracy}),
            seconds=round(self.seconds, 3),
            **also,
            **self._energy(),
        )
        facts = [say("at_step", step=event.step, steps=self.config.steps, loss=event.train_loss)]
        val = event.val_loss
        facts.append(say("no_validation") if val is None else say("validation", loss=val))
        if event.step:
            left = (self.config.steps - event.step) * self.seconds / event.step
            facts.append(say("left", seconds=left))
        self.report(", ".join(facts))
        if event.step:  # not before the first curve points: Start shows something at once
            self._compare(event.step, still_wanted)
        self._sample(event.step)

    def _energy(self) -> dict[str, float]:
        joules = None if self.meter is None else self.meter.joules()
        if joules is None or self.meter is None:
            return {}
        total = round(self._joules_before + joules, 3)
        self.status.set(joules=total, joules_of=self.meter.covers)
        return {"joules": total}

    def _sample(self, step: int) -> None:
        spent = time.monotonic() - self._began
        if step == self.config.steps or self._sample_seconds <= SAMPLE_SHARE * spent:
            began = time.monotonic()
            self.metrics.write("sample", step, **self._sampler.record())
            self._sample_seconds += time.monotonic() - began

    def _compare(self, step: int, still_wanted: Callable[[], bool]) -> None:
        """Once: what counting models score on the validation rows, and what nothing can beat."""
        at, batch, model = self._training.val_at, self._training.val_batch, self._training.model
        if at is None or batch is None:
            return
        if not self._has_baseline:
            self._has_baseline = True
            record = baseline_record(self._texts[0], batch, model, self._tokenizer)
            self.metrics.write("baseline", step, **record)
        if self._kind != "stories" or self.floor is not None:
            return
        try:
            floor = floor_record(
                self._texts[1], at, batch, model.config.objective, self._tokenizer, still_wanted
            )
        except ValueError as error:
            self.floor = float("nan")  # don't try again
            self.metrics.write("notice", step, message=say("floor_unknown", error=error))
            return
        if floor is not None:
            self.floor = floor["value"]
            self.metrics.write("floor", step, **floor)
            self.report(say("floor", floor=self.floor))
