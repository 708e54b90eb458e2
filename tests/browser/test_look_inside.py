"""Tokens, Next token and Attention in a real browser: click, keyboard, any text, both themes."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Browse, Server, go_to, no_exception, open_page, settle
from ui import model_refs

MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"
STORY = "Once upon a time, there was a"
REPEATED = "a a a a a a a"
PAGES = ("tokens", "next_token", "attention")

SHIPPED = {ref.id for ref in model_refs.shipped_models()}
pytestmark = pytest.mark.skipif(
    "stories-clm" not in SHIPPED,
    reason="stories-clm is not there: python -m pretrained.make stories-clm makes it",
)


def chips(page: Page, key: str) -> Locator:
    return page.locator(f".st-key-{key} .chip")


def test_a_click_and_the_keyboard_choose_a_token(server: Server, browse: Browse) -> None:
    page = browse()
    open_page(page, server, "next_token", STORY)
    chips(page, "next_token_strip").nth(2).click()
    expect(page.get_by_role("heading", name=re.compile("After token 2,"))).to_be_visible()
    expect(page).to_have_url(re.compile("pos=2"))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=re.compile("After token 3,"))).to_be_visible()
    expect(chips(page, "next_token_strip").nth(3)).to_have_attribute("aria-pressed", "true")
    settle(page)
    no_exception(page)


def test_a_link_opens_the_same_view(server: Server, browse: Browse) -> None:
    page = browse()
    open_page(page, server, "attention", STORY, pos="3", layer="2", head="2")
    expect(page.get_by_text("Layer 2, head 2", exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name=re.compile("Token 3,"))).to_be_visible()


@pytest.mark.parametrize("model", ["stories-clm", "stories-mlm"])
def test_repeated_tokens_have_cells_of_their_own(server: Server, browse: Browse, model: str) -> None:
    if model not in SHIPPED:
        pytest.skip(f"{model} is not there: python -m pretrained.make {model} makes it")
    page = browse()
    open_page(page, server, "attention", REPEATED, model=model)
    expect(chips(page, "attention_query")).to_have_count(7)
    drawn = page.locator(".st-key-attention_map .js-plotly-plot")
    expect(drawn.locator(".xtick")).to_have_count(7)
    expect(drawn.locator(".ytick")).to_have_count(7)
    assert drawn.evaluate("plot => plot.calcdata[0][0].z.map(row => row.length)") == [7] * 7


def test_a_head_and_a_weight_are_chosen_without_a_mouse(server: Server, browse: Browse) -> None:
    page = browse()
    open_page(page, server, "attention", STORY)
    page.locator(".st-key-attention_heads .board").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Layer 1, head 2", exact=True)).to_be_visible()
    settle(page)
    chips(page, "attention_key").first.focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile(r"^Why .* on token 0,"))).to_be_visible()
    settle(page)
    no_exception(page)


@pytest.mark.parametrize("name", PAGES)
def test_markup_in_the_text_stays_text(server: Server, browse: Browse, name: str) -> None:
    page = browse()
    said: list[str] = []
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    open_page(page, server, name, MARKUP)
    main = page.get_by_test_id("stMain")
    expect(main.locator("img[src=x]")).to_have_count(0)
    expect(main.locator("b", has_text=re.compile("^b$"))).to_have_count(0)
    expect(main.locator("em")).to_have_count(0)
    assert not said
    strip = page.locator(".strip").first
    expect(strip).to_have_attribute("data-count", re.compile("[1-9]"))
    assert "".join(strip.locator(".text").all_inner_texts()) == MARKUP.replace(" ", "·")


def test_choices_survive_a_page_change(server: Server, browse: Browse) -> None:
    page = browse()
    open_page(page, server, "next_token", STORY)
    chips(page, "next_token_strip").nth(4).click()
    expect(page.get_by_role("heading", name=re.compile("After token 4,"))).to_be_visible()
    page.get_by_role("radio", name="bits").click()
    expect(page.get_by_text(re.compile("surprise in bits"))).to_be_visible()
    settle(page)
    go_to(page, "Tokens")
    expect(page.get_by_role("heading", level=1, name="Tokens")).to_be_visible()
    settle(page)
    go_to(page, "Next token")
    expect(page.get_by_role("heading", name=re.compile("After token 4,"))).to_be_visible()
    expect(page.get_by_text(re.compile("surprise in bits"))).to_be_visible()
    expect(page).to_have_url(re.compile("pos=4"))
    settle(page)


def test_what_is_tried_breaks_nothing(server: Server, browse: Browse) -> None:
    page = browse(scheme="dark")
    for name in PAGES:
        open_page(page, server, name, STORY)
        buttons = page.locator("[class*=st-key-try_] button")
        for i in range(buttons.count()):
            buttons.nth(i).click()
            settle(page)
            no_exception(page)
