"""The frame in a real browser: quick, offline, deep links, themes, readable by everyone."""

import re
import signal
import time
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import (
    Browse,
    Server,
    axe_in_both_themes,
    fits_a_phone,
    go_to,
    no_exception,
    open_at,
    running_server,
    settle,
)
from ui import nav, session

PAGES = nav.PAGES
LAST = PAGES[-1]


def address(server: Server, name: str) -> str:
    return server.url + ("/" if name == "home" else f"/{name}")


def text_box(page: Page) -> Locator:
    return page.get_by_test_id("stSidebar").get_by_role("textbox", name="Text", exact=True)


def menu(page: Page) -> list[str]:
    """The titles in the menu, section by section, each opened and closed by the keyboard."""
    titles = []
    for section in page.get_by_test_id("stTopNavSection").all():
        section.press("Enter")
        entries = page.get_by_role("menuitem")
        expect(entries.first).to_be_visible()
        titles += [re.sub(r"^\W+", "", text).strip() for text in entries.all_inner_texts()]
        page.keyboard.press("Escape")
        expect(entries).to_have_count(0)
    return titles


def seconds_to_first_page(folder: Path, page: Page) -> float:
    folder.mkdir()
    with running_server(folder) as server:
        page.goto(server.url)
        expect(page.get_by_role("heading", level=1, name="Loupe")).to_be_visible()
        expect(page.get_by_text("Where to go")).to_be_visible()
        settle(page)
        seconds = time.monotonic() - server.started
        no_exception(page)
        page.goto("about:blank")  # nobody asks a server that has ended
    return seconds


def test_the_first_page_is_drawn_without_network(tmp_path: Path, browse: Browse) -> None:
    seconds = seconds_to_first_page(tmp_path / "1", browse())
    print(f"first page after {seconds:.1f} s")  # 10 are promised; a test on a shared machine doesn't time


def test_a_server_that_is_gone_is_told_in_the_words_of_the_page(tmp_path: Path, chromium: Browser) -> None:
    """Its errors in the console are meant: no browser of `browse`."""
    page = chromium.new_context(locale="es-ES").new_page()
    with running_server(tmp_path) as server:
        page.goto(f"{server.url}/selftest")
        expect(page.get_by_role("heading", level=1, name="Autocomprobación")).to_be_visible()
        settle(page)
        server.process.send_signal(signal.SIGINT)
        server.process.wait(15)
        told = page.get_by_role("dialog", name="Sin conexión")
        expect(told.get_by_text("Loupe no responde.")).to_be_visible()
        expect(told.get_by_text("streamlit run")).to_be_hidden()
    page.context.close()


def test_deep_link_as_the_very_first_request(tmp_path: Path, browse: Browse) -> None:
    with running_server(tmp_path) as server:
        page = browse()
        open_at(page, f"{server.url}/{LAST.name}?text=a+robot")
        assert menu(page) == [info.title for info in PAGES]
        expect(text_box(page)).to_have_value("a robot")
        expect(page).to_have_url(re.compile(rf"/{LAST.name}\?text=a"))
        expect(page.get_by_text(re.compile("page not found|doesn't exist", re.IGNORECASE))).to_have_count(0)
        no_exception(page)
        page.goto("about:blank")


# The tests of these pages look at every view, in both themes and at both widths.
OWN_TESTS = {"tokens", "embeddings", "inside", "training", "masking", "generation"}
TYPED = "a robot 👋🏽 $x$ <b>b</b>"


def test_walk_all_pages_with_a_text_and_find_no_barrier(server: Server, browse: Browse) -> None:
    """Each by the menu, in both themes, as wide as a desk and as narrow as a phone; the text stays."""
    page = browse()
    open_at(page, server.url)
    box = text_box(page)
    box.fill(TYPED)
    box.press("Control+Enter")
    expect(page).to_have_url(re.compile("text="))
    for info in [*PAGES[1:], PAGES[0]]:
        go_to(page, info.title)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(box).to_have_value(TYPED)
        no_exception(page)
        if info.name not in OWN_TESTS:
            assert not axe_in_both_themes(page), info.name
        fits_a_phone(page)
    page.reload()
    expect(box).to_have_value(TYPED)
    settle(page)
    assert page.locator("[data-testid=stMain] b", has_text=re.compile("^b$")).count() == 0, (
        "text became markup"
    )


