"""What a training step learns from, and what its loss is: a text, answers to prompts, or preferences.

The loop asks an aim for batches, for the loss of a batch and for the numbers of an evaluation; it knows
nothing else of them.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from engine.batches import Batch, clm_batch, mlm_batch
from engine.config import TrainConfig
from engine.evaluation import EVAL_SEED, fixed_batch, line_starts, scored_targets, total_loss
from engine.instructions import AnswerRows
from engine.metrics import bits_per_byte, cross_entropy
from engine.model import Transformer
from engine.parallel import ALONE, Processes
from engine.preferences import PreferenceBatch, PreferenceRows, answer_log_probs, dpo_loss, margins

B = TypeVar("B")  # Batch or PreferenceBatch


@dataclass(frozen=True)
class Score:
    """What an evaluation says.

    Attributes:
        loss: the aim's own.
        bits_per_byte: of a text; None elsewhere.
        per_token: whether `loss` is the mean surprisal of tokens in nats, so that a perplexity goes with it.
        margin: mean by which the reward of the wanted answer is the higher one; None but for preferences.
        accuracy: share of the preferences whose margin is above 0.
    """

    loss: float
    bits_per_byte: float | None = None
    per_token: bool = True
    margin: float | None = None
    accuracy: float | None = None


class Aim(Protocol[B]):
    """What the loop asks for. A batch's first axis is what processes share among themselves, and parts.

    A part of a batch is a batch: `loss` is asked for each by itself and weighed by its `size`. Dropout is no
    matter of an aim: it happens in the model, from a generator of each part, see `engine.training`.

    Attributes:
        val: what is held out, or None.
    """

    val: B | None

    def draw(self, generator: torch.Generator) -> B:
        """The batch of a step."""

    def fixed(self) -> B:
        """Some of what is learned from, always the same, for the loss before the first step."""

    def size(self, batch: B) -> int:
        """Over how many terms the loss is a mean."""

    def loss(self, logits: Tensor, batch: B) -> Tensor:
        """The loss of a batch on the device of its logits, whose rows are all inputs one below the other."""

    def score(self, batch: B, processes: Processes) -> Score:
        """The loss of a batch without gradients, always in float32, and what else is known of it."""


class TextAim:
    """The next token, or hidden ones, of a text.

    Args:
        model: that learns.
        train_ids: (N,) of the text.
        val_ids: of the held-out text; may be empty.
        config: how.
        line_end_ids: tokens that end a line.
        mask_id: what a masked model sees in place of a token.
        special_ids: never hidden from it and never drawn in place of a token.
        bytes_per_token: (V,) or None.

    Attributes:
        val_at: (B,) where the held-out rows begin.
    """

    val: Batch | None

    def __init__(
        self,
        model: Transformer,
        train_ids: Tensor,
        val_ids: Tensor,
        config: TrainConfig,
        *,
        line_end_ids: Sequence[int],
        mask_id: int,
        special_ids: Collection[int],
        bytes_per_token: Tensor | None,
    ) -> None:
        self._model, self._ids, self._config, self._bytes = model, train_ids, config, bytes_per_token
        aligned = config.aligned_share > 0
        self._starts = line_starts(train_ids, line_end_ids) if aligned else None
        if self._starts is not None:  # with and without the end of the line before it: people type either
            self._starts = torch.cat((self._starts, self._starts + 1))
        val_starts = line_starts(val_ids, line_end_ids) if aligned else None
        self.val_at, self.val = fixed_batch(model, val_ids, val_starts, mask_id, config)
        self._mask_id, self._special_ids = mask_id, special_ids

    def draw(self, generator: torch.Generator) -> Batch:
        """Rows from anywhere in the text."""
        make: Callable[..., Batch] = clm_batch
        if self._model.config.objective == "mlm":
            make = partial(
                mlm_batch,
                mask_prob=self._config.mask_prob,
                mask_id=self._mask_id,
                vocab_size=self._model.config.vocab_size,
                special_ids=self._special_ids,
            )
        return make(
            self._ids,
            batch_size=self._config.batch_size,
            context_length=self._config.longest_row(self._model.config.context_length),
            generator=generator,
            starts=self._starts,
            aligned_rows=round(self._config.aligned_share * self._config.batch_size),
        )

    def fixed(self) -> Batch:
        """Rows of the training text as an evaluation takes them."""
        batch = fixed_batch(self._model, self._ids, self._starts, self._mask_id, self._config)[1]
        assert batch is not None  # the loop made sure of the text
        return batch

    def size(self, batch: Batch) -> int:
        """Scored targets."""
        return len(scored_targets(batch))

    def loss(self, logits: Tensor, batch: Batch) -> Tensor:
        """Mean surprisal of the scored targets."""
        return cross_entropy(logits, batch.targets.to(logits.device))

    def score(self, batch: Batch, processes: Processes = ALONE) -> Score:
        """Mean surprisal, and bits per byte of a causal model."""
        total = total_loss(self._model, batch, rows_at_once=self._config.batch_size, processes=processes)
        scored = scored_targets(batch)
        per_byte = None
        if self._bytes is not None and self._model.config.objective == "clm":
            per_byte = bits_per_byte(total, int(self._bytes[scored].sum()))
        return Score(total / len(scored), per_byte)


class AnswersAim:
    """The answers to prompts; see `engine.instructions`."""

    def __init__(
        self, model: Transformer, train_rows: AnswerRows, val_rows: AnswerRows, config: TrainConfig
    ) -> None:
        self._model, self._rows, self._config = model, train_rows, config
        self.val = val_rows.batch(fixed_few(len(val_rows), config.eval_rows)) if len(val_rows) else None

    def draw(self, generator: torch.Generator) -> Batch:
        """Pairs drawn with equal chance; one may come twice."""
        return self._rows.batch(drawn(len(self._rows), self._config.batch_size, generator))

    def fixed(self) -> Batch:
        """Some of the training pairs."""
        return self._rows.batch(fixed_few(len(self._rows), self._config.eval_rows))

    def size(self, batch: Batch) -> int:
        """Tokens of all answers."""
        return len(scored_targets(batch))

    def loss(self, logits: Tensor, batch: Batch) -> Tensor:
        """Mean surprisal of the answers' tokens."""
        return cross_entropy(logits, batch.targets.to(logits.device))

    def score(self, batch: Batch, processes: Processes = ALONE) -> Score:
        """Mean surprisal of the answers' tokens."""
        rows = self._config.batch_size
        total = total_loss(self._model, batch, rows_at_once=rows, processes=processes)
        return Score(total / self.size(batch))


