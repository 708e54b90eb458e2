"""One process computes the parts of a batch side by side: a thread for each core.

The rows of a batch are cut into parts. Each gives gradients of its own; these are added in the order of the
parts. So the weights after a step do not depend on how many threads computed it, only on how the batch was
cut, and that follows from the batch and the model alone: the same run gives the same numbers on every machine
of a kind, whatever else runs there.

This is `engine.parallel` inside one process, without a copy of the weights: a backward pass that *gives* its
gradients, instead of adding them to those that hang on the weights, can run twice at once. Two threads with
half of the rows each are faster than one pass whose every operation is shared between two threads: they meet
once in a step and not after each of some 300 operations. A busy neighbour then slows one thread for a while;
it does not hold up each operation.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TypeVar

import torch

from wording import words

say = words("engine.parts")

# A pass over a part costs a few hundred calls, however small it is. Splitting costs less than 3 % of a step
# where each part has so much to do: weights that learn, times tokens.
LEAST_WORK = 150e6
MOST_PARTS = 2

Result = TypeVar("Result")


def n_parts(n_rows: int, n_tokens: int, n_weights: int) -> int:
    """Into how many parts a batch is cut on a processor.

    Args:
        n_rows: of the batch; a part has at least one.
        n_tokens: in all rows.
        n_weights: that learn.

    >>> n_parts(12, 12 * 64, 800_000), n_parts(16, 16 * 64, 100_000)
    (2, 1)
    """
    return max(1, min(MOST_PARTS, n_rows, int(n_tokens * n_weights / LEAST_WORK)))


def slices(n: int, parts: int) -> list[slice]:
    """All of n things in so many parts, which differ by at most one thing.

    >>> slices(8, 3)
    [slice(0, 2, None), slice(2, 5, None), slice(5, 8, None)]
    """
    return [slice(n * k // parts, n * (k + 1) // parts) for k in range(parts)]


def wanted_threads() -> int:
    """How many threads train: $LOUPE_TRAIN_THREADS, or one for each core, but not more than there are parts.

    Raises:
        ValueError: if the variable is no whole number above 0.
    """
    given = os.environ.get("LOUPE_TRAIN_THREADS", "")
    if not given:
        return min(MOST_PARTS, cores())
    if not given.isdecimal() or int(given) < 1:
        raise ValueError(say("threads_must_be_whole", given=given))
    return int(given)


def cores() -> int:
    """How many this process may use: of those that torchrun started on this machine, each has its share."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, found // int(os.environ.get("LOCAL_WORLD_SIZE") or 1))


class Threads:
    """Threads that do several things at once; the first of them is the one that asks.

    None is started before it is needed. `close` ends them; so does forgetting this object.
    """

    def __init__(self, n: int | None = None) -> None:
        """So many, the caller's own counted; None is `wanted_threads`."""
        self.n = wanted_threads() if n is None else n
        self._others: ThreadPoolExecutor | None = None

    def each(self, work: Callable[[int], Result], n: int) -> list[Result]:
        """What `work(0)`, `work(1)` … `work(n - 1)` give, in this order.

        A caller for whom torch itself uses several threads does it all alone: both ways at once would only
        be in each other's way.

        Raises:
            Exception: what the first of them raised, after all have ended.
        """
        n_others = min(self.n, n) - 1
        if n_others < 1 or torch.get_num_threads() > 1:
            return [work(k) for k in range(n)]
        if self._others is None:
            self._others = ThreadPoolExecutor(
                self.n - 1, "training", initializer=torch.set_num_threads, initargs=(1,)
            )

        def some(first: int) -> list[Result]:
            return [work(k) for k in range(first, n, n_others + 1)]

        asked = [self._others.submit(copy_context().run, some, k + 1) for k in range(n_others)]
        try:
            mine = some(0)
        finally:
            wait(asked)
        found: Sequence[list[Result]] = [mine, *(one.result() for one in asked)]
        return [found[k % len(found)][k // len(found)] for k in range(n)]

    def close(self) -> None:
        """End the other threads; a later `each` starts new ones."""
        if self._others is not None:
            self._others.shutdown()
            self._others = None
