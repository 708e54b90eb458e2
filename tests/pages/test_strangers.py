"""What a page shows to whom: texts of others, the teacher's buttons on a full disk, where a secret is."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import streamlit as st

from engine import plain_log, teacher_secret
from engine.corpus import Corpus, own_text
from engine.run_queue import RunQueue
from engine.runs import RunStore
from tests.pages.conftest import OpenPage
from tests.pages.made_runs import EVALS, MINE, STORY, YOURS, make_run, said, set_status
from ui import link_address, server_log, server_start
from ui.words import literal

WROTE = {"kind": "sample", "step": 10, "prompt": "Once", "text": " a secret of mine"}


def watched(open_page: OpenPage, home: Path, corpus: Corpus, person: str) -> str:
    run = make_run(home, MINE, corpus=corpus, records=[*EVALS, WROTE])
    return said(open_page("training", query={"run": run, "watch": "train"}, _owner_proposal=person))


def test_what_a_run_writes_of_somebodys_own_text_is_shown_to_them_alone(
    open_page: OpenPage, loupe_home: Path
) -> None:
    for kind in ("pasted", "uploaded"):
        corpus = own_text(STORY * 4, name="mine", kind=kind)
        assert "a secret of mine" in watched(open_page, loupe_home, corpus, MINE)
        theirs = watched(open_page, loupe_home, corpus, YOURS)
        assert "a secret of mine" not in theirs and "only to the person whose text it learns from" in theirs
    assert "a secret of mine" in watched(open_page, loupe_home, Corpus("x", "stories", STORY * 4), YOURS)


def test_the_teachers_buttons_on_a_full_disk_say_so(
    open_page: OpenPage, loupe_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(teacher_secret.VARIABLE, "seven purple hats")
    monkeypatch.setattr(RunQueue, "pump", lambda self: None)
    set_status(loupe_home, make_run(loupe_home, MINE, records=EVALS), state="queued", queued_at=1.0)
    at = open_page("teacher", query={"desk": "runs"}, _owner_proposal=YOURS)
    at.text_input(key="teacher_secret").set_value("seven purple hats")
    at.button(key="teacher_secret_give").click().run()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunStore, "stop_for_teacher", full)
    for key in ("teacher_stop_one", "teacher_stop_all_yes"):
        at.button(key=key).click().run()
        assert not at.exception and "The disk of Loupe’s data folder is full" in said(at)

    def gone(*_: object) -> None:
        raise ValueError("There is no run here.")

    monkeypatch.setattr(RunStore, "stop_for_teacher", gone)
    at.button(key="teacher_stop_one").click().run()
    assert "There is no run here" in said(at) and "data folder is full" not in said(at)


@pytest.mark.parametrize(
    ("ip", "headers", "here"),
    [
        (None, {"Host": "localhost:8501"}, True),
        (None, {"Host": "127.0.0.1:8501"}, True),
        (None, {"Host": "loupe.example"}, False),
        (None, {"Host": "localhost:8501", "X-Forwarded-For": "10.0.0.5"}, False),
        (None, {"Host": "localhost", "Via": "1.1 proxy"}, False),
        (None, {}, False),
        ("10.0.0.5", {"Host": "localhost:8501"}, False),
    ],
)
def test_the_path_of_the_secret_is_told_only_to_who_sits_at_the_machine(
    monkeypatch: pytest.MonkeyPatch, ip: str | None, headers: dict[str, str], here: bool
) -> None:
    monkeypatch.setattr(st, "context", SimpleNamespace(ip_address=ip, headers=headers))
    assert link_address.from_here() is here
    assert (link_address.sender() == "") is (ip is None and not set(headers) - {"Host"})


def test_emptied_caches_do_not_begin_the_server_anew(open_page: OpenPage, loupe_home: Path, capsys) -> None:
    open_page("home")
    st.cache_resource.clear()
    open_page("home")
    log = plain_log.path(loupe_home).read_text("utf-8")
    assert log.count("server started") == 1
    assert capsys.readouterr().out.count("teacher-secret") == 1
    assert loupe_home.absolute() in server_log._BEGUN & server_start._BEGUN


def test_a_new_name_that_was_never_typed_renames_nothing(
    loupe_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ui import runs_files

    asked: list[object] = []
    monkeypatch.setattr(runs_files.run_choice, "attempt", lambda *args, **_: asked.append(args))
    runs_files._rename("20260101-000000-abcdef")
    assert asked == []


def test_an_address_in_somebodys_text_becomes_no_link() -> None:
    """Streamlit's Markdown links addresses by itself, also where every sign of them is escaped."""
    for typed in ("http://evil.example", "HTTPS://evil.example/x", "www.evil.example", "me@evil.example"):
        shown = re.sub(r"\\(.)", r"\1", literal(f"see {typed} now"))
        assert shown.replace("\u2060", "") == f"see {typed} now", "nothing that can be seen changes"
        assert not re.search(r"https?://\w|www\.\w|\w@\w", shown, flags=re.IGNORECASE)
    assert "http\\://" in literal("http://fine.example", links=True)
