"""The teacher's page: a class, who joins and how, the board, what is kept and deleted."""

import json
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine.classes import ClassStore
from engine.exercise_list import IDS
from engine.progress import ProgressStore
from engine.run_queue import RunQueue
from tests.pages.conftest import OpenPage
from tests.pages.test_runs_view import make
from ui import class_links, class_people, kept
from ui.cells import table_csv

TEACHER, STUDENT = "a" * 32, "b" * 32


def as_person(open_page: OpenPage, word: str, name: str, **query: str) -> AppTest:
    """A page as the browser with this word sees it."""
    at = open_page(name, query=query, _owner_proposal=word)
    assert not at.exception, at.exception[0].value
    return at


@pytest.fixture
def code(loupe_home: Path) -> str:
    return ClassStore(loupe_home).create(TEACHER, "Tuesday $x$ *group*")


def said(at: AppTest) -> str:
    return " ".join(
        e.value for kind in ("markdown", "caption", "info", "subheader") for e in getattr(at, kind)
    )


def test_without_a_class_there_is_only_how_to_make_one(open_page: OpenPage, code: str) -> None:
    at = as_person(open_page, STUDENT, "teacher")
    assert "Make a class" in said(at) and "Tuesday" not in said(at)
    assert not [e for e in at.get("arrow_data_frame")]
    assert code not in str([e.value for e in at.code])


def test_a_class_is_made_and_its_link_shown(open_page: OpenPage, loupe_home: Path) -> None:
    at = as_person(open_page, TEACHER, "teacher")
    at.text_input(key="teacher_title").set_value("Monday").run()
    at.button(key="teacher_make").click().run()
    assert not at.exception
    (made,) = ClassStore(loupe_home).of(TEACHER)
    codes = [e.value for e in at.code]
    assert class_links.written(made.code) in codes
    assert any(value.endswith(f"/lessons?class={made.code}") for value in codes)
    assert str(loupe_home) in said(at).replace("\\", "")


def test_who_opens_the_link_is_asked_and_told_what_is_seen(
    open_page: OpenPage, code: str, loupe_home: Path
) -> None:
    at = as_person(open_page, STUDENT, "home", **{"class": code})
    assert "Join the class" in said(at) and "only on this server" in said(at)
    assert ProgressStore(loupe_home).read(STUDENT).room is None, "nothing is kept before they say yes"
    at.text_input(key="class_link_name").set_value("  Zoë  ").run()
    at.button(key="class_link_join").click().run()
    assert not at.exception and "Join the class" not in said(at)
    progress = ProgressStore(loupe_home).read(STUDENT)
    assert (progress.room, progress.name) == (code, "Zoë")


def test_who_says_not_now_is_not_asked_again(open_page: OpenPage, code: str, loupe_home: Path) -> None:
    at = as_person(open_page, STUDENT, "home", **{"class": code})
    at.button(key="class_link_close").click().run()
    assert "Join the class" not in said(at)
    assert ProgressStore(loupe_home).everyone(code) == []
    assert not (loupe_home / "people").exists()


@pytest.mark.parametrize("bad", ["nonsense", "../../x", "x" * 5000, "abcdefgh"])
def test_an_unknown_class_is_a_sentence(open_page: OpenPage, bad: str) -> None:
    at = as_person(open_page, STUDENT, "home", **{"class": bad})
    assert "not known on this server" in said(at)


def joined(home: Path, code: str) -> ProgressStore:
    store = ProgressStore(home)
    store.rename(STUDENT, "=1+1 $x$ <b>")
    store.join(STUDENT, code)
    store.pass_lesson(STUDENT, "tokens")
    store.join("c" * 32, code)
    return store


def test_the_board_shows_people_and_hides_names(open_page: OpenPage, code: str, loupe_home: Path) -> None:
    joined(loupe_home, code)
    at = as_person(open_page, TEACHER, "teacher")
    (board,) = [frame for frame in at.dataframe if "Who" in frame.value.columns]
    assert set(board.value["Who"]) == {"=1+1 $x$ <b>", "Student 2"}
    assert sorted(board.value["Lessons passed"]) == [0, 1]
    at.toggle(key="teacher_anonymous").set_value(True).run()
    (board,) = [frame for frame in at.dataframe if "Who" in frame.value.columns]
    assert set(board.value["Who"]) == {"Student 1", "Student 2"}
    at.toggle(key="teacher_large").set_value(True).run()
    assert not at.exception and len(at.table[0].value) == 2


def test_a_spreadsheet_takes_no_name_for_a_formula(open_page: OpenPage, code: str, loupe_home: Path) -> None:
    joined(loupe_home, code)
    as_person(open_page, TEACHER, "teacher")
    csv = table_csv(class_people.table(class_people.rows(code, ""), anonymous=False))
    assert '"\'=1+1 $x$ <b>"' in csv and '"=1+1' not in csv


