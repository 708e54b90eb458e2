"""The training loop: `train()` gives one event after the other and knows nothing of processes or screens.

`python -m engine.training --help` says how to train from a shell.
"""

import math
import time
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from engine.aims import Aim, Score, TextAim
from engine.checks import Ids as Ids
from engine.checks import as_ids as as_ids
from engine.checks import check_ids, check_weights
from engine.checks import check_lengths as check_lengths
from engine.config import TrainConfig
from engine.evaluation import fixed_rows as fixed_rows
from engine.evaluation import line_starts as line_starts
from engine.events import CheckpointEvent as CheckpointEvent
from engine.events import DivergedError as DivergedError
from engine.events import EvalEvent as EvalEvent
from engine.events import Event as Event
from engine.events import NoticeEvent as NoticeEvent
from engine.events import StepEvent as StepEvent
from engine.events import TrainState as TrainState
from engine.metrics import perplexity
from engine.model import Transformer
from engine.optimizers import FlatGradients, Optimizer
from engine.parallel import ALONE, Processes
from engine.parts import MOST_PARTS, Threads, n_parts, slices
from engine.precision import chosen_precision, computing_in
from engine.schedule import learning_rate_at
from engine.schedule import moment_steps as moment_steps
from engine.trained_part import freeze
from wording import words

say = words("engine.training")


@dataclass(frozen=True, eq=False)
class Pass:
    """Some rows of a step's batch, which go through the model and back on their own.

    Attributes:
        batch: the rows.
        share: how much their loss counts in the batch's loss; 0 if nothing is scored in them.
        dropout: where their dropout comes from.
    """

    batch: Any
    share: float
    dropout: torch.Generator


