"""A session whose keys change while they are listed: they are listed again."""

import pytest
from streamlit.runtime.state.session_state import SessionState

from ui import two_runs


class Restless(dict[str, object]):
    """Keys that change under whoever lists them, so often."""

    def __init__(self, times: int) -> None:
        super().__init__(a=1)
        self.times = times

    def __iter__(self):  # type: ignore[no-untyped-def]
        if self.times:
            self.times -= 1
            self[str(self.times)] = 0  # a real dictionary says the rest
        inner = super().__iter__()
        first = next(inner)
        if self.times:
            self[f"late {self.times}"] = 0
        yield first
        yield from inner


def session(times: int) -> SessionState:
    state = SessionState()
    state._new_session_state = Restless(times)
    return state


def test_keys_are_listed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="changed size"):
        session(3)._keys()
    monkeypatch.setattr(SessionState, "_keys", SessionState._keys)  # undone at the end
    two_runs.guard()
    assert "a" in session(3)._keys()
    with pytest.raises(RuntimeError, match="changed size"):
        session(two_runs.TRIES + 1)._keys()


def test_the_frame_has_patience_before_anything_else() -> None:
    from pathlib import Path

    told = (Path(__file__).parents[2] / "app.py").read_text("utf-8")
    assert told.index("two_runs.guard()") < told.index("sidebar.draw(")
