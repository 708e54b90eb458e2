"""Links for a class in real browsers: what one makes, another opens; the code on the wall; a class of two."""

import base64
import re
from urllib.parse import urlsplit

import segno
from playwright.sync_api import Page, expect

from tests.browser.conftest import (
    Browse,
    Server,
    axe,
    axe_in_both_themes,
    go_to,
    no_exception,
    open_at,
    settle,
)

STORY = "Once upon a time, there was a dog called Max. He"


def panel(page: Page) -> str:
    """Open the panel; gives the link as it stands there."""
    page.locator(".st-key-link_open button").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("What students see")).to_be_visible()
    return link_of(page)


def link_of(page: Page) -> str:
    links = page.get_by_role("dialog").locator("code").filter(has_text=re.compile("^https?://"))
    expect(links).to_have_count(1)
    return links.inner_text().strip()


def untick(page: Page, boxes: dict[str, str]) -> None:
    """Untick boxes of the panel, by their labels, until the link hides what they stand for."""
    dialog = page.get_by_role("dialog")
    for label in boxes:
        dialog.get_by_test_id("stCheckbox").filter(has_text=label).first.click()
    links = dialog.locator("code").filter(has_text=re.compile("^https?://"))
    for name in boxes.values():
        expect(links).to_have_text(re.compile(rf"hidden=([a-z.]*\.)?{name}(\.|$)"))
    settle(page)


def here(link: str, server: Server) -> str:
    """The link at the server's own name: a test's server answers no others."""
    parts = urlsplit(link)
    return f"{server.url}{parts.path}?{parts.query}"


def modules(page: Page) -> list[bytearray]:
    """The squares of the code on the screen, out of the drawing itself."""
    source = page.get_by_role("dialog").locator(".st-key-link_qr img").get_attribute("src") or ""
    drawing = base64.b64decode(source.removeprefix("data:image/svg+xml;base64,")).decode()
    size = int(re.findall(r'viewBox="0 0 (\d+) ', drawing)[0])
    rows = [bytearray(size) for _ in range(size)]
    x = y = 0.0
    path = re.findall(r'd="([^"]*)"', drawing)[-1]
    for step, numbers in re.findall(r"([Mmh])([-\d. ]+)", path):
        values = [float(n) for n in numbers.split()]
        if step == "M":
            x, y = values
        elif step == "m":
            x, y = x + values[0], y + values[1]
        else:
            for i in range(int(x), int(x + values[0])):
                rows[int(y)][i] = 1
            x += values[0]
    return rows


def test_a_link_opens_the_same_view_elsewhere_and_hides_what_it_should(
    server: Server, browse: Browse
) -> None:
    teacher = browse()
    open_at(teacher, f"{server.url}/attention?text={STORY.replace(' ', '+')}&layer=2&head=3&pos=4")
    number = teacher.locator(".st-key-attention_arithmetic").get_by_role("radio").last
    number.click()
    expect(teacher.locator(".st-key-attention_dim input")).to_be_visible()
    settle(teacher)
    teacher.locator(".st-key-attention_dim input").fill("7")
    teacher.locator(".st-key-attention_dim input").press("Enter")
    settle(teacher)
    panel(teacher)
    teacher.get_by_role("dialog").get_by_text("What students see").click()
    expect(teacher.get_by_role("dialog").get_by_text("Around the page")).to_be_visible()
    untick(teacher, {"Menu of pages": "menu", "Model": "model", "Try this": "try"})
    link = link_of(teacher)
    code = segno.make_qr(link, error="l", boost_error=False)
    wanted = [bytearray(row) for row in code.matrix_iter(border=4)]
    assert modules(teacher) == wanted, "the code on the screen is not this link's"
    assert not axe(teacher)

    student = browse()
    open_at(student, here(link, server))
    expect(student.get_by_role("textbox", name="Text", exact=True)).to_have_value(STORY)
    expect(student.locator(".st-key-attention_dim input")).to_have_value("7")
    assert {"layer=2", "head=3", "pos=4"} <= set(urlsplit(student.url).query.split("&"))
    expect(student.get_by_text("Your teacher set up this view")).to_be_visible()
    expect(student.get_by_test_id("stTopNav")).to_be_hidden()
    expect(student.locator(".st-key-model")).to_be_hidden()
    expect(student.locator('[class*="st-key-try_this"]').first).to_be_hidden()
    shown = "[...document.querySelectorAll('.st-key-model *')].filter(e => e.getClientRects().length).length"
    assert student.evaluate(shown) == 0, "what is hidden can't be reached by the keyboard"
    assert not axe(student)
    student.locator(".st-key-attention_dim input").fill("2")
    student.locator(".st-key-attention_dim input").press("Enter")
    settle(student)
    expect(student.locator(".st-key-attention_dim input")).to_have_value("2")
    student.get_by_role("button", name="Show all controls").click()
    expect(student.get_by_test_id("stTopNav")).to_be_visible()
    expect(student.locator(".st-key-model").first).to_be_visible()
    no_exception(student)
    student.goto(here(link, server))  # again: the link's settings
    expect(student.locator(".st-key-attention_dim input")).to_have_value("7")
    settle(student)


def test_a_class_of_two_browsers(server: Server, browse: Browse) -> None:
    teacher, student = browse(), browse(width=390, height=844, scheme="dark")
    open_at(teacher, f"{server.url}/teacher")
    teacher.locator(".st-key-teacher_make button").click()
    code = teacher.locator(".st-key-teacher_code code")
    expect(code).to_have_text(re.compile(r"^\w{4}-\w{4}$"))
    settle(teacher)
    open_at(student, f"{server.url}/lessons?class={code.inner_text()}")
    expect(student.get_by_text("only on this server")).to_be_visible()
    expect(student.get_by_test_id("stExpandSidebarButton")).to_be_visible()  # the sidebar is folded away
    expect(student.get_by_test_id("stSidebarNav")).to_be_hidden()
    assert not axe(student)
    student.locator(".st-key-class_link_name input").fill("Zoë <b>")
    student.locator(".st-key-class_link_name input").press("Tab")
    settle(student)
    student.get_by_role("button", name="Join the class").click()
    expect(student.locator(".st-key-class_link_ask")).to_have_count(0)
    settle(student)
    teacher.locator(".st-key-teacher_large label").first.click()
    expect(teacher.locator(".st-key-teacher_large_board")).to_contain_text("Zoë <b>")
    settle(teacher)
    assert not axe(teacher)
    open_at(student, f"{server.url}/teacher")  # a student sees how to make one, and nobody's board
    expect(student.locator(".st-key-teacher_make")).to_be_visible()
    expect(student.locator(".st-key-teacher_large_board, [data-testid=stDataFrame]")).to_have_count(0)
    for page in (teacher, student):
        no_exception(page)


def test_projector_mode_is_large_in_the_address_and_without_barriers(server: Server, browse: Browse) -> None:
    page = browse()
    open_at(page, f"{server.url}/next_token?projector=true")
    large = "parseFloat(getComputedStyle(document.documentElement).fontSize) === 20"
    page.wait_for_function(large)
    settle(page)
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 1280
    assert not axe_in_both_themes(page)
    go_to(page, "Tokens")
    page.wait_for_function(large)
    expect(page).to_have_url(re.compile("projector=true"))
