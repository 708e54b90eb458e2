"""Writing in a real browser: it streams, it stops and keeps what is there, and settings outlive the page."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Browse, Server, axe, no_exception, open_at, settle
from ui import resources

PROMPT = "Once upon a time, there was a"
MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"

pytestmark = pytest.mark.skipif(
    not any(ref.objective == "clm" for ref in resources.shipped_models()),
    reason="pretrained/ has no causal model",
)


def open_generation(server: Server, page: Page, text: str = PROMPT) -> None:
    open_at(page, f"{server.url}/generation?text={quote(text)}")
    expect(page.locator(".st-key-generation_stages .js-plotly-plot")).to_be_visible()
    settle(page)


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
    done = page.get_by_text(re.compile(r"Wrote 60 tokens"))
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
    expect(slider).to_have_value("1.05")
    settle(page)
    button(page, "draw").click()
    expect(page.get_by_text("How chance picked")).to_be_visible()
    settle(page)
    text = written(page).inner_text()
    links = page.get_by_test_id("stSidebarNavLink")
    links.filter(has_text="Home").click()
    expect(page.get_by_role("heading", level=1, name="Loupe")).to_be_visible()
    settle(page)
    links.filter(has_text="Generation").click()
    expect(page.get_by_role("heading", level=1, name="Generation")).to_be_visible()
    expect(slider).to_have_value("1.05")
    assert written(page).inner_text() == text


def test_markup_is_only_text(server: Server, browse: Browse) -> None:
    page = browse()
    open_generation(server, page, MARKUP)
    expect(page.locator(".loupe-written [data-part=prompt]")).to_have_text(MARKUP)
    expect(page.locator(".loupe-written b, .loupe-written img, .loupe-written .katex")).to_have_count(0)
    no_exception(page)


@pytest.mark.parametrize("scheme, width", [("light", 1280), ("dark", 1280), ("light", 390)])
def test_everyone_can_read_it(server: Server, browse: Browse, scheme: str, width: int) -> None:
    page = browse(scheme=scheme, width=width, height=800 if width > 400 else 844)
    open_generation(server, page)
    button(page, "draw").click()
    expect(page.locator(".st-key-generation_strip_line .js-plotly-plot")).to_be_visible()
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width > 400:
        box = page.locator(".st-key-generation_stages").bounding_box()
        assert box is not None and box["y"] < 500, "the picture begins above the fold"
    assert not axe(page)