class Training(Iterator[Event]):
    """Train a model; leaving the `for` loop over the events stops it.

    The first event is an `EvalEvent` at step 0 (after a `NoticeEvent`, where there is something to say); then
    a `StepEvent` for every step, followed by an `EvalEvent` every `eval_every` steps and a `CheckpointEvent`
    every `checkpoint_every` steps, both also after the last step. With `config.moments`, a `CheckpointEvent`
    also follows each of `moment_steps`, the first of them the `EvalEvent` of step 0.

    Between two events it can be asked for its `state`. One step is `draw`, `gradients`, `update`; they may be
    called one by one in place of the iteration.

    Args:
        model: its weights are changed in place, on the device where they are.
        train_ids: (N,) token ids.
        val_ids: the same for validation; without any, the validation numbers are None.
        config: how to train.
        resume: the state of a `CheckpointEvent`, or of `Training.state()`; everything goes on from it bit for
            bit. With more steps than before, a constant schedule goes on as if they had been asked for at
            once; another schedule is from here on that of the new total.
        line_end_ids: tokens that end a line; used if `config.aligned_share` is above 0.
        mask_id: what a masked model sees in place of a hidden token; None is the last id of the model.
        special_ids: further ids that are never hidden from it and never drawn in place of a token.
        bytes_per_token: (V,) length of each id in bytes, for bits per byte.
        processes: those that train this model together, all with the same arguments. Losses and weights equal
            those of one process up to the rounding of sums; with dropout, each drops different numbers.
        aim: what is learned instead of the two texts, which are then empty; see `engine.aims`.
        threads: how many compute a step, see `engine.parts`; they change no number. None is
            $LOUPE_TRAIN_THREADS, or as many as there are cores and use for them.

    Dropout in the first part of a batch, see `engine.parts`, is drawn from the run's own generator, in each
    other part from one that is seeded by the step and the part: a resumed run drops the same numbers. Where
    parts and processes are others, so are the numbers that are dropped.

    With `config.last_blocks` the other weights stay as they are; they ask for no gradient until it ends.

    Attributes:
        step: optimizer steps done.
        precision: of the matrix products: "float32" or "bfloat16".
        val_at: (B,) where the validation rows begin in the validation text; None without one.
        val_batch: those rows as inputs and targets, or what else the aim holds out.

    Raises:
        ValueError: at once, if a text is too short, an id is outside the vocabulary, or the state doesn't
            fit.
        DivergedError: from the loop, if loss or gradients stop being finite.
    """

    def __init__(
        self,
        model: Transformer,
        train_ids: Ids,
        val_ids: Ids,
        config: TrainConfig,
        *,
        resume: TrainState | Mapping[str, Any] | None = None,
        line_end_ids: Sequence[int] = (),
        mask_id: int | None = None,
        special_ids: Collection[int] = (),
        bytes_per_token: Sequence[int] | None = None,
        processes: Processes = ALONE,
        aim: Aim[Any] | None = None,
        threads: int | None = None,
    ) -> None:
        self.model, self.config, self.step = model, config, 0
        check_weights(model)
        if aim is None:
            mask = model.config.vocab_size - 1 if mask_id is None else mask_id
            texts = as_ids(train_ids), as_ids(val_ids)
            aim = self._text(*texts, line_end_ids, mask, special_ids, bytes_per_token)
        self._aim: Aim[Any] = aim
        self._processes = processes
        self.val_at: Tensor | None = getattr(aim, "val_at", None)
        self.val_batch: Any = aim.val
        self._generators = {
            name: torch.Generator().manual_seed(config.seed * 2 + k)
            for k, name in enumerate(("data", "dropout"))
        }
        self._threads = Threads(threads)
        self._row: FlatGradients | None = None  # of the gradients, from the first step on
        self._loss = math.nan  # of the batch whose gradients there are
        self._losses = [0.0, 0.0]  # sum and number since the last evaluation
        self._moments = frozenset(moment_steps(config.steps, config.moments))
        self.precision, notice = chosen_precision(config.precision, model.device)
        self._notices = [notice] if notice else []
        self._frozen = freeze(model, model.config, config.last_blocks)
        try:
            self._optimizer = Optimizer(model, config, self._threads, self.precision)
            if resume is not None:
                self._load(resume)
        except BaseException:  # a run that can't begin leaves the model as it was
            self._release()
            raise
        self._stream = self._run()

    def __next__(self) -> Event:
        """The next event."""
        return next(self._stream)

    def close(self) -> None:
        """End the loop: the model keeps the weights of the last step."""
        self._stream.close()
        self._release()

    @torch.no_grad()
    def state(self) -> TrainState:
        """Copies of everything at this moment.

        Raises:
            DivergedError: if a weight is not finite.
        """
        if not all(bool(p.isfinite().all()) for p in self.model.parameters()):
            raise DivergedError(self.step, "weight", self.config)
        return TrainState(
            step=self.step,
            model={name: value.detach().cpu().clone() for name, value in self.model.state_dict().items()},
            optimizer=self._optimizer.state(),
            generators={name: g.get_state() for name, g in self._generators.items()},
            losses=list(self._losses),
        )

    def draw(self) -> Any:
        """The next batch, in a text a `Batch`: the data generator goes on."""
        return self._aim.draw(self._generators["data"])

    def gradients(self, batch: Any) -> tuple[float, float]:
        """Fill `p.grad` of what learns with the gradient of the mean loss of a batch; nothing changes yet.

        Returns:
            The loss, in nats per scored token unless it is one of preferences, and the Euclidean length of
            all gradients together.

        Raises:
            DivergedError: if either is not a finite number.
        """
        if self._row is None:
            learning = (p for p in self.model.parameters() if p.requires_grad)
            self._row = FlatGradients(learning, self._threads)
        passes = self.passes(batch)
        self._row.begin(len(passes))
        self._loss = sum(self._threads.each(lambda k: self._go(k, passes[k]), len(passes)))
        self._row.add_up(len(passes))
        if self._processes.n > 1:  # the loss rides along at the end of the row: one sum for both
            self._row.further.fill_(self._loss)
            self._processes.sum(self._row.whole)
            self._loss = float(self._row.further)
        norm = self._row.norm()
        for number, what in ((self._loss, "loss"), (norm, "gradient")):
            if not math.isfinite(number):
                raise DivergedError(self.step + 1, what, self.config)
        return self._loss, norm

    def update(self, norm: float) -> float:
        """Clip the gradients, whose length is `norm`, and take the step; gives its learning rate."""
        assert self._row is not None, "call `gradients` first"
        self._row.clip(norm, self.config.grad_clip)
        learning_rate = learning_rate_at(self.step, self.config)
        self._optimizer.step(learning_rate, self.step)
        self.step += 1
        self._losses = [self._losses[0] + self._loss, self._losses[1] + 1]
        return learning_rate

    def passes(self, batch: Any, dropout: torch.Generator | None = None) -> list[Pass]:
        """What this process computes of a step: how it is cut is said in `engine.parts`.

        Args:
            batch: all of it.
            dropout: of the first pass, in place of the run's own.
        """
        rows = self._processes.share(len(batch.inputs))
        mine = type(batch)(*(part[rows] for part in batch))
        n = 1
        if self.model.device.type == "cpu":
            learning = sum(p.numel() for p in self.model.parameters() if p.requires_grad)
            n = n_parts(len(mine.inputs), mine.inputs.numel(), learning)
        n_all, found = self._aim.size(batch), []
        for k, some in enumerate(slices(len(mine.inputs), n)):
            part = type(batch)(*(rows[some] for rows in mine))
            generator = self._generators["dropout"] if dropout is None else dropout
            if place := self._processes.rank * MOST_PARTS + k:
                # The first pass of process 0 drops as one alone would. The others draw anew at each step, so
                # that they can resume.
                seed = 2 * self.config.seed + 1 + 1009 * (self.step + 1) + place
                generator = torch.Generator().manual_seed(seed)
            found.append(Pass(part, self._aim.size(part) / n_all, generator))
        return found

    # ---- inside

    def _text(
        self,
        train_ids: Tensor,
        val_ids: Tensor,
        line_end_ids: Sequence[int],
        mask_id: int,
        special_ids: Collection[int],
        bytes_per_token: Sequence[int] | None,
    ) -> TextAim:
        """The aim of two texts; refuses, before the first step, whatever could not end well."""
        model = self.model
        check_lengths(len(train_ids), len(val_ids), self.config.longest_row(model.config.context_length))
        for ids in (train_ids, val_ids):
            check_ids(ids, model.config.vocab_size)
        lengths = None if bytes_per_token is None else torch.tensor(list(bytes_per_token))
        return TextAim(
            model,
            train_ids,
            val_ids,
            self.config,
            line_end_ids=line_end_ids,
            mask_id=mask_id,
            special_ids=special_ids,
            bytes_per_token=lengths,
        )

    def _load(self, state: TrainState | Mapping[str, Any]) -> None:
        self.step = int(state["step"])
        if self.step >= self.config.steps:
            raise ValueError(say("checkpoint_step_run_ends", step=self.step, steps=self.config.steps))
        self.model.load_state_dict(state["model"])
        if moments := state.get("optimizer"):
            self._optimizer.load(moments)
        elif self.step:
            self._notices.append(say("optimizer_restarted", step=self.step))
        generators = state.get("generators")
        for name, generator in self._generators.items():
            if generators:
                generator.set_state(generators[name])
            else:  # other data than the first steps saw
                generator.manual_seed(generator.initial_seed() + 2_000_003 * self.step)
        self._losses = list(state.get("losses") or [0.0, 0.0])

    def _run(self) -> Generator[Event, None, None]:
        try:
            yield from (NoticeEvent(self.step, message) for message in self._notices)
            if self.step == 0:  # also when it goes on from there: the same events come again
                yield self._evaluate(self._score(self._aim.fixed()).loss)
                if 0 in self._moments:
                    yield CheckpointEvent(0, self.state())
            elif self.step % self.config.eval_every == 0 and self._losses[1]:  # stopped just before it
                yield self._evaluate(self._losses[0] / self._losses[1])
            while self.step < self.config.steps:
                yield self._one_step()
                last = self.step == self.config.steps
                if last or self.step % self.config.eval_every == 0:
                    yield self._evaluate(self._losses[0] / self._losses[1])
                if last or self.step % self.config.checkpoint_every == 0 or self.step in self._moments:
                    yield CheckpointEvent(self.step, self.state())
        finally:
            self._release()

    def _release(self) -> None:
        self._threads.close()
        if self._row is not None:
            self._row.release()
        for parameter in self._frozen:
            parameter.requires_grad_(True)

    def _one_step(self) -> StepEvent:
        began = time.perf_counter()
        batch = self.draw()
        loss, norm = self.gradients(batch)
        learning_rate = self.update(norm)
        seconds = time.perf_counter() - began
        return StepEvent(self.step, loss, learning_rate, norm, batch.inputs.numel(), seconds)

    def _go(self, k: int, one: Pass) -> float:
        """Forward and back: gradients go into the row of part k; gives its part of the batch's loss."""
        assert self._row is not None
        if not one.share:  # fewer rows than processes, or nothing hidden in them
            self._row.put(k, None)
            return 0.0
        device = self.model.device
        with computing_in(self.precision, device):
            inputs = one.batch.inputs.flatten(0, -2).to(device)  # (B,T)
            logits = self.model(inputs, dropout=one.dropout)  # (B,T,V)
        loss = self._aim.loss(logits, one.batch) * one.share
        # Given, not added to what hangs on the weights: so several passes can go back at once.
        self._row.put(k, torch.autograd.grad(loss, self._row.parameters, materialize_grads=True))
        return float(loss.detach())

    def _score(self, batch: Any) -> Score:
        score = self._aim.score(batch, self._processes)
        if not math.isfinite(score.loss):
            raise DivergedError(self.step, "evaluation", self.config)
        return score

    def _evaluate(self, train_loss: float) -> EvalEvent:
        self._losses = [0.0, 0.0]
        if self.val_batch is None:
            return EvalEvent(self.step, train_loss, None, None, None)
        score = self._score(self.val_batch)
        return EvalEvent(
            self.step,
            train_loss,
            score.loss,
            score.bits_per_byte,
            perplexity(score.loss) if score.per_token else None,
            margin=score.margin,
            accuracy=score.accuracy,
        )


train = Training  # `for event in train(...)` reads as what it does


if __name__ == "__main__":
    import_module("engine.command_line").main()  # by name: it stands on a floor above this one
