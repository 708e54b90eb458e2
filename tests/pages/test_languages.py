"""Each page and view in another language: all of it is said, and what was chosen stays when one changes.

One visit to a page asks both of all its views: this is the one place for either question.
"""

import json
import os
import re
import string
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from google.protobuf.json_format import MessageToDict
from streamlit.testing.v1 import AppTest

import wording
from engine.experiments import STUDIES
from engine.predictions import Predictions
from engine.processes import process_mark
from engine.run_info import AT_WORK
from engine.run_queue import RunQueue
from engine.tokenizers import byte_tokenizer
from tests.pages import made_runs
from tests.pages.conftest import OpenPage
from tests.pages.made_runs import EVALS, MINE, YOURS, make_run, set_status
from tests.pages.tiny import save_tiny
from tests.test_wording import forms, sentences
from ui import model_refs, nav, session
from ui.experiment_words import words_of

WORD = re.compile(r"[^\W\d_]{2,}")
NAMES_IN_MARKUP = re.compile(r'data-[\w-]+="[^"]*"')
IN_STORIES = {"the end", "the truth"}  # what the stories say, too
PAGES = [info.name for info in nav.PAGES]
STORY = "Once upon a time, there was a princess called Nora. She"
LONG = STORY * 9
State = dict[str, Any]

SHIPPED: dict[str, list[State]] = {  # page: what is chosen in each of its views
    "home": [{}],
    "lessons": [{}],
    "examples": [{"example": name} for name in ("softmax", "chain-rule", "generation", "windows", "scaling")],
    "exercises": [{}],
    "guess": [{}],
    "glossary": [{}],
    "teacher": [{}],
    "selftest": [{}],
    "tokens": [{"view": view} for view in ("pieces", "side-by-side", "languages", "train-your-own")],
    "embeddings": [
        {"vectors": view} for view in ("look-up", "position", "neighbours", "map", "length")
    ],
    "training": [
        {"watch": "train"},
        {"watch": "time-machine"},
        {"watch": "runs"},
        {"watch": "class"},
        *(
            {"watch": "one-step", "step_stage": stage}
            for stage in ("batch", "loss", "gradients", "update", "before-and-after")
        ),
    ],
}  # fmt: skip
TINY: dict[str, list[State]] = {  # the same with small models, which give every view something to say
    "next_token": [
        {"look": "one-position", "measure": "log-p", "bars": "5", "unit": "bits"},
        {"look": "one-position", "measure": "logit"},
        {"look": "best-guesses"},
        {"look": "surprise"},
        {"look": "chain-rule", "unit": "bits"},
        {"look": "any-length", "next_token_stride": 4, "text": LONG},
    ],
    "attention": [
        {"attention_arithmetic": "weight"},
        {"attention_arithmetic": "row", "model": "tiny-mlm"},
        {"attention_arithmetic": "output"},
    ],
    "inside": [
        {"inside": "logit-lens", "inside_cells": "rank"},
        {"inside": "logit-lens", "model": "tiny-mlm"},
        {"inside": "contributions"},
        {"inside": "stream", "inside_stream_shown": "mlp-share"},
        {"inside": "switch-off", "inside_off_0": ["H2", "MLP"], "text": LONG},
    ],
    "compare": [
        {"other": "twin", "compare_unit": "bits"},
        {"other": "of-bytes"},
        {"other": "twin", "compare_scope": "whole", "text": LONG},
    ],
    "generation": [
        {"lab": "write", "temperature": 1.5, "generation_view": "truth"},
        {"lab": "waterfall", "penalty": 1.3},
        {"lab": "strategies", "tokens": 20},
        {"lab": "tree", "generation_tree_depth": 3},
        {"lab": "draws", "generation_n_draws": 100},
    ],
    "masking": [
        {"hide": "one-sentence"},
        {"hide": "masked-batch", "masking_masks": "evaluation"},
        {"hide": "what-is-paid", "masking_against": "targets-scored"},
        {"hide": "not-comparable", "masking_limit": "one-number-each"},
        {"hide": "not-comparable", "masking_limit": "two-orders"},
        {"hide": "not-comparable", "masking_limit": "by-hand", "masking_table": "joint"},
        {"hide": "fill-blanks", "masking_fill_part": "all-ways"},
        {"hide": "fill-blanks", "masking_fill_part": "step-by-step", "masking_fill_way": "gibbs"},
        {"hide": "fill-blanks", "masking_fill_part": "step-by-step", "masking_fill_way": "rescored"},
        {"hide": "fill-blanks", "masking_fill_part": "how-often-right"},
        {"hide": "meaning", "masking_meaning_part": "two-texts"},
        {"hide": "meaning", "masking_meaning_part": "all-uses"},
        {
            "hide": "meaning",
            "masking_meaning_part": "nearest-sentences",
            "masking_meaning_pooling": "last",
        },
        {"hide": "train-a-pair", "pair_size": "small"},
    ],
}
PRESSED = {"write": "generation_draw", "strategies": "strategies_run"}  # view: a button that makes it speak
ADDRESSES: dict[str, list[State]] = {  # parts that a page's address opens
    "lessons": [{"lesson": "tokens"}, {"lesson": "training"}, {"lesson": "nowhere"}],
    "exercises": [{"exercise": name} for name in ("softmax-three", "hide-future", "training-order")],
    "glossary": [{"word": "loss"}, {"word": "nowhere"}],
    "masking": [{"hide": "what-is-paid"}],
}
RUN_STATES = ("finished", "running", "paused", "stopped", "queued", "failed")
FLOOR = {"kind": "floor", "step": 10, "value": 0.5, "bits_per_byte": 0.7}
BASELINE = {"kind": "baseline", "step": 10, "uniform": 5.5, "unigram": 3.1, "bigram": 1.9, "trigram": 1.5}
SAMPLE = {"kind": "sample", "step": 10, "prompt": "zo", "text": "rro"}
QUANTITIES = ("bits_per_byte", "grad_norm", "learning_rate", "tokens_per_second")


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
        part
        for part in parts - IN_STORIES
        if " " in part and len(WORD.findall(part)) > 1 and part not in spanish
    )


