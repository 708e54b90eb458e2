"""Progress of people: kept whole, private, and really deleted."""

import hashlib
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from engine import progress as module
from engine.progress import Done, Progress, ProgressStore, checked_person

ME, YOU = "a" * 32, "b" * 32
ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(loupe_home: Path) -> ProgressStore:
    return ProgressStore(loupe_home)


def files(store: ProgressStore) -> list[Path]:
    return sorted(path for path in store.folder.glob("*") if path.suffix != ".lock")


def test_who_has_done_nothing_leaves_no_file(store: ProgressStore) -> None:
    assert store.read(ME) == Progress(hashlib.sha256(ME.encode()).hexdigest())
    store.delete(ME)
    assert store.everyone("class") == []
    assert not store.folder.exists()


def test_what_was_done_is_there_for_the_next_store(
    store: ProgressStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(100, 200))
    monkeypatch.setattr(module.time, "time", lambda: float(next(clock)))
    store.pass_lesson(ME, "tokens")
    first = store.read(ME).lessons["tokens"]
    store.pass_lesson(ME, "tokens")  # again: the first time counts
    store.pass_lesson(ME, "loss")
    store.answer(ME, "softmax-three", seed=7, right=False, hints=2)
    store.answer(ME, "softmax-three", seed=7, right=True, hints=1)
    store.answer(ME, "softmax-three", seed=8, right=False, hints=3)  # practice after that takes nothing away
    store.rename(ME, "  Zoë \n Q. ")
    store.join(ME, "room-1")
    monkeypatch.undo()
    again = ProgressStore(store.folder.parent).read(ME)
    assert again == store.read(ME)
    assert (again.name, again.room) == ("Zoë Q.", "room-1")
    assert list(again.lessons) == ["tokens", "loss"] and again.lessons["tokens"] == first
    assert again.lessons["loss"] > first
    done = again.exercises["softmax-three"]
    assert (done.tries, done.right, done.hints, done.seed) == (3, True, 2, 8)
    assert store.read(YOU).lessons == {}


def test_without_a_home_the_environment_says_where(loupe_home: Path) -> None:
    ProgressStore().pass_lesson(ME, "tokens")
    assert list(ProgressStore(loupe_home).read(ME).lessons) == ["tokens"]


def test_the_owners_word_is_never_on_disk(store: ProgressStore) -> None:
    store.rename(ME, "Zoë")
    store.answer(ME, "one", seed=1, right=True)
    paths = [path for path in store.folder.parent.rglob("*") if path.is_file()]
    assert paths and all(ME not in str(path) and ME.encode() not in path.read_bytes() for path in paths)


def test_two_writers_at_once_lose_nothing(store: ProgressStore) -> None:
    """Two processes and two threads, each with a store of its own, answer for the same person."""
    code = (
        "import sys; from pathlib import Path; from engine.progress import ProgressStore\n"
        "store = ProgressStore(Path(sys.argv[1]))\n"
        f"for i in range(10): store.answer({ME!r}, 'both', seed=i, right=False)\n"
        f"store.pass_lesson({ME!r}, sys.argv[2])\n"
    )
    command = [sys.executable, "-c", code, str(store.folder.parent)]
    processes = [subprocess.Popen([*command, name], cwd=ROOT) for name in ("first", "second")]

    def work() -> None:
        mine = ProgressStore(store.folder.parent)
        for i in range(10):
            mine.answer(ME, "both", seed=i, right=False)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.wait(120) for process in processes] == [0, 0]
    assert store.read(ME).exercises["both"].tries == 40
    assert set(store.read(ME).lessons) == {"first", "second"}
    assert len(files(store)) == 1, "nothing half written is left"


def test_a_writer_that_dies_half_way_leaves_the_old_file(
    store: ProgressStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.pass_lesson(ME, "tokens")
    before = files(store)[0].read_bytes()

    def full(*args: object) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("engine.folders.os.replace", full)
        with pytest.raises(OSError, match="No space"):
            store.pass_lesson(ME, "loss")
    assert [path.read_bytes() for path in files(store)] == [before]
    assert list(store.read(ME).lessons) == ["tokens"]


DAMAGE = [
    b"",
    b"{",
    b"[]",
    b"{}",
    b'{"format": 1}',
    b"\xff\xfe",
    b'{"format": 2, "person": "x", "name": null, "room": null, "lessons": {}, "exercises": {}}',
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_broken_file_is_set_aside_and_not_lost(store: ProgressStore, damage: bytes) -> None:
    store.pass_lesson(ME, "tokens")
    path = files(store)[0]
    path.write_bytes(damage)
    assert store.read(ME).lessons == {}
    assert [kept.read_bytes() for kept in files(store)] == [damage]
    assert files(store)[0].name.startswith(f"{path.name}.broken-")
    store.pass_lesson(ME, "loss")  # and life goes on
    assert list(store.read(ME).lessons) == ["loss"]
    assert len(files(store)) == 2


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("person", "f" * 64),  # somebody else's file under this name
        ("name", 5),
        ("name", "x" * 41),
        ("room", "../../etc"),
        ("lessons", {"../x": 1.0}),
        ("lessons", {"tokens": "soon"}),
        ("exercises", {"one": {"tries": 1}}),
        ("exercises", {"one": {"tries": float("inf"), "right": 1, "hints": 0, "seed": 0, "time": 0}}),
        ("exercises", []),
    ],
)
def test_a_file_that_says_impossible_things_is_broken(store: ProgressStore, key: str, value: object) -> None:
    store.pass_lesson(ME, "tokens")
    path = files(store)[0]
    path.write_text(json.dumps({**json.loads(path.read_bytes()), key: value}), "utf-8")
    assert store.answer(ME, "two", seed=0, right=True).lessons == {}
    assert len(files(store)) == 2 and list(store.read(ME).exercises) == ["two"]


