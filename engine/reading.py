"""What the records of a run say: its curves and its numbers now. `verdict` puts them in words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.setting_checks import is_number
from wording import words

say = words("engine.reading")

Record = dict[str, Any]

# name -> kind of record and its entry
_QUANTITIES = {
    "loss": ("step", "loss"),
    "val_loss": ("eval", "val_loss"),
    "perplexity": ("eval", "val_loss"),
    "bits_per_byte": ("eval", "bits_per_byte"),
    "grad_norm": ("step", "grad_norm"),
    "learning_rate": ("step", "learning_rate"),
    "tokens_per_second": ("step", "tokens_per_second"),
}
COLUMNS = (
    "loss", "train_loss", "val_loss", "perplexity", "bits_per_byte", "grad_norm", "learning_rate",
    "tokens", "tokens_per_second", "seconds", "joules",
)  # fmt: skip

Line = tuple[NDArray[np.int64], NDArray[np.float64]]


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
    return float(value) if is_number(value) else math.nan


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


def quantity(records: Sequence[Record], name: str) -> Line:
    """One quantity along the steps, every record of it.

    Args:
        records: of a run.
        name: "loss" (of single batches), "val_loss", "perplexity" (exp of the validation loss),
            "bits_per_byte" (of the validation text), "grad_norm" (before clipping), "learning_rate" or
            "tokens_per_second".

    Returns:
        steps (N,) and values (N,); NaN where a number is not finite. Empty without such records.

    Raises:
        ValueError: for another name.
    """
    if name not in _QUANTITIES:
        raise ValueError(say("no_quantity", name=name, known=", ".join(_QUANTITIES)))
    kind, entry = _QUANTITIES[name]
    found = [r for r in records if r["kind"] == kind]
    if name != "loss" and all(r.get(entry) is None for r in found):
        found = []  # a run without it; a single None is a number that was not finite
    values = np.array([number(r.get(entry)) for r in found], np.float64)
    if name == "perplexity":
        with np.errstate(over="ignore"):
            values = np.exp(values)
        values[~np.isfinite(values)] = np.nan
    return np.array([r["step"] for r in found], np.int64), values


def smooth(
    values: Sequence[float] | NDArray[np.floating],
    half_life: float,
    steps: Sequence[int] | NDArray[np.integer] | None = None,
) -> NDArray[np.float64]:
    """A mean of what came before, in which a value counts half as much after `half_life` steps.

    yᵢ = Σⱼ≤ᵢ wⱼ xⱼ / Σⱼ≤ᵢ wⱼ with wⱼ = 2^-((stepᵢ - stepⱼ) / half_life): dividing by the sum of the weights
    takes out the pull towards 0 at the start (Kingma & Ba 2015, arXiv 1412.6980). Meant for all records,
    before any are thinned out.

    Args:
        values: (N,), NaN where there is none: such a place stays NaN and counts for nothing.
        half_life: in steps; 0 changes nothing.
        steps: (N,) in order; they need not be evenly spaced. None: one step from each value to the next.

    Example:
        >>> smooth([4.0, 1.0, 1.0], 1).tolist()  # the last is (1·4 + 2·1 + 4·1) / 7
        [4.0, 2.0, 1.4285714285714286]
    """
    if half_life < 0:
        raise ValueError(say("half_life", half_life=half_life))
    given = np.asarray(values, np.float64)
    if half_life == 0:
        return given.copy()
    at = np.arange(len(given)) if steps is None else np.asarray(steps)
    result = np.full(len(given), np.nan)
    total = weight = before = 0.0
    for i, (step, x) in enumerate(zip(at.tolist(), given.tolist(), strict=True)):
        faded = 0.5 ** max(0.0, (step - before) / half_life)  # edited records may run backwards
        total, weight, before = total * faded, weight * faded, step
        if math.isfinite(x):
            total, weight = total + x, weight + 1.0
            result[i] = total / weight
    return result


def baselines(records: Sequence[Record], unit: str = "nats") -> dict[str, float]:
    """What counting alone reaches on the validation rows, by name, as far as it was measured.

    Args:
        records: of a run.
        unit: "nats" for each scored token, or "bits_per_byte" (of no masked model).

    Returns:
        Some of "uniform", "unigram", "bigram" and "trigram", in this order; {} before they are measured.
    """
    record = next((r for r in records if r["kind"] == "baseline"), {})
    found = record if unit == "nats" else record.get("bits_per_byte") or {}
    names = ("uniform", "unigram", "bigram", "trigram")
    return {name: float(found[name]) for name in names if not math.isnan(number(found.get(name)))}


def floor_of(records: Sequence[Record], unit: str = "nats") -> float | None:
    """What the true source itself reaches on the validation rows; None where it is unknown.

    Args:
        records: of a run.
        unit: "nats" for each scored token, or "bits_per_byte".
    """
    entry = "value" if unit == "nats" else "bits_per_byte"
    found = [number(r.get(entry)) for r in records if r["kind"] == "floor"]
    return next((value for value in found if math.isfinite(value)), None)


def table(records: Sequence[Record]) -> dict[str, list[float | int | None]]:
    """All measured numbers, a row a step, for a spreadsheet: "step" and those of `COLUMNS` that a run has.

    "loss" is that of a single batch, "train_loss" the mean since the measurement before. None where a step
    has no such number, or it is not finite.
    """
    rows: dict[int, Record] = {}
    for record in records:
        if record["kind"] in ("step", "eval"):
            rows.setdefault(record["step"], {}).update(record)
    steps = sorted(rows)
    columns: dict[str, list[float | int | None]] = {"step": list(steps)}
    for name in COLUMNS:
        values = [rows[step].get(name) for step in steps]
        if any(value is not None for value in values):
            columns[name] = [v if is_number(v) else None for v in values]
    return columns


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
        start: ln V, the loss of guessing uniformly; of preferences ln 2.
        first_loss: the loss before the first step.
        train_loss: mean over the steps since the evaluation before.
        val_loss: None without validation.
        best_loss, best_step: the lowest such loss so far and where it was (train loss without validation).
        best_train_loss: the train loss there.
        floor: of the true source, None where it is unknown.
        bits_per_byte: None where it is not defined.
        baselines: loss of counting models by name, see `baselines`; empty while unknown.
        margin, accuracy: of held-out preferences, see `engine.aims.Score`; None elsewhere.
        earlier_step, earlier_loss: the evaluation that the newest is compared with to see whether the loss
            still falls: the last one at least a quarter of the steps back, NaN if that is step 0.
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
    baselines: Mapping[str, float] = field(default_factory=dict)
    margin: float | None = None
    accuracy: float | None = None
    earlier_step: int = 0
    earlier_loss: float = math.nan

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

    @property
    def best_bits_per_byte(self) -> float | None:
        """The best loss in bits per byte: at `best_step`, where `bits_per_byte` is at `step`."""
        size = self.bytes_per_token
        return None if size is None else self.best_loss / (math.log(2) * size)


def read(records: Sequence[Record], vocab_size: int, step: int | None = None) -> Reading | None:
    """The numbers at the last evaluation, or the last that is not after `step`; None before the first."""
    evals = [r for r in records if r["kind"] == "eval" and (step is None or r["step"] <= step)]
    if not evals:
        return None
    key = "val_loss" if has_validation(records) else "train_loss"
    last = evals[-1]
    best = min(evals, key=lambda r: number(r[key]) if not math.isnan(number(r[key])) else math.inf)
    finite = [r for r in evals if 0 < r["step"] <= 0.75 * last["step"] and not math.isnan(number(r[key]))]
    earlier: Record = finite[-1] if finite else {"step": 0, key: None}
    return Reading(
        step=last["step"],
        start=math.log(vocab_size),
        first_loss=number(evals[0][key]),
        train_loss=number(last["train_loss"]),
        val_loss=None if key == "train_loss" else number(last["val_loss"]),
        best_loss=number(best[key]),
        best_step=best["step"],
        best_train_loss=number(best["train_loss"]),
        floor=floor_of(records),
        bits_per_byte=last.get("bits_per_byte"),
        baselines=baselines(records),
        margin=last.get("margin"),
        accuracy=last.get("accuracy"),
        earlier_step=earlier["step"],
        earlier_loss=number(earlier[key]),
    )
