"""The flow of boxes in a real browser: it lights up, it is reached by keyboard, a box leads to its page."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Browse, Server, axe, no_exception, open_at, settle


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_boxes_light_up_and_lead_to_their_pages(
    server: Server, browse: Browse, scheme: str, width: int
) -> None:
    page = browse(scheme=scheme, width=width)
    open_at(page, f"{server.url}/examples?example=softmax")
    boxes = page.locator(".st-key-examples_flow_flow .box")
    expect(boxes).to_have_count(8)
    expect(page.locator(".st-key-examples_flow_flow .box[aria-current=step]")).to_have_count(2)
    expect(page.locator('.box[data-box="softmax"]')).to_have_accessible_name(re.compile("^softmax. Opens: "))
    assert page.evaluate(
        "() => { const main = document.querySelector('[data-testid=stMain]');"
        " return main.scrollWidth <= main.clientWidth }"
    ), "nothing may stick out"
    assert axe(page) == []
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