def test_only_a_few_broken_files_are_kept(store: ProgressStore) -> None:
    for _ in range(5):
        store.pass_lesson(ME, "tokens")
        store._path(store.read(ME).person).write_bytes(b"{")
        store.read(ME)
    assert len(files(store)) == module.KEPT_BROKEN


def test_delete_leaves_nothing_and_touches_nobody_else(store: ProgressStore) -> None:
    store.pass_lesson(YOU, "tokens")
    store.rename(ME, "Zoë")
    store._path(store.read(ME).person).write_bytes(b"{")
    store.read(ME)  # set aside
    store.rename(ME, "Zoë")
    temporary = store.folder / f".{store.read(ME).person}.json.1-2"  # of a writer that was killed
    temporary.write_bytes(b"Zo")
    person = store.read(ME).person
    store.delete(ME)
    store.delete(ME)
    assert not [path for path in store.folder.rglob("*") if person in path.name]
    assert store.read(ME) == Progress(person) and list(store.read(YOU).lessons) == ["tokens"]


def test_a_class_sees_who_joined_it_until_they_leave(store: ProgressStore) -> None:
    for owner, name in (("1" * 32, "zoe"), ("2" * 32, None), ("3" * 32, "Adam"), ("4" * 32, "Eve")):
        store.rename(owner, name)
        store.join(owner, "room" if name != "Eve" else "other")
    assert [progress.name for progress in store.everyone("room")] == ["Adam", "zoe", None]
    store.join("3" * 32, None)
    assert [progress.name for progress in store.everyone("room")] == ["zoe", None]
    assert store.everyone("nobody") == []


def test_a_broken_file_does_not_hide_the_others(store: ProgressStore) -> None:
    store.join(ME, "room")
    store.join(YOU, "room")
    store._path(store.read(ME).person).write_bytes(b"{")
    assert [progress.person for progress in store.everyone("room")] == [store.read(YOU).person]


@pytest.mark.parametrize(
    "name",
    ["x" * 41, "a\x00b", "a\x1b[31m", "\u202egnp.exe", "a\u200bb", "\ud800", "a\u2066b", "\ufeffa"],
)
def test_a_hostile_name_is_refused_with_a_sentence(store: ProgressStore, name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        store.rename(ME, name)
    assert store.read(ME).name is None


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        (None, None),
        ("", None),
        (" \t\n", None),
        ("\u200d", None),
        ("x" * 40, "x" * 40),
        ("<b>*a* $x$</b>", "<b>*a* $x$</b>"),  # the screen shows it literally
        ("e\u0301va", "\u00e9va"),
        ("می\u200cنا", "می\u200cنا"),
        ("a\nb", "a b"),
    ],
)
def test_any_other_name_is_kept_tidy(name: str | None, kept: str | None) -> None:
    assert checked_person(name) == kept


@pytest.mark.parametrize("code", ["", "../x", "a/b", "a\x00", "x" * 81, "é", "a b", "."])
def test_a_hostile_room_lesson_or_exercise_is_refused(store: ProgressStore, code: str) -> None:
    for act in (
        lambda: store.join(ME, code),
        lambda: store.pass_lesson(ME, code),
        lambda: store.answer(ME, code, seed=0, right=True),
    ):
        with pytest.raises(ValueError, match="letters, digits"):
            act()
    assert files(store) == []


def test_a_file_can_not_grow_without_end(store: ProgressStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_KINDS", 2)
    for name in ("one", "two", "one"):
        store.answer(ME, name, seed=0, right=True)
    with pytest.raises(ValueError, match="At most 2"):
        store.answer(ME, "three", seed=0, right=True)
    assert sorted(store.read(ME).exercises) == ["one", "two"]


def test_what_is_given_back_is_what_is_kept(store: ProgressStore) -> None:
    given = store.answer(ME, "one", seed=2**62, right=True, hints=1)
    assert given == store.read(ME) and given.exercises["one"] == Done(
        1, True, 1, 2**62, given.exercises["one"].time
    )
