"""Next token, Attention, Inside, Compare and Generation in another language: said whole, choices kept."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.tokenizers import byte_tokenizer
from tests.pages.conftest import OpenPage
from tests.pages.tiny import save_tiny

STORY = "Once upon a time, there was a princess called Lily. She"
LONG = STORY * 9
VIEWS: list[tuple[str, dict[str, Any]]] = [
    ("next_token", {"look": "one-position", "measure": "log-p", "bars": "5", "unit": "bits"}),
    ("next_token", {"look": "one-position", "measure": "logit"}),
    ("next_token", {"look": "best-guesses"}),
    ("next_token", {"look": "surprise"}),
    ("next_token", {"look": "chain-rule", "unit": "bits"}),
    ("next_token", {"look": "any-length", "next_token_stride": 4, "text": LONG}),
    ("attention", {"attention_arithmetic": "weight"}),
    ("attention", {"attention_arithmetic": "row", "model": "tiny-mlm"}),
    ("attention", {"attention_arithmetic": "output"}),
    ("inside", {"inside": "logit-lens", "inside_cells": "rank"}),
    ("inside", {"inside": "logit-lens", "model": "tiny-mlm"}),
    ("inside", {"inside": "contributions"}),
    ("inside", {"inside": "stream", "inside_stream_shown": "mlp-share"}),
    ("inside", {"inside": "switch-off", "inside_off_0": ["H2", "MLP"], "text": LONG}),
    ("compare", {"other": "twin", "compare_unit": "bits"}),
    ("compare", {"other": "of-bytes"}),
    ("compare", {"other": "twin", "compare_scope": "whole", "text": LONG}),
    ("generation", {"lab": "write", "temperature": 1.5, "generation_view": "truth"}),
    ("generation", {"lab": "waterfall", "penalty": 1.3}),
    ("generation", {"lab": "strategies", "tokens": 20}),
    ("generation", {"lab": "tree", "generation_tree_depth": 3}),
    ("generation", {"lab": "draws", "generation_n_draws": 100}),
]
TITLES = {
    "next_token": ("Próximo token", "Next token"),
    "attention": ("Atención", "Attention"),
    "inside": ("Por dentro", "Inside"),
    "compare": ("Comparar", "Compare"),
    "generation": ("Generación", "Generation"),
}
ENGLISH = re.compile(r"\b(the|and|of|is|are|which|with|every|this|each|token's|after|next)\b", re.IGNORECASE)
QUOTED = re.compile("[“«][^”»]*[”»]|·\\S+|/\\w+|\\*\\*.?·?\\w+.?\\*\\* [0-9.]+")  # what the models read


@pytest.fixture
def _models(shelf: Path) -> None:
    save_tiny(shelf, "tiny-clm", context_length=64)
    save_tiny(shelf, "twin", context_length=64)
    save_tiny(shelf, "of-bytes", context_length=64, tokenizer=byte_tokenizer())
    save_tiny(shelf, "tiny-mlm", objective="mlm", context_length=64)


def titles(spec: Any) -> Iterator[str]:
    """The titles, names and the sentence of a figure."""
    if isinstance(spec, dict):
        for key, value in spec.items():
            if key in ("alt", "name") and isinstance(value, str):
                yield value
            elif key == "title" and isinstance(value, dict) and "text" in value:
                yield str(value["text"])
            else:
                yield from titles(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from titles(value)


def said(at: AppTest) -> Iterator[str]:
    """What the page itself says, without the texts that the models read."""
    for kind in ("button", "slider", "number_input", "toggle", "selectbox", "segmented_control", "expander"):
        for element in at.main.get(kind):
            yield str(element.label)
    for element in [*at.main.title, *at.main.subheader, *at.main.caption, *at.main.info, *at.main.markdown]:
        yield str(element.value)
    for control in at.main.get("button_group"):
        yield from (str(option.content) for option in control.proto.options)
    for table in at.main.dataframe:
        yield from map(str, table.value.columns)
    for chart in at.main.get("plotly_chart"):
        yield from titles(json.loads(chart.proto.spec))


@pytest.mark.parametrize(
    ("page", "state"), VIEWS, ids=lambda x: x if isinstance(x, str) else str([*x.values()][0])
)
def test_each_view_is_said_in_spanish_and_what_was_chosen_stays(
    open_page: OpenPage,
    _models: None,
    monkeypatch: pytest.MonkeyPatch,
    page: str,
    state: dict[str, Any],
) -> None:
    monkeypatch.setenv("LOUPE_LANGUAGE", "es")  # the test driver writes the options outside a page's run
    at = open_page(page, lang="es", **{"text": STORY, "model": "tiny-clm", **state})
    assert not at.exception and not at.error
    if page == "generation":
        key = "strategies_run" if state["lab"] == "strategies" else "generation_draw"
        if key != "generation_draw" or state["lab"] == "write":
            at.button(key=key).click().run()
    assert not at.exception and not at.error
    spanish, english = TITLES[page]
    assert at.title[0].value == spanish
    for text in said(at):
        own = QUOTED.sub("", text.replace("\\", ""))
        assert not ENGLISH.search(own), own
    kept = {key: at.session_state[key] for key in ("text", *state)}
    at.session_state["lang"] = "en"
    at.run()
    assert not at.exception and not at.error
    assert at.title[0].value == english
    assert {key: at.session_state[key] for key in kept} == kept and kept.items() >= state.items()
