"""How a run stands: its state, its numbers, whose it is, read from its folder."""

import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.config import ModelConfig, TrainConfig
from engine.corpus import BUILT_IN
from engine.folders import read_json, write_json
from engine.owners import owner_hash
from engine.run_shape import fits
from wording import LANGUAGES, SOURCE, words

say = words("engine.run_info")

AT_WORK = ("starting", "running", "paused")  # a process has it
ACTIVE = ("queued", *AT_WORK)
STOP, PAUSE = "stop", "pause"  # files in a run's folder by which others talk to its worker
Configs = tuple[ModelConfig, TrainConfig]
TEACHER = "teacher"  # in run.json, by whom it was stopped


@dataclass(frozen=True)
class RunInfo:
    """A run as a page shows it.

    Attributes:
        state: queued, starting, running, paused, stopped, finished or failed. Paused means that its process
            waits for a while, with the model in memory, to be told to go on.
        message: one sentence, or "".
        queue_place: 1 is next; None unless queued.
        corpus: name, kind, val_share, sha256, train_tokens, val_tokens.
        created, updated: seconds since 1970.
        device: that holds the weights; "" before it runs.
        eta_s: seconds left, estimated.
        diverged: whether it ended because a number was no longer finite.
        group, label: the experiment that it belongs to and what it is there, or "".
        also_scored: names of the further texts that are scored at each evaluation.
        joules: energy since the start, None where the machine doesn't tell; see `engine.energy`.
        joules_of: what that is the energy of: "processor", "GPU" or "processor and GPU".
        imported: whether it came out of a zip.
        start, start_identity: name and fingerprint of the model that it started from; "" if it began with
            new weights.
        kept: whether its owner wants it never to be deleted by itself.
        stopped_by_teacher: whether it is stopped because the teacher of the server did that.
        held: whether it waits since new runs may not begin now, see `engine.new_runs`.
        due: when it will be deleted by itself, in seconds since 1970, see `engine.retention`; None if never.
    """

    id: str
    name: str
    state: str
    step: int
    steps: int
    message: str
    queue_place: int | None
    model: ModelConfig
    train: TrainConfig
    corpus: dict[str, Any]
    tokenizer: str
    created: float
    updated: float
    owner_hash: str
    device: str
    tokens_per_second: float | None
    eta_s: float | None
    has_checkpoint: bool
    folder: Path
    diverged: bool = False
    group: str = ""
    label: str = ""
    also_scored: tuple[str, ...] = ()
    joules: float | None = None
    joules_of: str = ""
    imported: bool = False
    start: str = ""
    start_identity: str = ""
    kept: bool = False
    stopped_by_teacher: bool = False
    held: bool = False
    due: float | None = None

    @property
    def measure(self) -> str:
        """What its loss is of: "clm" or "mlm" for the tokens of a text, "answers" or "preferences"."""
        return self.model.objective if self.train.aim == "text" else self.train.aim

    @property
    def n_choices(self) -> int:
        """Between how many a model guesses that knows nothing: the vocabulary, or two answers."""
        return 2 if self.train.aim == "preferences" else self.model.vocab_size

    @property
    def active(self) -> bool:
        """Whether it runs, waits to run, or is paused."""
        return self.state in ACTIVE

    @property
    def can_resume(self) -> bool:
        """Whether `RunStore.resume` needs nothing but the id. A run that diverged would only do so again."""
        return self.state in ("paused", "stopped", "failed") and not self.diverged

    @property
    def can_step(self) -> bool:
        """Whether `RunStore.step` has something to do: there are steps left, and none is being taken."""
        return self.can_resume and (self.step < self.steps or self.state == "failed")

    def may_read(self, owner: str) -> bool:
        """Whether this token may read what it learned from, or what it wrote, which may be the same."""
        return self.corpus.get("kind") in BUILT_IN or self.owned_by(owner)

    def owned_by(self, owner: str) -> bool:
        """Whether this token may stop, resume, rename and delete it."""
        return secrets.compare_digest(self.owner_hash, owner_hash(owner))


def configs_of(run: dict[str, Any]) -> Configs | None:
    """The settings of model and training in a run.json; None if they are damaged."""
    try:
        return ModelConfig.from_json(run["model"]), TrainConfig.from_json(run["train"])
    except (KeyError, TypeError, ValueError):
        return None


def info_of(
    folder: Path,
    run: dict[str, Any],
    status: dict[str, Any],
    has_checkpoint: bool,
    configs: Configs | None = None,
) -> RunInfo | None:
    """What the two files of a run say; None if they are not those of a run, or damaged.

    Args:
        folder: of the run.
        run: what run.json holds.
        status: what status.json holds.
        has_checkpoint: whether there is a complete one.
        configs: what `configs_of` gave for this `run`, which takes a fifth of a millisecond.
    """
    configs = configs or configs_of(run)
    if configs is None:
        return None
    if not fits(run, status):
        return None
    try:
        state = status["state"]
        return RunInfo(
            id=folder.name,
            name=run["name"],
            state=state,
            step=status.get("step", 0),
            steps=run["train"]["steps"],
            message=_message(folder, status),
            queue_place=None,
            model=configs[0],
            train=configs[1],
            corpus=run["corpus"],
            tokenizer=run["tokenizer"]["name"],
            created=run["created"],
            updated=status.get("updated", run["created"]),
            owner_hash=run["owner"],
            device=status.get("device", ""),
            tokens_per_second=status.get("tokens_per_second"),
            eta_s=status.get("eta_s") if state == "running" else None,
            has_checkpoint=has_checkpoint,
            folder=folder,
            diverged=state == "failed" and status.get("diverged", False) is True,
            group=run.get("group", ""),
            label=run.get("label", ""),
            also_scored=tuple(run.get("also_scored", {})),
            joules=status.get("joules"),
            joules_of=str(status.get("joules_of", "")),
            imported=run.get("imported") is True,
            start=str(run["start"]["name"]) if run.get("start") else "",
            start_identity=str(run["start"]["identity"]) if run.get("start") else "",
            kept=run.get("keep") is True,
            stopped_by_teacher=state == "stopped" and run.get("stopped_by") == TEACHER,
        )
    except (KeyError, TypeError, ValueError):
        return None


def _message(folder: Path, status: dict[str, Any]) -> str:
    if status["state"] in AT_WORK and (folder / STOP).exists():
        return say("stopping_after_step")
    if status["state"] in ("starting", "running") and pause_step(folder) == 0:
        return say("pausing_after_step")
    return str(status.get("message", ""))


def language_of(folder: Path) -> str:
    """The language of the person who made a run, in which its messages are written."""
    kept = read_json(folder / "run.json").get("language")
    return kept if isinstance(kept, str) and kept in LANGUAGES else SOURCE


def update_status(folder: Path, *, durable: bool = True, **changes: Any) -> dict[str, Any]:
    """Change some entries of a run's status.json, and the time in it."""
    status = {**read_json(folder / "status.json"), **changes, "updated": time.time()}
    write_json(folder / "status.json", status, durable=durable)
    return status


def pause_step(folder: Path) -> int | None:
    """The step at which a run is to pause; 0 means after the one that it is at, None not at all."""
    try:
        return int((folder / PAUSE).read_bytes() or b"0")
    except (FileNotFoundError, ValueError):
        return None
