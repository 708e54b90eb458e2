"""An exercise in a real browser, by keyboard: answer, mistake, hint, order; the address says which one."""

import re

from playwright.sync_api import expect

from engine.exercise import Number, Order
from engine.exercise_list import exercise
from engine.marking import rounded
from tests.browser.conftest import Browse, Server, axe, no_exception, open_at, settle
from wording import words

SEED = 11
STEP = words("ui.exercise_text")


def test_an_exercise_is_answered_by_keyboard(server: Server, browse: Browse) -> None:
    page = browse(scheme="dark", width=390, height=844)
    open_at(page, f"{server.url}/exercises?lang=en&exercise=minus-log&seed={SEED}")
    answer = exercise("minus-log", SEED).answer
    assert isinstance(answer, Number)
    box = page.get_by_label("In nats, three significant digits")
    box.fill(rounded(-answer.value))
    box.press("Enter")
    expect(page.get_by_role("alert").filter(has_text="the sign is not")).to_be_visible()
    page.get_by_role("button", name="Hint 1 of 2").press("Enter")
    expect(page.get_by_text("negative logarithm of its probability")).to_be_visible()
    settle(page)
    box.fill(rounded(answer.value).replace(".", ","))
    box.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Right.")).to_be_visible()
    expect(page.get_by_text("Worked solution", exact=True)).to_be_visible()
    settle(page)
    assert axe(page) == []
    page.get_by_role("button", name="Next", exact=True).click()
    expect(page).to_have_url(re.compile("exercise=loss-equal"))
    settle(page)
    no_exception(page)


def test_steps_are_brought_into_order_by_keyboard(server: Server, browse: Browse) -> None:
    page = browse()
    open_at(page, f"{server.url}/exercises?lang=en&exercise=probability-order&seed={SEED}")
    answer = exercise("probability-order", SEED).answer
    assert isinstance(answer, Order)
    now = list(answer.shown)
    rows = page.locator(f".st-key-exercises_probability-order_{SEED}_steps [data-testid=stMarkdown]")
    for place, step in enumerate(answer.steps):
        for i in range(now.index(step), place, -1):
            now[i - 1], now[i] = now[i], now[i - 1]
            page.locator(f".st-key-exercises_probability-order_{SEED}_up_{i}").get_by_role("button").press(
                "Enter"
            )
            expect(rows.nth(i - 1)).to_contain_text(STEP(f"exercise.probability-order.step.{step}"))
            settle(page)
    page.get_by_role("button", name="Check").press("Enter")
    expect(page.get_by_role("status").filter(has_text="Right.")).to_be_visible()
    settle(page)
    assert axe(page) == []


def test_back_returns_to_the_exercise_before_and_to_the_list(server: Server, browse: Browse) -> None:
    page = browse()
    open_at(page, f"{server.url}/exercises?lang=en")
    page.get_by_role("button", name="Softmax of three logits").click()
    expect(page.get_by_role("heading", name="Softmax of three logits")).to_be_visible()
    settle(page)
    page.get_by_role("button", name="Next", exact=True).click()
    expect(page.get_by_role("heading", name="Sigmoid as a softmax of two")).to_be_visible()
    for heading in ("Softmax of three logits", "Tokens and vectors: "):
        settle(page)
        page.wait_for_timeout(2200)  # a browser may send an older address for as long, see ui.address
        page.go_back()
        expect(page.get_by_role("heading", name=heading)).to_be_visible()
    settle(page)
    page.wait_for_timeout(2200)
    page.go_forward()
    expect(page.get_by_role("heading", name="Softmax of three logits")).to_be_visible()
    no_exception(page)
