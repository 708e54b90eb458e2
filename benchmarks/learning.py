"""P3, P4, P5: how much is learned in how much time, beside nanoGPT and a plain PyTorch loop.

P3 and P4 learn tinyshakespeare by characters, as nanoGPT does: its last tenth is the validation text. Recipes
were chosen on the first half of that; what is reported is the loss on the second half, which nobody tuned on.
The loss is the mean over every character, read in rows of the model's own context. P5 learns the stories,
whose floor is known, until the loss is within 0.05 nats a token of it.

Trainings take hours. What is finished lies in $LOUPE_HOME/benchmarks/learning.jsonl and is not done again;
delete the file to begin anew.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.learning_runs import Parts, Program, after, halves, seconds_per_step
from benchmarks.learning_stories import stories as story_row
from benchmarks.peers import NANOGPT_CPU, Recipe
from benchmarks.rows import Goal, Measure, Options, Row, Spread
from engine.config import ModelConfig, TrainConfig
from engine.folders import data_folder
from engine.precision import fastest_precision
from engine.tokenizers import char_tokenizer

BUDGETS = (60, 180)  # seconds of both cores
SHARE = 5  # within this part of the longer budget Loupe should be where nanoGPT is at its end
PARTS = "benchmarks/learning.jsonl"

# The recipe. docs/speed.md says what each of its parts is worth. The shorter the time, the smaller the model.
SHAPE = ModelConfig(
    vocab_size=65, context_length=128, n_layer=3, n_head=2, d_model=128, positions="rotary", qk_norm=True,
    bias=False, mix_previous=True,
)  # fmt: skip
SHORT_SHAPE = replace(SHAPE, n_layer=2, qk_norm=False)
RECIPE = TrainConfig(
    batch_size=16,
    optimizer="muon",
    learning_rate=1e-2,
    warmup_steps=100,
    schedule="linear",
    weight_decay=0.1,
)
# In the shorter time more steps learn more; in the longer they no longer do.
SHORT_RECIPE = replace(RECIPE, precision=fastest_precision(torch.device("cpu")))
# The best learning rate of nanoGPT for 60 s, on the first half of the validation text, with its own schedule
# (of 1e-3, 2e-3 and 4e-3 at its own size, of 2e-3, 4e-3 and 8e-3 at that of Loupe); 180 s take the same.
TUNED = {"own": {60: 4e-3, 180: 4e-3}, "same": {60: 4e-3, 180: 4e-3}}
LOUPE, DOCUMENTED = "Loupe", "nanoGPT as documented"
OWN, SAME = "nanoGPT, rate tuned", "nanoGPT, rate tuned, in Loupe's shape"
REPORTED, WHOLE = "second", "whole"  # half of the validation text; all of it
STEADY = 1.25  # times the least: the most that may be measured of one ratio on a machine that is quiet
LEAST_BELOW = 0.05  # nats that Loupe is to be below the better of the tuned peers


def programs(budget: float) -> dict[str, Program]:
    """Everything that learns the characters in this budget."""
    long = budget > BUDGETS[0]
    shape, recipe, tuned = (SHAPE, RECIPE, BUDGETS[1]) if long else (SHORT_SHAPE, SHORT_RECIPE, BUDGETS[0])
    own, same = (Recipe(learning_rate=TUNED[which][tuned]) for which in ("own", "same"))
    names = ("vocab_size", "context_length", "n_layer", "n_head", "d_model", "bias")
    plain = ModelConfig(**{name: getattr(shape, name) for name in names})
    return {
        LOUPE: Program("Loupe", shape, recipe),
        DOCUMENTED: Program("nanoGPT", NANOGPT_CPU, Recipe()),
        OWN: Program("nanoGPT", NANOGPT_CPU, own),
        SAME: Program("nanoGPT", plain, replace(same, batch_size=RECIPE.batch_size)),
    }


@dataclass(frozen=True)
class Characters:
    """A text as nanoGPT cuts it: nine tenths to learn from, the rest for validation."""

    train: Tensor
    val: Tensor
    n_ids: int
    name: str

    @classmethod
    def of(cls, path: Path | None) -> "Characters":
        """Of a file; without one, of a made text that is good for nothing but trying out."""
        text = path.read_text("utf-8") if path else "the quick brown fox and the lazy dog. " * 200
        tokenizer = char_tokenizer(text)
        ids = torch.tensor(tokenizer.encode(text))
        cut = int(len(ids) * 0.9)
        return cls(ids[:cut], ids[cut:], tokenizer.vocab_size, path.name if path else "made")


@dataclass(frozen=True)
class Job:
    """One training: a program, its steps and its seed."""

    program: Program
    steps: int
    seed: int


class Learning:
    """The trainings on characters, finished and to be done.

    Args:
        options: how to measure.
        parts: what is finished.
    """

    def __init__(self, options: Options, parts: Parts) -> None:
        self.options, self.parts = options, parts
        self.text = Characters.of(options.text)

    def fitted(self, program: Program) -> Program:
        """A program for this text; a toy is much smaller."""
        shape = replace(program.shape, vocab_size=self.text.n_ids)
        if self.options.toy:
            shape = replace(shape, d_model=16, n_layer=1, n_head=2, context_length=16)
        return replace(program, shape=shape)

    def steps(self, program: Program, seconds: float) -> int:
        """How many steps of a program fit into so many seconds of both cores."""
        return 2 if self.options.toy else int(seconds / self.seconds(program))

    def seconds(self, program: Program) -> float:
        """Of one step of a program: its ratio to the ruler, times the ruler's seconds."""
        ruler = programs(BUDGETS[0])[DOCUMENTED if self.options.nanogpt else LOUPE]
        return self.ratio(program, ruler) * Spread(**self.ruler(ruler)).median

    def ruler(self, program: Program) -> dict[str, float]:
        """Seconds of a step of the program that the others are measured with."""

        def measure() -> dict[str, Any]:
            times = self._times({"ruler": self.fitted(program)})
            return vars(Spread.of(times["ruler"]))

        return self.parts.once({"ruler": _shape_of_speed(self.fitted(program))}, measure)

    def ratio(self, program: Program, ruler: Program) -> float:
        """How long a step takes, in steps of the ruler: measured in turn, the median of the rounds.

        Raises:
            ValueError: if the rounds differ too much.
        """
        asked = {"speed": _shape_of_speed(self.fitted(program)), "of": _shape_of_speed(self.fitted(ruler))}
        if asked["speed"] == asked["of"]:
            return 1.0

        def measure() -> dict[str, Any]:
            times = self._times({"program": self.fitted(program), "ruler": self.fitted(ruler)})
            seen = Spread.of([a / b for a, b in zip(times["program"], times["ruler"], strict=True)])
            if seen.high > STEADY * seen.low:
                raise ValueError(
                    f"A step takes {seen.low:.2f} to {seen.high:.2f} times as long as another program's: "
                    "close what else is running, else its number of steps would be wrong."
                )
            return {"ratio": vars(seen), "seconds": times}

        return Spread(**self.parts.once(asked, measure)["ratio"]).median

    def _times(self, some: dict[str, Program]) -> dict[str, list[float]]:
        return seconds_per_step(some, self.options.rounds, self.options.nanogpt)

    def losses(self, job: Job) -> dict[str, float]:
        """What a training ends with: the loss on the halves of the validation text, and on all of it."""
        program = self.fitted(job.program)

        def measure() -> dict[str, Any]:
            peer = program.begin(self.text.train, job.steps, job.seed, self.options.nanogpt)
            seconds = after(peer, job.steps, program.threads)
            found = {name: peer.validation_loss(ids) for name, ids in halves(self.text.val)}
            return {**found, "parameters": peer.n_parameters, "processor_seconds": round(seconds, 1)}

        part = {"text": self.text.name, "steps": job.steps, "seed": job.seed, **program.told()}
        return self.parts.once(part, measure)


