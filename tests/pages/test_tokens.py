"""The Tokens page: every piece with its number, for any text and any vocabulary."""

import base64
import os
import tempfile
import urllib.request
from pathlib import Path
from typing import NoReturn

import pytest
from streamlit.testing.v1 import AppTest

from engine import vocabularies
from engine.tokenizers import char_tokenizer
from tests.pages import tiny
from tests.pages.conftest import OpenPage, component, plotly
from ui import model_refs, resources, tokens_languages
from ui import vocabularies as ui_vocabularies

ROOT = Path(__file__).parents[2]
MARKUP = "$x$ <b>b</b> *s* :smile: <img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def models(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path_factory.getbasetemp() / "tiny"
    if not folder.exists():
        tiny.save_tiny(folder, "stories-clm")
        tiny.save_tiny(folder, "stories-mlm", objective="mlm")
    monkeypatch.setattr(model_refs, "PRETRAINED", folder)


@pytest.fixture(autouse=True)
def files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Published vocabularies from the folder of the engine's tests, if there is one and none is named."""
    folder = os.environ.get("LOUPE_TEST_VOCAB", ROOT.parent / "shared" / "vocab")
    if "TIKTOKEN_CACHE_DIR" not in os.environ and Path(folder).is_dir():
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))


def needs(name: str) -> None:
    if vocabularies.find(name) is None:
        pytest.skip(f"no published vocabularies here ({name}); name their folder in LOUPE_TEST_VOCAB")


def chips(at: AppTest, key: str = "tokens_strip") -> list[dict[str, object]]:
    return [chip for group in component(at, key)["groups"] for chip in group["chips"]]


def ids(at: AppTest, key: str = "tokens_strip") -> list[object]:
    return [chip["id"] for chip in chips(at, key)]


def has(at: AppTest, key: str) -> bool:
    return any(key in element.proto.id for element in at.get("bidi_component"))


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
    rows = component(at, "tokens_table")["rows"]
    assert bytes.fromhex("".join(row["bytes"] for row in rows)) == text.encode()
    assert [row["id"] for row in rows] == ids(at)
    assert [chip["i"] for chip in chips(at)] == list(range(len(rows)))
    sizes = [len(bytes.fromhex(row["bytes"])) for row in rows]
    assert [row["byte"] for row in rows] == [sum(sizes[:i]) for i in range(len(sizes))]
    place = [i for i, character in enumerate(text) for _ in character.encode()]  # of each byte, its character
    assert [row["start"] for row in rows] == [place[row["byte"]] for row in rows]


def test_markup_stays_text(open_page: OpenPage) -> None:
    at = opened(open_page, MARKUP)
    assert shown(at) == [c.replace(" ", "·") for c in MARKUP]
    assert not [m.value for m in at.markdown if "onerror" in m.value or "<b>" in m.value]


