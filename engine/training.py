"""The training loop: `train()` gives one event after the other and knows nothing of processes or screens.

`python -m engine.training RUN_FOLDER` trains the run in that folder and prints how it goes.
"""

import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.batches import Batch, clm_batch, clm_rows, mask_tokens, mlm_batch, windows
from engine.config import TrainConfig
from engine.metrics import IGNORED, bits_per_byte, cross_entropy, perplexity
from engine.model import Transformer
from engine.optimizers import FlatGradients, Optimizer, learning_rate_at

EVAL_SEED = 20171  # the validation rows and masks are the same for every run, whatever its seed

Ids = Sequence[int] | NDArray[np.integer] | Tensor


@dataclass(frozen=True)
class StepEvent:
    """One optimizer step.

    Attributes:
        step: optimizer steps done, this one included.
        loss: of its batch before the update, nats per scored token.
        learning_rate: that it used.
        grad_norm: before clipping.
        tokens: read in this step.
        seconds: that it took.
    """

    step: int
    loss: float
    learning_rate: float
    grad_norm: float
    tokens: int
    seconds: float


@dataclass(frozen=True)
class EvalEvent:
    """How good the model is.

    Attributes:
        train_loss: mean of the steps since the last such event; at step 0 that of fixed rows of the training
            text.
        val_loss: of the fixed validation rows, nats per scored token; None without a validation text.
        bits_per_byte: the same as bits per byte of text; None for masked models or without token lengths.
        perplexity: exp(val_loss), over masked positions for masked models; may be infinite.
        floor: val_loss of the true source, where it is known.
    """

    step: int
    train_loss: float
    val_loss: float | None
    bits_per_byte: float | None
    perplexity: float | None
    floor: float | None = None


class TrainState(TypedDict):
    """All that is needed to go on bit for bit: copies on the CPU, never live tensors.

    `optimizer` and `generators` may be None (weights only): then the optimizer starts anew.
    """

    step: int
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor] | None
    generators: dict[str, Tensor] | None
    losses: list[float]  # sum and number of the step losses since the last EvalEvent


@dataclass(frozen=True, eq=False)
class CheckpointEvent:
    """A moment worth keeping."""

    step: int
    state: TrainState


@dataclass(frozen=True)
class NoticeEvent:
    """Something the user should know; training goes on."""

    step: int
    message: str


Event = StepEvent | EvalEvent | CheckpointEvent | NoticeEvent


class DivergedError(ValueError):
    """The loss or a gradient is no longer a finite number. The weights are those of the step before."""

    def __init__(self, step: int, what: str, config: TrainConfig) -> None:
        self.step = step
        super().__init__(
            f"Step {step} failed: {what} is not a finite number, so the run stopped before it could spoil "
            "the weights. "
            f"Try a learning rate below {config.learning_rate:g}"
            + ("." if config.grad_clip else ", or gradient clipping.")
        )


def as_ids(ids: Ids) -> Tensor:
    """Token ids as (N,) int64 on the CPU, without a copy where possible.

    Raises:
        ValueError: if they are not whole numbers in one row.
    """
    if len(ids) == 0:
        return torch.empty(0, dtype=torch.int64)
    tensor = torch.as_tensor(ids, device="cpu")
    if tensor.ndim != 1 or tensor.is_floating_point() or tensor.is_complex():
        raise ValueError(
            f"Token ids must be one row of whole numbers, not {tensor.dtype} of shape {tuple(tensor.shape)}."
        )
    return tensor.to(torch.int64)


def line_starts(ids: Tensor, line_end_ids: Sequence[int]) -> Tensor:
    """Positions of the tokens that end a line; a row from there predicts a line from its first word."""
    return torch.isin(ids, torch.tensor(list(line_end_ids), dtype=torch.int64)).nonzero().flatten()


