"""What was seen of an exercise stays seen, for each person apart, and goes with their progress."""

from pathlib import Path

import pytest

from engine import exercise_store
from engine.exercise_store import Seen, SeenStore
from engine.progress import ProgressStore


def test_what_was_seen_stays_seen(tmp_path: Path) -> None:
    store = SeenStore(tmp_path)
    assert store.seen("me", "x", 3) == Seen() and store.turn("me", "x", 3) is None
    store.keep("me", "x", 3, Seen(hints=2))
    store.keep("me", "x", 3, Seen(hints=1, spent=True))  # another tab, which knew of one hint
    store.go_to("me", "x", 3, 4)
    again = SeenStore(tmp_path)
    assert again.seen("me", "x", 3) == Seen(2, True, False) and again.turn("me", "x", 3) == 4
    assert again.seen("you", "x", 3) == again.seen("me", "y", 3) == again.seen("me", "x", 4) == Seen()
    store.go_to("me", "x", 3, 0)
    assert SeenStore(tmp_path).turn("me", "x", 3) == 0


def test_it_is_no_progress_and_goes_with_it(tmp_path: Path) -> None:
    store, progress = SeenStore(tmp_path), ProgressStore(tmp_path)
    store.keep("me", "x", 1, Seen(spent=True))
    progress.join("me", "room")
    assert len(progress.everyone("room")) == 1
    assert all("me" not in path.name.split("-")[-1] for path in (tmp_path / "people").glob("*"))
    progress.delete("me")
    assert not list((tmp_path / "people").glob("*.json*")) and store.seen("me", "x", 1) == Seen()


@pytest.mark.parametrize(
    "content", ["{broken", "[]", '{"seen": 3}', '{"seen": {"x:1": [1]}, "turns": {"x:1": "a"}}']
)
def test_a_damaged_file_begins_anew(tmp_path: Path, content: str) -> None:
    store = SeenStore(tmp_path)
    store.keep("me", "x", 1, Seen(hints=1))
    (path,) = (tmp_path / "people").glob(".exercises-*.json")
    path.write_text(content)
    assert SeenStore(tmp_path).seen("me", "x", 1) == Seen() and SeenStore(tmp_path).turn("me", "x", 1) is None
    store.keep("me", "x", 1, Seen(right=True))
    assert SeenStore(tmp_path).seen("me", "x", 1) == Seen(right=True)


def test_only_so_many_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exercise_store, "MOST_KEPT", 3)
    store = SeenStore(tmp_path)
    for seed in range(4):
        store.keep("me", "x", seed, Seen(spent=True))
    kept = [SeenStore(tmp_path).seen("me", "x", seed).spent for seed in range(4)]
    assert kept == [False, True, True, True]
