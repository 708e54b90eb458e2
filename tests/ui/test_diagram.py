"""Every box of a flow has its words and leads to a page, and every example has its place."""

import pytest

import wording
from ui import diagram, nav
from ui.example_list import EXAMPLES

PAGES = {info.name for info in nav.PAGES}
VIEWS = {  # the name in the address -> the table of what may stand there
    "look": "pages.next_token:view",
    "inside": "pages.inside:view",
    "lab": "pages.generation:view",
    "watch": "pages.training:views",
    "hide": "pages.masking:views",
}


def leads_somewhere(page: str, query: dict[str, str]) -> bool:
    """Whether the page is there and every view that is asked for too."""
    for name, value in query.items():
        if name == "example":
            known = set(EXAMPLES)
        else:
            area, table = VIEWS[name].split(":")
            assert area == f"pages.{page}"
            known = set(wording.find(area, table, "en"))
        if value not in known:
            return False
    return page in PAGES


@pytest.mark.parametrize("flow", diagram.NAMES)
def test_boxes_have_words_and_lead_to_pages(flow: str) -> None:
    for name, box in diagram.boxes_of(flow).items():
        for language in wording.LANGUAGES:
            assert wording.find("ui.diagram", f"box.{name}", language)
        assert leads_somewhere(box.page, box.query), name
    assert wording.find("ui.diagram", f"label.{flow}", "en")


def test_no_two_boxes_share_a_name() -> None:
    assert sum(len(diagram.boxes_of(flow)) for flow in diagram.NAMES) == len(diagram._ALL)


@pytest.mark.parametrize("slug", EXAMPLES)
def test_an_example_lights_boxes_of_its_flow_and_has_a_page(slug: str) -> None:
    example = EXAMPLES[slug]
    assert example.lit and set(example.lit) <= set(diagram.boxes_of(example.flow))
    assert leads_somewhere(example.page, example.query)


def test_an_unknown_flow_or_box_is_refused() -> None:
    with pytest.raises(ValueError, match="'river'"):
        diagram.diagram("river")
    with pytest.raises(ValueError, match="no box boat"):
        diagram.diagram("flow", lit=["boat"])
