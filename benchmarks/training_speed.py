"""Tokens a second in training, at nanoGPT's CPU config: alone (P1) and beside a busy neighbour (P2).

Each program trains in a process of its own, with the settings that suit it, and waits while another one has
its turn. A turn is some steps; a round is a turn of each. Before that each is tried with one and with two
threads, alone on the machine; it goes on with the number that was faster.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.peers import (
    NANOGPT_CPU,
    PlainGPT,
    Recipe,
    nanogpt_training,
    plain_training,
    transformers_training,
)
from benchmarks.rows import Goal, Measure, Options, Row, Spread
from engine.batches import clm_batch
from engine.config import MOST_STEPS, ModelConfig, TrainConfig
from engine.memory import keep_freed
from engine.model import Transformer
from engine.precision import has_units
from engine.tokenizers import char_tokenizer
from engine.training import Training

ROOT = Path(__file__).parent.parent
STEPS = 30  # in a turn: one or two seconds
SETTLE = 6  # steps before the first turn
NEIGHBOUR = "while True: pass"


@dataclass(frozen=True)
class Program:
    """Who trains, and how.

    Attributes:
        who: "Loupe", "nanoGPT", "transformers" or "plain PyTorch".
        threads: of PyTorch's own, for Loupe of Python's.
        options: where the peers and the text are.
        rounded: whether matrix products are in bfloat16; peers then stand in `torch.autocast`.
        shape: of the model.
    """

    who: str
    threads: int
    options: Options
    rounded: bool = False
    shape: ModelConfig = NANOGPT_CPU

    @property
    def name(self) -> str:
        """With the precision, if it isn't float32."""
        return f"{self.who}, bfloat16" if self.rounded else self.who

    def environment(self) -> dict[str, str]:
        """PyTorch as it comes, but for the number of threads; Loupe as its worker starts it."""
        own = {"OMP_NUM_THREADS": str(self.threads)}
        if self.who == "Loupe":
            own = {
                "OMP_NUM_THREADS": "1",
                "OMP_WAIT_POLICY": "PASSIVE",
                "LOUPE_TRAIN_THREADS": str(self.threads),
            }
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "LOUPE_TRAIN"))}
        return {**inherited, **own}

    def stepper(self) -> Callable[[], float]:
        """What takes one step, and gives its loss."""
        ids = text_ids(self.options, self.shape.vocab_size)
        shape = replace(self.shape, vocab_size=int(ids.max()) + 1)
        if self.who == "Loupe":
            torch.set_num_threads(1)
            keep_freed()
            return loupe(shape, ids, rounded=self.rounded)
        torch.set_num_threads(self.threads)
        if self.who == "nanoGPT":
            assert self.options.nanogpt is not None
            step = nanogpt_training(self.options.nanogpt, shape, ids, Recipe()).step
        else:
            make = transformers_training if self.who == "transformers" else plain_training
            step = make(shape, ids, Recipe()).step
        return torch.autocast("cpu", torch.bfloat16)(step) if self.rounded else step


def text_ids(options: Options, vocab_size: int) -> Tensor:
    """The characters of the text, or as many made ones: what they say changes no time."""
    if options.text is None:
        return torch.randint(vocab_size, (200_000,), generator=torch.Generator().manual_seed(0))
    text = options.text.read_text("utf-8")
    return torch.tensor(char_tokenizer(text).encode(text))


def loupe(
    shape: ModelConfig, ids: Tensor, threads: int | None = None, *, rounded: bool = False
) -> Callable[[], float]:
    """The same recipe in Loupe; the events are made as in every run, only looked at less often."""
    recipe, rare = Recipe(), MOST_STEPS
    training = Training(
        Transformer(shape),
        ids,
        [],
        TrainConfig(
            steps=rare,
            batch_size=recipe.batch_size,
            learning_rate=recipe.learning_rate,
            warmup_steps=recipe.warmup_steps,
            weight_decay=recipe.weight_decay,
            eval_every=rare,
            checkpoint_every=rare,
            precision="bfloat16" if rounded else "float32",
        ),
        threads=threads,
    )
    next(training)  # the first evaluation
    return lambda: next(training).loss  # type: ignore[union-attr]


# ---- turns


