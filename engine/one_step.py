"""One optimizer step taken apart, on a private copy: the batch, its loss, the gradients, the update."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from engine.checkpoints import Checkpoint, load_checkpoint
from engine.config import TrainConfig
from engine.corpus import stories
from engine.folders import read_json
from engine.metrics import IGNORED
from engine.model import Transformer
from engine.precision import computing_in
from engine.run_setup import run_ids
from engine.tokenizers import Tokenizer
from engine.training import Pass, Training, train
from wording import words

say = words("engine.one_step")

STORIES, STORY_SEED = 2000, 1  # enough to draw batches from; the seed of the shipped models' stories
EXTRA = 100  # steps that are added to a run that has ended, so that it has a next one


@dataclass(frozen=True)
class Part:
    """Some of a model's weights in one step, all together.

    Attributes:
        name: "embedding", "previous", "position", "attention 1", "mlp 1" and so on, "final_norm", "head";
            layers are counted from 1.
        n: how many numbers.
        gradient: Euclidean length of their gradient, before clipping.
        update: length of their change.
        weights: their own length, before the change.
    """

    name: str
    n: int
    gradient: float
    update: float
    weights: float

    @property
    def title(self) -> str:
        """Its name in words."""
        return part_title(self.name)

    @property
    def ratio(self) -> float:
        """Size of the change relative to the weights; infinite for weights that are all 0."""
        return self.update / self.weights if self.weights else float("inf")


@dataclass(frozen=True, eq=False)
class OneStep:
    """What happened in one step.

    Attributes:
        step: optimizer steps done, this one included.
        inputs, targets: (B,T) int64; a target of -100 is not scored.
        losses: (B,T) float32, nats of each target before the update; NaN where nothing is scored.
        after: (B,T) the same targets after the update, with the same numbers dropped if there is dropout.
        loss: mean of `losses`, as training computes it.
        norm: Euclidean length of all gradients together, before clipping.
        limit: `grad_clip`; 0 is off.
        learning_rate: of this step.
        parts: all weights, in the order of the model.
    """

    step: int
    inputs: NDArray[np.int64]
    targets: NDArray[np.int64]
    losses: NDArray[np.float32]
    after: NDArray[np.float32]
    loss: float
    norm: float
    limit: float
    learning_rate: float
    parts: tuple[Part, ...]

    @property
    def clip_factor(self) -> float:
        """What the gradients are multiplied by: 1 unless they are longer than the limit."""
        return self.limit / self.norm if self.limit and self.norm > self.limit else 1.0

    @property
    def loss_after(self) -> float:
        """Mean of `after`."""
        return float(np.nanmean(self.after, dtype=np.float64))

    @property
    def n_scored(self) -> int:
        """How many targets the loss averages over."""
        return int((self.targets != IGNORED).sum())


class Stepper:
    """A model that takes single steps and tells of each; nobody else has its weights.

    Attributes:
        model: with the weights of now.
        config: how it is trained.
        exact: whether the first step is the very one that the run takes next: same batch, optimizer, numbers.
        extended: whether the run had ended, and got more steps so that there is a next one.
        previous: the model before the last step; None before the first.
    """

    def __init__(self, training: Training, tokenizer: Tokenizer, *, exact: bool, extended: bool) -> None:
        """Take over a training that nobody else iterates."""
        self._training, self.tokenizer = training, tokenizer
        self.exact, self.extended = exact, extended
        self.previous: Transformer | None = None

    @property
    def model(self) -> Transformer:
        """The model with the weights of now."""
        return self._training.model

    @property
    def config(self) -> TrainConfig:
        """How it is trained."""
        return self._training.config

    @property
    def step(self) -> int:
        """Optimizer steps done."""
        return self._training.step

    @property
    def done(self) -> bool:
        """Whether the schedule ends here."""
        return self.step >= self.config.steps

    def take(self) -> OneStep:
        """Take the next step.

        Raises:
            ValueError: at the end of the schedule, or if loss or gradients are not finite.
        """
        if self.done:
            raise ValueError(say("schedule_ends", steps=self.config.steps, step=self.step))
        training = self._training
        state = training.state()
        dropout = (state["generators"] or {})["dropout"]  # so that each pass drops the same numbers
        self.previous = Transformer(self.model.config).to(self.model.device).requires_grad_(False)
        self.previous.load_state_dict(state["model"])
        batch = training.draw()
        now, later = (training.passes(batch, generator_at(dropout)) for _ in range(2))
        losses = self._losses(now)
        loss, norm = training.gradients(batch)
        named = dict(self.model.named_parameters())
        gradients = _lengths((name, p.grad) for name, p in named.items() if p.grad is not None)
        before = {name: p.detach().clone() for name, p in named.items()}
        learning_rate = training.update(norm)
        changes = _lengths((name, p.detach() - before[name]) for name, p in named.items())
        weights = _lengths(before.items())
        counts: dict[str, int] = {}
        for name, p in named.items():
            counts[part_of(name)] = counts.get(part_of(name), 0) + p.numel()
        parts = tuple(Part(k, n, gradients.get(k, 0.0), changes[k], weights[k]) for k, n in counts.items())
        return OneStep(
            step=self.step,
            inputs=batch.inputs.numpy(),
            targets=batch.targets.numpy(),
            losses=losses,
            after=self._losses(later),
            loss=loss,
            norm=norm,
            limit=self.config.grad_clip,
            learning_rate=learning_rate,
            parts=parts,
        )

    @torch.no_grad()
    def _losses(self, passes: Sequence[Pass]) -> NDArray[np.float32]:
        """(B,T) nats of each target under the weights of now; NaN where nothing is scored."""
        device, found = self.model.device, []
        for one in passes:
            with computing_in(self._training.precision, device):
                logits = self.model(one.batch.inputs.to(device), dropout=one.dropout)  # (B,T,V)
            targets = one.batch.targets.to(device)
            rows = logits.float().flatten(0, 1)
            nats = F.cross_entropy(rows, targets.flatten(), ignore_index=IGNORED, reduction="none")
            found.append(nats.view_as(targets).masked_fill(targets == IGNORED, float("nan")))
        return np.asarray(torch.cat(found).cpu().numpy())


def generator_at(state: Tensor) -> torch.Generator:
    """A generator that goes on from a state."""
    generator = torch.Generator()
    generator.set_state(state)
    return generator


def step_of_run(checkpoint: str | Path) -> Stepper:
    """From a checkpoint in a run's folder: with its optimizer state the very step that the run takes there.

    Raises:
        ValueError: one sentence, if the checkpoint or the run's folder is damaged or gone, or the run learns
            from pairs.
    """
    saved = load_checkpoint(checkpoint)
    folder, device = Path(checkpoint).parents[1], str(saved.info.get("device", "cpu")).split(":")[0]
    there = device == "cpu" or (device == "cuda" and torch.cuda.is_available())
    saved.model.to(device if there else "cpu")
    try:
        settings = read_json(folder / "run.json")
        config = TrainConfig.from_json(settings["train"])
        if config.aim != "text":
            raise ValueError(say("only_a_text"))
        ids, _ = run_ids(folder, settings["corpus"], saved.tokenizer)
    except (OSError, KeyError) as error:
        raise ValueError(say("text_unreadable", name=folder.name)) from error
    return _stepper(saved, ids, config, same_device=there)


def step_of_model(checkpoint: str | Path) -> Stepper:
    """From a shipped model or one of its earlier moments; its batches come from stories made anew.

    The weights alone were kept: the optimizer starts fresh, and the batch is not one of the model's own.

    Raises:
        ValueError: one sentence, if the checkpoint is damaged or does not say how it was trained.
    """
    saved = load_checkpoint(checkpoint)
    if saved.train_config is None:
        raise ValueError(say("no_recipe"))
    ids = torch.tensor(saved.tokenizer.encode(stories(STORIES, STORY_SEED).text))
    return _stepper(saved, ids, saved.train_config, same_device=True)


def _stepper(saved: Checkpoint, ids: Tensor, config: TrainConfig, *, same_device: bool) -> Stepper:
    extended = saved.step >= config.steps
    if extended:
        config = replace(config, steps=saved.step + EXTRA)
    saved.model.requires_grad_(True)
    masked = saved.model.config.objective == "mlm"
    training = train(
        saved.model,
        ids,
        [],
        config,
        resume=saved.train_state(),
        line_end_ids=saved.tokenizer.line_end_ids,
        mask_id=saved.tokenizer.mask_id if masked else None,
        special_ids=saved.tokenizer.control_ids,
        threads=1,  # the app's other threads belong to its readers
    )
    exact = (
        same_device
        and not extended
        and saved.generator_states is not None
        and (saved.optimizer_state is not None or saved.step == 0)
    )
    return Stepper(training, saved.tokenizer, exact=exact, extended=extended)


def part_of(name: str) -> str:
    """Which part of the model a weight belongs to; the norm before (or after) a half counts with it.

    >>> part_of("blocks.2.attention_norm.weight"), part_of("blocks.0.mlp.up.bias"), part_of("head.weight")
    ('attention 3', 'mlp 1', 'head')
    """
    if found := re.match(r"blocks\.(\d+)\.(attention|mlp)", name):
        return f"{found[2]} {int(found[1]) + 1}"
    return name.split(".")[0]


def part_title(name: str) -> str:
    """A part in words.

    >>> part_title("attention 3"), part_title("head")
    ('layer 3 attention', 'output matrix')
    """
    kind, _, layer = name.partition(" ")
    return say(f"part.{kind}", layer=layer) if layer else say(f"part.{kind}")


def _lengths(tensors: Iterable[tuple[str, Tensor]]) -> dict[str, float]:
    """Euclidean length of the tensors of each part together, summed in float64."""
    squares: dict[str, float] = {}
    for name, tensor in tensors:
        part = part_of(name)
        squares[part] = squares.get(part, 0.0) + float(tensor.double().square().sum())
    return {part: total**0.5 for part, total in squares.items()}
