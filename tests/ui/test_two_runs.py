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


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undone at the end."""
    for name in ("_keys", "filtered_state"):
        monkeypatch.setattr(SessionState, name, SessionState.__dict__[name])
    two_runs.guard()


def test_without_it_the_other_run_would_end_in_an_error() -> None:
    with pytest.raises(RuntimeError, match="changed size"):
        two_runs._keys(session(3))


@pytest.mark.usefixtures("guarded")
def test_keys_are_listed_again() -> None:
    assert "a" in session(3)._keys()
    with pytest.raises(RuntimeError, match="changed size"):
        session(100 * two_runs.TRIES)._keys()


@pytest.mark.usefixtures("guarded")
def test_a_key_that_the_other_run_takes_away_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    state = SessionState()
    state._new_session_state.update(gone=1, stays=2)
    read = SessionState.__getitem__

    def taken(self: SessionState, key: str) -> object:
        self._new_session_state.pop("gone", None)  # the other run, after the keys were listed
        return read(self, key)

    monkeypatch.setattr(SessionState, "__getitem__", taken)
    assert state.filtered_state == {"stays": 2}


def test_the_frame_has_patience_before_anything_else() -> None:
    from pathlib import Path

    told = (Path(__file__).parents[2] / "app.py").read_text("utf-8")
    assert told.index("two_runs.guard()") < told.index("sidebar.draw(")
