"""The table of the founding texts: every page, view, test, lesson and exercise that it names is there."""

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

import wording
from engine.exercise_list import IDS
from ui import nav
from ui.example_list import EXAMPLES
from ui.lesson_list import LESSONS

ROOT = Path(__file__).parent.parent
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "seeds.md").read_text("utf-8").splitlines()
    if line.startswith("| ") and "`/" in line
]
VIEWS = {  # page and name in the address -> the table of what may stand there
    ("next_token", "look"): "pages.next_token:view",
    ("embeddings", "vectors"): "pages.embeddings:view",
    ("tokens", "view"): "pages.tokens:view",
    ("inside", "inside"): "pages.inside:view",
    ("generation", "lab"): "pages.generation:view",
    ("training", "watch"): "pages.training:views",
    ("masking", "hide"): "pages.masking:views",
    ("tuning", "tune"): "pages.tuning:views",
}
LISTS = {
    ("examples", "example"): EXAMPLES,
    ("lessons", "lesson"): LESSONS,
    ("exercises", "exercise"): IDS,
}


def test_the_table_is_read() -> None:
    assert len(ROWS) > 80


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40] + row[1][:40])
def test_what_a_row_names_is_there(row: list[str]) -> None:
    address = urlsplit(next(cell for cell in row if cell.startswith("`/")).strip("`"))
    page = address.path.strip("/") or nav.PAGES[0].name
    assert page in {info.name for info in nav.PAGES}
    for name, (value,) in parse_qs(address.query).items():
        if (page, name) in LISTS:
            assert value in LISTS[page, name]
        else:
            area, table = VIEWS[page, name].split(":")
            assert value in wording.find(area, table, wording.SOURCE)
    tests = re.findall(r"`([\w/]+\.py)`", " ".join(row))
    assert tests and all((ROOT / "tests" / name).is_file() for name in tests), tests


def test_every_example_stands_in_the_table() -> None:
    written = (ROOT / "docs" / "seeds.md").read_text("utf-8")
    assert [slug for slug in EXAMPLES if f"example={slug}`" not in written] == []


def test_lessons_and_exercises_of_the_table_exist() -> None:
    for row in ROWS:
        if not row[1].startswith("`/"):  # a slip: no lesson of its own
            continue
        lesson, exercise = row[-2:]
        assert not lesson or lesson in LESSONS, row
        assert not exercise or exercise in IDS, row