class PreferencesAim:
    """Which of two answers is wanted; see `engine.preferences`.

    Args:
        model: that learns.
        train_rows: to learn from.
        val_rows: held out; may be empty.
        config: how.
        reference: (N,2) and (M,2) log π_ref of all of them; None: the model as it stands is the reference.
    """

    val: PreferenceBatch | None

    def __init__(
        self,
        model: Transformer,
        train_rows: PreferenceRows,
        val_rows: PreferenceRows,
        config: TrainConfig,
        *,
        reference: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        self._model, self._rows, self._config = model, train_rows, config
        if reference is None:
            reference = reference_of(model, train_rows, config), reference_of(model, val_rows, config)
        self._reference = reference[0]
        self.val = None
        if len(val_rows):
            self.val = val_rows.batch(fixed_few(len(val_rows), config.eval_rows), reference[1])

    def draw(self, generator: torch.Generator) -> PreferenceBatch:
        """Preferences drawn with equal chance; one may come twice."""
        which = drawn(len(self._rows), self._config.batch_size, generator)
        return self._rows.batch(which, self._reference)

    def fixed(self) -> PreferenceBatch:
        """Some of the preferences that are learned from."""
        return self._rows.batch(fixed_few(len(self._rows), self._config.eval_rows), self._reference)

    def size(self, batch: PreferenceBatch) -> int:
        """Preferences."""
        return len(batch.inputs)

    def loss(self, logits: Tensor, batch: PreferenceBatch) -> Tensor:
        """Mean of -log σ(margin)."""
        policy = answer_log_probs(logits, batch.targets.flatten(0, 1).to(logits.device)).view(-1, 2)
        reference = batch.reference.to(policy)
        return dpo_loss(*both_of(policy), *both_of(reference), self._config.beta)

    @torch.no_grad()
    def score(self, batch: PreferenceBatch, processes: Processes = ALONE) -> Score:
        """The loss, the mean margin, and how often the margin is above 0."""
        mine = PreferenceBatch(*(rows[processes.share(len(rows))] for rows in batch))
        policy = log_probs_of(self._model, mine.inputs, mine.targets, self._config.batch_size)
        reference = mine.reference.double()
        margin = margins(*both_of(policy), *both_of(reference), self._config.beta)
        # a mean over no preference is not a number
        loss = (
            float(dpo_loss(*both_of(policy), *both_of(reference), self._config.beta)) if len(margin) else 0.0
        )
        sums = (loss * len(margin), float(margin.sum()), float((margin > 0).sum()))
        total, margin_sum, right = (processes.total(one) / len(batch.inputs) for one in sums)
        return Score(total, per_token=False, margin=margin_sum, accuracy=right)


def both_of(log_probs: Tensor) -> tuple[Tensor, Tensor]:
    """(N,2) -> (N,) of the wanted answers and (N,) of the others."""
    return log_probs[:, 0], log_probs[:, 1]


def drawn(n: int, batch_size: int, generator: torch.Generator) -> list[int]:
    """Which of n rows a step takes, each with equal chance."""
    which: list[int] = torch.randint(n, (batch_size,), generator=generator).tolist()
    return which


def fixed_few(n: int, n_rows: int) -> list[int]:
    """Which of n rows are evaluated, in order: always the same, whatever the seed of the run."""
    generator = torch.Generator().manual_seed(EVAL_SEED)
    return sorted(torch.randperm(n, generator=generator)[:n_rows].tolist())


def reference_of(model: Transformer, rows: PreferenceRows, config: TrainConfig) -> Tensor:
    """(N,2) float64: log of the probability of both answers by this model, nats."""
    parts = [torch.empty(0, 2, dtype=torch.float64)]
    for at in range(0, len(rows), config.batch_size):
        which = range(at, min(at + config.batch_size, len(rows)))
        batch = rows.batch(which, torch.zeros(len(rows), 2))
        parts.append(log_probs_of(model, batch.inputs, batch.targets, config.batch_size))
    return torch.cat(parts)


@torch.no_grad()
def log_probs_of(model: Transformer, inputs: Tensor, targets: Tensor, rows_at_once: int) -> Tensor:
    """(N,2) float64 of answers (N,2,T), so many preferences at once, always in float32."""
    parts = [torch.empty(0, 2, dtype=torch.float64)]
    for at in range(0, len(inputs), rows_at_once):
        rows, wanted = (
            part[at : at + rows_at_once].flatten(0, 1).to(model.device) for part in (inputs, targets)
        )
        parts.append(answer_log_probs(model(rows), wanted).view(-1, 2).cpu().double())
    return torch.cat(parts)
