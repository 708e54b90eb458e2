"""A bet in a real browser: placed by keyboard, still there after a reload, with no answer in the address."""

from playwright.sync_api import expect

from tests.browser.conftest import Browse, Server, axe, no_exception, open_at, settle


def test_a_bet_is_placed_by_keyboard_and_outlives_a_reload(server: Server, browse: Browse) -> None:
    page = browse()
    open_at(page, f"{server.url}/guess?lang=en&seed=5")
    expect(page.get_by_role("heading", name="Token 1 of 10")).to_be_visible()
    page.get_by_role("radio", name="none of these").focus()
    page.keyboard.press("Space")
    settle(page)
    bet = page.get_by_role("button", name="Bet", exact=True)
    expect(bet).to_be_enabled()  # a press on a button that still sleeps is lost
    bet.press("Enter")
    expect(page.get_by_role("heading", name="Token 2 of 10")).to_be_visible()
    settle(page)
    paid = page.get_by_text("You gave it").inner_text()
    assert axe(page) == []
    page.reload()
    expect(page.get_by_role("heading", name="Token 2 of 10")).to_be_visible()
    settle(page)
    assert page.get_by_text("You gave it").inner_text() == paid
    assert page.url.split("?")[1].replace("lang=en", "").strip("&") == "seed=5"
    no_exception(page)
