"""What a training tells of itself: its events, its state, and how it ends badly."""

from dataclasses import dataclass
from typing import TypedDict

from torch import Tensor

from engine.config import TrainConfig
from wording import words

say = words("engine.events")


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
        val_loss: of the fixed validation rows, nats per scored token; of preferences the mean of -log σ of
            the margin; None without a validation text.
        bits_per_byte: the same as bits per byte of text; None for masked models, without token lengths, and
            for answers and preferences.
        perplexity: exp(val_loss), over masked positions for masked models; may be infinite; None for
            preferences.
        floor: val_loss of the true source, where it is known.
        margin, accuracy: of the held-out preferences, see `engine.aims.Score`; None elsewhere.
    """

    step: int
    train_loss: float
    val_loss: float | None
    bits_per_byte: float | None
    perplexity: float | None
    floor: float | None = None
    margin: float | None = None
    accuracy: float | None = None


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
    """A number is no longer finite. The weights are those of the step before.

    Args:
        step: at which it happened.
        what: "loss", "gradient", "weight" or "evaluation", the loss of one.
        config: whose settings may be at fault.
    """

    def __init__(self, step: int, what: str, config: TrainConfig) -> None:
        self.step = step
        super().__init__(
            say(f"diverged.{what}", step=step, learning_rate=config.learning_rate)
            if config.grad_clip
            else say(f"diverged_unclipped.{what}", step=step, learning_rate=config.learning_rate)
        )
