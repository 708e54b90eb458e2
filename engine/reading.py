"""What the records of a run say: its curves, its numbers now, and one plain sentence."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Record = dict[str, Any]

NEAR_GUESSING = 0.9  # of ln V
AT_THE_FLOOR = 0.05  # nats above it
CLEAR_RISE = 0.03  # nats above the best validation loss before the word "memorises" is used


@dataclass(frozen=True, eq=False)
class Curves:
    """The lines of a run. A loss that is not a finite number is NaN: a gap.

    Attributes:
        steps, losses: (N,) the loss of single batches.
        eval_steps, val_losses: (M,) the validation loss; empty for a run without validation.
    """

    steps: NDArray[np.int64]
    losses: NDArray[np.float64]
    eval_steps: NDArray[np.int64]
    val_losses: NDArray[np.float64]


def number(value: Any) -> float:
    """A recorded number, NaN if there is none or it is not finite."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else math.nan


def curves(records: Sequence[Record]) -> Curves:
    """Lines to draw from a run's records."""
    steps = [r for r in records if r["kind"] == "step"]
    evals = [r for r in records if r["kind"] == "eval"] if has_validation(records) else []
    return Curves(
        np.array([r["step"] for r in steps], np.int64),
        np.array([number(r["loss"]) for r in steps]),
        np.array([r["step"] for r in evals], np.int64),
        np.array([number(r["val_loss"]) for r in evals]),
    )


def has_validation(records: Sequence[Record]) -> bool:
    """Whether the run keeps a part of its text to be checked with."""
    return any(r["kind"] == "eval" and r["val_loss"] is not None for r in records)


def bad_steps(records: Sequence[Record]) -> list[int]:
    """Steps at which a loss was not a finite number."""
    found = {r["step"] for r in records if r["kind"] == "step" and math.isnan(number(r["loss"]))}
    if has_validation(records):
        found |= {r["step"] for r in records if r["kind"] == "eval" and math.isnan(number(r["val_loss"]))}
    return sorted(found)


@dataclass(frozen=True)
class Reading:
    """A run's numbers at one evaluation. Losses in nats per scored token; NaN where there is no number.

    Attributes:
        step: of that evaluation.
        start: ln V, the loss of guessing uniformly.
        first_loss: the loss before the first step.
        train_loss: mean over the steps since the evaluation before.
        val_loss: None without validation.
        best_loss, best_step: the lowest such loss so far and where it was (train loss without validation).
        best_train_loss: the train loss there.
        floor: of the true source, None where it is unknown.
        bits_per_byte: None where it is not defined.
    """

    step: int
    start: float
    first_loss: float
    train_loss: float
    val_loss: float | None
    best_loss: float
    best_step: int
    best_train_loss: float
    floor: float | None
    bits_per_byte: float | None

    @property
    def loss(self) -> float:
        """The number that counts: validation loss, or train loss where there is no validation."""
        return self.train_loss if self.val_loss is None else self.val_loss

    @property
    def perplexity(self) -> float:
        """exp(loss), infinite above 709.78 nats."""
        try:
            return math.exp(self.loss)
        except OverflowError:
            return math.inf

    @property
    def gap(self) -> float | None:
        """Nats above the floor."""
        return None if self.floor is None or self.val_loss is None else self.val_loss - self.floor

    @property
    def bytes_per_token(self) -> float | None:
        """Mean length of the scored tokens in bytes, from loss = bits per byte · ln 2 · bytes per token."""
        if not self.bits_per_byte or self.val_loss is None:
            return None
        return self.val_loss / (math.log(2) * self.bits_per_byte)


def read(records: Sequence[Record], vocab_size: int, step: int | None = None) -> Reading | None:
    """The numbers at the last evaluation, or the last that is not after `step`; None before the first."""
    evals = [r for r in records if r["kind"] == "eval" and (step is None or r["step"] <= step)]
    if not evals:
        return None
    key = "val_loss" if has_validation(records) else "train_loss"
    last = evals[-1]
    best = min(evals, key=lambda r: number(r[key]) if not math.isnan(number(r[key])) else math.inf)
    floor = next((number(r["value"]) for r in records if r["kind"] == "floor"), None)
    return Reading(
        step=last["step"],
        start=math.log(vocab_size),
        first_loss=number(evals[0][key]),
        train_loss=number(last["train_loss"]),
        val_loss=None if key == "train_loss" else number(last["val_loss"]),
        best_loss=number(best[key]),
        best_step=best["step"],
        best_train_loss=number(best["train_loss"]),
        floor=floor,
        bits_per_byte=last.get("bits_per_byte"),
    )


def verdict(now: Reading | None, vocab_size: int, *, done: bool = False) -> str:
    """One or two plain sentences on how the run stands.

    Args:
        now: its numbers, None before the first evaluation.
        vocab_size: 1 is a text with nothing to learn.
        done: whether the run has ended.
    """
    if vocab_size < 2:
        return "This text has a single symbol, so the loss is 0 and there is nothing to learn."
    if now is None:
        return "Nothing was measured." if done else "The first numbers come in a moment."
    if math.isnan(now.loss):
        return f"At step {now.step:,} the loss was not a finite number: the steps were too large."
    if now.step == 0:
        return (
            f"Before the first step the model guesses: {now.loss:.2f} nats, close to ln V = {now.start:.2f}, "
            "the loss of giving every token the same probability."
        )
    memorises = _memorises(now)
    if memorises:
        return memorises
    where = _where(now)
    if now.val_loss is None:
        where += " There is no validation text, so this may be learning or memorising."
    return where


def _memorises(now: Reading) -> str:
    if (
        now.val_loss is None
        or now.val_loss - now.best_loss < CLEAR_RISE
        or now.train_loss >= now.best_train_loss
    ):
        return ""
    return (
        f"Validation was best at step {now.best_step:,} ({now.best_loss:.2f} nats) and has risen to "
        f"{now.val_loss:.2f} while training fell to {now.train_loss:.2f}: the model memorises its text."
    )


def _where(now: Reading) -> str:
    if now.gap is not None and now.floor is not None:
        if now.gap < AT_THE_FLOOR:
            return f"Only {max(now.gap, 0.0):.3f} nats above the floor: almost nothing is left to learn."
        if now.loss < NEAR_GUESSING * now.start:
            share = (now.start - now.loss) / (now.start - now.floor)
            return f"{now.gap:.2f} nats above the floor: {share:.0%} of the way from guessing."
    if now.loss > now.start + 0.1:
        return (
            f"Worse than guessing: {now.loss:.2f} nats against ln V = {now.start:.2f}. "
            "A smaller learning rate helps."
        )
    if now.loss > NEAR_GUESSING * now.start:
        return f"Still near guessing: {now.loss:.2f} nats of ln V = {now.start:.2f}."
    choices = math.exp(now.loss)
    return (
        f"{now.start - now.loss:.2f} nats better than guessing: as unsure as between "
        f"{choices:,.1f} equally likely tokens instead of {math.exp(now.start):,.0f}."
    )