def _shape_of_speed(program: Program) -> dict[str, Any]:
    """What the time of a step depends on: not on the learning rate, for one."""
    told = program.told()
    recipe = {name: told["recipe"].get(name) for name in ("batch_size", "optimizer", "fused")}
    if told["recipe"].get("precision") == "bfloat16":
        recipe["precision"] = "bfloat16"
    return {**told, "recipe": recipe}


def jobs(learning: Learning, budget: int) -> Iterator[tuple[str, Job]]:
    """All trainings of a budget, by the program's name."""
    for seed in learning.options.seeds:
        for name, program in programs(budget).items():
            if program.who == "Loupe" or learning.options.nanogpt:
                yield name, Job(program, learning.steps(program, budget), seed)


def quick_jobs(learning: Learning) -> Iterator[tuple[str, Job]]:
    """Loupe's runs of a fifth of the longer budget."""
    program = programs(BUDGETS[1] / SHARE)[LOUPE]
    for seed in learning.options.seeds:
        yield LOUPE, Job(program, learning.steps(program, BUDGETS[1] / SHARE), seed)


# What each part of the recipe is worth: one is added after the other, in the shorter budget, with one seed.
DOCUMENTED_CONFIG = TrainConfig(
    batch_size=12,
    learning_rate=1e-3,
    warmup_steps=100,
    schedule="cosine",
    min_lr_share=0.1,
)
LADDER: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # of the shape, of the recipe
    "Loupe's engine, nanoGPT's recipe": ({}, {}),
    "learning rate 4e-3, linear to 0": (
        {},
        {"learning_rate": 4e-3, "schedule": "linear", "min_lr_share": 0.0},
    ),
    "Muon, learning rate 1e-2": ({}, {"optimizer": "muon", "learning_rate": 1e-2}),
    "2 layers, 2 heads, context 128, batch 16": (
        {"n_layer": 2, "n_head": 2, "context_length": 128},
        {"batch_size": 16},
    ),
    "rotary positions": ({"positions": "rotary"}, {}),
    "previous token mixed in": ({"mix_previous": True}, {}),
    "products in the precision that is fastest here": ({}, {"precision": SHORT_RECIPE.precision}),
}


