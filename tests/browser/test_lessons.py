"""One lesson, walked from the list to the mark that it is done, and kept."""

import re

from playwright.sync_api import Page, expect

from engine.exercise import Choice, Number
from engine.exercise_list import exercise
from tests.browser.conftest import Browse, Server, axe, no_exception, open_at, settle
from ui.lesson_list import LESSONS, OPENING

SLUG = "softmax"


def answer(page: Page, name: str, *, right: bool) -> None:
    """Answer an exercise of the check; its seed stands in its widgets' keys."""
    start = f"st-key-lesson_{SLUG}_{name}_"
    box = page.locator(f"[class*='{start}'][class*='_answer']").last
    found = re.search(rf"{start}(\d+)_answer", box.get_attribute("class") or "")
    assert found
    it = exercise(name, int(found[1])).answer
    if isinstance(it, Number):
        box.get_by_role("textbox").fill(f"{it.value if right else it.value + 1000:.6f}")
    else:
        assert isinstance(it, Choice)
        i = next(i for i in range(len(it.options)) if (i in it.right) == right)
        box.locator("label[data-baseweb=radio], label:has(input[type=radio])").nth(i).click()
    page.locator(f".{start}{found[1]}_check button").click()


def test_a_lesson_is_walked_from_start_to_end_and_stays_done(browse: Browse, server: Server) -> None:
    page = browse()
    open_at(page, f"{server.url}/lessons")
    expect(page.get_by_text("0 of 12 lessons done")).to_be_visible()
    page.get_by_test_id("stMain").get_by_role("link", name="5. Logits and softmax").click()
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("5. Logits and softmax")
    settle(page)

    strip = page.locator(".st-key-lesson_strip")
    page.get_by_role("button", name="See logits").click()
    expect(strip).to_contain_text("Step 1 of 4")
    expect(heading).to_have_text("Next token")
    expect(page.get_by_role("textbox", name="Text", exact=True)).to_have_value(OPENING)
    expect(page.get_by_role("radio", name="logit", exact=True)).to_be_checked()
    settle(page)
    assert axe(page) == []
    page.reload()
    expect(strip).to_contain_text("Step 1 of 4")
    settle(page)

    strip.get_by_role("link", name="Back to lesson 5").click()
    expect(heading).to_have_text("5. Logits and softmax")
    expect(page.get_by_text("seen", exact=True)).to_have_count(0)  # a reload forgets what was only looked at
    settle(page)
    page.get_by_role("button", name="See probabilities").click()
    expect(strip).to_contain_text("Step 2 of 4")
    expect(page.get_by_role("radio", name="probability", exact=True)).to_be_checked()
    settle(page)
    for n, there in ((3, "Worked examples"), (4, "Generation")):
        strip.get_by_role("button", name="Next step").click()
        expect(strip).to_contain_text(f"Step {n} of 4")
        expect(heading).to_have_text(there)
        settle(page)
    expect(page.locator(".st-key-temperature").get_by_role("slider")).to_have_value("2")
    strip.get_by_role("link", name="To the check").click()
    expect(heading).to_have_text("5. Logits and softmax")
    settle(page)

    answer(page, LESSONS[SLUG].check[0], right=False)
    expect(page.get_by_test_id("stAlertContentWarning")).to_have_count(1)
    expect(page.get_by_text("0 of 3 right")).to_be_visible()
    settle(page)
    for n, name in enumerate(LESSONS[SLUG].check, 1):
        answer(page, name, right=True)
        said = f"{n} of 3 right" if n < 3 else "Lesson 5 is done."
        expect(page.get_by_text(said)).to_be_visible()
        settle(page)
    page.reload()
    expect(page.get_by_text("Lesson 5 is done.")).to_be_visible()
    settle(page)
    assert axe(page) == []
    page.get_by_role("link", name="All lessons").click()
    expect(page.get_by_text("1 of 12 lessons done")).to_be_visible()
    no_exception(page)
