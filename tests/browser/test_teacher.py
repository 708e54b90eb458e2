"""Two browsers: the teacher gives the secret and stops a run, its owner reads so. Nothing trains."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from engine import new_runs
from engine.teacher_secret import secret_of
from tests.browser.conftest import Browse, Server, axe, no_exception, open_at, settle
from tests.pages.made_runs import EVALS, MINE, make_run, set_status


@pytest.fixture
def waiting(server: Server) -> Iterator[str]:
    """A run in the queue, while new runs only wait."""
    new_runs.let_begin(server.home, False)
    run_id = make_run(server.home, MINE, name="Foxes", records=EVALS)
    set_status(server.home, run_id, state="queued", queued_at=1.0)
    yield run_id
    for folder in (server.home / "runs").glob("2*"):
        shutil.rmtree(folder, ignore_errors=True)
    new_runs.let_begin(server.home, True)


def test_the_teacher_stops_a_run_and_its_owner_reads_so(server: Server, waiting: str, browse: Browse) -> None:
    mine = browse()
    mine.add_init_script(f"localStorage.setItem('loupe-owner', '{MINE}')")
    open_at(mine, f"{server.url}/training?run={waiting}")
    expect(mine.get_by_text("Number 1 in the queue")).to_be_visible()

    teacher, word = browse(scheme="dark", width=390), secret_of(server.home)
    open_at(teacher, f"{server.url}/teacher?desk=runs")
    field = teacher.get_by_label("Teacher’s secret")
    field.fill("a guess")
    field.press("Enter")
    expect(teacher.get_by_text("That is not the teacher’s secret.")).to_be_visible()
    expect(field).to_have_value("")
    field.fill(word)
    field.press("Enter")
    stop = teacher.locator(f".st-key-teacher_stop_{waiting}").get_by_role("button", name="Stop")
    expect(teacher.get_by_role("heading", name="Room on the disk")).to_be_visible()
    settle(teacher)
    expect(stop).to_have_count(1)
    no_exception(teacher)
    assert word not in teacher.content() and word not in teacher.url
    assert axe(teacher) == []
    stop.click()
    expect(teacher.get_by_text("No run trains or waits now.")).to_be_visible()

    expect(mine.get_by_text("Your teacher stopped this run")).to_be_visible()
    no_exception(mine)
    open_at(teacher, f"{server.url}/teacher?desk=runs")  # a reload begins anew
    expect(teacher.get_by_label("Teacher’s secret")).to_be_visible()
    assert word not in server.log.read_text("utf-8", "replace")
