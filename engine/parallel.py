"""Several processes train one model together: data parallelism.

Each process holds the whole model and draws the whole batch from the same seed, but computes the gradients
of its own rows only. One sum over all processes ("all-reduce") then gives each of them the gradients of the
whole batch. All take the same step from there, so their weights stay equal without ever being sent. This is
the idea of PyTorch's DistributedDataParallel (Li et al. 2020, arXiv:2006.15704, §3), with two things made
plain:

- The loss is a mean over the scored targets of the whole batch, and masked rows hide unequal numbers of
  tokens. A mean of the processes' means would weigh such rows wrongly. So each process divides its sum by
  the number of targets in the whole batch, which it knows, because it drew all of it.
- All gradients lie in one row of numbers (`optimizers.FlatGradients`), so a step needs a single sum. For
  large models DDP cuts that row into buckets and sends each as soon as it is ready, behind the computation.

`torchrun --nproc-per-node=N` starts N such processes and tells each its number in the environment.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor

from wording import words

say = words("engine.parallel")

# Process 0 alone writes checkpoints and samples, and counts the floor of the stories; the others wait.
PATIENCE = timedelta(minutes=10)

GO_ON, ASKED, LEAVE = 0, 1, 2  # what a process says before the next event; the largest counts

Item = TypeVar("Item")


class LostProcessError(RuntimeError):
    """Another process of the run ended, or did not answer in time."""


@dataclass(frozen=True)
class Processes:
    """The processes that train together, as one of them sees them.

    Attributes:
        rank: the number of this one; 0 speaks for all.
        n: how many there are.
    """

    rank: int = 0
    n: int = 1

    def share(self, n_rows: int) -> slice:
        """The rows of a batch that are this process's own; the shares differ by at most one row.

        >>> [Processes(rank, 3).share(8) for rank in range(3)]
        [slice(0, 2, None), slice(2, 5, None), slice(5, 8, None)]
        """
        return slice(n_rows * self.rank // self.n, n_rows * (self.rank + 1) // self.n)

    def sum(self, tensor: Tensor) -> None:
        """Put the sum over all processes into the tensor of each: the all-reduce."""
        if self.n > 1:
            self._reduce(tensor, "SUM")

    def total(self, value: float) -> float:
        """Sum of one number of each process, in float64."""
        row = torch.tensor([value], dtype=torch.float64)
        self.sum(row)
        return float(row)

    def most(self, value: int) -> int:
        """The largest number that any process gave: how one of them stops all at the same step."""
        row = torch.tensor([value])
        if self.n > 1:
            self._reduce(row, "MAX")
        return int(row)

    def agree(self, value: int) -> bool:
        """Whether all processes gave the same number."""
        return self.most(value) == -self.most(-value)

    def tell(self, text: str = "") -> str:
        """What process 0 says, in all of them."""
        if self.n == 1:
            return text
        data = torch.tensor(list(text.encode() if self.rank == 0 else b""), dtype=torch.uint8)
        length = self.most(len(data))
        row = torch.zeros(length, dtype=torch.uint8)
        row[: len(data)] = data
        self.sum(row)  # of zeros but for one
        return bytes(row.tolist()).decode()

    def _reduce(self, tensor: Tensor, how: str) -> None:
        import torch.distributed as dist

        try:
            dist.all_reduce(tensor, op=getattr(dist.ReduceOp, how))
        except RuntimeError as error:
            raise LostProcessError(say("another_processes_run_ended", n=self.n, rank=self.rank)) from error


ALONE = Processes()


class InStep(Iterator[Item]):
    """Events that several processes make together: none makes the next one before all have agreed to.

    So a wish to stop that any of them hears reaches process 0 with the next event, and when process 0 leaves,
    whatever the reason, all leave at the same step.
    """

    def __init__(
        self, events: Iterator[Item], processes: Processes, heard: Callable[[], None] = lambda: None
    ) -> None:
        """Nothing is asked of the others yet. `heard` is called when a process was asked to stop."""
        self._events, self._processes, self._heard = events, processes, heard
        self._asked, self._over = False, False

    def ask(self, *_: object) -> None:
        """Tell process 0, before the next event, that this process was asked to stop."""
        self._asked = True

    def __next__(self) -> Item:
        """The next event, after a word with the others."""
        try:
            word = self._processes.most(ASKED if self._asked else GO_ON)
            if word == LEAVE:
                raise StopIteration
            if word == ASKED:
                self._heard()
            return next(self._events)
        except BaseException:  # the end, or a divergence: it comes to all of them; or one is lost
            self._over = True
            raise

    def leave(self) -> None:
        """For process 0: end it for all, unless it has ended."""
        if not self._over:
            self._over = True
            self._processes.most(LEAVE)


def join(patience: timedelta = PATIENCE) -> Processes:
    """Meet the other processes that torchrun started; without torchrun, `ALONE`.

    Args:
        patience: how long to wait for a process that does not answer, here and later.

    Raises:
        LostProcessError: if the others don't come.
        ValueError: if this torch can't talk to other processes.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return ALONE
    import torch.distributed as dist

    if not dist.is_available():
        raise ValueError(say("torch_built_without_torch"))
    nccl = torch.cuda.is_available() and dist.is_nccl_available()
    backend = "cpu:gloo,cuda:nccl" if nccl else "gloo"
    try:
        dist.init_process_group(backend, timeout=patience)
    except RuntimeError as error:
        raise LostProcessError(say("processes_run_did_not", error=error)) from error
    return Processes(dist.get_rank(), dist.get_world_size())


def leave() -> None:
    """Part from the others, if there are any."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def own_gpu() -> torch.device:
    """The GPU of this process: the first, second … of its machine.

    Raises:
        ValueError: if its machine has fewer GPUs than processes.
    """
    place, n_gpus = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if place >= n_gpus:
        raise ValueError(say("machine_has_gpu_process", n=n_gpus, place=place + 1))
    torch.cuda.set_device(place)
    return torch.device("cuda", place)
