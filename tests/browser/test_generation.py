"""Writing in a real browser: it streams, it stops and keeps what is there, and settings outlive the page."""

import re
from contextlib import suppress
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import (
    Browse,
    Server,
    axe_in_both_themes,
    every_view,
    fits_a_phone,
    go_to,
    no_exception,
    open_at,
    settle,
)
from ui import model_refs

PROMPT = "Once upon a time, there was a"
MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"

pytestmark = pytest.mark.skipif(
    not any(ref.objective == "clm" for ref in model_refs.shipped_models()),
    reason="pretrained/ has no causal model",
)


def open_generation(server: Server, page: Page, text: str = PROMPT, **settings: str) -> None:
    more = "".join(f"&{name}={quote(value)}" for name, value in settings.items())
    open_at(page, f"{server.url}/generation?text={quote(text)}{more}")
    expect(page.locator(".st-key-generation_stages .bars table")).to_be_visible()
    settle(page)


def open_list(page: Page, name: str) -> Locator:
    """The options of a list; on a fresh page a late run of the script may close it once."""
    options = page.get_by_role("option")
    for _ in range(5):
        page.get_by_role("combobox", name=name).click()
        with suppress(AssertionError):
            expect(options.nth(5)).to_be_visible(timeout=5_000)
            return options
        page.keyboard.press("Escape")
    raise AssertionError(f"The list {name} does not open.")


def written(page: Page) -> Locator:
    return page.locator(".loupe-written [data-part=written]")


def button(page: Page, name: str) -> Locator:
    return page.locator(f".st-key-generation_{name} button")


def write_many(page: Page) -> None:
    """Ask for so many tokens that there is time to interrupt."""
    page.get_by_text("More", exact=True).click()
    box = page.get_by_role("spinbutton", name="Tokens to write")
    box.fill("1000")
    box.press("Enter")
    expect(button(page, "write")).to_have_text("Write 1000 tokens")
    settle(page)
    page.locator(".st-key-generation_stop_at_end label").click()
    settle(page)
    button(page, "write").click()
    expect(written(page)).to_have_text(re.compile(r"\S+"))


@pytest.mark.parametrize("how", ["stop", "slider"])
def test_writing_streams_and_what_is_there_stays(server: Server, browse: Browse, how: str) -> None:
    page = browse()
    open_generation(server, page)
    write_many(page)
    begun = written(page).inner_text()
    expect(button(page, "stop")).to_be_enabled()
    if how == "stop":
        button(page, "stop").click()
    else:
        page.locator(".st-key-temperature").get_by_role("slider").press("ArrowRight")
    stopped = page.get_by_text(re.compile(r"Stopped after \d+ of 1000 tokens"))
    expect(stopped).to_be_visible()
    settle(page)
    text, words = written(page).inner_text(), stopped.inner_text()
    assert text.startswith(begun) and 0 < int(re.findall(r"\d+", words)[0]) < 1000
    expect(button(page, "stop")).to_be_disabled()
    button(
        page, "draw"
    ).click()  # another run: nothing was written in the meantime, and it goes on from there
    expect(page.get_by_text("How chance picked")).to_be_visible()
    expect(stopped).to_have_count(0)
    settle(page)
    assert written(page).inner_text().startswith(text)
    no_exception(page)


def test_temperature_0_writes_the_same_text_twice(server: Server, browse: Browse) -> None:
    page = browse()
    open_generation(server, page)
    page.get_by_role("button", name="Temperature 0", exact=True).click()
    done = page.get_by_text(re.compile(r"Wrote \d+ tokens, .* a second"))
    expect(done).to_be_visible()
    settle(page)
    first = written(page).inner_text()
    assert len(first) > 60
    button(page, "restart").click()
    expect(written(page)).to_have_text("")
    settle(page)
    button(page, "write").click()
    expect(done).to_be_visible()
    settle(page)
    assert written(page).inner_text() == first


