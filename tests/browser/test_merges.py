"""Train a tokenizer in a real browser: the slider by keyboard, play without flicker, kept over a reload."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import (
    Browse,
    Server,
    axe_in_both_themes,
    fits_a_phone,
    no_exception,
    open_at,
    settle,
)

VIEW = "tokens?view=train-your-own"


def opened(page: Page, server: Server, text: str = "aaabdaaabac") -> None:
    open_at(page, f"{server.url}/{VIEW}&text={text}")
    expect(page.get_by_role("heading", name="Try this")).to_be_visible()
    settle(page)


def merge(page: Page) -> Locator:
    return page.locator(".st-key-merges_chips .merge")


def by_hand(page: Page) -> None:
    """The eleven letters, with three merges."""
    page.get_by_role("button", name="Merge by hand").click()
    expect(merge(page)).to_have_attribute("data-ids", "97,97,256")
    settle(page)


def test_the_slider_by_keyboard_and_the_buttons(server: Server, browse: Browse) -> None:
    page = browse()
    opened(page, server)
    by_hand(page)
    slider = page.locator(".st-key-merges_n").get_by_role("slider")
    slider.press("End")
    expect(merge(page)).to_have_attribute("data-ids", re.compile(r",258$"))
    expect(merge(page)).to_have_attribute("aria-label", re.compile("becomes aaab, id 258"))
    chips = page.locator(".st-key-merges_strip .chip")
    expect(chips).to_have_count(5)
    assert [chip.get_attribute("data-id") for chip in chips.all()] == ["258", "100", "258", "97", "99"]
    settle(page)
    page.get_by_role("button", name="Back", exact=True).click()
    expect(slider).to_have_value("2")
    slider.press("Home")
    expect(page.get_by_text("Raw bytes")).to_be_visible()
    expect(chips).to_have_count(11)
    settle(page)
    no_exception(page)


COUNT_CURVES = """() => {
    window.curves = 0;
    const within = node => node.nodeType === 1 && node.closest(".st-key-merges_curve");
    const plots = node => node.matches(".js-plotly-plot") + node.querySelectorAll(".js-plotly-plot").length;
    new MutationObserver(changes => changes.forEach(change => change.addedNodes.forEach(node => {
        if (within(node)) window.curves += plots(node);
    }))).observe(document.body, { childList: true, subtree: true });
}"""


def test_it_plays_to_the_end_and_the_curve_is_not_drawn_anew(server: Server, browse: Browse) -> None:
    page = browse()
    opened(page, server)
    by_hand(page)
    expect(page.locator(".st-key-merges_curve .js-line")).to_have_count(1)
    page.evaluate(COUNT_CURVES)
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    expect(merge(page)).to_have_attribute("data-ids", re.compile(r",258$"))
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    settle(page)
    assert page.evaluate("window.curves") <= 2  # where it begins and ends to play, and not at every merge
    no_exception(page)


def test_what_is_kept_is_there_after_a_reload_and_on_the_training_page(
    server: Server, browse: Browse
) -> None:
    page = browse()
    opened(page, server)
    by_hand(page)
    page.get_by_role("button", name="Use this tokenizer for my next run").click()
    expect(page.get_by_text("BPE 259 is kept for you")).to_be_visible()
    settle(page)
    open_at(page, f"{server.url}/training")
    page.get_by_role("combobox", name="Tokenizer").click()
    expect(page.get_by_role("option", name=re.compile("My tokenizer: BPE 259"))).to_be_visible()
    no_exception(page)


def test_accessible_and_no_wider_than_the_screen(server: Server, browse: Browse) -> None:
    page = browse()
    opened(page, server)
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(3)
    expect(page.get_by_test_id("stDataFrame").locator("canvas").first).to_be_visible()
    expect(page.locator(".st-key-merges_strip .chip").first).to_be_visible()
    settle(page)
    assert axe_in_both_themes(page) == []
    fits_a_phone(page)
