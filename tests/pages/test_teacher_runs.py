"""The teacher's view of everybody's runs: behind the secret, and what it does with them."""

import json
import time
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine import new_runs, teacher_secret
from engine.classes import ClassStore
from engine.owners import owner_hash
from engine.progress import ProgressStore
from engine.run_queue import RunQueue
from engine.runs import RunStore
from tests.pages.conftest import OpenPage
from tests.pages.made_runs import EVALS, MINE, YOURS, make_run, said, set_status
from ui import link_address, model_progress, teacher_runs

SECRET = "seven purple hats"
TEACHER = "t" * 32


@pytest.fixture(autouse=True)
def known_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(teacher_secret.VARIABLE, SECRET)
    monkeypatch.setattr(RunQueue, "pump", lambda self: None)  # nothing is trained


@pytest.fixture
def runs(loupe_home: Path) -> dict[str, str]:
    """One that waits, one that ended, of two people."""
    waits = make_run(loupe_home, MINE, name="Foxes $x$ *a*", records=EVALS)
    set_status(loupe_home, waits, state="queued", queued_at=1.0)
    ended = make_run(loupe_home, YOURS, name="Hats", records=EVALS)
    set_status(loupe_home, ended, state="finished", step=20)
    return {"waits": waits, "ended": ended}


def give(at: AppTest, word: str = SECRET, key: str = "teacher") -> AppTest:
    at.text_input(key=f"{key}_secret").set_value(word)
    at.button(key=f"{key}_secret_give").click().run()
    assert not at.exception, at.exception[0].value
    return at


def desk(open_page: OpenPage, person: str = TEACHER, **query: str) -> AppTest:
    at = open_page("teacher", query={"desk": "runs", **query}, _owner_proposal=person)
    assert not at.exception, at.exception[0].value
    return at


def keys(at: AppTest) -> set[str]:
    return {str(button.key) for button in at.button}


def table(at: AppTest) -> dict[str, list]:
    (frame,) = [f.value for f in at.dataframe if "Size in MB" in f.value.columns]
    return {name: list(frame[name]) for name in frame.columns}


def state_of(home: Path, run_id: str) -> str:
    return str(json.loads((home / "runs" / run_id / "status.json").read_text())["state"])


# ---- the secret


def test_without_the_secret_nothing_of_anybody_is_seen(open_page: OpenPage, runs) -> None:
    at = desk(open_page)
    assert "teacher’s secret" in said(at)
    assert not at.dataframe and "Hats" not in said(at) and "Foxes" not in said(at)
    assert keys(at) & {"teacher_stop_all_yes", "teacher_old_delete", "teacher_undo"} == set()


@pytest.mark.parametrize("word", ["", "wrong", SECRET.upper(), SECRET[:-1], "x" * 200])
def test_a_wrong_secret_opens_nothing(open_page: OpenPage, runs, word: str) -> None:
    at = give(desk(open_page), word)
    assert "not the teacher’s secret" in said(at) and not at.dataframe


def test_the_right_one_opens_it_for_this_browser_alone(open_page: OpenPage, runs) -> None:
    at = give(desk(open_page))
    assert set(table(at)["Run"]) == {"Foxes $x$ *a*", "Hats"}
    other = desk(open_page, MINE)
    assert not other.dataframe and "Hats" not in said(other)
    at.button(key="teacher_leave").click().run()
    assert not at.dataframe and "teacher’s secret" in said(at)


def everything(at: AppTest) -> str:
    """All that the session, the address and the page hold."""
    return " ".join(map(repr, (at.session_state, at.query_params, at.main, at.sidebar)))


def test_the_word_stays_nowhere(open_page: OpenPage, runs) -> None:
    at = desk(open_page)
    assert SECRET not in everything(give(at))
    wrong = give(desk(open_page, MINE), "what I typed")
    assert "what I typed" not in everything(wrong)
    wrong.session_state["shown"] = "what I typed"
    assert "what I typed" in everything(wrong.run()), "else this would find nothing"