def test_an_emoji_is_one_group_and_its_bytes_are_its_own(open_page: OpenPage) -> None:
    at = opened(open_page, "a😀b", query={"pos": "2"})
    groups = component(at, "tokens_strip")["groups"]
    assert [len(group["chips"]) for group in groups] == [1, 4, 1]
    assert shown(at)[1:5] == ["⟨F0⟩", "⟨9F⟩", "⟨98⟩", "⟨80⟩"]
    spelled = next(frame.value for frame in at.dataframe if "code_point" in frame.value.columns)
    assert spelled.to_dict("records") == [
        {"character": "😀", "code_point": "U+1F600", "bytes": "F0 9F 98 80", "in_token": "9F"}
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
    assert ids(at) == list(text.encode()) and ids(at, "tokens_other") == [104, 105, 32, 257]
    captions = [caption.value for caption in at.caption]
    assert (
        "As plain text: 16 tokens, looked at below" in captions and "As control tokens: 4 tokens" in captions
    )
    at.toggle(key="tokens_special").set_value(True).run()
    assert ids(at) == [104, 105, 32, 257] and ids(at, "tokens_other") == list(text.encode())
    assert shown(at)[-1] == "<|endoftext|>"
    assert metrics(at)[0] == "4"


def test_t01_gpt2_reads_it_in_both_ways(open_page: OpenPage) -> None:
    needs("gpt2")
    at = opened(open_page, "hi <|endoftext|>", "gpt2")
    assert ids(at) == [5303, 1279, 91, 437, 1659, 5239, 91, 29]
    assert ids(at, "tokens_other") == [5303, 220, 50256]


def test_m06_a_mask_typed_by_a_user_is_plain_text(open_page: OpenPage) -> None:
    at = opened(open_page, "the [MASK] sat")
    assert len(chips(at)) == 14
    assert ids(at, "tokens_other") == [*b"the ", 256, *b" sat"]


def test_an_ordinary_text_has_one_reading(open_page: OpenPage) -> None:
    for text in ("a cat", "a <| cat [MAS"):
        at = opened(open_page, text)
        assert not has(at, "tokens_other") and "tokens_special" not in {toggle.key for toggle in at.toggle}


@pytest.mark.parametrize(
    ("text", "pos", "wanted"),
    [
        ("a👨‍👩‍👧!", "3", ["5 code points", "18 bytes in 18 tokens", "part 3 of 18"]),
        ("🇩🇪", "0", ["2 code points", "8 bytes in 8 tokens", "part 1 of 8"]),
        ("क्षि", "11", ["4 code points", "12 bytes in 12 tokens", "part 12 of 12"]),
        ("e\u0301", "1", ["2 code points", "3 bytes in 3 tokens", "part 2 of 3"]),
        ("é", "1", ["2 bytes in 2 tokens"]),
    ],
    ids=ascii,
)
def test_a_character_of_several_tokens_is_named_whole(
    open_page: OpenPage, text: str, pos: str, wanted: list[str]
) -> None:
    at = opened(open_page, text, query={"pos": pos})
    (sentence,) = [m.value for m in at.markdown if m.value.startswith("The piece")]
    assert all(words in sentence for words in wanted), sentence


def test_a_character_of_one_token_needs_no_such_sentence(open_page: OpenPage) -> None:
    assert not [m for m in opened(open_page, "a👍", "characters").markdown if "The piece" in m.value]


def test_the_last_character_that_is_drawn_may_lack_its_end(open_page: OpenPage) -> None:
    at = opened(open_page, "a" * 298 + "👍!", query={"pos": "299"})
    assert not [m for m in at.markdown if "The piece" in m.value]


def test_what_is_copied_is_the_raw_text(open_page: OpenPage) -> None:
    text = "\n a\t😀 \r\n"
    at = opened(open_page, text)
    assert component(at, "tokens_copy_text")["text"] == text
    assert component(at, "tokens_copy_ids")["text"] == str(list(text.encode()))


def test_a_genuine_replacement_character_is_shown_as_itself(open_page: OpenPage) -> None:
    assert shown(opened(open_page, "\ufffd", "characters")) == ["\ufffd"]
    assert shown(opened(open_page, "\ufffd")) == ["⟨EF⟩", "⟨BF⟩", "⟨BD⟩"]


def test_a_space_at_the_end_is_pointed_at(open_page: OpenPage) -> None:
    assert "ends in a space" in said(opened(open_page, "Hello world "))
    assert "ends in a space" not in said(opened(open_page, "Hello world"))


def test_half_a_pair_is_repaired_and_said(open_page: OpenPage) -> None:
    at = opened(open_page, "a\ud83db")
    assert "1 broken character" in said(at)
    assert [chip["id"] for chip in chips(at)] == [97, 0xEF, 0xBF, 0xBD, 98]


@pytest.mark.parametrize("char", ["a", "^", " ", "\n", "😀", "0"])
def test_a_million_characters_are_counted_and_300_drawn(open_page: OpenPage, char: str) -> None:
    at = opened(open_page, "a")
    at.session_state["text"] = char * 1_000_000
    at.run()
    assert not at.exception and len(chips(at)) == 300
    n_bytes = 1_000_000 * len(char.encode())
    assert f"the first 300 of {n_bytes:,} tokens" in said(at)
    assert metrics(at) == [f"{n_bytes:,}", "1,000,000", f"{n_bytes:,}"]


def test_gpt2_counts_a_million_characters(open_page: OpenPage) -> None:
    needs("gpt2")
    at = opened(open_page, "a", "gpt2")
    at.session_state["text"] = "a" * 1_000_000
    assert metrics(at.run())[0] == "250,000"


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
    monkeypatch.setattr(model_refs, "PRETRAINED", tmp_path_factory.mktemp("none"))
    at = open_page("tokens", text="a cat")
    assert not at.exception and [chip["id"] for chip in chips(at)] == list(b"a cat")


def test_try_this_does_it(open_page: OpenPage) -> None:
    at = opened(open_page, "a")
    at.button(key="try_0").click().run()
    assert not at.exception
    assert any(len(group["chips"]) == 18 for group in component(at, "tokens_strip")["groups"])
    at.button(key="try_2").click().run()
    assert not at.toggle(key="tokens_special").value
    own = resources.tokenizer(model_refs.shipped_models()[0])
    control = {own.mask_id, own.end_id}
    assert control <= set(ids(at, "tokens_other")) and not control & set(ids(at))


@pytest.mark.parametrize("view", ["side-by-side", "languages"])
@pytest.mark.parametrize("button", [0, 1, 2])
def test_try_this_does_it_in_every_view(open_page: OpenPage, view: str, button: int) -> None:
    at = opened(open_page, "a", view=view)
    at.button(key=f"try_{button}").click().run()
    assert not at.exception, at.exception[0].value


def test_choices_survive_a_page_change(open_page: OpenPage) -> None:
    at = opened(open_page, "a cat")
    at.session_state["text"] = "a [MASK] cat"
    at.segmented_control(key="tokens_vocabulary").set_value("characters").run()
    at.toggle(key="tokens_special").set_value(True).run()
    at.switch_page("pages/home.py").run()
    at.switch_page("pages/tokens.py").run()
    assert at.segmented_control(key="tokens_vocabulary").value == "characters"
    assert at.toggle(key="tokens_special").value


# ---- side by side


def table(at: AppTest) -> dict[str, list[object]]:
    frame = next(frame.value for frame in at.dataframe if "tokens-per-word" in frame.value.columns)
    return {str(name): list(frame[name]) for name in frame.columns}


def test_one_text_in_many_vocabularies(open_page: OpenPage) -> None:
    text = "Once upon a time, été"
    at = opened(open_page, text, view="side-by-side")
    found = table(at)
    assert found["vocabulary"][:2] == ["bytes", "characters"]
    assert found["tokens"][:2] == [23, 21] and found["size"][:2] == [256, len(set(text))]
    assert found["tokens-per-word"][0] == 23 / 5
    assert found["characters-per-token"][0] == 21 / 23 and found["bytes-per-token"][1] == 23 / 21
    own = found["vocabulary"].index("the model’s: BPE 400")
    assert found["tokens"][own] == len(tiny.story_tokenizer().encode(text))
    sizes = [
        size for name, size in zip(found["vocabulary"], found["size"], strict=True) if "BPE" in str(name)
    ]
    assert sizes[:4] == [400, 512, 1024, sizes[3]] and sizes == sorted(sizes, key=int)
    for i, n in enumerate(found["tokens"]):
        assert len(chips(at, f"tokens_head_{i}")) == min(40, int(str(n)))
    bars = plotly(at, "tokens_bars")["data"][0]
    assert tiny.array(bars["x"]).tolist() == found["tokens"]


@pytest.mark.parametrize("unit", ["tokens-per-word", "characters-per-token", "bytes-per-token"])
def test_the_bars_show_the_chosen_unit(open_page: OpenPage, unit: str) -> None:
    at = opened(open_page, "a cat sat", view="side-by-side", tokens_unit=unit)
    bars = plotly(at, "tokens_bars")
    assert tiny.array(bars["data"][0]["x"]) == pytest.approx([float(str(x)) for x in table(at)[unit]])
    assert bars["layout"]["xaxis"]["title"]["text"] == unit.replace("-", " ")


def test_a_script_without_spaces_has_no_words(open_page: OpenPage) -> None:
    at = opened(open_page, "早上，孩子们去上学。", view="side-by-side", tokens_unit="tokens-per-word")
    assert "no spaces between words" in " ".join(caption.value for caption in at.caption)


def test_published_vocabularies_stand_beside_the_others(open_page: OpenPage) -> None:
    needs("gpt2")
    at = opened(open_page, "a😀b", view="side-by-side")
    row = table(at)["vocabulary"].index("gpt2")
    assert table(at)["tokens"][row] == 4 and ids(at, f"tokens_head_{row}") == [64, 47249, 222, 65]


def test_absent_vocabularies_are_listed_with_what_to_do(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, loupe_home: Path
) -> None:
    monkeypatch.setattr(vocabularies, "find", lambda name: None)
    at = opened(open_page, "a cat", view="side-by-side")
    assert not {"gpt2", "cl100k_base", "o200k_base"} & set(table(at)["vocabulary"])
    lines = [m.value.replace("\\", "") for m in at.markdown if m.value.startswith("Without the network")]
    assert len(lines) == 3 and all(str(loupe_home / "vocab") in line for line in lines)
    assert [at.button(key=f"tokens_fetch_{name}").label for name in ui_vocabularies.PUBLISHED] == [
        f"Download {size} MB from openaipublic.blob.core.windows.net" for size in ("0.8", "1.7", "3.6")
    ]


@pytest.mark.parametrize("char", ["a", " ", "😀", "0"])
def test_a_million_characters_side_by_side(open_page: OpenPage, char: str) -> None:
    at = opened(open_page, char * 1_000_000, view="side-by-side")
    assert table(at)["tokens"][:2] == [1_000_000 * len(char.encode()), 1_000_000]
    assert len(chips(at, "tokens_head_0")) == 40


def test_a_piece_opens_where_it_is(open_page: OpenPage) -> None:
    at = opened(open_page, "a cat sat", view="side-by-side")
    row = table(at)["vocabulary"].index("BPE 512, stories")
    wanted = ids(at, f"tokens_head_{row}")
    tokens_compare_press(at, "stories-512", 2)
    assert ids(at) == wanted and component(at, "tokens_strip")["selected"] == 2
    assert at.segmented_control(key="tokens_vocabulary").value == "stories-512"


def tokens_compare_press(at: AppTest, option: str, index: int) -> None:
    """What a press on a chip of a comparison does; presses themselves need a browser."""
    at.session_state["view"] = "pieces"
    at.session_state["tokens_vocabulary"] = option
    at.session_state["_tokens_strip_about"] = (at.session_state["text"], option)
    at.session_state["tokens_strip"] = {"selected": index}
    at.run()


# ---- languages


def test_languages_are_compared_with_english(open_page: OpenPage) -> None:
    at = opened(open_page, "", view="languages", tokens_language="zh", tokens_language_vocabulary="bytes")
    heat = plotly(at, "tokens_languages")["data"][0]
    names = list(tokens_languages.SENTENCES)
    sizes = [len(text.encode()) for text in tokens_languages.SENTENCES.values()]
    z = tiny.array(heat["z"])
    assert 2 ** z[:, 0] == pytest.approx([n / sizes[0] for n in sizes], rel=1e-5)
    chinese = sizes[names.index("zh")]
    formula = next(latex.value for latex in at.latex)
    assert f"{chinese}\\ \\text{{tokens, Chinese}}" in formula and f"{sizes[0]}\\ " in formula
    assert len(chips(at, "tokens_sentence_True")) == min(60, chinese)


def test_one_s_own_language_is_the_last_row(open_page: OpenPage) -> None:
    own = "Mañana los niños van a la escuela."
    at = opened(open_page, "a", view="languages", tokens_translation=own, tokens_language="yours")
    spec = plotly(at, "tokens_languages")
    assert spec["layout"]["yaxis"]["ticktext"][-1] == "yours"
    english = len(tokens_languages.SENTENCES["en"].encode())
    assert 2 ** tiny.array(spec["data"][0]["z"])[-1, 0] == pytest.approx(
        len(own.encode()) / english, rel=1e-5
    )
    at.text_area(key="tokens_translation").set_value("").run()
    assert not at.exception and at.selectbox(key="tokens_language").value == "hi"


def test_a_model_of_characters_is_left_out_where_it_does_not_know_them(
    open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.save_tiny(tmp_path, "stories-clm", tokenizer=char_tokenizer("abc ."))
    monkeypatch.setattr(model_refs, "PRETRAINED", tmp_path)
    at = opened(open_page, "Zoë", view="side-by-side")
    assert "the model’s: characters" not in table(at)["vocabulary"]
    at = opened(open_page, "a", view="languages")
    assert "the model’s:<br>characters" not in plotly(at, "tokens_languages")["layout"]["xaxis"]["ticktext"]


# ---- files brought here


def custom_file() -> bytes:
    entries = [bytes([b]) for b in range(256)] + [b"th", b"the"]
    return b"\n".join(base64.b64encode(data) + b" %d" % i for i, data in enumerate(entries))


def test_a_stranger_s_file_is_called_custom(open_page: OpenPage, loupe_home: Path) -> None:
    at = opened(open_page, "the")
    at.file_uploader(key="tokens_upload").upload("*my* <b>.tiktoken", custom_file(), "text/plain").run()
    assert not at.exception
    assert at.segmented_control(key="tokens_vocabulary").value == "custom: *my* <b>"
    assert ids(at) == [257] and "none of the published ones" in at.success[0].value
    assert "\\*my\\*" in at.success[0].value
    assert not list((loupe_home / "vocab").glob("*")) if (loupe_home / "vocab").exists() else True
    at.segmented_control(key="tokens_vocabulary").set_value("bytes").run()
    at.session_state["view"] = "side-by-side"
    at.run()
    assert not at.exception and table(at)["vocabulary"][-1] == "custom: *my* <b>"


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "is empty"), (b"\x00\xff" * 999, "Line 1 is not"), (custom_file()[5:], "Line 1 is not"),
     (custom_file().split(b"\n", 3)[3], "no token for 3 of the 256 bytes")],
)  # fmt: skip
def test_a_damaged_file_is_one_sentence(open_page: OpenPage, content: bytes, words: str) -> None:
    at = opened(open_page, "the cat")
    at.file_uploader(key="tokens_upload").upload("x.tiktoken", content, "text/plain").run()
    assert not at.exception and words in at.error[0].value.replace("\\", "")
    assert ids(at) == list(b"the cat")


