"""Hiding tokens in a real browser: by click, by keyboard, several at once."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import (
    Browse,
    Server,
    axe,
    axe_in_both_themes,
    fits_a_phone,
    go_to,
    no_exception,
    open_at,
    settle,
)
from ui import model_refs

STORY = "Once upon a time, there was a princess called Nora. She"
MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"

pytestmark = pytest.mark.skipif(
    {ref.objective for ref in model_refs.shipped_models()} != {"clm", "mlm"},
    reason="pretrained/ has no pair of a causal and a masked model",
)


def open_masking(server: Server, page: Page, text: str = STORY) -> None:
    open_at(page, f"{server.url}/masking?text={quote(text)}")
    expect(page.locator(".st-key-masking_both .js-plotly-plot")).to_be_visible()
    settle(page)


def chip(page: Page, index: int) -> Locator:
    return page.locator(f".st-key-masking_strip .chip[data-index='{index}']")


def gaps(page: Page) -> Locator:
    return page.locator(".st-key-masking_strip .chip.hidden")


def bars(page: Page, side: str) -> str:
    return page.locator(f".st-key-masking_{side} .barlayer").first.inner_html()


def changed(page: Page, side: str, before: str) -> None:
    """Wait until the bars of a side are others."""
    page.wait_for_function(
        "([side, before]) => { const e = document.querySelector(`.st-key-masking_${side} .barlayer`);"
        " return e && e.innerHTML !== before }",
        arg=[side, before],
    )


@pytest.mark.parametrize("how", ["click", "keyboard"])
def test_hide_a_token_and_both_guesses_change(server: Server, browse: Browse, how: str) -> None:
    page = browse()
    open_masking(server, page)
    expect(gaps(page)).to_have_count(1)
    first = int(gaps(page).get_attribute("data-index") or 0)
    target = first - 1
    before = {side: bars(page, side) for side in ("left", "both")}
    if how == "click":
        chip(page, target).click()
    else:
        chip(page, first).focus()
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Enter")
    expect(gaps(page)).to_have_count(2)
    expect(chip(page, target)).to_have_attribute("aria-label", re.compile("hidden by the mask"))
    for side in ("left", "both"):
        changed(page, side, before[side])
    settle(page)
    expect(chip(page, target)).to_have_attribute("aria-pressed", "true")
    if how == "click":
        chip(page, target).click()
    else:
        page.keyboard.press("Enter")  # the chip still has the focus
    expect(gaps(page)).to_have_count(1)
    settle(page)
    assert int(gaps(page).get_attribute("data-index") or 0) == first
    no_exception(page)


def test_gaps_survive_a_page_change(server: Server, browse: Browse) -> None:
    page = browse()
    open_masking(server, page)
    page.get_by_role("button", name="Hide all").click()
    n = page.locator(".st-key-masking_strip .chip").count()
    expect(gaps(page)).to_have_count(n)
    settle(page)
    go_to(page, "Home")
    expect(page.get_by_role("heading", level=1, name="Loupe")).to_be_visible()
    settle(page)
    go_to(page, "Masking")
    expect(gaps(page)).to_have_count(n)
    no_exception(page)


def test_a_typed_mask_is_one_chip(server: Server, browse: Browse) -> None:
    page = browse()
    open_masking(server, page, "Once upon a time, there was a [MASK] called Nora. She")
    expect(gaps(page)).to_have_count(1)
    expect(gaps(page)).to_have_text("·[MASK]")  # with the space before it: words carry theirs
    no_exception(page)


def test_a_link_opens_a_view_and_every_epoch_has_other_masks(server: Server, browse: Browse) -> None:
    page = browse()
    open_at(page, f"{server.url}/masking?hide=masked-batch&text={quote(STORY)}")
    row = page.locator(".st-key-masking_batch .strip")
    expect(page.locator(".st-key-masking_batch .chip").first).to_be_visible()
    expect(page.locator(".st-key-masking_epochs .js-plotly-plot")).to_be_visible()
    before = row.inner_text()
    page.get_by_role("button", name="Next epoch").click()
    expect(row).not_to_have_text(before, use_inner_text=True)
    settle(page)
    assert not axe(page)
    no_exception(page)


def test_markup_is_only_text(server: Server, browse: Browse) -> None:
    page = browse()
    open_masking(server, page, MARKUP)
    main = page.get_by_test_id("stMain")
    expect(main.locator("img, b")).to_have_count(0)
    no_exception(page)


def test_everyone_can_read_it(server: Server, browse: Browse) -> None:
    page = browse()
    open_masking(server, page)
    box = page.locator(".st-key-masking_both").bounding_box()
    assert box is not None and box["y"] < 500, "the picture begins above the fold"
    assert not axe_in_both_themes(page)
    fits_a_phone(page)
