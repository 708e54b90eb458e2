"""What came of the runs of a study: from their folders, or from the file that came with the app."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.config import ModelConfig, TrainConfig
from engine.parameter_parts import parameter_count
from engine.reading import number
from engine.records import Records
from wording import words

if TYPE_CHECKING:
    from engine.runs import RunInfo, RunStore

say = words("engine.outcomes")

SHIPPED = Path(__file__).parents[1] / "pretrained" / "experiments"
_OF_A_STEP = ("kind", "step", "loss")
MOST_STEPS = 60  # single steps of a run that are kept in a file; all evaluations are


def label_name(label: str) -> str:
    """What the screen calls a run of a study, by its label."""
    return say.table("label").get(label, label)


@dataclass(frozen=True, eq=False)
class Outcome:
    """One run of a study as it stands.

    Attributes:
        label: what it is in its study, as it is stored; `name` is what the screen says.
        state: as in `RunInfo`.
        message: why it failed, or "".
        train_tokens: unique tokens to learn from.
        tokenizer: its name.
        records: of the run, in order.
    """

    label: str
    state: str
    step: int
    message: str
    diverged: bool
    model: ModelConfig
    train: TrainConfig
    train_tokens: int
    tokenizer: str
    records: Records

    @property
    def name(self) -> str:
        """Its label in words."""
        return label_name(self.label)

    @property
    def done(self) -> bool:
        """Whether nothing more will come. A run that diverged is a result."""
        return self.state == "finished" or self.diverged

    @property
    def parameters(self) -> int:
        """Number of weights."""
        return parameter_count(self.model)

    @property
    def evals(self) -> Records:
        """Its evaluations."""
        return [r for r in self.records if r["kind"] == "eval"]

    @property
    def floor(self) -> float:
        """What the true source scores on the validation text, nats a token; NaN if it is not known yet."""
        return next((number(r["value"]) for r in self.records if r["kind"] == "floor"), math.nan)

    def last(self, name: str) -> float:
        """A number of the last evaluation, NaN if there is none or the run diverged."""
        return number(self.evals[-1].get(name)) if self.evals and not self.diverged else math.nan

    def best(self, name: str = "val_loss") -> float:
        """The least number of all evaluations, NaN if there is none."""
        found = [x for x in (number(r.get(name)) for r in self.evals) if not math.isnan(x)]
        return min(found, default=math.nan)

    def line(self, name: str) -> tuple[list[int], list[float]]:
        """A number of each evaluation along the steps; NaN where there is none."""
        return [r["step"] for r in self.evals], [number(r.get(name)) for r in self.evals]

    def also(self, name: str) -> float:
        """Loss on a further text at the last evaluation, nats a token; NaN if it was not scored."""
        return number(self.evals[-1].get("also", {}).get(name)) if self.evals else math.nan


def outcome(info: "RunInfo", records: Records) -> Outcome:
    """A run of this machine."""
    return Outcome(
        info.label, info.state, info.step, info.message, info.diverged, info.model, info.train,
        int(info.corpus["train_tokens"]), info.tokenizer, records,
    )  # fmt: skip


def newest(infos: "Sequence[RunInfo]", labels: Sequence[str]) -> "list[RunInfo]":
    """The newest run of each label, in the order of the labels."""
    found = {info.label: info for info in sorted(infos, key=lambda info: (info.created, info.id))}
    return [found[label] for label in labels if label in found]


def outcomes(store: "RunStore", infos: "Sequence[RunInfo]") -> list[Outcome]:
    """What runs of this machine have come to."""
    return [outcome(info, store.history(info.id)) for info in infos]


@dataclass(frozen=True, eq=False)
class Shipped:
    """The results of a study that came with the app.

    Attributes:
        made: the day, such as "2026-11-30".
        machine: what trained them.
        seconds: training time of all runs together.
    """

    study: str
    made: str
    machine: str
    seconds: float
    seed: int
    outcomes: tuple[Outcome, ...]


def to_json(run: Outcome) -> dict[str, Any]:
    """A run as plain values: every evaluation, the floor, and some of the single steps."""
    steps = [r for r in run.records if r["kind"] == "step"]
    every = max(1, math.ceil(len(steps) / MOST_STEPS))
    kept = {r["step"] for r in steps[::-1][::every]}
    records = [
        {name: _short(value) for name, value in r.items() if r["kind"] != "step" or name in _OF_A_STEP}
        for r in run.records
        if r["kind"] in ("eval", "floor", "baseline") or (r["kind"] == "step" and r["step"] in kept)
    ]
    return {
        "label": run.label, "state": run.state, "step": run.step, "message": run.message,
        "diverged": run.diverged, "model": run.model.to_json(), "train": run.train.to_json(),
        "train_tokens": run.train_tokens, "tokenizer": run.tokenizer, "records": records,
    }  # fmt: skip


def _short(value: Any) -> Any:
    """Seven significant digits: more than any page shows."""
    if isinstance(value, dict):
        return {name: _short(inner) for name, inner in value.items()}
    return float(f"{value:.7g}") if isinstance(value, float) else value


def read_shipped(study: str, folder: Path = SHIPPED) -> Shipped | None:
    """The results of a study that came with the app; None if there are none.

    Raises:
        ValueError: if the file is damaged.
    """
    path = folder / f"{study}.json"
    if not path.is_file():
        return None
    try:
        stored = json.loads(path.read_text("utf-8"))
        runs = tuple(
            Outcome(**{**run, "model": ModelConfig.from_json(run["model"]),
                       "train": TrainConfig.from_json(run["train"])})
            for run in stored["runs"]
        )  # fmt: skip
        about = {name: stored[name] for name in ("study", "made", "machine", "seconds", "seed")}
        return Shipped(**about, outcomes=runs)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(say("unreadable", name=path.name, error=error)) from error
