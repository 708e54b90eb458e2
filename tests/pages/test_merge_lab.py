"""The Tokens page, "Train your own": from a text to a vocabulary, its merges, and a run that uses it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine import corpus as texts
from engine import own_vocabularies
from engine.corpus import Corpus
from engine.merges import truncated
from engine.run_queue import RunQueue
from engine.runs import RunStore
from engine.tokenizers import train_bpe
from tests.pages import tiny
from tests.pages.conftest import OpenPage, component, plotly
from ui import model_refs

ME = "a" * 32
STORY = "Long ago, a fox found a hat in the old barn.\n" * 200
MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def small_world(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path_factory.getbasetemp() / "tiny"
    if not folder.exists():
        tiny.save_tiny(folder, "stories-clm")
        tiny.save_tiny(folder, "stories-mlm", objective="mlm")
    monkeypatch.setattr(model_refs, "PRETRAINED", folder)
    monkeypatch.setattr(RunQueue, "pump", lambda self: None)  # every run waits in the queue
    monkeypatch.setattr(texts, "stories", lambda: Corpus("Stories", "stories", STORY, STORY[:900]))
    yield
    st.cache_resource.clear()


def opened(open_page: OpenPage, text: str = "a fox and a hat", **state: object) -> AppTest:
    at = open_page("tokens", text=text, view="train-your-own", _owner_proposal=ME, **state)
    assert not at.exception, at.exception[0].value
    return at


def said(at: AppTest) -> str:
    kinds = ("markdown", "caption", "info", "warning", "success", "error", "text")
    return "\n".join(str(e.value) for kind in kinds for e in at.get(kind))


def formulas(at: AppTest) -> str:
    return "\n".join(str(e.value) for e in at.get("latex"))


def strip(at: AppTest) -> list[int]:
    return [chip["id"] for group in component(at, "merges_strip")["groups"] for chip in group["chips"]]


def ids_of_merge(at: AppTest) -> list[int]:
    return [piece["id"] for piece in component(at, "merges_chips")["pieces"]]


def test_the_picture_is_there_before_anything_is_done(open_page: OpenPage) -> None:
    at = opened(open_page)
    tokenizer = train_bpe(STORY, 512)
    first = tokenizer.token_bytes(256)
    assert ids_of_merge(at) == [first[0], first[1], 256]
    assert strip(at) == truncated(tokenizer, 1).encode("a fox and a hat")
    line, here = plotly(at, "merges_curve")["data"]
    assert (here["x"], here["y"]) == ([1], [len(truncated(tokenizer, 1).encode(STORY))])
    assert plotly(at, "merges_lengths")["data"] and plotly(at, "merges_uses")["data"]


def test_the_slider_goes_from_bytes_to_the_last_merge(open_page: OpenPage) -> None:
    at = opened(open_page, "aaabdaaabac", merges_text="sidebar", merges_size=259)
    assert at.slider(key="merges_n").min == 0 and at.slider(key="merges_n").max == 3
    for n, ids in {0: list(b"aaabdaaabac"), 3: [258, 100, 258, 97, 99]}.items():
        at.slider(key="merges_n").set_value(n).run()
        assert strip(at) == ids
        assert "Raw bytes" in said(at) if n == 0 else ids_of_merge(at)[2] == 255 + n
    assert "7 - 2 = 5" in formulas(at) and r"\frac{11}{5} = 2.200" in formulas(at)
    assert "5 tokens for 11 bytes. The new token is in it 2 times." in said(at)
    new = [chip for group in component(at, "merges_strip")["groups"] for chip in group["chips"]]
    assert [chip["value"] for chip in new] == ["new", "", "new", "", ""]


def test_back_and_forward_stop_at_the_ends(open_page: OpenPage) -> None:
    at = opened(open_page, "aaabdaaabac", merges_text="sidebar", merges_size=259, merges_n=3)
    assert at.button(key="merges_forward").disabled
    for n in (2, 1, 0):
        at.button(key="merges_back").click().run()
        assert at.slider(key="merges_n").value == n
    assert at.button(key="merges_back").disabled
    at.button(key="merges_forward").click().run()
    assert at.slider(key="merges_n").value == 1


def test_play_starts_again_after_the_end_and_pauses(open_page: OpenPage) -> None:
    at = opened(open_page, "aaabdaaabac", merges_text="sidebar", merges_size=259, merges_n=3)
    at.button(key="merges_play").click().run()
    assert at.button(key="merges_play").label == "Pause" and at.slider(key="merges_n").value == 0
    assert len(plotly(at, "merges_curve")["data"]) == 1  # no cursor: the figure stands still
    at.button(key="merges_play").click().run()
    assert at.button(key="merges_play").label == "Play"


def test_t17_what_was_asked_and_what_came(open_page: OpenPage) -> None:
    at = opened(open_page, "the cat sat on the mat", merges_text="sidebar", merges_size=1000)
    assert "Asked 1,000, got 268" in said(at) and at.slider(key="merges_n").max == 12


def test_t16_a_blank_text_is_refused_in_words(open_page: OpenPage) -> None:
    for state in (
        {"merges_text": "sidebar", "text": "   "},
        {"merges_text": "pasted", "merges_paste": " \n"},
    ):
        at = opened(open_page, **{"text": "x", **state})
        assert "blank" in said(at) and not at.get("slider") and at.button(key="merges_try_0")


def test_t18_less_than_the_bytes_can_t_be_asked(open_page: OpenPage) -> None:
    at = opened(open_page, merges_size=256)
    assert at.number_input(key="merges_size").min == 256 and at.number_input(key="merges_size").max == 8192
    assert "without merges" in said(at) and not at.get("slider")


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "😀" * 30,
        " " * 3000 + "x",
        "今天天气很好" * 50,
        MARKUP,
        "שלום",
        "a\u0301" * 9,
        "\x00\x1b[0m",
        "ab" * 50_000,
    ],
    ids=["letter", "emoji", "blanks", "chinese", "markup", "hebrew", "marks", "control", "long"],
)
def test_any_text_can_be_learned_from_and_cut(open_page: OpenPage, text: str) -> None:
    at = opened(open_page, text, merges_text="sidebar", merges_size=400, merges_n=400)
    tokenizer = train_bpe(text, 400)
    if tokenizer.vocab_size > 256:
        assert strip(at) == tokenizer.encode(text)[:200]
        at.slider(key="merges_n").set_value(0).run()
        assert not at.exception and strip(at) == list(text.encode()[:200])
    assert not [m.value for m in at.markdown if "onerror" in m.value or "<b>" in m.value]


def test_a_smaller_vocabulary_moves_the_slider_to_its_end(open_page: OpenPage) -> None:
    at = opened(open_page, merges_n=20)
    assert at.slider(key="merges_n").value == 20
    at.number_input(key="merges_size").set_value(270).run()
    assert not at.exception and at.slider(key="merges_n").value == 14


def test_the_table_is_searched_and_a_token_taken_apart(open_page: OpenPage) -> None:
    text = "aaabdaaabac"
    at = opened(open_page, text, merges_text="sidebar", merges_size=259)
    rows = at.dataframe[0].value
    assert len(rows) == 259 and list(rows["id"][:3]) == [256, 257, 258]
    assert rows["uses"].sum() == 5 and rows["bytes"][2] == "61 61 61 62"
    at.text_input(key="merges_find").set_value("aaab").run()
    assert list(at.dataframe[0].value["id"]) == [258]
    at.text_input(key="merges_find").set_value("100").run()
    assert list(at.dataframe[0].value["text"]) == ["d"]
    at.text_input(key="merges_find").set_value("zzz").run()
    assert "No token holds this" in said(at) and not at.dataframe
    tree = at.code[0].value.splitlines()
    assert tree[0].split() == ["258", "aaab"] and len(tree) == 7  # four bytes, three merges
    at.number_input(key="merges_token").set_value(97).run()
    assert at.code[0].value == "97  a" and r"\frac{1\ \text{uses}}{5\ \text{tokens}} = 20.0\,\%" in formulas(
        at
    )


def test_use_it_keeps_it_for_its_owner_and_the_next_run_has_exactly_these_ids(
    open_page: OpenPage, loupe_home: Path
) -> None:
    at = opened(open_page, merges_size=280)
    at.button(key="merges_use").click().run()
    expected = train_bpe(STORY, 280)
    assert "BPE 280 is kept" in said(at) and "Your next run will use it" in said(at)
    assert [kept.hash for kept in own_vocabularies.listed(ME)[0]] == [expected.hash]
    at.switch_page("pages/training.py").run()
    choice = at.selectbox(key="training_tokenizer")
    assert choice.value == f"own:{expected.hash}"
    assert "My tokenizer: BPE 280, learned from Stories" in choice.options
    assert "280 ids" in said(at) and "training_vocab_size" not in {e.key for e in at.number_input}
    at.selectbox(key="training_text").set_value("pasted").run()
    at.text_area(key="training_paste").set_value("Dear Ada, the boiler broke again. " * 60).run()
    at.button(key="training_start").click().run()
    assert not at.exception
    info = RunStore(loupe_home).list(ME)[0]
    spec = json.loads((info.folder / "tokenizer.json").read_text("utf-8"))
    assert spec == expected.to_json() and info.model.vocab_size == 280


def test_a_new_session_of_the_same_person_finds_it_and_nobody_else(open_page: OpenPage) -> None:
    kept = own_vocabularies.save(ME, train_bpe(STORY, 280), MARKUP)
    at = open_page("training", _owner_proposal=ME)
    assert any("BPE 280" in option for option in at.selectbox(key="training_tokenizer").options)
    at = open_page("training", _owner_proposal="b" * 32, training_tokenizer=f"own:{kept.hash}")
    assert not at.exception and at.selectbox(key="training_tokenizer").value == "bpe"
    assert "not here any more" in said(at)
    assert not any("BPE 280" in option for option in at.selectbox(key="training_tokenizer").options)


def test_two_of_the_same_name_stay_two_choices(open_page: OpenPage) -> None:
    first, second = train_bpe(STORY, 280), train_bpe(STORY + "zzzz " * 900, 280)
    for tokenizer in (first, second):
        own_vocabularies.save(ME, tokenizer, "“Long ago”")
    at = open_page("training", _owner_proposal=ME, training_tokenizer=f"own:{first.hash}")
    own = [option for option in at.selectbox(key="training_tokenizer").options if "280" in option]
    assert len(set(own)) == 2 and any(first.hash[:4] in option for option in own)
    assert at.selectbox(key="training_tokenizer").value == f"own:{first.hash}"


def test_what_was_pasted_is_recalled_by_its_first_words(open_page: OpenPage) -> None:
    at = opened(open_page, merges_text="pasted", merges_paste="Dear *Ada*,\n the boiler broke. " * 20)
    at.button(key="merges_use").click().run()
    assert own_vocabularies.listed(ME)[0][0].learned_from == "“Dear *Ada*, the boiler broke.…”"


def test_an_uploaded_file_asks_for_its_encoding_first(open_page: OpenPage) -> None:
    file = ("caf\u00e9.txt", ("caf\u00e9 " * 50).encode("cp1252"))
    at = opened(open_page, merges_text="uploaded", _merges_upload=file)
    assert "not UTF-8" in said(at).replace("\\", "") and not at.get("slider")
    at.selectbox(key="merges_encoding").set_value("cp1252").run()
    assert not at.exception and "300 bytes" in said(at)
    assert at.slider(key="merges_n").max == 5  # four inside café, one for the space


def test_a_kept_one_can_be_removed_and_a_damaged_one_is_named(open_page: OpenPage, loupe_home: Path) -> None:
    kept = own_vocabularies.save(ME, train_bpe(STORY, 280), MARKUP)
    bad = own_vocabularies.save(ME, train_bpe(STORY, 281), "x")
    next((loupe_home / "vocab").rglob(f"{bad.hash}.json")).write_text("{", "utf-8")
    at = opened(open_page)
    assert "damaged" in said(at)
    at.button(key=f"merges_remove_{kept.hash}").click().run()
    assert not at.exception and own_vocabularies.listed(ME)[0] == []


def test_try_this_does_it(open_page: OpenPage) -> None:
    at = opened(open_page)
    at.button(key="merges_try_0").click().run()
    assert not at.exception and at.text_area(key="text").value == "aaabdaaabac"
    assert at.slider(key="merges_n").max == 3
    at.button(key="merges_try_1").click().run()
    assert at.button(key="merges_play").label == "Pause" and at.slider(key="merges_n").value == 0
    at.button(key="merges_play").click().run()
    at.button(key="merges_try_2").click().run()
    assert at.selectbox(key="merges_text").value == "python-docs" and not at.exception


def test_choices_survive_a_page_change(open_page: OpenPage) -> None:
    at = opened(open_page, merges_size=300, merges_n=20)
    at.switch_page("pages/training.py").run()
    at.switch_page("pages/tokens.py").run()
    at.session_state["view"] = "train-your-own"
    at.run()
    assert at.number_input(key="merges_size").value == 300 and at.slider(key="merges_n").value == 20
