"""The view Class of the Training page: standings, queue, limits. Nothing is trained here."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine.run_queue import RunQueue
from engine.runs import RunStore
from tests.pages.conftest import OpenPage, plotly
from tests.pages.test_runs_view import MARKUP, MINE, YOURS, make, numbers, said, table


@pytest.fixture(autouse=True)
def nothing_is_trained(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(RunQueue, "pump", lambda self: None)  # every run waits in the queue
    monkeypatch.setenv("LOUPE_MAX_RUNS", "3")
    yield
    st.cache_resource.clear()


def open_class(open_page: OpenPage, **query: str) -> AppTest:
    at = open_page("training", query={"watch": "class", **query}, _owner_proposal=MINE)
    assert not at.exception
    return at


def metrics(at: AppTest) -> dict[str, str]:
    return {m.label: m.value for m in at.metric}


def set_status(home: Path, run_id: str, **changes: object) -> None:
    path = home / "runs" / run_id / "status.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changes}), "utf-8")


def test_an_empty_board_says_how_to_start(open_page: OpenPage) -> None:
    at = open_class(open_page)
    assert "Nobody has trained here yet" in said(at)
    at.button(key="class_go_train").click().run()
    assert not at.exception and at.session_state["watch"] == "train"


def test_everyones_runs_stand_by_bits_per_byte_and_mine_are_marked(
    open_page: OpenPage, loupe_home: Path
) -> None:
    make(loupe_home, 2.4, name="owls", owner=YOURS)
    make(loupe_home, 2.1, name="foxes", owner=YOURS, chars=True)  # another vocabulary: bits per byte are fair
    make(loupe_home, 2.7, name="us")
    at = open_class(open_page)
    figure = plotly(at, "class_standings")
    assert numbers(figure["data"][0]["x"]) == pytest.approx([0.7, 0.8, 0.9])
    assert figure["layout"]["yaxis"]["ticktext"] == ["1 foxes", "2 owls", "3 us (mine)"]
    assert figure["layout"]["xaxis"]["title"]["text"] == "held-out bits per byte"
    assert "foxes leads with 0.7000 bits per byte" in said(at)
    assert table(at, "place")["whose"].tolist() == ["", "", "mine"]
    assert YOURS not in said(at), "names only"
    assert table(at, "place")["from"].tolist() == ["here"] * 3 and "came from a file" not in said(at)


def test_a_run_out_of_a_file_is_marked_and_equal_runs_share_a_place(
    open_page: OpenPage, loupe_home: Path
) -> None:
    make(loupe_home, 2.1, name="foxes", owner=YOURS)
    path = loupe_home / "runs" / make(loupe_home, 2.1, name="copy") / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "imported": True}), "utf-8")
    make(loupe_home, 2.4, name="owls", owner=YOURS)
    at = open_class(open_page)
    rows = table(at, "place")
    assert rows["place"].tolist() == [1, 1, 3]
    assert dict(zip(rows["run"], rows["from"], strict=True)) == {
        "foxes": "here", "copy": "a file", "owls": "here",
    }  # fmt: skip
    assert [t.split()[0] for t in plotly(at, "class_standings")["layout"]["yaxis"]["ticktext"]] == [
        "1",
        "1",
        "3",
    ]
    assert "1 run of these came from a file" in said(at) and "The diamond is mine" in said(at)
    assert "2 runs share the lead with 0.7000 bits per byte" in said(at)


def test_each_text_and_each_objective_has_a_board_of_its_own(open_page: OpenPage, loupe_home: Path) -> None:
    for last in (2.0, 2.5):
        make(loupe_home, last, name="story")
    make(loupe_home, 1.0, name="easy", text="ab " * 200)
    make(loupe_home, 0.5, name="masked", objective="mlm")
    at = open_class(open_page)
    box = at.selectbox(key="class_text")
    story, easy, hidden = box.options
    assert re.fullmatch(r"fox [0-9a-f]{6}: guess the next token \(2 runs\)", story)
    assert re.fullmatch(r"fox [0-9a-f]{6}: guess the next token \(1 run\)", easy)  # another text of that name
    assert hidden == "fox: guess the hidden tokens (1 run)" and story != easy
    assert plotly(at, "class_standings")["layout"]["yaxis"]["ticktext"] == [
        "1 story (mine)",
        "2 story (mine)",
    ]
    assert "The diamond is mine" in said(at)
    box.select_index(2).run()
    assert not at.exception
    figure = plotly(at, "class_standings")
    assert figure["layout"]["yaxis"]["ticktext"] == ["1 masked (mine)"]
    assert figure["layout"]["xaxis"]["title"]["text"] == "loss per hidden token (nats)"
    assert "Masked runs stand apart" in said(at)


def test_a_run_is_watched_in_the_view_train(open_page: OpenPage, loupe_home: Path) -> None:
    make(loupe_home, 2.0, name="mine")
    theirs = make(loupe_home, 1.8, name="theirs", owner=YOURS)
    at = open_class(open_page)
    (box,) = [b for b in at.selectbox if b.label == "Watch a run"]
    assert box.options == ["1 theirs", "2 mine"]
    box.set_value(theirs).run()
    at.button(key="class_watch").click().run()
    assert not at.exception and at.session_state["watch"] == "train"
    assert at.query_params["run"] == theirs and "watch only" in said(at)


def test_the_queue_and_the_limit_are_said(open_page: OpenPage, loupe_home: Path) -> None:
    make(loupe_home, 2.0, name="done")
    for n, name in enumerate(("first", "second")):
        run_id = make(loupe_home, None, name=name, state="queued", owner=YOURS, learning_rate=0.1 + n)
        set_status(loupe_home, run_id, queued_at=1000.0 + n)
    failed = make(loupe_home, 4.0, name="burnt", state="failed", learning_rate=9.0)
    set_status(loupe_home, failed, message="Step 12 failed: the loss is not a finite number.")
    at = open_class(open_page)
    assert metrics(at) == {"Training": "0 of 3", "Waiting": "2", "Ended": "2"}
    words = said(at)
    assert "At most 3 runs at once" in words
    assert words.index("Place 1: **first**") < words.index("Place 2: **second**")
    assert "burnt** ended early. Step 12 failed" in words


def test_large_letters_for_a_projector(open_page: OpenPage, loupe_home: Path) -> None:
    make(loupe_home, 2.0)
    small = plotly(open_class(open_page), "class_standings")["layout"]["yaxis"]["tickfont"]["size"]
    at = open_class(open_page, class_large="true")
    assert plotly(at, "class_standings")["layout"]["yaxis"]["tickfont"]["size"] > small >= 18


def test_a_run_without_numbers_is_no_reason_to_fail(open_page: OpenPage, loupe_home: Path) -> None:
    make(loupe_home, None, state="queued")
    at = open_class(open_page)
    assert "Nothing was measured yet" in said(at) and metrics(at)["Waiting"] == "1"


def test_u12_names_are_shown_as_they_are(open_page: OpenPage, loupe_home: Path) -> None:
    make(loupe_home, 2.0, name=MARKUP)
    make(loupe_home, None, name=MARKUP, state="queued")
    make(loupe_home, 3.0, name=MARKUP, state="failed")
    at = open_class(open_page)
    for element in (*at.markdown, *at.caption, *at.info, *at.warning, *at.error):
        assert not re.search(r"(?<!\\)<(img|b)", element.value)
        assert "$x$" not in element.value and ":smile:" not in element.value
    for label in plotly(at, "class_standings")["layout"]["yaxis"]["ticktext"]:
        assert "<" not in label and "$" not in label


def test_a_deleted_run_leaves_the_board(open_page: OpenPage, loupe_home: Path) -> None:
    run_id = make(loupe_home, 2.0, name="gone")
    make(loupe_home, 2.5, name="stays")
    at = open_class(open_page)
    RunStore(loupe_home).delete(run_id, MINE)
    st.cache_resource.clear()
    at.run()
    assert not at.exception
    assert plotly(at, "class_standings")["layout"]["yaxis"]["ticktext"] == ["1 stays (mine)"]


def test_no_diamond_is_spoken_of_where_there_is_none(open_page: OpenPage, loupe_home: Path) -> None:
    for last in (2.0, 2.2):
        make(loupe_home, last, owner=YOURS)
    make(loupe_home, 1.0, text="ab " * 200)  # mine, on the board of another text
    assert "diamond" not in said(open_class(open_page))