def test_settings_and_text_survive_a_page_change(server: Server, browse: Browse) -> None:
    page = browse()
    open_generation(server, page)
    slider = page.locator(".st-key-temperature").get_by_role("slider")
    slider.press("ArrowRight")
    expect(slider).to_have_value("1.01")
    settle(page)
    button(page, "draw").click()
    expect(page.get_by_text("How chance picked")).to_be_visible()
    settle(page)
    text = written(page).inner_text()
    go_to(page, "Home")
    expect(page.get_by_role("heading", level=1, name="Loupe")).to_be_visible()
    settle(page)
    go_to(page, "Generation")
    expect(page.get_by_role("heading", level=1, name="Generation")).to_be_visible()
    expect(slider).to_have_value("1.01")
    assert written(page).inner_text() == text


def test_a_slider_changes_all_that_says_it_and_a_forced_token_all_of_the_page(
    server: Server, browse: Browse
) -> None:
    """The sliders and the picture are drawn alone: nothing else on the page may go stale."""
    page = browse()
    open_generation(server, page, temperature="1", top_p="1")
    bars, slider = page.locator(".st-key-generation_stages .bars"), page.locator(".st-key-temperature")
    page.get_by_text("Copy, download or share", exact=True).click()
    link = page.locator(".st-key-generation_link button")
    expect(link).to_be_visible()
    settle(page)
    before = bars.inner_text()
    slider.get_by_role("slider").press("ArrowRight")
    expect(bars).not_to_have_text(before)
    expect(page.locator(".katex-html").first).to_contain_text("1.01")
    expect(page).to_have_url(re.compile(r"temperature=1\.01"))
    settle(page)
    expect(link).to_have_count(1)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    link.click()
    assert "temperature=1.01" in page.evaluate("navigator.clipboard.readText()")
    bars.get_by_role("button").first.click()
    expect(page.get_by_text("How chance picked")).to_be_visible()
    expect(written(page)).to_have_text(re.compile(r"\S+"))
    settle(page)
    expect(link).to_have_count(1)
    page.get_by_text("More", exact=True).click()
    box = page.get_by_role("spinbutton", name="Tokens to write")
    box.fill("7")
    box.press("Enter")
    expect(button(page, "write")).to_have_text("Write 7 tokens")
    no_exception(page)


def test_markup_is_only_text(server: Server, browse: Browse) -> None:
    page = browse()
    open_generation(server, page, MARKUP)
    expect(page.locator(".loupe-written [data-part=prompt]")).to_have_text(MARKUP)
    expect(page.locator(".loupe-written b, .loupe-written img, .loupe-written .katex")).to_have_count(0)
    no_exception(page)


def draw(page: Page, n: int) -> None:
    """Draw n tokens, one after the other."""
    for _ in range(n):
        before = written(page).inner_text()
        button(page, "draw").click()
        expect(written(page)).not_to_have_text(before, use_inner_text=True)
        settle(page)


def branch(page: Page, name: str) -> Locator:
    return page.locator(f".loupe-branches tr[data-branch={name}]")


def test_force_rewind_branch_and_both_branches_after_a_page_change(server: Server, browse: Browse) -> None:
    page = browse()
    open_generation(server, page, temperature="2.5", top_p="1.0", seed="7")
    draw(page, 2)
    # force the fourth likeliest token, by its bar
    bar = page.locator(".st-key-generation_stages button.token").nth(3)
    name = bar.locator("bdi").inner_text()
    before = written(page).inner_text()
    bar.click()
    chips = page.locator(".st-key-generation_strip .chip")
    expect(chips).to_have_count(3)
    expect(page.get_by_text("no dice were thrown")).to_be_visible()
    settle(page)
    assert chips.nth(2).locator(".text").inner_text() == name
    assert written(page).inner_text().startswith(before)
    draw(page, 2)
    first = written(page).inner_text()
    # back to before the second token, with the keyboard
    chips.nth(4).focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-generation_strip .strip")).to_have_attribute("data-selected", "1")
    second = chips.nth(1).locator(".text").inner_text()
    expect(button(page, "rewind")).to_have_text(f"Rewind to before “{second}”")
    settle(page)
    button(page, "rewind").click()
    expect(chips).to_have_count(1)
    settle(page)
    draw(page, 3)
    other = written(page).inner_text()
    assert other != first
    expect(branch(page, "B").get_by_text("left A after 1 token", exact=True)).to_be_visible()
    # another page, and back
    go_to(page, "Home")
    expect(page.get_by_role("heading", level=1, name="Loupe")).to_be_visible()
    settle(page)
    go_to(page, "Generation")
    expect(page.get_by_role("heading", level=1, name="Generation")).to_be_visible()
    expect(branch(page, "B")).to_be_visible()
    settle(page)
    expect(written(page)).to_have_text(other, use_inner_text=True)
    expect(branch(page, "A").locator("[data-part=forced]")).to_have_count(1)
    page.locator(".st-key-generation_branch").get_by_text("Branch A").click()
    expect(written(page)).to_have_text(first, use_inner_text=True)
    expect(chips).to_have_count(5)
    no_exception(page)


