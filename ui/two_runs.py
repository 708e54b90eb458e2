"""Two runs of a page in one session: for a moment the interrupted one goes on beside the one that follows.

Each of Streamlit's runs has a lock of its own around the session's state, which they share. If one sets a key
while the other lists all keys, the other would end in a box that says "dictionary changed size". With `guard`
it lists them again. A lock for both could stop them for good: callbacks run inside of it.
"""

from streamlit.runtime.state.session_state import SessionState

TRIES = 100  # a key is set in a microsecond
_keys = SessionState._keys  # no public place lists them; tests hold that this one is there


def guard() -> None:
    """Have patience in all sessions of this process. The frame does this first."""
    SessionState._keys = _patient  # type: ignore[method-assign, assignment]


def _patient(state: SessionState) -> set[str]:
    """All keys of a session.

    Raises:
        RuntimeError: if they change without end.
    """
    for _ in range(TRIES - 1):
        try:
            return _keys(state)
        except RuntimeError:
            continue
    return _keys(state)
