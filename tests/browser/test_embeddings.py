"""Embeddings in a real browser: views by link, a token by keyboard, the map's slider, both themes, axe."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import (
    Browse,
    Server,
    axe_in_both_themes,
    every_view,
    fits_a_phone,
    no_exception,
    open_page,
    settle,
)
from ui import model_refs

STORY = "Once upon a time, there was a princess called Lily"
VIEWS = {
    "look-up": "embeddings_lookup",
    "position": "embeddings_turn",
    "neighbours": "embeddings_neighbours",
    "map": "embeddings_map",
    "length": "embeddings_norms",
}

SHIPPED = {ref.id for ref in model_refs.shipped_models()}
pytestmark = pytest.mark.skipif(
    "stories-clm" not in SHIPPED,
    reason="stories-clm is not there: python -m pretrained.make stories-clm makes it",
)


def opened(page: Page, server: Server, view: str, **query: str) -> None:
    open_page(page, server, "embeddings", STORY, vectors=view, **query)
    expect(page.locator(f".st-key-{VIEWS[view]} .js-plotly-plot .main-svg").first).to_be_visible()
    settle(page)


def test_every_view_can_be_used_by_all(server: Server, browse: Browse) -> None:
    page = browse()
    opened(page, server, "look-up")
    for view in every_view(page, "vectors", VIEWS):
        expect(page.locator(f".st-key-{VIEWS[view]} .js-plotly-plot .main-svg").first).to_be_visible()
        assert not axe_in_both_themes(page), view
        for formula in page.locator(".katex-display").all():  # axe has waited for the fonts
            assert formula.evaluate("e => e.scrollWidth <= e.clientWidth + 2"), (view, formula.inner_text())
        fits_a_phone(page)


def test_the_keyboard_chooses_a_token_and_a_view(server: Server, browse: Browse) -> None:
    page = browse()
    opened(page, server, "neighbours")
    expect(page.get_by_text(re.compile("How alike “·Lily”"))).to_be_visible()
    page.locator(".st-key-embeddings_strip .chip").last.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile("How alike “·called”"))).to_be_visible()
    settle(page)
    page.get_by_role("radio", name="Length").click()
    expect(page.get_by_text(re.compile("How long “·called”"))).to_be_visible()
    expect(page).to_have_url(re.compile("vectors=length"))
    settle(page)
    no_exception(page)


def test_the_map_goes_back_in_time_by_keyboard(server: Server, browse: Browse) -> None:
    if len(model_refs.history(model_refs.shipped_models()[0])) < 2:
        pytest.skip("pretrained/history is not there: there is one moment only")
    page = browse()
    opened(page, server, "map")
    plot = page.locator(".st-key-embeddings_map .js-plotly-plot")
    read = "p => ({x: p.layout.xaxis.range, y: p.layout.yaxis.range, at: p.calcdata[0][0].x})"
    before = plot.evaluate(read)
    thumb = page.locator("[class*=st-key-embeddings_step]").get_by_role("slider")
    value = thumb.get_attribute("aria-valuetext")
    thumb.focus()
    page.keyboard.press("Home")
    expect(thumb).not_to_have_attribute("aria-valuetext", str(value))
    settle(page)
    page.wait_for_function(
        "before => { const p = document.querySelector('.st-key-embeddings_map .js-plotly-plot');"
        " return p && p.calcdata && Math.abs(p.calcdata[0][0].x - before) > 1e-4 }",
        arg=before["at"],
    )
    expect(plot).to_have_count(1)  # the new one may stand beside the old one for a moment
    after = plot.evaluate(read)
    for axis in "xy":  # the last digit of a range is Plotly's own arithmetic
        assert after[axis] == pytest.approx(before[axis], abs=1e-9)
    no_exception(page)


def test_the_map_in_three_dimensions_is_drawn_offline(server: Server, browse: Browse) -> None:
    page = browse(scheme="dark")
    opened(page, server, "map")
    page.get_by_role("radio", name="3-D").click()
    expect(
        page.locator(".st-key-embeddings_map .gl-container, .st-key-embeddings_map canvas").first
    ).to_be_attached()
    settle(page)
    no_exception(page)
