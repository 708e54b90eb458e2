"""Runs side by side and the board of a class, in a browser. The runs are made of records; nothing trains."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from engine.runs import RunStore
from tests.browser.conftest import Browse, Server, axe, no_exception, open_at, settle
from tests.pages.test_runs_view import MINE, YOURS, make


@pytest.fixture
def runs(server: Server) -> Iterator[list[str]]:
    """Three seeds of mine, another run of mine, and one of somebody else."""
    made = [make(server.home, 2.0 + seed / 10, name="foxes", seed=seed) for seed in range(3)]
    made.append(make(server.home, 1.9, name="owls", learning_rate=1e-3))
    made.append(make(server.home, 1.5, name="theirs", owner=YOURS, learning_rate=2e-3))
    yield made
    for folder in (server.home / "runs").glob("2*"):
        shutil.rmtree(folder, ignore_errors=True)


def owned(browse: Browse, scheme: str = "light", width: int = 1280) -> Page:
    page = browse(scheme=scheme, width=width)
    page.add_init_script(f"localStorage.setItem('loupe-owner', '{MINE}')")
    return page


def test_runs_are_drawn_taken_away_and_brought_back(
    server: Server, runs: list[str], browse: Browse, tmp_path: Path
) -> None:
    page = owned(browse, "dark", 390)
    open_at(page, f"{server.url}/training?watch=runs")
    plot = page.locator(".st-key-runs_curves_clm .js-plotly-plot")
    expect(plot.locator(".legendtext")).to_have_text(["A owls", "B foxes"])
    settle(page)
    no_exception(page)
    assert axe(page) == []
    button = page.get_by_role("button", name="Take it away (.zip)")
    with page.expect_download() as coming:
        button.press("Enter")
    path = tmp_path / coming.value.suggested_filename
    coming.value.save_as(path)
    assert path.name.startswith("owls-") and path.suffix == ".zip"
    page.locator(".st-key-runs_upload input[type=file]").set_input_files(path)
    expect(plot.locator(".legendtext")).to_have_count(3)
    settle(page)
    no_exception(page)
    assert [info.name for info in RunStore(server.home).list(MINE)].count("owls") == 2


def test_a_run_of_the_board_is_watched_by_pressing_its_dot(
    server: Server, runs: list[str], browse: Browse
) -> None:
    page = owned(browse)
    open_at(page, f"{server.url}/training?watch=class")
    dots = page.locator(".st-key-class_standings .js-plotly-plot .point")
    expect(dots).to_have_count(5)
    settle(page)
    no_exception(page)
    assert axe(page) == []
    dots.first.hover(force=True)  # what lies over it hands the press on to what the pointer is nearest to
    dots.first.click(force=True)
    expect(page.get_by_role("radio", name="Train", exact=True)).to_be_checked()
    expect(page.get_by_text("Somebody else’s run: watch only.")).to_be_visible()
    settle(page)
    no_exception(page)
    assert f"run={runs[-1]}" in page.url