class Child:
    """A program in a process of its own, which trains when asked."""

    def __init__(self, program: Program) -> None:
        """Start it; ready after `SETTLE` steps."""
        options = {k: str(v) if isinstance(v, Path) else v for k, v in asdict(program.options).items()}
        self._name = program.name
        told = {**asdict(program), "options": options}
        del told["shape"]  # the same for all
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.training_speed", json.dumps(told)],
            cwd=ROOT,
            env=program.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, n_steps: int) -> float:
        """How long so many steps take."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{n_steps}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self._name} ended before its turn; what it said stands above.")
        return float(answer)

    def end(self) -> None:
        """It leaves at the end of its input."""
        self._process.communicate()


def serve(told: str) -> None:
    """What the child does: steps on demand, their seconds as the answer."""
    given = json.loads(told)
    options = given["options"]
    for name in ("nanogpt", "text", "models"):
        options[name] = None if options[name] is None else Path(options[name])
    step = Program(**{**given, "options": Options(**options)}).stepper()
    for _ in range(SETTLE):
        step()
    for line in sys.stdin:
        began = time.perf_counter()
        for _ in range(int(line)):
            step()
        print(time.perf_counter() - began, flush=True)


@contextlib.contextmanager
def neighbour(there: bool = True) -> Iterator[None]:
    """A process that keeps one core busy meanwhile."""
    if not there:
        yield
        return
    process = subprocess.Popen([sys.executable, "-S", "-c", NEIGHBOUR])
    time.sleep(0.3)  # until the system has found it a core
    try:
        yield
    finally:
        process.kill()
        process.wait()


Speeds = dict[tuple[str, int, bool], list[float]]  # tokens/s of each round, by who, threads, neighbour


def measured(programs: list[tuple[Program, bool]], rounds: int, steps: int = STEPS) -> Speeds:
    """Tokens a second of each program, with a busy neighbour or without, in each round."""
    tokens = Recipe().batch_size * NANOGPT_CPU.context_length
    children = {(p.name, p.threads): Child(p) for p in {(p.name, p.threads): p for p, _ in programs}.values()}
    speeds: Speeds = {(p.name, p.threads, busy): [] for p, busy in programs}
    try:
        for child in children.values():
            child.seconds(1)  # all are ready before the first turn
        for _ in range(rounds):
            for program, busy in programs:
                with neighbour(busy):
                    seconds = children[program.name, program.threads].seconds(steps)
                speeds[program.name, program.threads, busy].append(steps * tokens / seconds)
    finally:
        for child in children.values():
            child.end()
    return speeds


def faster(who: str, options: Options, rounded: bool = False) -> tuple[Program, dict[str, float]]:
    """A program with the number of threads that suits it, and the milliseconds of a step with each number."""
    tried: dict[int, float] = {}
    for threads in (1, 2):
        child = Child(Program(who, threads, options, rounded))
        try:
            tried[threads] = min(child.seconds(STEPS) for _ in range(2)) / STEPS
        finally:
            child.end()
    best = Program(who, min(tried, key=lambda threads: tried[threads]), options, rounded)
    return best, {f"{best.name}, threads: {n}, tried": round(1e3 * s, 2) for n, s in tried.items()}


def ratio(mine: list[float], theirs: list[float]) -> Spread:
    """Of each round."""
    return Spread.of([a / b for a, b in zip(mine, theirs, strict=True)])


def largest_difference(shape: ModelConfig) -> float:
    """By how much Loupe's loss and gradients differ from a plain loop's, of one batch, with the same weights.

    Raises:
        RuntimeError: by more than rounding explains.
    """
    generator = torch.Generator().manual_seed(7)
    ids = torch.randint(shape.vocab_size, (2000,), generator=generator)
    mine, plain = Transformer(shape, generator), PlainGPT(shape)
    plain.take(mine.state_dict())
    training = Training(mine, ids, [], TrainConfig(batch_size=12))
    batch = clm_batch(ids, batch_size=12, context_length=shape.context_length, generator=generator)
    loss, norm = training.gradients(batch)
    training.close()
    theirs = F.cross_entropy(plain(batch.inputs).flatten(0, 1), batch.targets.flatten())
    theirs.backward()  # type: ignore[no-untyped-call]
    their_norm = float(
        torch.linalg.vector_norm(
            torch.cat([p.grad.flatten() for p in plain.parameters() if p.grad is not None])
        )
    )
    found = max(abs(loss - float(theirs.detach())), abs(norm - their_norm) / their_norm)
    if found > 1e-4:
        raise RuntimeError(f"Loupe's step differs from a plain one by {found:.2g}: no speed is worth that.")
    return found


def best_of(speeds: dict[str, list[float]], who: str) -> list[float]:
    """Of a program's precisions the one that is faster."""
    return max((found for name, found in speeds.items() if name.split(",")[0] == who), key=median)


