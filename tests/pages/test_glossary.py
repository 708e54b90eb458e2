"""The glossary: whole in each language, found by the names of others, and linked from every page."""

import re

import pytest
from streamlit.testing.v1 import AppTest

import wording
from tests.pages.conftest import OpenPage
from ui import glossary, glossary_words, nav, places
from ui.glossary_words import WORDS
from ui.places import PLACES

LANGUAGES = list(wording.LANGUAGES)
TEACH_NOTHING = {"glossary", "teacher", "models", "selftest"}

# One term for each idea: ours, and what others say.
TERMS = {
    "block": "n_layers",
    "head": "num_attention_heads",
    "kv-head": "num_key_value_heads",
    "d-model": "n_embd, hidden_size",
    "d-head": "head_dim",
    "d-ff": "intermediate_size",
    "context-length": "block_size, n_ctx",
    "vocab-size": "n_vocab, d_vocab",
    "id": "token",
    "token": "",
    "logit": "score, pred",
    "probability": "prob",
    "log-probability": "logprob",
    "attention-weights": "pattern, attentions",
    "target": "label",
    "step": "iter",
    "loss": "",
    "perplexity": "",
    "surprisal": "",
    "bits-per-byte": "bpb",
    "mask-prob": "mlm_probability",
}
OURS_IN_CODE = {
    "block": "n_layer", "head": "n_head", "kv-head": "n_kv_head", "d-model": "d_model", "d-head": "d_head",
    "d-ff": "d_ff", "vocab-size": "vocab_size", "mask-prob": "mask_prob",
}  # fmt: skip


@pytest.fixture(params=LANGUAGES)
def language(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(wording, "_current", lambda: request.param)
    return str(request.param)


def opened(open_page: OpenPage, **query: str) -> AppTest:
    at = open_page("glossary", query=query)
    assert not at.exception
    return at


def card(at: AppTest) -> str:
    return str(at.subheader[0].value)


# What the glossary is made of.


def test_there_are_words_enough_and_each_leads_on() -> None:
    assert len(WORDS) >= 60
    for name, word in WORDS.items():
        assert word.see and set(word.see) <= set(PLACES), name
        assert word.related and set(word.related) <= set(WORDS) - {name}, name


def test_each_word_has_its_sentences_in_each_language() -> None:
    for spoken in LANGUAGES:
        assert set(wording.find("ui.glossary_words", "word", spoken)) == set(WORDS)
        for name in WORDS:
            said = wording.find("ui.glossary_words", f"word.{name}", spoken)
            assert set(said) == {"name", "text", "others"}
            assert 30 < len(said["text"]) < 400, f"{name} in {spoken}: one plain definition"


def test_names_are_told_apart(language: str) -> None:
    called = [glossary_words.plain(glossary_words.name(word)) for word in WORDS]
    assert len(set(called)) == len(called)


def test_the_terms_of_the_house_are_there_with_their_other_names(language: str) -> None:
    for word, names in TERMS.items():
        said = glossary_words.others(word)
        for name in filter(None, names.split(", ")):
            assert re.search(rf"(?<!\w){re.escape(name)}(?!\w)", said), f"{word}: {name} in {said!r}"
    for word, ours in OURS_IN_CODE.items():
        assert ours in glossary_words.text(word)


def test_the_words_that_books_use_lead_to_ours(language: str) -> None:
    for name, word in {
        "n_embd": "d-model",
        "hidden size": "d-model",
        "BLOCK_SIZE": "context-length",
        "bpb": "bits-per-byte",
        "label": "target",
        "mlm_probability": "mask-prob",
        "nucleus sampling": "top-p",
        "RoPE": "rotary",
        "FFN": "mlp",
    }.items():
        assert glossary_words.found(name)[0] == word, name
    assert glossary_words.found("  ") == glossary_words.in_order()
    assert glossary_words.found("qwertz") == []


def test_the_order_is_that_of_the_alphabet(language: str) -> None:
    names = [glossary_words.plain(glossary_words.name(word)) for word in glossary_words.in_order()]
    assert names == sorted(names)
    if language == "es":
        assert names.index("epoca") < names.index("flop"), "an accent does not move a word to the end"


def test_accents_and_case_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wording, "_current", lambda: "es")
    assert glossary_words.found("PERDIDA")[0] == "loss" and glossary_words.found("época")[0] == "epoch"