def test_any_token_is_found_by_typing_and_forced_by_keyboard(server: Server, browse: Browse) -> None:
    page = browse()
    open_generation(server, page)
    label = open_list(page, "Any token").nth(5).inner_text()  # as "·dragon  (id 512)"
    page.keyboard.type(label)
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    name = label.rpartition("(id")[0].strip()
    force = button(page, "force")
    expect(force).to_have_text(f"Force “{name}”")
    settle(page)
    force.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-generation_strip .chip .text")).to_have_text(name)
    no_exception(page)


def test_the_waterfall_follows_a_slider(server: Server, browse: Browse) -> None:
    page = browse()
    open_at(page, f"{server.url}/generation?lab=waterfall&text={quote(PROMPT)}")
    last = page.locator(".st-key-generation_waterfall tfoot tr").nth(3).locator("td").nth(7)
    expect(last).to_have_text(re.compile(r"\d"))
    settle(page)
    assert last.inner_text() != "1.00"
    page.locator(".st-key-temperature").get_by_role("slider").press("Home")
    expect(last).to_have_text("1.00")  # temperature 0: exactly one choice
    settle(page)
    token = page.locator(".st-key-generation_waterfall button.token")
    token.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(token.nth(1)).to_have_attribute("aria-pressed", "true")
    no_exception(page)


def test_the_tree_grows_by_keyboard_and_its_path_becomes_text(server: Server, browse: Browse) -> None:
    page = browse()
    open_at(page, f"{server.url}/generation?lab=tree&text={quote(PROMPT)}")
    tree = page.locator(".st-key-generation_tree .tree")
    expect(tree).to_have_attribute("data-nodes", "13")
    settle(page)
    tree.locator(".node").first.focus()
    for _ in range(3):  # to the first child, its first child, and there it grows
        page.keyboard.press("ArrowRight")
    expect(tree).to_have_attribute("data-nodes", "16")
    settle(page)
    path = "".join(tree.locator(".node").nth(i).locator(".text").inner_text() for i in (1, 2))
    button(page, "take").click()
    expect(written(page)).to_have_text(path.replace("·", " ").strip())
    no_exception(page)


VIEWS = {
    "write": ".st-key-generation_stages",
    "waterfall": ".st-key-generation_waterfall .bars table",
    "strategies": ".st-key-strategies_run",
    "tree": ".st-key-generation_tree .tree .node",
    "draws": ".st-key-generation_counts .js-plotly-plot",
}


def test_everyone_can_read_every_view(server: Server, browse: Browse) -> None:
    page = browse()
    open_generation(server, page)
    for view in every_view(page, "lab", VIEWS):
        picture = page.locator(VIEWS[view]).first
        expect(picture).to_be_visible()
        box = picture.bounding_box()
        assert box is not None and box["y"] < 500, f"the picture of {view} begins above the fold"
        if view == "write":
            button(page, "draw").click()
            expect(page.locator(".st-key-generation_dice .js-plotly-plot")).to_be_visible()
        if view == "strategies":
            picture.get_by_role("button").click()
            expect(page.locator(".loupe-strategies tbody tr")).to_have_count(14)
            expect(picture.get_by_role("button")).to_have_text("Write again with a new seed")
        settle(page)
        assert not axe_in_both_themes(page), view
        fits_a_phone(page)
        no_exception(page)