@pytest.mark.parametrize("forged", [True, "yes", 1, {"is": "teacher"}])
def test_no_value_in_a_session_or_a_link_makes_a_teacher(open_page: OpenPage, runs, forged: object) -> None:
    at = open_page(
        "teacher",
        query={"desk": "runs", "set": '{"_teacher_right": true, "teacher_secret": "x"}', "secret": SECRET},
        _teacher_right=forged,
    )
    assert not at.exception and not at.dataframe and "teacher’s secret" in said(at)


def test_another_secret_ends_every_right(open_page: OpenPage, runs, monkeypatch) -> None:
    at = give(desk(open_page))
    monkeypatch.setenv(teacher_secret.VARIABLE, "another secret")
    at.button(key="teacher_stop_all_yes").click().run()
    assert not at.dataframe and "teacher’s secret" in said(at)
    assert RunStore().info(runs["waits"]).state == "queued", "what was pressed did nothing"


def test_what_goes_on_is_not_shown_any_longer_either(open_page: OpenPage, runs, monkeypatch) -> None:
    give(desk(open_page))
    standing = teacher_runs._standing(RunStore().list())
    monkeypatch.setattr(teacher_runs.st, "rerun", lambda: (_ for _ in ()).throw(StopAsyncIteration))
    with pytest.raises(StopAsyncIteration):  # what looks again by itself, in a session without the right
        teacher_runs._live(standing)


def test_emptied_caches_change_neither_rights_nor_waits(open_page: OpenPage, runs) -> None:
    at = give(desk(open_page))
    other = desk(open_page, "o" * 32)
    for _ in range(4):
        give(other, "guess")
    st.cache_data.clear()  # what Streamlit does when a browser sends `clear_cache`
    st.cache_resource.clear()
    assert at.run().dataframe, "still a teacher"
    assert "Try again in" in said(give(other, SECRET)) and not other.dataframe


def test_who_guesses_on_and_on_has_to_wait(open_page: OpenPage, runs) -> None:
    at = desk(open_page)
    for _ in range(4):
        give(at, "guess")
    assert "Try again in" in said(give(at, SECRET)) and not at.dataframe


def test_the_first_visit_makes_the_file_and_prints_its_place_not_the_word(
    open_page: OpenPage, loupe_home: Path, monkeypatch, capsys
) -> None:
    monkeypatch.delenv(teacher_secret.VARIABLE)
    monkeypatch.setattr(link_address, "from_here", lambda: True)
    at = desk(open_page)
    file = loupe_home / teacher_secret.FILE
    word, printed = file.read_text().strip(), capsys.readouterr().out
    assert str(file) in printed and word not in printed and word not in said(at)
    assert str(file) in said(at).replace("\\", ""), "who sits at the machine is told where"
    give(at, word)
    assert "All runs" in " ".join(e.value for e in at.subheader)


# ---- what is shown


def test_everybodys_runs_with_who_and_what(open_page: OpenPage, runs, loupe_home: Path) -> None:
    people, code = ProgressStore(loupe_home), ClassStore(loupe_home).create(TEACHER, "Tuesday")
    people.rename(MINE, "=Zoë <b>")
    people.join(YOURS, code)
    at = give(desk(open_page))
    rows = table(at)
    i, j = rows["Run"].index("Foxes $x$ *a*"), rows["Run"].index("Hats")
    assert (rows["Whose"][i], rows["Whose"][j]) == ("=Zoë <b>", "Student 1 of Tuesday")
    assert (rows["State"][i], rows["State"][j]) == ("queued", "finished")
    assert rows["In the queue"][i] == 1 and (rows["Step"][j], rows["of"][j]) == (20, 20)
    assert "Kept" not in rows, "a column in which no run has anything is left out"
    store = RunStore(loupe_home)
    assert rows["Size in MB"] == pytest.approx([store.size(info.id) / 1e6 for info in store.list()])
    at.toggle(key="teacher_runs_anonymous").set_value(True).run()
    assert set(table(at)["Whose"]) == {f"Nameless {owner_hash(MINE)[:4]}", "Student 1 of Tuesday"}