# Pages and their words.


def test_every_word_that_a_page_lists_exists() -> None:
    for info in nav.PAGES:
        listed = glossary.words_of(info.name)
        assert set(listed) <= set(WORDS), info.name
        assert len(set(listed)) == len(listed), info.name


def test_every_page_that_teaches_lists_words() -> None:
    for info in nav.PAGES:
        assert bool(glossary.words_of(info.name)) == (info.name not in TEACH_NOTHING), info.name


def test_every_word_is_seen_on_a_page_that_lists_words() -> None:
    for name, word in WORDS.items():
        assert all(glossary.words_of(PLACES[place].page) for place in word.see), name


def test_the_sidebar_links_each_word_of_a_page_and_its_places_are_views(open_page: OpenPage) -> None:
    """One visit to each page answers both: they are many, and slow to open."""
    at = open_page("home")
    for name in [info.name for info in nav.PAGES]:
        at.query_params.clear()
        at.switch_page(nav.file_of(name)).run()
        assert not at.exception, name
        links = {
            link.proto.query_string for link in at.sidebar.get("page_link") if link.proto.page == "glossary"
        }
        assert {f"word={word}" for word in glossary.words_of(name)} <= links, name
        for place in [place for place in PLACES.values() if place.page == name and place.key]:
            for key, value in place.query.items():
                at.query_params[key] = value
            at.run()
            assert not at.exception and at.session_state["_page"] == name, place
            assert at.session_state[place.key] == place.view, place


def test_a_place_has_a_name(language: str) -> None:
    labels = [places.label(name) for name in PLACES]
    assert all(labels) and len(set(labels)) == len(labels)


# The page.


@pytest.mark.parametrize("spoken", LANGUAGES)
def test_the_address_opens_a_word(open_page: OpenPage, spoken: str) -> None:
    at = opened(open_page, word="temperature", lang=spoken)
    said = wording.find("ui.glossary_words", "word.temperature", spoken)
    assert card(at) == said["name"]
    assert any(said["text"].split(".")[0] in element.value.replace("\\", "") for element in at.markdown)
    assert WORDS["temperature"].formula in [element.value.strip("$\n") for element in at.latex]
    links = [(link.proto.page, link.proto.query_string) for link in at.main.get("page_link")]
    assert ("generation", "lab=waterfall") in links
    assert any(page == "glossary" and "word=softmax" in query for page, query in links)
    assert at.query_params["word"] == "temperature"


def test_every_word_opens(open_page: OpenPage) -> None:
    at = opened(open_page)
    for word in WORDS:
        at.query_params["word"] = word
        at.run()
        assert not at.exception and card(at).replace("\\", "") == wording.find(
            "ui.glossary_words", f"word.{word}.name", "en"
        )


def test_an_unknown_word_is_answered_with_the_list(open_page: OpenPage) -> None:
    at = opened(open_page, word="<b>*x*</b>")
    assert len(at.warning) == 1 and "\\<b\\>" in at.warning[0].value
    assert card(at) == "token"


def test_the_search_finds_other_names_and_opens_the_best(open_page: OpenPage) -> None:
    at = opened(open_page, word="token")
    at.text_input(key="glossary_search").set_value("hidden_size").run()
    assert not at.exception and card(at) == "model width"
    assert at.query_params["word"] == "d-model"
    at.text_input(key="glossary_search").set_value("<script>").run()
    assert not at.exception and len(at.info) == 1 and "\\<script\\>" in at.info[0].value
    at.button(key="glossary_all").click().run()
    assert not at.exception and card(at) == "model width"


def test_the_index_opens_a_word(open_page: OpenPage) -> None:
    at = opened(open_page)
    pills = at.get("button_group")[0]
    pills.set_value("entropy").run()
    assert not at.exception and card(at) == "entropy" and at.query_params["word"] == "entropy"
