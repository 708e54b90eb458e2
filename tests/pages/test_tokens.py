"""The Tokens page: every piece with its number, for any text and any vocabulary."""

import time

import pytest
from streamlit.testing.v1 import AppTest

from engine import vocabularies
from tests.pages import tiny
from tests.pages.conftest import OpenPage, component
from ui import resources
from ui import vocabularies as ui_vocabularies

MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def models(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path_factory.getbasetemp() / "tiny"
    if not folder.exists():
        tiny.save_tiny(folder, "stories-clm")
        tiny.save_tiny(folder, "stories-mlm", objective="mlm")
    monkeypatch.setattr(resources, "PRETRAINED", folder)


def needs(name: str) -> None:
    if vocabularies.find(name) is None:
        pytest.skip(f"the vocabulary {name} is not on this machine")


def chips(at: AppTest) -> list[dict[str, object]]:
    return [chip for group in component(at, "tokens_strip")["groups"] for chip in group["chips"]]


def shown(at: AppTest) -> list[str]:
    return ["".join(piece for piece, _ in chip["parts"]) for chip in chips(at)]  # type: ignore[attr-defined]


def said(at: AppTest) -> str:
    return " ".join(element.value for element in [*at.info, *at.warning])


def opened(open_page: OpenPage, text: str, vocabulary: str = "bytes", **state: object) -> AppTest:
    at = open_page("tokens", text=text, tokens_vocabulary=vocabulary, **state)
    assert not at.exception, at.exception[0].value
    return at


def metrics(at: AppTest) -> list[str]:
    return [metric.value for metric in at.metric]


def test_the_model_s_own_vocabulary_comes_first(open_page: OpenPage) -> None:
    text = "Once upon a time"
    at = open_page("tokens", text=text)
    assert [chip["id"] for chip in chips(at)] == tiny.story_tokenizer().encode(text)
    assert "BPE 400" in at.segmented_control(key="tokens_vocabulary").options[0]
    assert metrics(at) == [str(len(chips(at))), "16", "16"]


def test_empty_text_has_nothing_to_show(open_page: OpenPage) -> None:
    at = opened(open_page, "")
    assert "nothing to show" in said(at)
    at.button(key="use_example").click().run()
    assert not at.exception and chips(at)


@pytest.mark.parametrize("vocabulary", ["model", "bytes", "characters"])
@pytest.mark.parametrize("text", ["a", MARKUP, "a😀b", "שלום", " ", "\n", "e\u0301 é", "\x00\x1b[0m"])
def test_any_text_is_cut_without_loss(open_page: OpenPage, text: str, vocabulary: str) -> None:
    at = opened(open_page, text, vocabulary)
    table = next(frame.value for frame in at.dataframe if "first byte" in frame.value.columns)
    assert bytes.fromhex("".join(table["bytes"])) == text.encode()
    assert list(table["id"]) == [chip["id"] for chip in chips(at)]
    assert [chip["i"] for chip in chips(at)] == list(range(len(table)))


def test_markup_stays_text(open_page: OpenPage) -> None:
    at = opened(open_page, MARKUP)
    assert shown(at) == [c.replace(" ", "·") for c in MARKUP]
    assert not [m.value for m in at.markdown if "onerror" in m.value or "<b>" in m.value]


def test_an_emoji_is_one_group_and_its_bytes_are_its_own(open_page: OpenPage) -> None:
    at = opened(open_page, "a😀b", query={"pos": "2"})
    groups = component(at, "tokens_strip")["groups"]
    assert [len(group["chips"]) for group in groups] == [1, 4, 1]
    assert shown(at)[1:5] == ["⟨F0⟩", "⟨9F⟩", "⟨98⟩", "⟨80⟩"]
    spelled = next(frame.value for frame in at.dataframe if "code point" in frame.value.columns)
    assert spelled.to_dict("records") == [
        {"character": "😀", "code point": "U+1F600", "its bytes": "F0 9F 98 80", "in this token": "9F"}
    ]


def test_gpt2_s_known_ids(open_page: OpenPage) -> None:
    needs("gpt2")
    for text, ids in {
        "hi <|endoftext|>": [5303, 1279, 91, 437, 1659, 5239, 91, 29],
        "a😀b": [64, 47249, 222, 65],
        "a\r\nb": [64, 201, 198, 65],
        "Hello world ": [15496, 995, 220],
        "a  b": [64, 220, 275],
        "來": [160, 122, 228],
        "שלום": [50227, 40010, 27072, 147, 251],
        "e\u0301": [68, 136, 223],
        "the cat sat on the mat the": [1169, 3797, 3332, 319, 262, 2603, 262],
    }.items():
        assert [chip["id"] for chip in chips(opened(open_page, text, "gpt2"))] == ids, text


def test_whitespace_is_visible(open_page: OpenPage) -> None:
    assert shown(opened(open_page, " \t\n\r")) == ["·", "⇥", "⏎", "␍"]


def test_a_control_word_is_plain_text_until_asked(open_page: OpenPage) -> None:
    text = "hi <|endoftext|>"
    at = opened(open_page, text)
    assert len(chips(at)) == 16 and "Read as plain text: 16 tokens" in said(at)
    assert "one token each: 4 tokens" in said(at)
    at.toggle(key="tokens_special").set_value(True).run()
    assert [chip["id"] for chip in chips(at)] == [104, 105, 32, 257]
    assert shown(at)[-1] == "<|endoftext|>"


def test_a_mask_typed_by_a_user_is_plain_text(open_page: OpenPage) -> None:
    assert len(chips(opened(open_page, "the [MASK] sat"))) == 14


def test_a_space_at_the_end_is_pointed_at(open_page: OpenPage) -> None:
    assert "ends in a space" in said(opened(open_page, "Hello world "))
    assert "ends in a space" not in said(opened(open_page, "Hello world"))


def test_half_a_pair_is_repaired_and_said(open_page: OpenPage) -> None:
    at = opened(open_page, "a\ud83db")
    assert "1 broken character" in said(at)
    assert [chip["id"] for chip in chips(at)] == [97, 0xEF, 0xBF, 0xBD, 98]


@pytest.mark.parametrize("char", ["a", "^", " ", "\n", "😀", "0"])
def test_a_million_characters_in_five_seconds(open_page: OpenPage, char: str) -> None:
    at = opened(open_page, "a")  # imports and the model are not what is measured
    at.session_state["text"] = char * 1_000_000
    began = time.monotonic()
    at.run()
    seconds = time.monotonic() - began
    assert not at.exception and len(chips(at)) == 300
    n_bytes = 1_000_000 * len(char.encode())
    assert f"the first 300 of {n_bytes:,} tokens" in said(at)
    assert metrics(at) == [f"{n_bytes:,}", "1,000,000", f"{n_bytes:,}"]
    assert seconds < 5, f"{seconds:.1f} s"


def test_gpt2_counts_a_million_characters(open_page: OpenPage) -> None:
    needs("gpt2")
    at = opened(open_page, "a", "gpt2")
    at.session_state["text"] = "a" * 1_000_000
    began = time.monotonic()
    assert metrics(at.run())[0] == "250,000"
    assert time.monotonic() - began < 5


def test_a_missing_vocabulary_says_how_to_add_it(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabularies, "find", lambda name: None)
    ui_vocabularies._published.clear()  # an earlier test may have read it
    at = opened(open_page, "a text of its own", "o200k_base")
    assert "not on this machine" in said(at) and "o200k_base.tiktoken" in said(at).replace("\\", "")


def test_works_without_a_model_and_with_a_masked_one(
    open_page: OpenPage, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = open_page("tokens", text="a cat", model="stories-mlm")
    assert not at.exception and chips(at)
    monkeypatch.setattr(resources, "PRETRAINED", tmp_path_factory.mktemp("none"))
    at = open_page("tokens", text="a cat")
    assert not at.exception and [chip["id"] for chip in chips(at)] == list(b"a cat")


def test_try_this_does_it(open_page: OpenPage) -> None:
    at = opened(open_page, "a")
    at.button(key="try_0").click().run()
    assert not at.exception
    assert any(len(group["chips"]) == 18 for group in component(at, "tokens_strip")["groups"])
    at.button(key="try_2").click().run()
    assert at.toggle(key="tokens_special").value and "<|endoftext|>" in shown(at)


def test_choices_survive_a_page_change(open_page: OpenPage) -> None:
    at = opened(open_page, "a cat")
    at.segmented_control(key="tokens_vocabulary").set_value("characters").run()
    at.toggle(key="tokens_special").set_value(True).run()
    at.switch_page("pages/home.py").run()
    at.switch_page("pages/tokens.py").run()
    assert at.segmented_control(key="tokens_vocabulary").value == "characters"
    assert at.toggle(key="tokens_special").value
