"""Where the live curve puts its words and numbers: its own JavaScript, asked in a browser."""

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import ROOT, Browse

PARTS = ROOT / "ui" / "components"
HEIGHT = 17  # of a line of words


@pytest.fixture(scope="module")
def source() -> str:
    """The functions of the component that place things, as one script."""
    return "".join((PARTS / f"live_curve_{name}.js").read_text("utf-8") for name in ("labels", "scale"))


def ask(page: Page, source: str, expression: str, values: Any) -> Any:
    return page.evaluate(f"values => {{ {source}; return {expression} }}", values)


def test_words_stand_nearest_to_their_own_line(browse: Browse, source: str) -> None:
    """Lines as in a run of stories: the floor 17 px below the trigram line, the curve along both."""
    heights = {"ln V": 538.0, "unigram": 573.0, "bigram": 660.0, "trigram": 705.0, "floor": 722.0}
    labels = [
        {"key": key, "width": 200, "y": y, "below": key == "floor"} for key, y in heights.items()
    ]  # pixels from the top
    area = {"left": 431, "right": 888, "top": 508, "bottom": 744}
    busy = [[x, 538 + 165 * (1 - 2 ** (-(x - 431) / 50))] for x in range(431, 888, 8)]
    placed = ask(
        browse(), source, "placeLabels(values.labels, values.area, values.busy)",
        {"labels": labels, "area": area, "busy": busy * 3},
    )  # fmt: skip
    for label, place in zip(labels, placed, strict=True):
        middle = place["y"] + HEIGHT / 2
        nearest = min(heights, key=lambda key: abs(heights[key] - middle))
        assert nearest == label["key"], f"the words of {label['key']} are read as those of {nearest}"


def test_perplexities_of_logarithmic_losses_have_ticks(browse: Browse, source: str) -> None:
    """Losses 0.33 to 8 on a logarithmic axis of 240 px: perplexities 1.4 to 3000 crowd at the top."""
    place = "p => 240 * Math.log(Math.log(p) / 0.33) / Math.log(8 / 0.33)"
    ticks = ask(browse(), source, f"crowdedTicks(Math.exp(0.33), Math.exp(8), {place}, 22)", None)
    assert ticks == sorted(ticks) and set(ticks) >= {10, 100, 1000} and len(ticks) >= 6