def ladder() -> dict[str, Program]:
    """From nanoGPT's recipe to Loupe's, one change at a time, up to `SHORT_SHAPE` and `SHORT_RECIPE`."""
    found, shape, recipe = {}, NANOGPT_CPU, DOCUMENTED_CONFIG
    for name, (of_shape, of_recipe) in LADDER.items():
        shape, recipe = replace(shape, **of_shape), replace(recipe, **of_recipe)
        found[name] = Program("Loupe", shape, recipe)
    if recipe.precision != "bfloat16":  # the last step is none
        found.popitem()
    return found


# ---- rows


def _row(id: str, what: str, options: Options, budget: int, goal: float) -> tuple[Row, Learning]:
    learning = Learning(options, finished(options))
    found: dict[str, dict[str, dict[int, float]]] = {REPORTED: {}, WHOLE: {}}  # part of the text, name, seed
    runs = []
    for name, job in jobs(learning, budget):
        losses = learning.losses(job)
        for part, by_name in found.items():
            by_name.setdefault(name, {})[job.seed] = losses[part]
        runs.append(_told(name, job, losses))
    figures = {name: Spread.of([*losses.values()]) for name, losses in found[REPORTED].items()}
    goals, notes = [], _notes(options)
    if DOCUMENTED in figures:
        goals = _goals(found[REPORTED], goal)
        whole = _ratio(found[WHOLE][LOUPE], found[WHOLE][DOCUMENTED]).median
        notes += f" On all of it, half of which the recipe was chosen on: {whole:.3f} x {DOCUMENTED}."
    more = {"runs": runs, "seconds_per_step": _speeds(learning, programs(budget))}
    return Row(id, what, "nats a character", figures, goals, notes, more), learning


def _goals(found: dict[str, dict[int, float]], goal: float) -> list[Goal]:
    """Loupe against nanoGPT as documented, and against the better of those whose learning rate was tuned."""
    ours, tuned = found[LOUPE], [found[name] for name in (OWN, SAME)]
    below = [min(losses[seed] for losses in tuned) - ours[seed] for seed in ours]
    return [
        Goal(f"x {DOCUMENTED}", _ratio(ours, found[DOCUMENTED]), goal, at_least=False),
        Goal("nats below nanoGPT with its rate tuned", Spread.of(below), LEAST_BELOW),
    ]


def _ratio(ours: dict[int, float], theirs: dict[int, float]) -> Spread:
    return Spread.of([ours[seed] / theirs[seed] for seed in ours])


def _told(name: str, job: Job, losses: dict[str, float]) -> dict[str, Any]:
    return {"name": name, "steps": job.steps, "seed": job.seed, "loss": losses, **job.program.told()}


def _speeds(learning: Learning, some: dict[str, Program]) -> dict[str, float]:
    if learning.options.toy:
        return {}
    mine = learning.options.nanogpt is not None
    return {name: learning.seconds(p) for name, p in some.items() if mine or p.who == "Loupe"}


def _notes(options: Options) -> str:
    said = ["Loss on the second half of the validation text, which nobody tuned on."]
    if options.nanogpt is None:
        said.append("Without nanoGPT: give a checkout (--nanogpt) to compare.")
    if options.text is None:
        said.append("On a made text: give tinyshakespeare (--text) for a loss that means something.")
    return " ".join(said)


def shorter(options: Options) -> Row:
    """P3: the loss after 60 s, and what each part of the recipe is worth."""
    row, learning = _row("P3", "Validation loss after 60 s of training", options, BUDGETS[0], 0.81)
    steps_up, seed = [], options.seeds[0]
    for name, program in ladder().items():
        job = Job(program, learning.steps(program, BUDGETS[0]), seed)
        steps_up.append(_told(name, job, learning.losses(job)))
    return replace(row, more={**row.more, "one_change_at_a_time": steps_up})


def longer(options: Options) -> Row:
    """P4: the loss after 180 s, and whether Loupe is in a fifth of that where nanoGPT is at its end."""
    row, learning = _row("P4", "Validation loss after 180 s of training", options, BUDGETS[1], 0.90)
    seconds, quick, runs = BUDGETS[1] // SHARE, {}, []
    for name, job in quick_jobs(learning):
        losses = learning.losses(job)
        quick[job.seed] = losses[REPORTED]
        runs.append(_told(name, job, losses))
    goals = [*row.goals]
    theirs = {run["seed"]: run["loss"][REPORTED] for run in row.more["runs"] if run["name"] == DOCUMENTED}
    if theirs:
        what = f"Loupe after {seconds} s, x {DOCUMENTED} after {BUDGETS[1]} s"
        goals.append(Goal(what, _ratio(quick, theirs), 1.0, at_least=False))
    figures = {**row.figures, f"Loupe after {seconds} s": Spread.of([*quick.values()])}
    return replace(row, figures=figures, goals=goals, more={**row.more, "after_a_fifth": runs})


def stories(options: Options) -> Row:
    """P5: see `benchmarks.learning_stories`."""
    return story_row(options, finished(options))


def finished(options: Options) -> Parts:
    """The parts that are done; a toy keeps none."""
    return Parts(None if options.toy else data_folder() / PARTS)


MEASURES: dict[str, Measure] = {"P3": shorter, "P4": longer, "P5": stories}
