"""The flow of boxes in a real browser: it lights up, it is reached by keyboard, a box leads to its page."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import (
    Browse,
    Server,
    axe_in_both_themes,
    fits_a_phone,
    no_exception,
    open_at,
    settle,
)


def test_boxes_light_up_and_lead_to_their_pages(server: Server, browse: Browse) -> None:
    page = browse()
    open_at(page, f"{server.url}/examples?example=softmax")
    boxes = page.locator(".st-key-examples_flow_flow .box")
    expect(boxes).to_have_count(8)
    expect(page.locator(".st-key-examples_flow_flow .box[aria-current=step]")).to_have_count(2)
    expect(page.locator('.box[data-box="softmax"]')).to_have_accessible_name(re.compile("^softmax. Opens: "))
    assert axe_in_both_themes(page) == []
    fits_a_phone(page)
    boxes.nth(5).focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the box of probabilities
    expect(page).to_have_url(re.compile("/next_token"))
    settle(page)
    no_exception(page)


def test_a_box_leads_to_another_example(server: Server, browse: Browse) -> None:
    page = browse()
    open_at(page, f"{server.url}/examples?example=perplexity")
    page.locator('.box[data-box="backward"]').click()
    expect(page).to_have_url(re.compile("example=gradient"))
    expect(page.get_by_text("The slope of the loss in each score")).to_be_visible()
    settle(page)
    no_exception(page)


def test_a_formula_that_is_too_wide_for_a_telephone_scrolls_with_keys(server: Server, browse: Browse) -> None:
    page = browse(width=390)
    open_at(page, f"{server.url}/examples?example=tiny-attention")
    wide = page.locator(".katex-display[tabindex]")
    expect(wide).to_have_count(1)
    wide.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.activeElement.scrollLeft > 0")
    assert axe_in_both_themes(page) == []