def test_the_filters_leave_what_was_asked_for(open_page: OpenPage, runs) -> None:
    at = give(desk(open_page))
    at.button_group(key="teacher_state").set_value(["finished"]).run()
    assert table(at)["Run"] == ["Hats"]
    at.button_group(key="teacher_state").set_value([]).run()
    at.text_input(key="teacher_find").set_value("fox").run()
    assert table(at)["Run"] == ["Foxes $x$ *a*"]
    at.selectbox(key="teacher_who").set_value(owner_hash(YOURS)).run()
    assert not at.exception and "No run is like that" in said(at)


def test_no_number_of_one_run_costs_the_teacher_the_table(
    open_page: OpenPage, runs, loupe_home: Path
) -> None:
    file = loupe_home / "runs" / runs["ended"] / "run.json"
    run = json.loads(file.read_text())
    file.write_text(json.dumps({**run, "created": 1e18}))
    assert set(table(give(desk(open_page)))["Run"]) >= {"Hats"}
    file.write_text(json.dumps({**run, "train": {**run["train"], "steps": 10**30}}))
    at = give(desk(open_page))  # no run that could be: it is named below the others
    assert table(at)["Run"] == ["Foxes $x$ *a*"] and runs["ended"] in said(at).replace("\\", "")


def test_a_folder_that_cant_be_read_is_named(open_page: OpenPage, runs, loupe_home: Path) -> None:
    path = loupe_home / "runs" / runs["ended"] / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 7}))
    at = give(desk(open_page))
    assert runs["ended"] in said(at).replace("\\", "") and "newer Loupe" in said(at)
    assert table(at)["Run"] == ["Foxes $x$ *a*"]


# ---- what is done


def test_the_teacher_stops_one_and_its_owner_reads_so_and_resumes(
    open_page: OpenPage, runs, loupe_home: Path
) -> None:
    give(desk(open_page)).button(key=f"teacher_stop_{runs['waits']}").click().run()
    assert state_of(loupe_home, runs["waits"]) == "stopped"
    mine = open_page("training", query={"run": runs["waits"]}, _owner_proposal=MINE)
    assert "Your teacher stopped this run" in said(mine) and "Nothing is lost" in said(mine)
    yours = open_page("training", query={"run": runs["waits"]}, _owner_proposal=YOURS)
    assert "The teacher of this server stopped this run" in said(yours)
    mine.button(key="training_resume").click().run()
    assert state_of(loupe_home, runs["waits"]) == "queued"
    assert "Your teacher stopped" not in said(mine)


def test_stop_all_stops_all_that_goes_on(open_page: OpenPage, runs, loupe_home: Path) -> None:
    more = make_run(loupe_home, YOURS, name="More")
    set_status(loupe_home, more, state="queued", queued_at=2.0)
    at = give(desk(open_page))
    at.button(key="teacher_stop_all_yes").click().run()
    assert not at.exception
    assert {state_of(loupe_home, run_id) for run_id in (runs["waits"], more)} == {"stopped"}
    assert state_of(loupe_home, runs["ended"]) == "finished"


def test_new_runs_only_wait_and_the_training_page_says_so(
    open_page: OpenPage, runs, loupe_home: Path
) -> None:
    at = give(desk(open_page))
    at.button_group(key="teacher_new_runs").set_value("wait").run()
    assert not at.exception and not new_runs.may_begin(loupe_home)
    mine = open_page("training", query={"run": runs["waits"]}, _owner_proposal=MINE)
    assert "only wait for now" in said(mine) and "Number 1 in the queue" in said(mine)
    at.button_group(key="teacher_new_runs").set_value("begin").run()
    assert new_runs.may_begin(loupe_home)
    assert "only wait for now" not in said(mine.run())


def test_one_is_deleted_after_a_yes_and_comes_back_with_undo(
    open_page: OpenPage, runs, loupe_home: Path
) -> None:
    at = give(desk(open_page))
    at.selectbox(key="teacher_one").set_value(runs["ended"]).run()
    assert at.button(key="teacher_delete_one_yes").disabled
    at.checkbox(key=f"teacher_sure_{runs['ended']}").check().run()
    at.button(key="teacher_delete_one_yes").click().run()
    assert not at.exception and not (loupe_home / "runs" / runs["ended"]).exists()
    at.button(key="teacher_undo").click().run()
    assert not at.exception and (loupe_home / "runs" / runs["ended"] / "run.json").exists()
    assert "teacher_undo" not in keys(at)


