"""P5: how long a model of a million parameters takes to come near the floor of the stories.

The stories come from a grammar, so the loss of their true source is known: the floor. Asked is the least
number of steps whose schedule ends within 0.05 nats a token of it, times the seconds of a step; and whether a
plain loop is as near after twice that time. All programs draw their rows alike: half of them from the
beginning of a story, the others from anywhere.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from benchmarks.learning_runs import Parts, Program, after, seconds_per_step
from benchmarks.peers import Peer, PlainGPT, PlainPeer, Recipe, plain_adamw, quietly
from benchmarks.rows import Goal, Options, Row, Spread
from engine.batches import Batch, clm_batch
from engine.config import ModelConfig, TrainConfig
from engine.corpus import stories as story_corpus
from engine.evaluation import fixed_batch, line_starts
from engine.floor import validation_floor
from engine.model import Transformer
from engine.tokenizers import train_bpe

NEAR = 0.05  # nats a token above the floor
BEGIN = 13  # where the search begins: about what is needed
TIMES = 2  # as much time for the plain loop
FEWEST, FINENESS, MOST = 100, 4, 24  # steps tried: 100 · 2^(k/4), up to 6400
SHAPE = ModelConfig(vocab_size=1024, context_length=128, n_layer=4, n_head=4, d_model=128)
TEXTBOOK = Recipe(batch_size=16, learning_rate=1e-3, warmup_steps=50, fused=True)
TUNED_RATE = 4e-3  # after 400 steps 0.230 above the floor; 2e-3 gives 0.325. More was not tried
RECIPE = TrainConfig(
    batch_size=16,
    optimizer="muon",
    learning_rate=1e-2,
    warmup_steps=50,
    schedule="linear",
    weight_decay=0.1,
    aligned_share=0.5,
)
LOUPE, PLAIN, TUNED = "Loupe", "plain PyTorch loop", "plain PyTorch loop, rate tuned"
PROGRAMS = {
    LOUPE: Program("Loupe", replace(SHAPE, n_head=2, positions="rotary", qk_norm=True, bias=False), RECIPE),
    TUNED: Program("plain", SHAPE, replace(TEXTBOOK, learning_rate=TUNED_RATE)),
    PLAIN: Program("plain", SHAPE, TEXTBOOK),
}


class Source(NamedTuple):
    """Stories to learn from, where they begin, and held-out rows whose floor is known."""

    ids: Tensor
    starts: Tensor
    line_ends: list[int]
    n_ids: int
    held_out: Batch
    floor: Callable[[], float]


@lru_cache(maxsize=2)
def source(n_stories: int, vocab_size: int, context_length: int, rows: int) -> Source:
    """The stories and their vocabulary, as the shipped models have them."""
    text = story_corpus(n_stories, 1)
    tokenizer = train_bpe(text.text[:2_000_000], vocab_size)
    ids, val_ids = (torch.tensor(tokenizer.encode(part)) for part in (text.text, text.val_text or ""))
    ends = tokenizer.line_end_ids
    any_model = Transformer(
        replace(SHAPE, context_length=context_length, n_layer=1, vocab_size=tokenizer.vocab_size)
    )
    at, held_out = fixed_batch(any_model, val_ids, line_starts(val_ids, ends), 0, TrainConfig(eval_rows=rows))
    assert at is not None and held_out is not None

    def floor() -> float:
        found = validation_floor(tokenizer, val_ids.tolist(), at, held_out, "clm")
        assert found is not None
        return found

    return Source(ids, line_starts(ids, ends), list(ends), tokenizer.vocab_size, held_out, floor)


class Stories:
    """The trainings on stories, finished and to be done."""

    def __init__(self, options: Options, parts: Parts) -> None:
        self.options, self.parts = options, parts
        size = (400, 300, 32, 4) if options.toy else (40_000, SHAPE.vocab_size, SHAPE.context_length, 64)
        self.source = source(*size)
        self.near = 100.0 if options.toy else NEAR
        self.floor: float = parts.once({"floor": [*size]}, lambda: {"floor": self.source.floor()})["floor"]

    def fitted(self, program: Program) -> Program:
        """A program for this vocabulary; a toy is much smaller."""
        shape = replace(program.shape, vocab_size=self.source.n_ids)
        if self.options.toy:
            shape = replace(shape, d_model=16, n_layer=1, n_head=2, context_length=32)
        return replace(program, shape=shape)

    def begun(self, program: Program, steps: int, seed: int) -> Peer:
        """A training on the stories: both kinds read rows that are drawn alike."""
        fitted = self.fitted(program)
        if isinstance(fitted.recipe, TrainConfig):
            return fitted.begin(self.source.ids, steps, seed, None, self.source.line_ends)
        recipe = replace(fitted.recipe, steps=steps, seed=seed)
        with quietly(seed):
            model = PlainGPT(fitted.shape)
        generator = torch.Generator().manual_seed(seed)

        def draw() -> Batch:
            return clm_batch(
                self.source.ids,
                batch_size=recipe.batch_size,
                context_length=fitted.shape.context_length,
                generator=generator,
                starts=self.source.starts,
                aligned_rows=recipe.batch_size // 2,
            )

        def loss(inputs: Tensor, targets: Tensor) -> Tensor:
            return nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())

        optimizer, length = plain_adamw(model, recipe), fitted.shape.context_length
        return PlainPeer(model, optimizer, loss, model, draw, recipe, length)

    @torch.no_grad()
    def above(self, model: nn.Module) -> float:
        """Nats a token above the floor, on the held-out rows."""
        inputs, targets = self.source.held_out
        loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        return float(loss) - self.floor

    def ends(self, program: Program, steps: int, seed: int) -> dict[str, Any]:
        """How far above the floor a training of so many steps ends."""

        def measure() -> dict[str, Any]:
            peer = self.begun(program, steps, seed)
            seconds = after(peer, steps, program.threads)
            return {
                "above": self.above(peer.model),
                "parameters": peer.n_parameters,
                "processor_seconds": seconds,
            }

        part = {"text": "stories", "steps": steps, "seed": seed, **self.fitted(program).told()}
        return self.parts.once(part, measure)

    def least_steps(self, program: Program, seed: int, first: int = 0) -> int | None:
        """The least steps of those tried that end near the floor; None if the most don't.

        From `first` (the answer of another seed) it looks one by one, else by doubling, then between.
        """

        def near(k: int) -> bool:
            return bool(self.ends(program, steps_at(k), seed)["above"] <= self.near)

        k, stride = first, 1 if first else FINENESS
        while not near(k):
            k += stride
            if k > MOST:
                return None
        if first:
            while k > 0 and near(k - 1):
                k -= 1
            return k
        low = k - stride if k else -1  # not near there
        while k - low > 1:
            middle = (low + k) // 2
            low, k = (low, middle) if near(middle) else (middle, k)
        return max(k, 0)

    def seconds(self, some: dict[str, Program]) -> dict[str, list[float]]:
        """Seconds of a step of each program, round by round, measured in turn."""
        if self.options.toy:
            return {name: [1.0] for name in some}

        def measure() -> dict[str, Any]:
            fitted = {name: self.fitted(program) for name, program in some.items()}
            return dict(seconds_per_step(fitted, self.options.rounds, None))

        asked = {name: self.fitted(program).told() for name, program in some.items()}
        return self.parts.once({"story speeds": asked}, measure)


def steps_at(k: int) -> int:
    """The k-th number of steps that is tried.

    >>> [steps_at(k) for k in (0, 1, 2, 3, 4, 8)]
    [100, 119, 141, 168, 200, 400]
    """
    return round(FEWEST * 2 ** (k / FINENESS))


def stories(options: Options, parts: Parts) -> Row:
    """P5: seconds until the loss is near the stories' floor; where a plain loop is after twice that."""
    learning = Stories(options, parts)
    speeds = learning.seconds({name: PROGRAMS[name] for name in (LOUPE, PLAIN)})
    a_step = {LOUPE: Spread.of(speeds[LOUPE]).median, PLAIN: Spread.of(speeds[PLAIN]).median}
    a_step[TUNED] = a_step[PLAIN]  # the same program
    runs: list[dict[str, Any]] = []

    def told(name: str, steps: int, seed: int) -> dict[str, Any]:
        found = {"name": name, "seed": seed, "steps": steps, "seconds": steps * a_step[name]}
        runs.append({**found, **learning.ends(PROGRAMS[name], steps, seed), **PROGRAMS[name].told()})
        return runs[-1]

    k, ours, above = (
        0 if options.toy else BEGIN,
        list[float](),
        {name: list[float]() for name in (PLAIN, TUNED)},
    )
    for seed in options.seeds:
        found = learning.least_steps(PROGRAMS[LOUPE], seed, k)
        if found is None:
            raise ValueError(f"{LOUPE} does not come within {learning.near} nats in {steps_at(MOST)} steps.")
        k = found
        ours.append(told(LOUPE, steps_at(k), seed)["seconds"])
        for name, those in above.items():
            steps = round(TIMES * ours[-1] / a_step[name])
            those.append(told(name, steps, seed)["above"])
    goals = [
        Goal(f"nats above the floor after {TIMES} x that time, {name}", Spread.of(those), NEAR)
        for name, those in above.items()
    ]
    notes = (
        f"Floor {learning.floor:.4f} nats a token; by the steps needed, times the measured time of a step. "
        f"A loop that is not near the floor after {TIMES} x Loupe's time needs more than that."
    )
    more = {"runs": runs, "seconds_per_step": speeds, "floor": learning.floor}
    what = "Time to within 0.05 nats a token of the stories' floor"
    return Row("P5", what, "s", {LOUPE: Spread.of(ours)}, goals, notes, more)