def milliseconds(speeds: Speeds) -> dict[str, float]:
    """Of a step, for the file of results."""
    tokens = Recipe().batch_size * NANOGPT_CPU.context_length
    return {
        f"{who}, threads: {threads}{', busy neighbour' if busy else ''}": round(
            1e3 * tokens / median(found), 2
        )
        for (who, threads, busy), found in speeds.items()
    }


# ---- the rows


def alone(options: Options) -> Row:
    """P1: against nanoGPT and transformers."""
    found = largest_difference(NANOGPT_CPU)
    peers = ["plain PyTorch"]
    if not options.toy:  # at toy size without what takes long to import
        peers += ["transformers", *(["nanoGPT"] if options.nanogpt else [])]
    tried: dict[str, float] = {}
    if options.toy:
        programs = [Program("plain PyTorch", 1, options), Program("Loupe", 2, options)]
    else:
        programs = []
        ways = (False, True) if has_units(torch.device("cpu")) else (False,)
        for who, rounded in product(("Loupe", *reversed(peers)), ways):
            program, told = faster(who, options, rounded)
            programs.append(program)
            tried |= told
    rounds, steps = (1, 2) if options.toy else (options.rounds, STEPS)
    speeds = measured([(program, False) for program in programs], rounds, steps)
    of = {program.name: speeds[program.name, program.threads, False] for program in programs}
    mine, exact = best_of(of, "Loupe"), of["Loupe"]
    goals = [
        Goal(f"x {who}", ratio(mine, best_of(of, who)), goal)
        for who, goal in (("nanoGPT", 1.2), ("transformers", 1.9))
        if who in peers
    ]
    figures = {f"{p.name}, {p.threads} thread{'s'[: p.threads > 1]}": Spread.of(of[p.name]) for p in programs}
    notes = "" if options.nanogpt else "nanoGPT was left out: no checkout was given."
    if mine is not exact:
        said = [f"{ratio(exact, of[who]).median:.2f} x {who}" for who in peers]
        notes += f" Each program in bfloat16 or float32, whichever is faster. In float32: {', '.join(said)}."
    return Row(
        "P1",
        "training, 0.8 M parameters, context 64, batch 12",
        "tokens/s",
        figures,
        goals,
        notes.strip(),
        {"milliseconds": {**tried, **milliseconds(speeds)}, "difference": found},
    )


def beside_a_neighbour(options: Options) -> Row:
    """P2: another process keeps one core busy."""
    found = largest_difference(NANOGPT_CPU)
    two, one = Program("Loupe", 2, options), Program("Loupe", 1, options)
    plain = Program("plain PyTorch", 2, options)
    programs = [(two, True), (plain, True), (one, False)]
    if not options.toy:
        programs += [(two, False), (plain, False), (one, True)]
    rounds, steps = (1, 2) if options.toy else (options.rounds, STEPS)
    speeds = measured(programs, rounds, steps)
    mine, theirs, quiet = (speeds[p.name, p.threads, busy] for p, busy in programs[:3])
    return Row(
        "P2",
        "the same with one core kept busy by somebody else",
        "tokens/s",
        {
            "Loupe": Spread.of(mine),
            "plain PyTorch, 2 threads": Spread.of(theirs),
            "Loupe, 1 thread, no neighbour": Spread.of(quiet),
        },
        [
            Goal("x plain PyTorch with 2 threads", ratio(mine, theirs), 1.8),
            Goal("x one thread without a neighbour", ratio(mine, quiet), 0.9),
        ],
        more={"milliseconds": milliseconds(speeds), "difference": found},
    )


MEASURES: dict[str, Measure] = {"P1": alone, "P2": beside_a_neighbour}


if __name__ == "__main__":
    serve(sys.argv[1])
