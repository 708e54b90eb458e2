"""Trainings that are measured by steps instead of by the clock: so they may be interrupted and go on later.

How many steps fit into a budget of seconds is measured once, in turn with one program that all are compared
with, on a machine that does nothing else. The trainings themselves then take as long as they take: what they
end with depends on steps and seed alone. Every finished part is a line of a file, and is never done twice.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.peers import Peer, Recipe, nanogpt_training, plain_training, whole_loss
from engine.config import ModelConfig, TrainConfig
from engine.memory import keep_freed
from engine.model import Transformer
from engine.training import StepEvent, train

WARM_STEPS, TIMED_STEPS = 5, 12  # of one program in one round


class LoupePeer:
    """Loupe's own training, asked for one step at a time like the peers."""

    def __init__(
        self, shape: ModelConfig, ids: Tensor, config: TrainConfig, line_ends: Sequence[int]
    ) -> None:
        model = Transformer(shape, torch.Generator().manual_seed(config.seed))
        self.model: nn.Module = model
        self.n_parameters, self._context_length = model.n_parameters(), shape.context_length
        self._events = train(model, ids, [], config, line_end_ids=line_ends)

    def step(self) -> float:
        """Train on one batch; its loss before the update."""
        return next(event.loss for event in self._events if isinstance(event, StepEvent))

    def validation_loss(self, ids: Tensor) -> float:
        """Mean surprisal over all of a text."""
        return whole_loss(self.model, ids, self._context_length)


@dataclass(frozen=True)
class Program:
    """Who trains which model how; steps and seed come later.

    Attributes:
        who: "Loupe", "nanoGPT" or "plain".
    """

    who: str
    shape: ModelConfig
    recipe: Recipe | TrainConfig

    def told(self) -> dict[str, Any]:
        """All of it as JSON, but for steps and seed."""
        recipe = self.recipe.to_json() if isinstance(self.recipe, TrainConfig) else asdict(self.recipe)
        beside = ("steps", "seed", "eval_every", "eval_rows", "checkpoint_every", "moments")
        kept = {name: value for name, value in recipe.items() if name not in beside}
        shape: dict[str, Any] = json.loads(json.dumps(self.shape.to_json()))
        return {"who": self.who, "shape": shape, "recipe": json.loads(json.dumps(kept))}

    @property
    def threads(self) -> tuple[int, ...]:
        """How many threads each operation may have: Loupe shares out the rows of a batch instead."""
        return (1,) if self.who == "Loupe" else (1, 2)

    def begin(
        self, ids: Tensor, steps: int, seed: int, nanogpt: Path | None, line_ends: Sequence[int] = ()
    ) -> Peer:
        """A training that is ready for its first step.

        Raises:
            ValueError: if a checkout of nanoGPT is needed and there is none.
        """
        if isinstance(self.recipe, TrainConfig):
            config = replace(self.recipe, steps=steps, seed=seed, eval_every=steps, checkpoint_every=steps)
            return LoupePeer(self.shape, ids, config, line_ends)
        recipe = replace(self.recipe, steps=steps, seed=seed)
        if self.who == "plain":
            return plain_training(self.shape, ids, recipe)
        if nanogpt is None:
            raise ValueError("This needs a checkout of nanoGPT: --nanogpt FOLDER.")
        return nanogpt_training(nanogpt, self.shape, ids, recipe)