def fixed_rows(n: int, *, n_rows: int, length: int, starts: Tensor | None = None) -> Tensor:
    """Where the rows of an evaluation begin, (B,): always the same; without `starts` no token twice.

    Args:
        n: tokens in the text, at least `length`.
        n_rows: at most so many rows.
        length: tokens in a row.
        starts: if given, rows begin at some of these positions.
    """
    generator = torch.Generator().manual_seed(EVAL_SEED)
    tiles = torch.arange(
        0, n - length + 1, max(1, length - 1)
    )  # the last token of a row is the first of the next
    if starts is not None and len(fitting := starts[starts + length <= n]):
        tiles = fitting
    return tiles[torch.randperm(len(tiles), generator=generator)[:n_rows]].sort().values


class Training(Iterator[Event]):
    """What `train` gives: an iterator of events that can also be asked for its `state` between two of them.

    Attributes:
        step: optimizer steps done.
        val_at: (B,) where the validation rows begin in the validation text; None without one.
        val_batch: those rows as inputs and targets.
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
        bytes_per_token: Sequence[int] | None = None,
    ) -> None:
        """See `train`."""
        self.model, self.config, self.step = model, config, 0
        self.mask_id = model.config.vocab_size - 1 if mask_id is None else mask_id
        self._train_ids, self._val_ids = as_ids(train_ids), as_ids(val_ids)
        self._check()
        self._bytes = None if bytes_per_token is None else torch.tensor(list(bytes_per_token))
        aligned = config.aligned_share > 0
        self._starts = line_starts(self._train_ids, line_end_ids) if aligned else None
        if self._starts is not None:  # with and without the end of the line before it: people type either
            self._starts = torch.cat((self._starts, self._starts + 1))
        val_starts = line_starts(self._val_ids, line_end_ids) if aligned else None
        self.val_at, self.val_batch = self._fixed_batch(self._val_ids, val_starts)
        self._generators = {
            name: torch.Generator().manual_seed(config.seed * 2 + k)
            for k, name in enumerate(("data", "dropout"))
        }
        self._optimizer = Optimizer(model, config)
        self._losses = [0.0, 0.0]  # sum and number since the last evaluation
        self._notices: list[str] = []
        if resume is not None:
            self._load(resume)
        self._stream = self._run(fresh=resume is None)

    def __next__(self) -> Event:
        """The next event."""
        return next(self._stream)

    def close(self) -> None:
        """End the loop: the model keeps the weights of the last step."""
        self._stream.close()

    @torch.no_grad()
    def state(self) -> TrainState:
        """Copies of everything at this moment.

        Raises:
            DivergedError: if a weight is not finite.
        """
        if not all(bool(p.isfinite().all()) for p in self.model.parameters()):
            raise DivergedError(self.step, "a weight", self.config)
        return TrainState(
            step=self.step,
            model={name: value.detach().cpu().clone() for name, value in self.model.state_dict().items()},
            optimizer=self._optimizer.state(),
            generators={name: g.get_state() for name, g in self._generators.items()},
            losses=list(self._losses),
        )

    def _check(self) -> None:
        """Refuse, before the first step, whatever could not end well."""
        length = self.model.config.context_length
        check_lengths(len(self._train_ids), len(self._val_ids), length)
        for ids in (self._train_ids, self._val_ids):
            if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < self.model.config.vocab_size:
                raise ValueError(
                    f"The model's ids run from 0 to {self.model.config.vocab_size - 1}, but the text has id "
                    f"{int(ids.max())}. Use the tokenizer that the model was made for."
                )
        wrong = {p.dtype for p in self.model.parameters()} - {torch.float32}
        if wrong:
            raise ValueError(f"Training needs float32 weights, not {wrong.pop()}. Call model.float() first.")

    def _load(self, state: TrainState | Mapping[str, Any]) -> None:
        self.step = int(state["step"])
        if self.step >= self.config.steps:
            raise ValueError(
                f"The checkpoint is at step {self.step} and the run ends at step {self.config.steps}. "
                "Give a larger number of steps to train on."
            )
        self.model.load_state_dict(state["model"])
        if moments := state.get("optimizer"):
            self._optimizer.load(moments)
        elif self.step:
            self._notices.append(
                "This checkpoint holds weights only: the optimizer restarted; step and schedule go on from "
                f"{self.step}."
            )
        generators = state.get("generators")
        for name, generator in self._generators.items():
            if generators:
                generator.set_state(generators[name])
            else:  # other data than the first steps saw
                generator.manual_seed(generator.initial_seed() + 2_000_003 * self.step)
        self._losses = list(state.get("losses") or [0.0, 0.0])

    def _run(self, fresh: bool) -> Generator[Event, None, None]:
        gradients = FlatGradients(self.model.parameters())
        try:
            yield from (NoticeEvent(self.step, message) for message in self._notices)
            if fresh:
                yield self._evaluate(self._first_train_loss())
            elif self.step % self.config.eval_every == 0 and self._losses[1]:  # stopped just before it
                yield self._evaluate(self._losses[0] / self._losses[1])
            while self.step < self.config.steps:
                yield self._one_step(gradients)
                last = self.step == self.config.steps
                if last or self.step % self.config.eval_every == 0:
                    yield self._evaluate(self._losses[0] / self._losses[1])
                if last or self.step % self.config.checkpoint_every == 0:
                    yield CheckpointEvent(self.step, self.state())
        finally:
            gradients.release()

    def _one_step(self, gradients: FlatGradients) -> StepEvent:
        began = time.perf_counter()
        batch = self._batch()
        device = self.model.device
        gradients.clear()
        logits = self.model(batch.inputs.to(device), dropout=self._generators["dropout"])  # (B,T,V)
        loss = cross_entropy(logits, batch.targets.to(device))
        loss.backward()  # type: ignore[no-untyped-call]
        value, norm = float(loss.detach()), gradients.norm()
        for number, what in ((value, "the loss"), (norm, "a gradient")):
            if not math.isfinite(number):
                raise DivergedError(self.step + 1, what, self.config)
        gradients.clip(norm, self.config.grad_clip)
        learning_rate = learning_rate_at(self.step, self.config)
        self._optimizer.step(learning_rate)
        self.step += 1
        self._losses = [self._losses[0] + value, self._losses[1] + 1]
        return StepEvent(
            self.step, value, learning_rate, norm, batch.inputs.numel(), time.perf_counter() - began
        )

    def _batch(self) -> Batch:
        make: Callable[..., Batch] = clm_batch
        if self.model.config.objective == "mlm":
            make = partial(
                mlm_batch, mask_prob=self.config.mask_prob, mask_id=self.mask_id, vocab_size=self.mask_id
            )
        return make(
            self._train_ids,
            batch_size=self.config.batch_size,
            context_length=self.model.config.context_length,
            generator=self._generators["data"],
            starts=self._starts,
            aligned_rows=round(self.config.aligned_share * self.config.batch_size),
        )

    def _fixed_batch(self, ids: Tensor, starts: Tensor | None) -> tuple[Tensor | None, Batch | None]:
        """The evaluation rows of a text. A masked model sees a mask for every chosen token."""
        if not len(ids):
            return None, None
        causal = self.model.config.objective == "clm"
        length = self.model.config.context_length + causal
        at = fixed_rows(len(ids), n_rows=self.config.eval_rows, length=length, starts=starts)
        rows = windows(ids, at, length)
        if causal:
            return at, clm_rows(rows)
        masks = torch.Generator().manual_seed(EVAL_SEED)
        return at, mask_tokens(
            rows,
            mask_prob=self.config.mask_prob,
            mask_id=self.mask_id,
            vocab_size=self.mask_id,
            generator=masks,
            split=(1.0, 0.0, 0.0),
        )

    def _first_train_loss(self) -> float:
        batch = self._fixed_batch(self._train_ids, self._starts)[1]
        assert batch is not None  # `_check` made sure of the text
        return self._total_loss(batch) / int((batch.targets != IGNORED).sum())

    def _evaluate(self, train_loss: float) -> EvalEvent:
        self._losses = [0.0, 0.0]
        if self.val_batch is None:
            return EvalEvent(self.step, train_loss, None, None, None)
        targets = self.val_batch.targets
        total, scored = self._total_loss(self.val_batch), targets[targets != IGNORED]
        per_byte = None
        if self._bytes is not None and self.model.config.objective == "clm":
            per_byte = bits_per_byte(total, int(self._bytes[scored].sum()))
        loss = total / len(scored)
        return EvalEvent(self.step, train_loss, loss, per_byte, perplexity(loss))

    @torch.no_grad()
    def _total_loss(self, batch: Batch) -> float:
        """Sum of the surprisals of all scored targets, nats; a few rows at a time."""
        total, device = 0.0, self.model.device
        for at in range(0, len(batch.inputs), self.config.batch_size):
            inputs, targets = (t[at : at + self.config.batch_size] for t in batch)
            scored = int((targets != IGNORED).sum())
            if scored:
                total += float(cross_entropy(self.model(inputs.to(device)), targets.to(device))) * scored
        if not math.isfinite(total):
            raise DivergedError(self.step, "the loss of the evaluation", self.config)
        return total


def check_lengths(n_train: int, n_val: int, context_length: int) -> None:
    """Refuse texts that are too short for one row; a validation text of 0 tokens means no validation.

    Raises:
        ValueError: with the numbers and the way out.
    """
    need = context_length + 1
    if n_train < need:
        raise ValueError(
            f"The training text has {n_train} tokens, but a row needs {need} (context_length "
            f"{context_length} and the "
            f"last target). Add text, or choose a context_length of at most {max(1, n_train - 1)}."
        )
    if 0 < n_val < need:
        raise ValueError(
            f"The validation text has {n_val} tokens, but a row needs {need} (context_length "
            f"{context_length} and the "
            "last target). Add text, give validation a larger share, choose a shorter context_length, or "
            "train "
            "without validation (share 0)."
        )


def train(
    model: Transformer,
    train_ids: Ids,
    val_ids: Ids,
    config: TrainConfig,
    *,
    resume: TrainState | Mapping[str, Any] | None = None,
    line_end_ids: Sequence[int] = (),
    mask_id: int | None = None,
    bytes_per_token: Sequence[int] | None = None,
) -> Training:
    """Train a model; leaving the `for` loop over the events stops it.

    The first event is an `EvalEvent` at step 0; then a `StepEvent` for every step, followed by an `EvalEvent`
    every `eval_every` steps and a `CheckpointEvent` every `checkpoint_every` steps, both also after the last
    step.

    Args:
        model: its weights are changed in place, on the device where they are.
        train_ids: (N,) token ids.
        val_ids: the same for validation; without any, the validation numbers are None.
        config: how to train.
        resume: the state of a `CheckpointEvent`, or of `Training.state()`; everything goes on from it bit for
            bit.
        line_end_ids: tokens that end a line; used if `config.aligned_share` is above 0.
        mask_id: what a masked model sees in place of a hidden token; None is the last id of the model.
        bytes_per_token: (V,) length of each id in bytes, for bits per byte.

    Raises:
        ValueError: at once, if a text is too short, an id is outside the vocabulary, or the state doesn't
            fit.
        DivergedError: from the loop, if loss or gradients stop being finite.
    """
    return Training(
        model,
        train_ids,
        val_ids,
        config,
        resume=resume,
        line_end_ids=line_end_ids,
        mask_id=mask_id,
        bytes_per_token=bytes_per_token,
    )


if __name__ == "__main__":
    import_module("engine.worker").main()  # by name: the worker stands on a floor above this one
