"""The numbers and the picture of a figure, taken away in a real browser: right labels, no blank sheet."""

import csv
import io
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.browser.conftest import Browse, Server, axe, no_exception, open_at, settle
from ui import model_refs

TEXT = "the the 😀 <b>b</b> $x$ =1+1"
SHIPPED = {ref.id for ref in model_refs.shipped_models()}
pytestmark = pytest.mark.skipif(
    "stories-clm" not in SHIPPED,
    reason="stories-clm is not there: python -m pretrained.make stories-clm makes it",
)


def opened(page: Page, server: Server, look: str) -> None:
    query = f"text={quote(TEXT)}&look={quote(look)}&model=stories-clm"
    open_at(page, f"{server.url}/next_token?{query}")
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    settle(page)


def take(page: Page, key: str, label: str, folder: Path) -> Path:
    """Press one of the buttons below a chart and keep what comes."""
    button = page.get_by_role("button", name=label)
    if not button.is_visible():
        page.locator(f".st-key-download_{key} button").first.press("Enter")
    expect(button).to_be_visible()
    with page.expect_download() as coming:
        button.press("Enter")
    path = folder / coming.value.suggested_filename
    coming.value.save_as(path)
    return path


def hexa(color: str) -> tuple[int, int, int]:
    inside = color[color.index("(") + 1 : color.index(")")].split(",")
    return int(inside[0]), int(inside[1]), int(inside[2])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_picture_and_drawing_show_what_the_page_shows(
    server: Server, browse: Browse, scheme: str, tmp_path: Path
) -> None:
    page, key = browse(scheme=scheme), "next_token_guesses"
    opened(page, server, "best-guesses")
    drawing = take(page, key, "Drawing (SVG)", tmp_path)
    picture = take(page, key, "Picture (PNG)", tmp_path)
    no_exception(page)
    plot = page.locator(f".st-key-{key} .js-plotly-plot")
    on_page = [text for text in plot.locator("text").all_text_contents() if text]
    root = ET.fromstring(drawing.read_bytes())
    in_file = ["".join(e.itertext()) for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert sorted(text for text in in_file if text) == sorted(on_page)
    tokens = page.locator(".st-key-next_token_strip .chip .text").all_inner_texts()
    assert [f"{i} {token}" for i, token in enumerate(tokens)] == [
        t for t in in_file if t[:1].isdigit() and " " in t
    ]
    assert len(set(tokens)) < len(tokens) and "<" in tokens and "$" in tokens  # repeated tokens, and markup
    ground = page.evaluate("getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor")
    with Image.open(picture) as image:
        pixels = np.asarray(image.convert("RGB"))
    box = plot.locator("svg.main-svg").first.bounding_box()
    assert box is not None
    assert pixels.shape[:2] == (2 * int(-(-box["height"] // 1)), 2 * int(-(-box["width"] // 1)))
    assert tuple(pixels[0, 0]) == hexa(ground)
    colors = np.unique(pixels.reshape(-1, 3), axis=0)
    assert len(colors) > 100  # text and cells, not one blank sheet
    assert any((np.abs(colors.astype(int) - (0, 34, 78)) <= 2).all(axis=1))  # the scale's lowest colour

    page.goto(f"data:image/svg+xml;charset=utf-8,{quote(drawing.read_text('utf-8'))}")
    shown = page.evaluate("[...document.querySelectorAll('text')].filter(t => t.getBBox().width > 0).length")
    assert shown == len([text for text in in_file if text])
    assert page.evaluate("document.querySelectorAll('script, foreignObject').length") == 0


def test_the_numbers_are_all_there_and_no_formula(server: Server, browse: Browse, tmp_path: Path) -> None:
    page = browse()
    opened(page, server, "surprise")
    path = take(page, "next_token_surprise", "Numbers (CSV)", tmp_path)
    rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))
    n = page.locator(".st-key-next_token_strip .chip").count()
    assert len([row for row in rows if row.get("series", "model") == "model"]) == n
    assert not [cell for row in rows for cell in row.values() if cell and cell[0] in "=+@"]
    settle(page)


def test_download_and_compare_are_accessible(server: Server, browse: Browse) -> None:
    page = browse()
    opened(page, server, "one-position")
    page.locator(".st-key-download_next_token_bars button").first.press("Enter")
    expect(page.get_by_role("button", name="Picture (PNG)")).to_be_visible()
    assert not axe(page)
    page.keyboard.press("Escape")
    open_at(page, f"{server.url}/compare?model=stories-clm")
    no_exception(page)
    assert not axe(page)
