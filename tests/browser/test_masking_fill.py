"""Gibbs resampling plays by itself, step after step, and stops when told to."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Browse, Server, axe, open_at, settle
from ui import model_refs

pytestmark = pytest.mark.skipif(
    {ref.objective for ref in model_refs.shipped_models()} != {"clm", "mlm"},
    reason="pretrained/ has no pair of a causal and a masked model",
)


def test_gibbs_plays_and_pauses(server: Server, browse: Browse) -> None:
    page = browse()
    open_at(page, server.url + "/masking?hide=fill-blanks")
    page.get_by_role("button", name="Watch Gibbs with two names").click()
    steps = page.locator(".st-key-masking_fill_step").get_by_role("slider")
    expect(steps).to_have_value("40")
    settle(page)
    play = page.get_by_role("button", name=re.compile("Play$"))
    play.click()
    expect(steps).to_have_value(re.compile("^[2-9]$"), timeout=30_000)
    page.get_by_role("button", name=re.compile("Pause$")).click()
    expect(play).to_be_visible()
    settle(page)
    now = steps.input_value()
    strip = page.locator(".st-key-masking_fill_strip")
    expect(strip.get_by_text("new", exact=True)).to_have_count(1)
    page.wait_for_timeout(1500)
    assert steps.input_value() == now, "paused means paused"
    assert axe(page) == []
