"""What a part of a page needs again in its next run, without keeping it in memory until then."""

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Again(Generic[T]):
    """Something large that others keep for all people, or that is made again.

    A part of a page lives on after its run, and with it all that it was given: one pass over a text by a
    large model takes 200 MB, and thirty people would each hold one, whatever the caches let go.
    """

    def __init__(self, thing: T, make: Callable[[], T]) -> None:
        """Args: the thing itself, and what makes the same one; `make` must not hold it."""
        self._thing, self._make = weakref.ref(thing), make

    def get(self) -> T:
        """The thing; made again if nobody has kept it."""
        found = self._thing()
        if found is None:
            found = self._make()
            self._thing = weakref.ref(found)
        return found
