"""A shelf with room for a few large things, shared by all: what was not used for longest makes room."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

from engine.memory import memory
from wording import words

say = words("engine.shelf")

T = TypeVar("T")
_MOST_USERS = 1000  # remembered for each
RESERVE = 250_000_000  # bytes that stay free for looking inside: one `Trace` and what it is computed with


def free_memory() -> int | None:
    """Bytes that can be filled; None if the machine doesn't tell."""
    return memory().bound


class NotEnoughMemory(ValueError):
    """What was asked for does not fit; the sentence has the numbers."""


class Shelf(Generic[T]):
    """Things by key, made when they are first asked for, each once, and at most `most` of them at a time.

    Room is made before a new one is made, so that never more than `most` are in memory; whoever still works
    with one that had to go ends with it. One that could not be made is tried anew when it is asked for again.

    Args:
        most: how many are held.
        free: gives the bytes of memory that are free, None if unknown.
        most_bytes: that they may need together; one that needs more is held alone. None: any number.
    """

    def __init__(
        self,
        most: int,
        free: Callable[[], int | None] = free_memory,
        *,
        most_bytes: int | None = None,
    ) -> None:
        self.most = max(most, 1)
        self.most_bytes = most_bytes
        self._free = free
        self._items: OrderedDict[Hashable, T] = OrderedDict()
        self._needs: dict[Hashable, int] = {}
        self._used: dict[Hashable, dict[str, float]] = {}
        self._lock = threading.Lock()  # of the tables, held for a moment
        self._making = threading.Lock()  # of making: two at once could be one too many

    def get(
        self, key: Hashable, make: Callable[[], T], *, name: str = "", need: int = 0, user: str = ""
    ) -> T:
        """What stands under a key; made if it is not there.

        Args:
            key: which one.
            make: makes it.
            name: how a sentence calls it.
            need: bytes that it takes.
            user: who asks, for `users`.

        Raises:
            NotEnoughMemory: if it would not fit, even with nothing else on the shelf.
        """
        held = self._held(key, user)
        if held is not None:
            return held
        with self._making:
            held = self._held(key, user)  # somebody else made it meanwhile
            if held is not None:
                return held
            self._make_room(need, name)
            made = make()
            with self._lock:
                self._items[key] = made
                self._needs[key] = need
                self._note(key, user)
            return made

    def _held(self, key: Hashable, user: str) -> T | None:
        with self._lock:
            if key not in self._items:
                return None
            self._items.move_to_end(key)
            self._note(key, user)
            return self._items[key]

    def _note(self, key: Hashable, user: str) -> None:
        if user:
            users = self._used.setdefault(key, {})
            users.pop(user, None)  # the last one of a dictionary is the newest
            users[user] = time.monotonic()
            while len(users) > _MOST_USERS:
                users.pop(next(iter(users)))

    def _make_room(self, need: int, name: str) -> None:
        """Let go of the oldest until a new one fits; of none if it would not fit even then."""
        free = self._free() if need else None
        with self._lock:
            if free is not None and free + sum(self._needs.values()) < need + RESERVE:
                raise NotEnoughMemory(say("too_large", name=name, **_megabytes(need, free)))
            while len(self._items) >= self.most or (self._items and self._too_heavy(need)):
                self._take_oldest()
        while need and (free := self._free()) is not None and free < need + RESERVE:
            with self._lock:
                if not self._items:
                    raise NotEnoughMemory(say("too_large", name=name, **_megabytes(need, free)))
                self._take_oldest()

    def _too_heavy(self, need: int) -> bool:
        return self.most_bytes is not None and sum(self._needs.values()) + need > self.most_bytes

    def _take_oldest(self) -> None:
        key, _ = self._items.popitem(last=False)
        self._used.pop(key, None)
        self._needs.pop(key, None)

    def drop(self, key: Hashable) -> bool:
        """Let go of one; whether it was there."""
        with self._lock:
            self._used.pop(key, None)
            self._needs.pop(key, None)
            return self._items.pop(key, None) is not None

    def peek(self, key: Hashable) -> T | None:
        """One that is there, without counting as use."""
        with self._lock:
            return self._items.get(key)

    def held(self) -> Mapping[Hashable, T]:
        """All that are there now, the least recently used one first."""
        with self._lock:
            return dict(self._items)

    def users(self, key: Hashable, within: float) -> set[str]:
        """Who asked for one in the last so many seconds."""
        since = time.monotonic() - within
        with self._lock:
            return {user for user, at in self._used.get(key, {}).items() if at >= since}


def _megabytes(need: int, free: int) -> dict[str, float]:
    return {"need": need / 1e6, "reserve": RESERVE / 1e6, "free": free / 1e6}
