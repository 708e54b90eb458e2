"""The page of fine-tuning in a browser, with real training: the shipped model learns to answer."""

import json
import re
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import (
    Browse,
    Server,
    fits_a_phone,
    no_exception,
    open_at,
    running_server,
    settle,
)

SLOW = 180_000  # ms; a busy machine makes training wait
PAIRS = "\n".join(json.dumps({"prompt": f"What is {i}?", "answer": "A red fox."}) for i in range(20))
SETTINGS = {"tuning_answers_pairs": "pasted", "tuning_answers_paste": PAIRS, "tuning_steps_answers": 6}


@pytest.fixture(scope="module")
def tuning_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of its own, whose runs end with it."""
    with running_server(tmp_path_factory.mktemp("tuning"), LOUPE_NICE="0") as running:
        yield running
    for run in (running.home / "runs").glob("2*"):
        (run / "stop").touch()  # a failed test leaves its run behind


def test_a_model_learns_to_answer_and_is_compared_with_what_it_was(
    browse: Browse, tuning_server: Server
) -> None:
    page = browse()
    query = urlencode({"tune": "answers", "set": json.dumps(SETTINGS)})
    open_at(page, f"{tuning_server.url}/tuning?{query}")
    expect(page.locator(".st-key-tuning_strip_before .chip").first).to_be_visible()
    expect(page.locator(".st-key-tuning_strip_after")).to_have_count(0)
    page.get_by_role("button", name="Start fine-tuning").click()
    expect(page.locator(".st-key-tuning_strip_after .chip").first).to_be_visible(timeout=SLOW)
    settle(page)
    no_exception(page)
    before, after = (
        page.locator(f".st-key-tuning_strip_{which} .chip").all_inner_texts() for which in ("before", "after")
    )
    assert len(before) == len(after) and before != after  # the same tokens, other numbers under them
    words = [[re.split(r"\s", chip)[0] for chip in chips] for chips in (before, after)]
    assert words[0] == words[1]
    expect(page.get_by_text("Fresh prompts, side by side")).to_be_visible()
    expect(page.get_by_text("What it learned, what it forgot")).to_be_visible()
    page.reload()
    expect(page.locator(".st-key-tuning_strip_after .chip").first).to_be_visible()  # nothing is lost
    settle(page)
    fits_a_phone(page)