def test_a_published_file_gets_its_name_and_stays(
    open_page: OpenPage, loupe_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("gpt2")
    path = vocabularies.find("gpt2")
    assert path is not None
    content = path.read_bytes()
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(loupe_home))
    ui_vocabularies._published.clear()
    at = opened(open_page, "a text that is new", "gpt2")
    assert "not on this machine" in said(at)
    at.file_uploader(key="tokens_upload").upload("whatever", content, "text/plain").run()
    assert at.segmented_control(key="tokens_vocabulary").value == "gpt2" and len(ids(at)) == 5
    assert "This is gpt2 or r50k" in at.success[0].value.replace("\\", "")
    assert (loupe_home / "vocab" / "r50k_base.tiktoken").read_bytes() == content
    ui_vocabularies._published.clear()


def test_no_page_opens_a_connection(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> NoReturn:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    monkeypatch.setattr(vocabularies, "find", lambda name: None)
    ui_vocabularies._published.clear()
    for view in ("pieces", "side-by-side", "languages"):
        opened(open_page, "a new text", "o200k_base", view=view)


def test_the_view_is_in_the_address(open_page: OpenPage) -> None:
    at = open_page("tokens", query={"view": "languages"}, text="a")
    assert not at.exception and at.segmented_control(key="view").value == "languages"
    at = open_page("tokens", query={"view": "nonsense"}, text="a")
    assert not at.exception and at.segmented_control(key="view").value == "pieces"
