"""The Tokens page in a real browser: strip and table are one choice, an emoji is one piece, right-to-left."""

import re

from playwright.sync_api import Locator, Page, expect

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

FAMILY = "Zoë saw a 👨‍👩‍👧 at 9:45."


def opened(page: Page, server: Server, text: str, vocabulary: str = "bytes", **query: str) -> None:
    open_page(page, server, "tokens", text, **query)
    if "view" not in query:
        page.get_by_role("radio", name=vocabulary, exact=True).click()
        expect(page.get_by_role("radio", name=vocabulary, exact=True)).to_be_checked()
        settle(page)


def chips(page: Page, key: str = "tokens_strip") -> Locator:
    return page.locator(f".st-key-{key} .chip")


def rows(page: Page) -> Locator:
    return page.locator(".st-key-tokens_table tbody tr")


def chosen(page: Page, index: int) -> None:
    """Strip, table, heading and address agree."""
    expect(page.get_by_role("heading", name=re.compile(rf"^Token {index},"))).to_be_visible()
    expect(chips(page).nth(index)).to_have_attribute("aria-pressed", "true")
    expect(rows(page).nth(index)).to_have_attribute("aria-selected", "true")
    expect(page.locator(".st-key-tokens_strip [aria-pressed=true]")).to_have_count(1)
    expect(page.locator(".st-key-tokens_table [aria-selected=true]")).to_have_count(1)
    expect(page).to_have_url(re.compile(rf"pos={index}(&|$)"))
    settle(page)


def test_a_chip_chooses_its_row_and_a_row_its_chip(server: Server, browse: Browse) -> None:
    page = browse()
    opened(page, server, "the cat sat on the mat, and the dog sat on the cat")
    expect(rows(page)).to_have_count(50)
    chips(page).nth(40).click()
    chosen(page, 40)
    inside = """row => {
        const box = row.closest('.box').getBoundingClientRect(), here = row.getBoundingClientRect()
        return here.top >= box.top && here.bottom <= box.bottom }"""
    assert rows(page).nth(40).evaluate(inside)  # scrolled into sight
    rows(page).nth(38).click()
    chosen(page, 38)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    chosen(page, 41)
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    chosen(page, 0)
    chips(page).first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    chosen(page, 1)
    no_exception(page)


def test_an_emoji_is_one_framed_piece(server: Server, browse: Browse) -> None:
    page = browse()
    opened(page, server, FAMILY)
    groups = page.locator(".st-key-tokens_strip .group.several")
    expect(groups).to_have_count(2)  # ë and the family
    expect(groups.nth(1)).to_have_attribute("data-tokens", "18")
    expect(groups.nth(1).locator(".whole")).to_have_text("👨‍👩‍👧")
    groups.nth(1).locator(".chip").nth(4).click()
    expect(groups.nth(1)).to_have_class(re.compile("chosen"))
    expect(groups.nth(0)).not_to_have_class(re.compile("chosen"))
    said = page.get_by_text(re.compile("5 code points, 18 bytes in 18 tokens. .* part 5 of 18"))
    expect(said).to_be_visible()
    assert "\ufffd" not in page.get_by_test_id("stMain").inner_text()
    settle(page)


def test_right_to_left_text_stands_in_token_order(server: Server, browse: Browse) -> None:
    page = browse()
    opened(page, server, "שלום", "characters")
    expect(chips(page)).to_have_count(4)
    assert [chip.inner_text() for chip in chips(page).all()] == list("שלום")
    lefts = [chip.bounding_box()["x"] for chip in chips(page).all()]  # type: ignore[index]
    assert lefts == sorted(lefts)
    settle(page)


def test_the_copied_text_is_the_raw_text(server: Server, browse: Browse) -> None:
    page = browse()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    text = " a\tcat \n"
    opened(page, server, text)
    page.locator(".st-key-tokens_copy_text .copy").click()
    expect(page.locator(".st-key-tokens_copy_text .copy")).to_have_attribute("data-copied", "yes")
    assert page.evaluate("navigator.clipboard.readText()") == text
    settle(page)


def test_the_other_reading_can_be_looked_at(server: Server, browse: Browse) -> None:
    page = browse()
    opened(page, server, "hi <|endoftext|>")
    chips(page, "tokens_other").nth(3).click()
    expect(page.get_by_text("As control tokens: 4 tokens, looked at below")).to_be_visible()
    chosen(page, 3)
    expect(chips(page)).to_have_count(4)
    no_exception(page)


def test_a_piece_of_a_comparison_opens_closely(server: Server, browse: Browse) -> None:
    page = browse()
    opened(page, server, "the cat sat", view="side-by-side")
    expect(page.locator("[class*=st-key-tokens_head_] .strip").first).to_be_visible()
    settle(page)
    chips(page, "tokens_head_0").nth(5).click()
    expect(page.get_by_role("radio", name="Pieces")).to_be_checked()
    chosen(page, 5)
    expect(page.get_by_role("radio", name="bytes", exact=True)).to_be_checked()
    no_exception(page)


def test_no_barrier_is_found(server: Server, browse: Browse) -> None:
    page = browse()
    opened(page, server, FAMILY + " <|endoftext|>")
    for view in every_view(page, "view", ("pieces", "side-by-side", "languages", "train-your-own")):
        if view == "train-your-own":
            break  # test_merges.py looks at it
        if view != "languages":
            page.get_by_text(re.compile("^More vocabularies")).click()
        settle(page)
        assert axe_in_both_themes(page) == [], view
        fits_a_phone(page)
