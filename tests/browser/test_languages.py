"""Another language while one works: what was chosen stays chosen, and is said in the new words."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import Browse, Server, axe, open_at, settle


def choose(page: Page, key: str, option: str) -> None:
    page.locator(f".st-key-{key} input").click()
    page.get_by_role("option", name=option, exact=True).click()
    settle(page)


def test_choices_survive_another_language(server: Server, browse: Browse) -> None:
    page = browse()
    open_at(page, f"{server.url}/masking?hide=train-a-pair&lang=en")
    text, size = page.locator(".st-key-pair_text input"), page.get_by_role("radio", checked=True)
    choose(page, "pair_text", "Made-up stories")
    page.get_by_role("radio", name="small").click()
    settle(page)
    choose(page, "lang", "Español")
    expect(page.get_by_role("heading", level=1)).to_have_text("Enmascarado")
    expect(text).to_have_value("Cuentos inventados")
    expect(size).to_have_text(["Entrenar dos", "pequeño"])
    page.get_by_role("radio", name="mediano").click()  # whatever comes next, the text is still the same one
    settle(page)
    expect(text).to_have_value("Cuentos inventados")
    expect(page.locator(".st-key-pair_paste")).to_have_count(0)
    assert axe(page) == []
    choose(page, "lang", "English")
    expect(text).to_have_value("Made-up stories")
    expect(size).to_have_text(["Train a pair", "medium"])
