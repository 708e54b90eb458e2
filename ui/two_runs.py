"""Two runs of a page in one session: for a moment the interrupted one goes on beside the one that follows.

Each of Streamlit's runs has a lock of its own around the session's state, which they share. If one sets or
takes away a key while the other reads all of them, as every widget does, the other would end in a box with
"dictionary changed size" or a missing key. With `guard` it reads them again. A lock for both could stop them
for good: callbacks run inside of it.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from streamlit.runtime.state.session_state import SessionState

TRIES = 100  # a key is set in a microsecond
Found = TypeVar("Found")
# No public place reads them all; tests hold that these are there.
_keys = SessionState._keys
_filtered: Callable[[SessionState], dict[str, Any]] = SessionState.filtered_state.fget  # type: ignore


def guard() -> None:
    """Have patience in all sessions of this process. The frame does this first."""
    SessionState._keys = _patient(_keys)  # type: ignore
    SessionState.filtered_state = property(_patient(_filtered))  # type: ignore


def _patient(read: Callable[[SessionState], Found]) -> Callable[[SessionState], Found]:
    """The same reading, again where the state changed meanwhile; after many times its error stands."""

    def again(state: SessionState) -> Found:
        for _ in range(TRIES - 1):
            try:
                return read(state)
            except (RuntimeError, KeyError):
                continue
        return read(state)

    return again