def test_the_open_menu_has_no_barrier(server: Server, browse: Browse) -> None:
    page = browse()
    open_at(page, server.url)
    page.get_by_test_id("stTopNavSection").nth(1).press("Enter")
    expect(page.get_by_role("menuitem").first).to_be_visible()
    assert not axe_in_both_themes(page)


def test_the_menu_works_by_keyboard_and_on_a_phone(server: Server, browse: Browse) -> None:
    wide, narrow = browse(), browse(width=390, height=844)
    for page in (wide, narrow):
        open_at(page, server.url)
        go_to(page, "Next token", keyboard=page is wide)
        expect(page.get_by_role("heading", level=1, name="Next token")).to_be_visible()
        no_exception(page)


def test_a_phone_unfolds_the_menu_in_the_words_of_the_page(server: Server, browse: Browse) -> None:
    page = browse(width=390, height=844)
    page.goto(f"{server.url}/selftest?lang=es")
    expect(page.get_by_role("heading", level=1, name="Autocomprobación")).to_be_visible()
    settle(page)
    # its hidden link to itself takes no second line
    page.wait_for_function("document.querySelector('h1').clientHeight < 90")
    page.get_by_test_id("stExpandSidebarButton").click()
    for words in ("Todas las páginas", "Menos páginas", "Todas las páginas"):
        page.get_by_test_id("stSidebar").get_by_role("button", name=words).click()


def test_a_narrow_box_shows_its_whole_number(server: Server, browse: Browse) -> None:
    page = browse()
    open_at(page, address(server, "training"))
    box = page.locator(".st-key-training_steps").get_by_role("spinbutton")
    box.fill("30000")
    box.press("Enter")
    settle(page)
    assert box.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_no_page_opened_on_a_phone_scrolls_sideways(server: Server, browse: Browse) -> None:
    page = browse(width=390, height=844)
    for name in ("home", "tokens", "lessons"):  # by address; the walk makes every page narrow
        open_at(page, address(server, name))
        width = page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
        assert width <= 390, name


def test_back_brings_the_earlier_text(server: Server, browse: Browse) -> None:
    page = browse()
    open_at(page, server.url)
    for text in ("first", "second"):
        text_box(page).fill(text)
        text_box(page).press("Control+Enter")
        expect(page).to_have_url(re.compile(f"text={text}"))
        settle(page)
    page.wait_for_timeout(2500)  # longer than an old address may be on its way
    for text in ("first", session.DEFAULT_TEXT):
        page.go_back()
        expect(text_box(page)).to_have_value(text)
        settle(page)
        no_exception(page)


def test_leaving_the_page_right_after_typing_keeps_the_text(server: Server, browse: Browse) -> None:
    page = browse()
    open_at(page, server.url)
    text_box(page).fill("typed and clicked")
    page.get_by_test_id("stTopNavSection").first.click()  # ends the edit too
    page.get_by_role("menuitem", name=PAGES[1].title).click()  # Streamlit sometimes forgets where to
    expect(page).to_have_url(re.compile("text=typed"))
    settle(page)
    go_to(page, PAGES[1].title)
    expect(text_box(page)).to_have_value("typed and clicked")


def test_the_owner_stays_after_a_reload_and_is_another_in_another_browser(
    server: Server, browse: Browse
) -> None:
    def word(page: Page) -> str:
        expect(page.locator(".st-key-_owner [data-agreed=true]")).to_have_count(1)  # server and browser
        settle(page)
        kept = page.evaluate("window.localStorage.getItem('loupe-owner')")
        assert re.fullmatch("[0-9a-f]{32}", kept)
        return str(kept)

    mine, other = browse(), browse()
    open_at(mine, server.url)
    first = word(mine)
    mine.reload()
    assert word(mine) == first
    assert first not in mine.url
    open_at(other, server.url)
    assert word(other) != first


def test_a_new_browser_is_told_that_a_run_in_its_link_is_not_here(server: Server, browse: Browse) -> None:
    """Until a browser has said who it is, the run may be its own; one without a word says so, too."""
    page = browse()
    open_at(page, f"{server.url}/?model=run:20200101-000000-abcdef")
    expect(page.get_by_test_id("stAlert").filter(has_text="20200101-000000-abcdef")).to_be_visible()
    text_box(page).fill("goes on")
    page.keyboard.press("Tab")
    settle(page)
    expect(page.get_by_test_id("stAlert").filter(has_text="20200101-000000-abcdef")).to_be_visible()