class Parts:
    """What is finished: one JSON line each, so that several processes may add to it.

    Args:
        path: the file; None keeps nothing beyond this process.
    """

    def __init__(self, path: Path | None) -> None:
        self._path, self._kept = path, dict[str, dict[str, Any]]()

    def find(self, part: dict[str, Any]) -> dict[str, Any] | None:
        """What came out of a part, if it is finished."""
        if self._path is not None and self._path.exists():
            for line in self._path.read_text("utf-8").splitlines():
                saved = json.loads(line)
                self._kept[_name(saved["part"])] = saved["found"]
        return self._kept.get(_name(part))

    def once(self, part: dict[str, Any], measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What came out of a part; it is measured now if it is not finished."""
        found = self.find(part)
        if found is None:
            found = measure()
            self._kept[_name(part)] = found
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with open(self._path, "a", encoding="utf-8") as file:
                    file.write(json.dumps({"part": part, "found": found}) + "\n")
        return found


def _name(part: dict[str, Any]) -> str:
    return json.dumps(part, sort_keys=True)


def after(peer: Peer, steps: int, threads: Sequence[int] = (1,)) -> float:
    """Train for so many steps, in as many threads as this process has, or fewer; the processor's seconds."""
    began = time.process_time()
    with operations_in(min(torch.get_num_threads(), max(threads))):
        for _ in range(steps):
            peer.step()
    return time.process_time() - began


class Waiting:
    """A program in a process of its own, with the threads that suit it; it trains when asked, else it waits.

    What it reads is made up: that changes no time.
    """

    def __init__(self, program: Program, threads: int, nanogpt: Path | None) -> None:
        """Start it. Loupe gets what its worker sets, the peers PyTorch as it comes."""
        own = {"OMP_NUM_THREADS": str(threads)}
        if program.who == "Loupe":
            own["OMP_WAIT_POLICY"] = "PASSIVE"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "LOUPE_TRAIN"))}
        told = {**program.told(), "nanogpt": None if nanogpt is None else str(nanogpt)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.learning_runs", json.dumps(told)],
            cwd=Path(__file__).parent.parent,
            env={**kept, **own},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, steps: int) -> float:
        """Seconds of one of so many steps, which it takes now."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline()) / steps

    def end(self) -> None:
        """It leaves at the end of its input."""
        self._process.communicate()


def seconds_per_step(
    programs: Mapping[str, Program], rounds: int, nanogpt: Path | None, steps: int = TIMED_STEPS
) -> dict[str, list[float]]:
    """Seconds of a step of each program, in turn: in each round those of its best number of threads."""
    waiting = {
        name: [Waiting(program, n, nanogpt) for n in program.threads] for name, program in programs.items()
    }
    try:
        for some in waiting.values():
            for one in some:
                one.seconds(WARM_STEPS)
        times: dict[str, list[float]] = {name: [] for name in programs}
        for _ in range(rounds):
            for name, some in waiting.items():
                times[name].append(min(one.seconds(steps) for one in some))
        return times
    finally:
        for some in waiting.values():
            for one in some:
                one.end()


def serve(told: dict[str, Any]) -> None:
    """What the process of a `Waiting` does: steps on demand, their seconds as the answer."""
    shape, ours = ModelConfig.from_json(told["shape"]), told["who"] == "Loupe"
    recipe = TrainConfig.from_json(told["recipe"]) if ours else Recipe(**told["recipe"])
    if ours:
        torch.set_num_threads(1)
        keep_freed()
    nanogpt = Path(told["nanogpt"]) if told["nanogpt"] else None
    ids = torch.randint(shape.vocab_size, (200_000,), generator=torch.Generator().manual_seed(0))
    peer = Program(told["who"], shape, recipe).begin(ids, 10**6, 1, nanogpt)
    for line in sys.stdin:
        began = time.perf_counter()
        for _ in range(int(line)):
            peer.step()
        print(time.perf_counter() - began, flush=True)


class operations_in:  # noqa: N801 (reads as what it does)
    """Inside, each operation of torch has so many threads."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __enter__(self) -> None:
        self._before = torch.get_num_threads()
        torch.set_num_threads(self._n)

    def __exit__(self, *_: object) -> None:
        torch.set_num_threads(self._before)


def halves(ids: Tensor) -> Iterator[tuple[str, Tensor]]:
    """The parts of a validation text: recipes are chosen on the first, the second is for reports alone."""
    middle = len(ids) // 2
    yield from (("first", ids[:middle]), ("second", ids[middle:]), ("whole", ids))


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
