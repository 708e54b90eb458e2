"""The self-test in a browser: one button, and a line that says that everything is fine."""

from playwright.sync_api import expect

from tests.browser.conftest import Browse, Server, axe, open_at, settle

PATIENCE = 200_000  # ms; a quiet machine takes ten seconds


def test_the_button_checks_everything_on_a_phone(server: Server, browse: Browse) -> None:
    page = browse(width=390, height=844)
    open_at(page, f"{server.url}/selftest")
    page.locator(".st-key-selftest_start button").click()
    answer = page.locator(".st-key-selftest_answer").get_by_test_id("stAlert")
    expect(answer).to_contain_text("checks, done", timeout=PATIENCE)
    expect(answer).to_contain_text("Everything is fine.")
    settle(page)
    expect(page.get_by_text("fine", exact=False).first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not axe(page)
    names = {path.name for path in server.home.iterdir()}
    assert not any(name.startswith(".selftest") for name in names) and "loupe.log" in names
