"""Classes and their boards: codes, rights, what is counted, files that are damaged or hostile."""

import re
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from engine import class_rows
from engine.board import Board, Standing
from engine.classes import LONGEST_TITLE, MOST, ClassStore, checked_code
from engine.owners import owner_hash
from engine.progress import Done, Progress, ProgressStore
from engine.run_info import RunInfo

TEACHER, STUDENT = "a" * 32, "b" * 32


@pytest.fixture
def store(tmp_path: Path) -> ClassStore:
    return ClassStore(tmp_path)


def test_a_class_is_found_by_its_code_however_it_is_typed(store: ClassStore) -> None:
    code = store.create(TEACHER, "  Tuesday   group ")
    assert re.fullmatch("[a-km-np-z2-9]{8}", code)
    found = store.get(f" {code[:4].upper()}-{code[4:]} ")
    assert found is not None and found.title == "Tuesday group" and found.code == code
    assert found.owned_by(TEACHER) and not found.owned_by(STUDENT)
    assert store.of(TEACHER) == [found] and store.of(STUDENT) == []


def test_the_word_of_the_maker_is_not_written_down(store: ClassStore) -> None:
    code = store.create(TEACHER)
    written = (store.folder / f"{code}.json").read_text()
    assert TEACHER not in written and owner_hash(TEACHER) in written


@pytest.mark.parametrize(
    "code", ["", "../../etc", "x" * 8000, "abcd", "abcdefgl", "abcdefg\x00", "ABCD EFG1", None]
)
def test_what_can_be_no_code_is_none(store: ClassStore, code: str | None) -> None:
    assert checked_code(code) is None and store.get(code) is None


def test_codes_are_not_told_by_trying(store: ClassStore) -> None:
    codes = {ClassStore(store.folder.parent).create(f"{i:032x}") for i in range(50)}
    assert len(codes) == 50
    assert 31**8 / 2000 > 4e8  # codes tried for one hit, were the server full of classes


def test_only_the_maker_deletes(store: ClassStore) -> None:
    code = store.create(TEACHER)
    with pytest.raises(ValueError, match="Only the browser that made a class"):
        store.delete(STUDENT, code)
    store.delete(TEACHER, code)
    assert store.get(code) is None
    store.delete(TEACHER, code)  # gone is gone


@pytest.mark.parametrize("title", ["x" * (LONGEST_TITLE + 1), "a\x00b", "a\x1bb"])
def test_a_title_is_short_and_can_be_seen(store: ClassStore, title: str) -> None:
    with pytest.raises(ValueError, match="title"):
        store.create(TEACHER, title)
    assert store.of(TEACHER) == []


def test_one_browser_makes_only_so_many(store: ClassStore) -> None:
    for _ in range(MOST):
        store.create(TEACHER)
    with pytest.raises(ValueError, match=str(MOST)):
        store.create(TEACHER)
    store.create(STUDENT)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1}', '{"format": 2, "title": 3}', "\xff"])
def test_a_damaged_file_is_no_class(store: ClassStore, content: str) -> None:
    code = store.create(TEACHER)
    (store.folder / f"{code}.json").write_text(content, "latin-1")
    assert ClassStore(store.folder.parent).get(code) is None
    assert ClassStore(store.folder.parent).of(TEACHER) == []
    assert ClassStore(store.folder.parent).numbers(code, ["0" * 64]) == {}


def test_numbers_stay_whoever_comes_and_goes(store: ClassStore) -> None:
    code = store.create(TEACHER)
    a, b, c = (owner_hash(name) for name in "abc")
    assert store.numbers(code, [b]) == {b: 1}
    assert store.numbers(code, [a, b])[a] == 2
    store.forget(code, b)
    assert b not in store.numbers(code, [a])
    numbers = store.numbers(code, [c, a])
    assert (numbers[a], numbers[c]) == (2, 3)
    assert b not in (store.folder / f"{code}.json").read_text()


def test_two_that_come_at_once_get_two_numbers(store: ClassStore) -> None:
    code = store.create(TEACHER)
    people = [owner_hash(str(i)) for i in range(8)]
    threads = [
        threading.Thread(target=ClassStore(store.folder.parent).numbers, args=(code, [p])) for p in people
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(store.numbers(code, people).values()) == list(range(1, 9))


def run(name: str, owner: str, created: float) -> RunInfo:
    class Info:
        id, owner_hash = name, ""

    info: Any = Info()
    info.owner_hash, info.created = owner_hash(owner), created
    return cast(RunInfo, info)


def standing(run_id: str, score: float, *, imported: bool = False) -> Standing:
    return Standing(1, run_id, f"run {run_id}", score, 10, 10, 10, "finished", 1000, "bytes", False, imported)


def test_the_board_counts_what_there_is_and_the_best_of_ones_own() -> None:
    done = {
        "a": Done(3, True, 0, 1, 50.0),
        "b": Done(1, False, 2, 1, 70.0),
        "gone": Done(1, True, 0, 1, 20.0),
    }
    first = Progress(owner_hash("x"), "Ana", "room", {"one": 10.0, "two": 60.0}, done)
    second = Progress(owner_hash("y"), None, "room")
    runs = [run("r1", "x", 5.0), run("r2", "x", 90.0), run("r3", "z", 99.0), run("r4", "y", 3.0)]
    board = Board(
        "stories", "stories", "f" * 64, 0.1, "clm",
        (standing("r3", 0.9), standing("r4", 1.0, imported=True), standing("r2", 1.25), standing("r1", 1.5)),
    )  # fmt: skip
    numbers = {first.person: 2, second.person: 1}
    found = class_rows.rows([first, second], numbers, runs, board, exercises=["a", "b", "c"])
    assert [row.number for row in found] == [1, 2]
    empty, ana = found
    assert (ana.lessons, ana.right, ana.tried, ana.best, ana.run) == (2, 1, 2, 1.25, "run r2")
    assert ana.active == 90.0 and ana.name == "Ana"
    assert (empty.lessons, empty.right, empty.best, empty.run, empty.active) == (0, 0, None, "", 3.0)
    masked = Board("s", "s", "f" * 64, 0.1, "mlm", (standing("r2", 0.5),))
    assert class_rows.rows([first], numbers, runs, masked, exercises=[])[0].best is None
    assert class_rows.rows([first], numbers, [], None, exercises=[], lessons=["one"])[0].lessons == 1


def test_the_maker_lets_go_only_of_people_of_that_class(tmp_path: Path) -> None:
    store = ProgressStore(tmp_path)
    store.pass_lesson(STUDENT, "tokens")
    store.join(STUDENT, "roomone")
    person = store.read(STUDENT).person
    store.let_go(person, "another", forget=True)
    assert store.read(STUDENT).lessons and store.read(STUDENT).room == "roomone"
    store.let_go(person, "roomone", forget=False)
    assert store.read(STUDENT).lessons and store.read(STUDENT).room is None
    store.join(STUDENT, "roomone")
    store.let_go(person, "roomone", forget=True)
    assert not store.read(STUDENT).lessons
    assert not list(store.folder.glob(f"{person}*"))
    outside = tmp_path / "outside.json"
    outside.write_text("{}")
    store.let_go("../outside", "roomone", forget=True)
    assert outside.exists()
