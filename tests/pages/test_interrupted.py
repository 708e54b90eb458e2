"""After a first run that the browser never saw it still shows what the page goes by.

A browser answers a page's first picture with who it is, and the page runs again. What the first run has not
sent by then is dropped, and with it the word to widgets that their value is another than the default.
"""

from collections.abc import Iterable
from typing import Any

import pytest
from google.protobuf.message import Message
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import OpenPage
from tests.pages.test_languages import SHIPPED, TINY, State
from ui import session

ONE = {"Slider", "NumberInput", "Checkbox", "TextInput", "TextArea", "Selectbox", "Radio", "ButtonGroup"}


def shown(widget: Message) -> Any:
    """What a browser shows that has heard of this widget for the first time."""
    told: Any = widget
    name = type(widget).__name__
    if name == "ButtonGroup":
        return list(told.raw_values) if told.set_value else [told.options[i].content for i in told.default]
    if name == "Selectbox" and told.set_value:
        return told.raw_value
    if name in ("Selectbox", "Radio"):
        if told.set_value:
            return told.options[told.value]
        return told.options[told.default] if told.HasField("default") and told.options else None
    found = told.value if told.set_value else told.default
    return list(found) if name == "Slider" else found


def widgets(at: AppTest) -> dict[str, Any]:
    """By key, what a browser shows."""
    protos = [getattr(node, "proto", None) for node in at._tree]
    mine = [proto for proto in protos if type(proto).__name__ in ONE]
    return {proto.id.split("-", 2)[-1]: shown(proto) for proto in mine if not proto.id.endswith("-None")}


VIEWS = [(page, n, state) for page, states in {**SHIPPED, **TINY}.items() for n, state in enumerate(states)]


def changed(at: AppTest, not_these: Iterable[str] = ()) -> dict[str, tuple[Any, Any]]:
    """Run the page again for a browser that missed the first run; which widgets show another value now.

    The text is left out: the browser heard of it on the page before.
    """
    first = widgets(at)
    at._run(WidgetStates())
    assert not at.exception
    again = widgets(at)
    keys = first.keys() & again.keys() - {*not_these, "text"}
    return {key: (first[key], again[key]) for key in keys if first[key] != again[key]}


@pytest.mark.parametrize(("page", "n", "state"), VIEWS, ids=[f"{page}-{n}" for page, n, _ in VIEWS])
def test_the_browser_shows_what_the_page_goes_by(
    open_page: OpenPage, page: str, n: int, state: State
) -> None:
    state = {key: value for key, value in state.items() if key != "model"}
    at = open_page(page, **{"text": session.DEFAULT_TEXT, **state})
    assert not changed(at, state)


def test_what_a_link_says_is_shown_then_too(open_page: OpenPage) -> None:
    said = {"temperature": 0.5, "top_p": 0.0, "top_k": 3, "seed": 7}
    at = open_page("generation", {key: str(value) for key, value in said.items()})
    assert {key: at.session_state[key] for key in said} == said
    assert not changed(at)
    assert {key: at.session_state[key] for key in said} == said
