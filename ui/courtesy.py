"""Long work in one person's page gives way to the clicks of others.

All pages of a server take turns in one process. Somebody who lets a model write would take a full share of it
for seconds, and five of them would leave a sixth to whoever only turns a control. So of all such
work on the server only one piece is done at a time, and it rests as long as it had to wait for its turn:
alone it never waits and never rests; in a crowd it leaves most of the processor to clicks, which are short.
Nobody waits long: one piece may be a large model that reads a long text, which takes it a minute, and whoever
waits can't even be told to stop.
"""

import threading
import time
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")

LEAST, MOST = 0.004, 0.05  # s: a wait that counts, and the longest rest
PATIENCE = 0.5  # s: the longest wait for a turn
FRAME = 0.05  # s between two pictures of something that grows: more are no use to the eye
_TURN = threading.Lock()


def one_at_a_time(steps: Iterator[T]) -> Iterator[T]:
    """The same steps; while one is computed, no other such work is on this server, up to `PATIENCE`."""
    while True:
        mine = _TURN.acquire(timeout=PATIENCE)
        try:
            step = next(steps)
        except StopIteration:
            return
        finally:
            if mine:
                _TURN.release()
        yield step


class Courtesy:
    """Measures how long this thread waited for its turn, and rests as long.

    Args:
        here: whether the work is done by this thread. A wait for a GPU is no wait for other people.
    """

    def __init__(self, *, here: bool = True) -> None:
        self._here = here
        self._note()

    def _note(self) -> None:
        self._clock, self._busy = time.perf_counter(), time.thread_time()

    def give_way(self) -> float:
        """Rest if others were at work since the last time; gives the seconds of the rest."""
        waited = time.perf_counter() - self._clock - (time.thread_time() - self._busy)
        rest = min(waited, MOST) if self._here and waited > LEAST else 0.0
        if rest:
            time.sleep(rest)
        self._note()
        return rest