def test_a_spreadsheet_reads_accents_and_finds_no_word_where_nothing_is(loupe_home: Path, code: str) -> None:
    store = ProgressStore(loupe_home)
    store.rename(STUDENT, "José")
    store.join(STUDENT, code)
    file = class_people.as_csv(class_people.table(class_people.rows(code, ""), anonymous=False))
    assert file.startswith(b"\xef\xbb\xbf"), "without the mark Excel takes UTF-8 for another encoding"
    assert file.decode("utf-8-sig").splitlines()[1] == '"José",0,0,"","",""'


def test_a_record_is_deleted_after_a_second_yes(open_page: OpenPage, code: str, loupe_home: Path) -> None:
    store = joined(loupe_home, code)
    at = as_person(open_page, TEACHER, "teacher")
    assert at.button(key="teacher_remove_yes").disabled
    person = store.read(STUDENT).person
    at.selectbox(key="teacher_remove_who").set_value(person).run()
    at.checkbox(key="teacher_remove_sure").check().run()
    at.button(key="teacher_remove_yes").click().run()
    assert not at.exception
    assert not store.read(STUDENT).lessons and len(store.everyone(code)) == 1


@pytest.mark.parametrize("records", [False, True])
def test_a_class_is_deleted_with_or_without_the_records(
    open_page: OpenPage, code: str, loupe_home: Path, records: bool
) -> None:
    store = joined(loupe_home, code)
    at = as_person(open_page, TEACHER, "teacher")
    at.checkbox(key="teacher_delete_records").set_value(records).run()
    at.checkbox(key="teacher_delete_sure").check().run()
    at.button(key="teacher_delete_yes").click().run()
    assert not at.exception and ClassStore(loupe_home).get(code) is None
    assert store.everyone(code) == [] and bool(store.read(STUDENT).lessons) is not records
    assert "Make a class" in said(at)


def test_the_maker_is_not_asked_to_join(open_page: OpenPage, code: str) -> None:
    at = as_person(open_page, TEACHER, "home", **{"class": code})
    assert "link to your class" in said(at) and not [b for b in at.button if b.key == "class_link_join"]


def test_what_is_kept_is_whole_and_goes_when_told(loupe_home: Path, code: str) -> None:
    store = joined(loupe_home, code)
    whole = json.loads(kept.as_json(store.read(STUDENT)))
    assert whole["name"] == "=1+1 $x$ <b>" and whole["room"] == code and "tokens" in whole["lessons"]
    assert STUDENT not in kept.as_json(store.read(STUDENT))


def test_projector_mode_is_in_the_address_and_large(open_page: OpenPage) -> None:
    at = open_page("home", query={"projector": "true"})
    assert not at.exception and at.toggle(key="projector").value is True
    assert any("font-size: 20px" in str(e.proto.body) for e in at.get("html"))


@pytest.mark.parametrize(
    ("served", "said_so"), [("localhost", True), ("127.0.0.1", True), ("0.0.0.0", False)]
)
def test_only_a_server_for_this_machine_is_said_to_be_one(
    open_page: OpenPage, code: str, monkeypatch: pytest.MonkeyPatch, served: str, said_so: bool
) -> None:
    """A teacher may call a server localhost that answers the whole room."""
    asked = st.get_option
    monkeypatch.setattr(st, "get_option", lambda name: served if name == "server.address" else asked(name))
    at = as_person(open_page, TEACHER, "teacher")
    assert ("only this machine can open" in said(at)) is (served != "0.0.0.0")


def test_each_class_of_a_teacher_has_its_own_numbers(
    open_page: OpenPage, code: str, loupe_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunQueue, "pump", lambda self: None)  # nothing is trained
    other = ClassStore(loupe_home).create(TEACHER, "Friday")
    store = joined(loupe_home, code)
    store.answer(STUDENT, IDS[0], seed=1, right=True)
    store.answer(STUDENT, IDS[1], seed=1, right=False)
    for last, name, owner in ((2.4, "owl", STUDENT), (2.1, "fox", STUDENT), (1.0, "not theirs", "d" * 32)):
        make(loupe_home, last, name=name, owner=owner)
    at = as_person(open_page, TEACHER, "teacher")
    assert not at.dataframe and "Nobody has joined" in said(at), "the newest class comes first, and is empty"
    at.selectbox(key="teacher_class").set_value(code).run()
    (board,) = [frame.value for frame in at.dataframe if "Who" in frame.value.columns]
    row = board[board["Who"] == "=1+1 $x$ <b>"].iloc[0]
    assert (row["Lessons passed"], row["Exercises solved"], row["With the run"]) == (1, 1, "fox")
    assert row["Best bits per byte"] == pytest.approx(0.7)  # 2.1 nats at a third of a bit per byte and nat
    at.checkbox(key="teacher_delete_sure").check().run()
    at.button(key="teacher_delete_yes").click().run()
    assert not at.exception and [one.code for one in ClassStore(loupe_home).of(TEACHER)] == [other]