def texts(value: Any) -> Iterator[str]:
    """All strings of a message from the server, also those inside JSON."""
    if isinstance(value, dict):  # scripts and markup hold no words: tests/test_words_in_code.py
        value = [one for name, one in value.items() if not name.endswith("Content")]
    if isinstance(value, list):
        for one in value:
            yield from texts(one)
    elif isinstance(value, str):
        inside = None
        if value[:1] in "{[":
            with suppress(ValueError):
                inside = json.loads(value)
        yield value
        if isinstance(inside, dict | list):
            yield from texts(inside)


def left_in_english(at: AppTest) -> list[str]:
    """English sentences in what a run of a page sent to the browser."""
    assert not at.exception, at.exception[0].value
    protos = (getattr(node, "proto", None) for node in at._tree)
    shown = "\n".join(text for proto in protos if proto is not None for text in texts(MessageToDict(proto)))
    shown = NAMES_IN_MARKUP.sub("", shown)
    return [part for part in english() if part in shown]


class Visit:
    """A page opened once, to be looked at in one view after the other."""

    def __init__(self, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, page: str, **state: Any) -> None:
        self._set = monkeypatch.setenv
        self._driver_speaks("es")
        self.at = open_page(page, lang="es", **state)

    def _driver_speaks(self, language: str) -> None:
        """The driver sends choices as the words on the screen, like a browser, but outside a page's run."""
        self._set("LOUPE_LANGUAGE", language)

    def go(self, language: str, **state: Any) -> None:
        """One run in a language, with these choices."""
        for key, value in {**state, "lang": language}.items():
            self.at.session_state[key] = value
        self.at.run()
        self._driver_speaks(language)
        label = {"en": "Language", "es": "Idioma"}[language]
        assert not self.at.exception, self.at.exception[0].value
        assert self.at.sidebar.selectbox(key="lang").label == label

    def view(self, state: State, then: str = "") -> None:
        """A view, and a button that is pressed there: all of it is Spanish."""
        self.go("es", **state)
        if then:
            self.at.button(key=then).click().run()
        assert not left_in_english(self.at), state

    def keeps(self, state: State) -> None:
        """In English everything that was chosen is still chosen."""
        before = self._chosen(state)
        assert before.items() >= state.items()
        self.go("en")
        assert not self.at.error and self._chosen(state) == before

    def _chosen(self, state: State) -> State:
        session_state = self.at.session_state
        return {key: session_state[key] for key in ("text", "model", "_masking_hidden", *state)
                if key in session_state}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_is_trained(monkeypatch: pytest.MonkeyPatch, loupe_home: Path) -> Iterator[None]:
    if not model_refs.shipped_models():
        pytest.skip("pretrained/ is empty: python -m pretrained.make makes the models")
    monkeypatch.setattr(RunQueue, "pump", lambda self: None)
    monkeypatch.setattr(RunQueue, "refresh", lambda self, *ids: False)
    monkeypatch.setattr(RunQueue, "notice_dead", lambda self: 0)
    monkeypatch.setattr(made_runs, "STORY", "El zorro tiene un gorro y el gorro tiene un roto. ")
    yield
    st.cache_resource.clear()


