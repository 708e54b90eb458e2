"""Every page speaks the language that is chosen: no English sentence is left on any of them in Spanish."""

import json
import re
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from streamlit.testing.v1 import AppTest

import wording
from tests.pages.conftest import OpenPage
from tests.test_wording import forms, sentences
from ui import nav, resources, session
from ui.places import PLACES

WORD = re.compile(r"[^\W\d_]{2,}")
PAGES = [info.name for info in nav.PAGES]
TRIES = {  # what a page asks for in its address, and names that lead to different parts of it
    "lessons": ("lesson", ("tokens", "train")),
    "examples": ("example", ("softmax", "chain-rule")),
    "exercises": ("exercise", ("softmax-three",)),
    "glossary": ("word", ("loss", "token")),
}
OPENED = {
    **{f"{place.page}-{name}": (place.page, place.query) for name, place in PLACES.items()},
    **{name: (name, {}) for name in PAGES if name not in {place.page for place in PLACES.values()}},
    **{f"{page}-{one}": (page, {key: one}) for page, (key, some) in TRIES.items() for one in some},
}


def literal_parts(template: str) -> list[str]:
    """What a sentence says between its places."""
    try:
        return [literal for literal, *_ in string.Formatter().parse(template)]
    except ValueError:  # a formula with braces of its own, said without values
        return [template]


@cache
def english() -> list[str]:
    """The longest part of each English sentence, if it has two words and is not Spanish too."""
    spanish = "\n".join(text for value in sentences("es").values() for text in forms(value))
    parts = {
        max(literal_parts(text), key=len, default="").strip()
        for value in sentences(wording.SOURCE).values()
        for text in forms(value)
    }
    return sorted(
        part for part in parts if " " in part and len(WORD.findall(part)) > 1 and part not in spanish
    )


def texts(value: Any) -> Iterator[str]:
    """All strings of a message from the server, also those inside JSON."""
    if isinstance(value, dict):  # scripts and markup hold no words: tests/test_words_in_code.py
        value = [one for name, one in value.items() if not name.endswith("Content")]
    if isinstance(value, list):
        for one in value:
            yield from texts(one)
    elif isinstance(value, str):
        try:
            inside = json.loads(value) if value[:1] in "{[" else None
        except ValueError:
            inside = None
        yield value
        if isinstance(inside, dict | list):
            yield from texts(inside)


def on_screen(at: AppTest) -> str:
    """Everything that a run of a page sent to the browser."""
    protos = (getattr(node, "proto", None) for node in at._tree)
    return "\n".join(text for proto in protos if proto is not None for text in texts(MessageToDict(proto)))


def left_in_english(at: AppTest) -> list[str]:
    assert not at.exception, at.exception[0].value
    shown = on_screen(at)
    for card in resources.PRETRAINED.glob("*/CARD.md"):  # a document of its model, shown as it is
        shown = shown.replace(card.read_text("utf-8").partition("\n")[2].strip(), "")
    return [part for part in english() if part in shown]


@pytest.fixture(autouse=True)
def shipped() -> None:
    if not resources.shipped_models():
        pytest.skip("pretrained/ is empty: python -m pretrained.make makes the models")


@pytest.mark.parametrize(("page", "query"), OPENED.values(), ids=OPENED.keys())
def test_every_view_is_spanish_through_and_through(
    open_page: OpenPage, page: str, query: dict[str, str]
) -> None:
    at = open_page(page, query={"lang": "es", **query}, text=session.DEFAULT_TEXT)
    assert not left_in_english(at)
    assert at.sidebar.selectbox(key="lang").label == "Idioma"


@pytest.mark.parametrize("page", PAGES)
def test_what_stops_a_page_is_spanish(
    open_page: OpenPage, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not left_in_english(open_page(page, query={"lang": "es"}, text=""))
    assert not left_in_english(open_page(page, query={"lang": "es"}, text="a ", model="stories-mlm"))
    monkeypatch.setattr(resources, "PRETRAINED", tmp_path)
    assert not left_in_english(open_page(page, query={"lang": "es"}))


def test_english_is_found_where_it_is(open_page: OpenPage) -> None:
    at = open_page("tokens", query={"lang": "en"})
    assert len(left_in_english(at)) > 10


@pytest.mark.parametrize("page", PAGES)
def test_a_change_of_language_keeps_what_was_chosen(open_page: OpenPage, page: str) -> None:
    views = [place for place in PLACES.values() if place.page == page and place.key]
    query = views[-1].query if views else {}
    at = open_page(page, query=query, text="a robot told a story")
    before = dict(at.query_params)
    at.sidebar.selectbox(key="lang").set_value("es").run()
    assert not at.exception and at.sidebar.selectbox(key="lang").value == "es"
    assert at.session_state["text"] == "a robot told a story"
    assert before.items() <= dict(at.query_params).items()