def test_old_runs_are_listed_first_then_deleted_and_kept_ones_stay(
    open_page: OpenPage, runs, loupe_home: Path
) -> None:
    old, kept = make_run(loupe_home, MINE, name="Old"), make_run(loupe_home, YOURS, name="Precious")
    for run_id in (old, kept):
        set_status(loupe_home, run_id, state="stopped", updated=time.time() - 31 * 86_400)
    RunStore(loupe_home).keep(kept, YOURS, True)
    at = give(desk(open_page))
    (listed,) = [f.value for f in at.dataframe if "Unchanged for" in f.value.columns]
    assert list(listed["Run"]) == ["Old"] and list(listed["Unchanged for"]) == ["31 days"]
    assert "1 run as old as that is left out" in said(at)
    assert at.button(key="teacher_old_delete").disabled
    at.checkbox(key="teacher_old_sure").check().run()
    at.button(key="teacher_old_delete").click().run()
    left = {info.id for info in RunStore(loupe_home).list()}
    assert not at.exception and left == {runs["waits"], runs["ended"], kept}
    assert not at.checkbox or not at.session_state["teacher_old_sure"], "the next list is asked for anew"


def test_a_yes_to_one_list_of_old_runs_is_none_to_a_longer_one(
    open_page: OpenPage, runs, loupe_home: Path
) -> None:
    old, newer = make_run(loupe_home, MINE, name="Old"), make_run(loupe_home, YOURS, name="Newer")
    for run_id, days in ((old, 31), (newer, 11)):
        set_status(loupe_home, run_id, state="stopped", updated=time.time() - days * 86_400)
    at = give(desk(open_page))
    at.checkbox(key="teacher_old_sure").check().run()
    assert not at.button(key="teacher_old_delete").disabled
    at.number_input(key="teacher_old_days").set_value(10).run()
    assert at.button(key="teacher_old_delete").disabled


def test_in_spanish_and_back_it_stays_open(open_page: OpenPage, runs) -> None:
    at = give(desk(open_page, lang="es"))
    assert not at.exception
    assert "Todos los entrenamientos" in " ".join(e.value for e in at.subheader)


# ---- downloads of published models


@pytest.mark.parametrize("chosen", ["teacher", " Teacher "])
def test_only_the_teacher_fetches_models_where_that_is_wanted(
    open_page: OpenPage, loupe_home: Path, monkeypatch, chosen: str
) -> None:
    from engine import hub_download

    monkeypatch.setenv("LOUPE_DOWNLOADS", chosen)
    with pytest.raises(ValueError, match="can't be fetched"):
        hub_download.start(loupe_home / "models", hub_download.SMOLLM2)
    with pytest.raises(ValueError, match="can't be fetched"):
        hub_download.look(loupe_home / "models", "a/b")
    at, key = open_page("models", query={"models": "get"}), "models_get_smollm2"
    assert "only the teacher fetches" in said(at)
    assert key not in keys(at) and "models_ask_hub" not in keys(at)
    give(at, "wrong guess", key="models")
    assert key not in keys(at)
    give(at, key="models")
    assert "models_ask_hub" in keys(at)
    assert hub_download.allowed(teacher=True) and not hub_download.allowed()


def test_a_click_on_a_button_that_is_not_theirs_stops_no_download(monkeypatch, loupe_home: Path) -> None:
    from engine import hub_download

    done: list[Path] = []
    monkeypatch.setattr(hub_download, "cancel", done.append)
    monkeypatch.setenv("LOUPE_DOWNLOADS", "teacher")
    model_progress._act("cancel")
    assert not done
    monkeypatch.setenv("LOUPE_DOWNLOADS", "on")
    model_progress._act("cancel")
    assert done