@pytest.mark.parametrize("page", SHIPPED)
def test_each_view(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    visit = Visit(open_page, monkeypatch, page, text=session.DEFAULT_TEXT, **SHIPPED[page][0])
    for state in SHIPPED[page]:
        visit.view(state)
        visit.keeps(state)


@pytest.mark.parametrize("page", TINY)
def test_each_view_of_small_models(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, shelf: Path, page: str
) -> None:
    for name in ("tiny-clm", "twin"):
        save_tiny(shelf, name, context_length=64)
    save_tiny(shelf, "of-bytes", context_length=64, tokenizer=byte_tokenizer())
    save_tiny(shelf, "tiny-mlm", objective="mlm", context_length=64)
    usual = {"text": STORY, "model": "tiny-mlm" if page == "masking" else "tiny-clm"}
    visit = Visit(open_page, monkeypatch, page, **{**usual, **TINY[page][0]})
    for state in TINY[page]:
        visit.view({**usual, **state}, PRESSED.get(state.get("lab", ""), ""))
        visit.keeps({**usual, **state})


@pytest.mark.parametrize("page", ADDRESSES)
def test_each_part_that_an_address_opens(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    visit = Visit(open_page, monkeypatch, page, text=session.DEFAULT_TEXT)
    for query in ADDRESSES[page]:
        for key, value in query.items():
            visit.at.query_params[key] = value
        visit.view({})
        visit.go("en")
        assert visit.at.query_params.items() >= query.items() or "nowhere" in query.values()


@pytest.mark.parametrize("page", PAGES)
def test_what_stops_a_page(
    open_page: OpenPage, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit = Visit(open_page, monkeypatch, page, text="")
    assert not left_in_english(visit.at)
    visit.go("es", text="a ", model="stories-mlm")
    assert not left_in_english(visit.at)
    monkeypatch.setattr(model_refs, "PRETRAINED", tmp_path)
    visit.go("es")
    assert not left_in_english(visit.at)


def test_runs_in_each_state_and_their_curves(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, loupe_home: Path
) -> None:
    records = [*EVALS, FLOOR, BASELINE, SAMPLE]
    made = {state: make_run(loupe_home, name=f"zorro {state}", records=records) for state in RUN_STATES}
    made["mlm"] = make_run(loupe_home, name="zorro oculto", objective="mlm", records=records)
    made["theirs"] = make_run(loupe_home, YOURS, name="zorro ajeno", records=records)
    for state, run_id in made.items():
        done = {"state": state if state in RUN_STATES else "finished"}
        numbers = {"eta_s": 30.0, "tokens_per_second": 99.0, "joules": 9.0}
        if state in AT_WORK:  # else it would be found dead, and told so in the language that it began in
            numbers |= {"pid": os.getpid(), "mark": process_mark(os.getpid())}
        set_status(loupe_home, run_id, **done, **numbers, step=10, message="")
    visit = Visit(open_page, monkeypatch, "training", _owner_proposal=MINE)
    for run_id in made.values():
        visit.at.query_params["run"] = run_id
        visit.view({})
        assert visit.at.query_params["run"] == run_id
    visit.at.query_params["run"] = made["finished"]
    for quantity in QUANTITIES:
        visit.view({"training_quantity": quantity, "training_smoothing": 2})
    visit.keeps({"training_quantity": QUANTITIES[-1], "training_smoothing": 2})
    for watch in ("runs", "class"):
        visit.view({"watch": watch})


def test_the_question_and_the_result_of_each_study(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, loupe_home: Path
) -> None:
    visit = Visit(open_page, monkeypatch, "experiments", _owner_proposal=MINE)
    for study in STUDIES:
        visit.view({"study": study})
        Predictions(loupe_home, MINE).commit(study, next(iter(words_of(study).choices), 40.0))
        visit.view({"study": study, f"experiments_reveal_{study}": True})
        visit.keeps({"study": study})


def test_english_is_found_where_it_is(open_page: OpenPage) -> None:
    assert len(left_in_english(open_page("tokens", lang="en"))) > 10


def test_the_choice_of_a_language_keeps_what_was_chosen(open_page: OpenPage) -> None:
    at = open_page("tokens", query={"view": "languages"}, text="a robot told a story")
    at.sidebar.selectbox(key="lang").set_value("es").run()
    assert not at.exception and at.sidebar.selectbox(key="lang").value == "es"
    assert at.session_state["text"] == "a robot told a story" and at.query_params["view"] == "languages"


def test_a_card_is_read_in_the_language_spoken(open_page: OpenPage) -> None:
    for language, loss in (("en", "masked-token loss"), ("es", "pérdida de tokens enmascarados")):
        at = open_page("masking", lang=language, hide="what-is-paid", text=session.DEFAULT_TEXT)
        assert any(f"| {loss} | 0." in element.value for element in at.main.markdown), language


def test_an_error_of_the_engine_is_told_in_the_language_spoken(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.config import ModelConfig
    from engine.corpus import encodings, own_text, python_docs, title
    from engine.download import Download, _Failed
    from engine.vocabularies import VOCABULARIES

    source = next(iter(VOCABULARIES.values())).sources[0]
    late = Download(source, "failed", failed=_Failed("silent", host="example.org", patience=10.0))
    assert late.message == "example.org did not answer within 10 seconds."
    monkeypatch.setattr(wording, "_current", lambda: "es")
    with pytest.raises(ValueError, match="d_model 10 no es divisible entre n_head 3"):
        ModelConfig(vocab_size=10, d_model=10, n_head=3)
    assert late.message == "example.org no respondió en 10 segundos."  # the thread kept no words
    assert (own_text("a").name, own_text("a").title) == ("Your text", "Tu texto")  # a run keeps the one name
    assert own_text("a", name="My {book}").title == "My {book}"
    assert title(python_docs().name, "python-docs") == "Documentación de Python"
    assert encodings()["shift_jis"] == "Japonés (Shift JIS)"
