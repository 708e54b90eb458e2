"""Trainings that take a moment: a small model, ids with something to learn, processes that are threads."""

import threading
from dataclasses import dataclass, field

import torch

from engine.config import ModelConfig, TrainConfig
from engine.model import Transformer
from engine.parallel import Processes
from engine.training import EvalEvent, StepEvent


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def some_ids(n=2000, vocab=20, seed=3):
    """Ids with something to learn: each is the one before plus 1, or now and then a random one."""
    jumps = torch.rand(n, generator=seeded(seed)) < 0.2
    steps = torch.where(jumps, torch.randint(vocab, (n,), generator=seeded(seed + 1)), 1)
    return steps.cumsum(0) % vocab


def tiny(vocab=20, **changes):
    settings = {"context_length": 16, "n_layer": 2, "n_head": 2, "d_model": 16, **changes}
    return Transformer(ModelConfig(vocab_size=vocab, **settings), seeded(1))


def settings(**changes):
    return TrainConfig(
        **{"steps": 20, "batch_size": 4, "eval_every": 10, "eval_rows": 4, "warmup_steps": 5, **changes}
    )


def steps_of(events):
    return [e for e in events if isinstance(e, StepEvent)]


def evals_of(events):
    return [e for e in events if isinstance(e, EvalEvent)]


def same_weights(*models):
    first, *others = (list(model.parameters()) for model in models)
    return all(torch.equal(a, b) for other in others for a, b in zip(first, other, strict=True))


class Table:
    """Where the threads of `together` meet. `log`: what each put down, in order, by rank."""

    def __init__(self, n):
        self.barrier, self.down, self.log = (
            threading.Barrier(n, timeout=60),
            [None] * n,
            [[] for _ in range(n)],
        )

    def meet(self, rank, tensor, how):
        self.down[rank] = tensor.clone()
        self.log[rank].append(self.down[rank])
        self.barrier.wait()
        both = torch.stack(self.down)
        result = both.sum(0, dtype=tensor.dtype) if how == "SUM" else both.max(0).values
        self.barrier.wait()
        tensor.copy_(result)


@dataclass(frozen=True)
class Threads(Processes):
    """The same as `Processes`, but they are threads of this process."""

    table: Table = field(default_factory=lambda: Table(1))

    def _reduce(self, tensor, how):
        self.table.meet(self.rank, tensor, how)


def together(n, work):
    """What `work(processes)` gives in each of n threads, and the table at which they met."""
    table, results = Table(n), [None] * n

    def run(rank):
        try:
            results[rank] = work(Threads(rank, n, table))
        except ValueError as error:  # a refusal, a divergence: all meet it at once; else they wait a minute
            results[rank] = error
        except Exception as error:
            results[rank] = error
            table.barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results, table
