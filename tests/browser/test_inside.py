"""Inside, and what Attention shows of every head, in a real browser: labels, mouse, keyboard, both themes."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import (
    Browse,
    Server,
    axe_in_both_themes,
    every_view,
    fits_a_phone,
    no_exception,
    open_page,
    settle,
)
from ui import model_refs, resources
from viz import visible

STORY = "Once upon a time, there was a"
MIXED = "a a 77 <b> $x$ 👍 a"
VIEWS = ("logit-lens", "contributions", "stream", "switch-off")

SHIPPED = {ref.id: ref for ref in model_refs.shipped_models()}
pytestmark = pytest.mark.skipif(
    not {"stories-clm", "stories-mlm"} <= SHIPPED.keys(),
    reason="a shipped model is not there: python -m pretrained.make makes it",
)


def plot(page: Page, key: str) -> Locator:
    found = page.locator(f".st-key-{key} .js-plotly-plot")
    expect(found.locator(".xtick").first).to_be_visible()  # it is drawn a moment after its place is there
    return found


def cell(page: Page, key: str, column: float, row: float) -> tuple[float, float]:
    """Where on the screen a cell of a map lies, by the axes of the plot itself."""
    plot(page, key).scroll_into_view_if_needed()
    place = plot(page, key).evaluate(
        """(plot, [c, r]) => {
            const {xaxis, yaxis} = plot._fullLayout, box = plot.getBoundingClientRect()
            return [box.left + xaxis._offset + xaxis.c2p(c), box.top + yaxis._offset + yaxis.c2p(r)]
        }""",
        [column, row],
    )
    return place[0], place[1]


def labels(page: Page, key: str, axis: str) -> list[str]:
    """The texts along an axis as the browser has drawn them."""
    ticks = plot(page, key).locator(f".{axis}tick text")
    return [text.strip() for text in ticks.all_text_contents()]


@pytest.mark.parametrize("model", ["stories-clm", "stories-mlm"])
def test_labels_are_drawn_as_they_are(server: Server, browse: Browse, model: str) -> None:
    """Repeated tokens, digits, markup and an emoji whose bytes are several tokens."""
    names = [visible(t.data) for t in resources.tokenizer(SHIPPED[model]).tokens(MIXED)]
    page = browse()
    open_page(page, server, "attention", MIXED, model=model)
    assert labels(page, "attention_map", "x") == labels(page, "attention_map", "y") == names
    open_page(page, server, "inside", MIXED, model=model, pos="2")
    rows = labels(page, "inside_lens", "y")
    assert 2 <= len(rows) <= 14
    for row in rows:
        number, name = row.split(" ", 1)
        whole = names[int(number)]
        assert name == whole or (name.endswith("…") and whole.startswith(name[:-1])), row
    expect(page.get_by_test_id("stMain").locator("b", has_text=re.compile("^b$"))).to_have_count(0)


def test_a_pressed_cell_is_looked_at(server: Server, browse: Browse) -> None:
    page = browse(height=1000)
    open_page(page, server, "inside", STORY)
    page.mouse.click(*cell(page, "inside_lens", 2, 3))
    expect(page).to_have_url(re.compile("pos=3"))
    expect(page.get_by_text(re.compile("^After block 2"))).to_be_visible()
    settle(page)
    open_page(page, server, "attention", STORY)
    page.mouse.click(*cell(page, "attention_map", 1, 4))
    expect(page).to_have_url(re.compile("pos=4"))
    expect(page.get_by_text(re.compile("^Why .* on token 1,"))).to_be_visible()
    settle(page)
    no_exception(page)


def test_parts_are_switched_off_by_the_keyboard(server: Server, browse: Browse) -> None:
    page = browse()
    open_page(page, server, "inside", STORY, inside="switch-off")
    expect(page.get_by_text("Nothing is switched off")).to_be_visible()
    page.locator(".st-key-inside_off_0 button", has_text="MLP").focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("without these parts", exact=True)).to_be_visible()
    settle(page)
    expect(page.locator(".st-key-inside_off_0 button", has_text="MLP")).to_have_attribute(
        "aria-pressed", re.compile("true")
    )
    page.get_by_role("button", name="Try every part alone").click()
    expect(plot(page, "inside_rank_map")).to_be_visible()
    settle(page)
    no_exception(page)


def test_a_link_opens_the_view(server: Server, browse: Browse) -> None:
    page = browse()
    open_page(page, server, "inside", STORY, inside="stream", pos="4")
    expect(page.get_by_role("radio", name="Stream")).to_be_checked()
    expect(page.get_by_text(re.compile("^The stream at position 4"))).to_be_visible()
    page.get_by_role("radio", name="Contributions").click()
    expect(page).to_have_url(re.compile("inside=contributions"))
    settle(page)
    page.reload()
    expect(plot(page, "inside_parts")).to_be_visible()
    settle(page)
    no_exception(page)


def test_a_row_of_habits_chooses_the_head(server: Server, browse: Browse) -> None:
    page = browse(height=1000)
    open_page(page, server, "attention", STORY)
    grid = page.get_by_test_id("stDataFrame").last
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 16, box["y"] + 36 * 2.5)  # the mark of the second row, below the header
    expect(page.get_by_text("Layer 1, head 2", exact=True)).to_be_visible()
    expect(page.locator(".st-key-attention_heads .heads")).to_have_attribute("data-selected", "0,1")
    settle(page)
    no_exception(page)


def test_the_picture_of_all_heads_is_saved(server: Server, browse: Browse) -> None:
    page = browse()
    open_page(page, server, "attention", STORY)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save this picture (PNG)").click()
    path = waiting.value.path()
    assert waiting.value.suggested_filename.endswith(".png")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and path.stat().st_size > 1000


def test_every_view_is_accessible_and_fits(server: Server, browse: Browse) -> None:
    page = browse()
    open_page(page, server, "inside", STORY)
    for view in every_view(page, "inside", VIEWS):
        expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
        assert not axe_in_both_themes(page), view
        fits_a_phone(page)


def test_a_view_outlives_an_empty_text(server: Server, browse: Browse) -> None:
    page = browse()
    open_page(page, server, "inside", STORY)
    box = page.get_by_test_id("stSidebar").get_by_role("textbox", name="Text")
    box.fill("")
    box.press("Control+Enter")
    page.get_by_role("button", name="Use the example").click()
    expect(page.get_by_role("radio", name="Logit lens")).to_be_checked()
    expect(page.get_by_role("heading", name="Try this")).to_be_visible()
    box.fill("the cat a")
    box.press("Control+Enter")
    expect(page.get_by_text(re.compile("^After block .*position 1"))).to_be_visible()
    settle(page)
    no_exception(page)


@pytest.mark.parametrize("width", [1280, 390])
def test_words_stay_off_each_other(server: Server, browse: Browse, width: int) -> None:
    """The labels of 19 and of 33 tokens, the titles beside them, and the words in the cells of the lens."""
    page = browse(width=width, height=900)
    for text in ("The fox saw the owl. " * 3, "👩‍👩‍👧🇮🇱 family and more text"):
        open_page(page, server, "attention", text.strip())
        boxes = plot(page, "attention_map").evaluate(
            """plot => [...plot.querySelectorAll(".xtick text, .xtitle")].map(e => {
                const b = e.getBoundingClientRect(); return [b.left, b.right, b.top, b.bottom]})"""
        )
        for i, (left, right, top, bottom) in enumerate(boxes):
            for other in boxes[:i]:
                apart = left >= other[1] - 4 or right <= other[0] + 4 or top >= other[3] or bottom <= other[2]
                assert apart, (text, boxes)
    open_page(page, server, "inside", "Once upon a time, there was a princess called Lily. She")
    cells = plot(page, "inside_lens").evaluate(
        """plot => {
            const axis = plot._fullLayout.xaxis, wide = axis.c2p(1) - axis.c2p(0)
            const words = [...plot.querySelectorAll(".textpoint text")]
            return words.map(word => word.getBoundingClientRect().width / wide)
        }"""
    )
    assert len(cells) > 20 and max(cells) <= 1
    for view, key in (("contributions", "inside_by_head"), ("stream", "inside_stream_map")):
        page.goto(f"{server.url}/inside?inside={view}")
        widths = plot(page, key).evaluate(
            """plot => [plot.getBoundingClientRect().width,
                document.querySelector("[data-testid=stMain]").scrollWidth]"""
        )
        assert widths[1] <= width and (width > 640 or widths[0] >= 480), (view, widths)
    wide = page.evaluate(
        "[...document.querySelectorAll('.katex-display')].map(e => e.scrollWidth - e.clientWidth)"
    )
    assert max(wide) <= 0, "no formula is cut at the right"
