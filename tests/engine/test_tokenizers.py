import json
import random
from pathlib import Path

import pytest
import regex
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.sampling import TextStream
from engine.tokenizer import END_TEXT
from engine.tokenizers import byte_tokenizer, char_tokenizer, tokenizer_from_json, train_bpe
from engine.tokens import characters_of, repair_text, whole_graphemes

pytestmark = pytest.mark.usefixtures("no_network")

MILLION = 1_000_000
UDHR = Path(__file__).parents[3] / "shared" / "data" / "udhr"
SENTENCE = "the cat sat on the mat"
HARD = [
    "",
    " ",
    "Hello world ",
    "  two  spaces\t\ttabs \r\n\r\n  \n x",
    "I'll I'LL we've DON'T it's ’s",
    "1234567 3.14 ½ ² ①",
    "café cafe\u0301 ﬁ ǅ",
    "שלום مرحبا",
    "नमस्ते क्षि ಕನ್ನಡ",
    "你好，世界。來 ｶﾀｶﾅ 한글",
    "a😀b 👩‍👩‍👧‍👦 🇩🇪🇫🇷 👍🏽",
    "def f(x):\n    return x**2  # …\n\n\nclass A: pass",
    "!!!??? --- ... ### $$$ https://x.y/z?a=b&c=d",
    "\u00a0\u2003\u3000\u2028x\u200b\ufeff",
    "\x00\x1f\x7f\x80\uffff\U0010ffff",
    "hi <|endoftext|> [MASK]",
    "A" * 300 + "a" * 300,
]


@pytest.fixture(params=["bytes", "characters", "bpe", "gpt2", "cl100k_base", "o200k_base"])
def any_tokenizer(request):
    if request.param == "bytes":
        return byte_tokenizer()
    if request.param == "characters":
        return char_tokenizer("".join(HARD) + "".join(random_texts()))
    if request.param == "bpe":
        return train_bpe("\n".join(HARD) + SENTENCE * 9, 400)
    return request.getfixturevalue("published")(request.param)


def random_texts(n=60, seed=7):
    """Seeded texts from all over Unicode, graphemes of several code points among them."""
    dice = random.Random(seed)
    ranges = [(32, 127), (9, 14), (0xA0, 0x250), (0x300, 0x370), (0x900, 0x980), (0x4E00, 0x4F00)]
    ranges += [
        (0x1F1E6, 0x1F200),
        (0x1F600, 0x1F650),
        (0x200B, 0x2010),
        (0x10000, 0x10FFFF),
        (0xFE00, 0xFE10),
    ]
    return [
        "".join(chr(dice.randrange(*dice.choice(ranges))) for _ in range(dice.randrange(40)))
        for _ in range(n)
    ]


def test_every_text_comes_back(any_tokenizer):
    for text in HARD + random_texts():
        ids = any_tokenizer.encode(text)
        assert any_tokenizer.decode(ids) == text
        assert all(0 <= i < any_tokenizer.vocab_size for i in ids)


def test_tokens_lie_end_to_end_in_the_bytes_of_the_text(any_tokenizer):
    for text in HARD + random_texts():
        tokens, raw = any_tokenizer.tokens(text), text.encode()
        assert [t.id for t in tokens] == any_tokenizer.encode(text)
        assert b"".join(t.data for t in tokens) == raw
        for t in tokens:
            assert raw[t.byte_start : t.byte_end] == t.data == any_tokenizer.token_bytes(t.id)
            before = raw[: t.byte_start + 1].decode(
                errors="ignore"
            )  # ends with the character that t begins in,
            whole = len(raw[: t.byte_start].decode(errors="ignore"))  # or lacks it if that is cut
            assert t.start == whole and len(before) in (whole, whole + 1)
            assert t.text == t.data.decode(errors="backslashreplace")


def test_segments_are_the_smallest_groups_of_whole_graphemes(any_tokenizer):
    for text in HARD + random_texts():
        segments = any_tokenizer.segments(text)
        assert [t for group in segments for t in group] == any_tokenizer.tokens(text)
        ends, at = set(), 0
        for grapheme in regex.findall(r"\X", text):
            at += len(grapheme.encode())
            ends.add(at)
        for group in segments:
            assert group[-1].byte_end in ends
            assert not {t.byte_end for t in group[:-1]} & ends


@pytest.mark.parametrize(
    "grapheme", ["👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "क्षि", "e\u0301\u0323", "한", "\r\n", "❤️"], ids=ascii
)
def test_a_grapheme_of_many_bytes_is_one_segment(grapheme):
    assert [len(g) for g in byte_tokenizer().segments(f"a{grapheme}b")] == [1, len(grapheme.encode()), 1]


def test_flags_in_a_long_row_are_cut_in_pairs():
    """Each pair is found without counting the row before it: this took an hour for a million characters."""
    text = "🇩🇪" * 100_000 + "🇫"
    tokenizer = char_tokenizer(text)
    sizes = [len(group) for group in tokenizer.segments(text)]
    assert sizes == [2] * 100_000 + [1]


def test_only_the_first_tokens_can_be_asked_for(any_tokenizer):
    text = "a😀 क्षि the cat " * 5
    assert any_tokenizer.tokens(text, most=7) == any_tokenizer.tokens(text)[:7]
    assert [t for g in any_tokenizer.segments(text, most=7) for t in g] == any_tokenizer.tokens(text)[:7]
    assert any_tokenizer.tokens(text, most=0) == any_tokenizer.segments(text, most=0) == []


def test_graphemes_of_tokens_from_the_middle_of_a_text():
    text = "ab🇩🇪🇫🇷c"
    tokens = byte_tokenizer().tokens(text)[2:]
    assert [len(g) for g in whole_graphemes(tokens, text)] == [8, 8, 1]


def test_the_characters_of_a_token_hold_its_bytes(gpt2):
    text = "a😀b 你好 cafe\u0301"
    for token in gpt2.tokens(text):
        touched = characters_of(token, text)
        assert b"".join(data for _, data in touched) == token.data
        assert "".join(c for c, _ in touched) in text


@pytest.mark.parametrize("name", ["gpt2", "p50k_base", "cl100k_base", "o200k_base"])
def test_ids_are_those_of_the_publisher(published, vocab_folder, monkeypatch, name):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(vocab_folder))
    reference, ours = tiktoken.get_encoding(name), published(name)
    for text in HARD + random_texts(150, seed=8):
        assert ours.encode(text) == reference.encode_ordinary(text), ascii(text)
    assert ours.encode("x<|endoftext|>y", special=True) == reference.encode(
        "x<|endoftext|>y", allowed_special="all"
    )
    assert ours.vocab_size == ours.mask_id == reference.n_vocab


@pytest.mark.parametrize("name", ["gpt2", "r50k_base", "p50k_base", "cl100k_base", "o200k_base"])
def test_ids_are_those_of_the_publisher_in_sixteen_languages(published, vocab_folder, monkeypatch, name):
    if not UDHR.is_dir():
        pytest.skip(f"no translated texts in {UDHR}")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(vocab_folder))
    reference, ours = tiktoken.get_encoding(name), published(name)
    texts = [path.read_text("utf-8") for path in sorted(UDHR.glob("*.txt"))]
    assert len(texts) == 16
    for text in texts:
        assert ours.encode(text) == reference.encode_ordinary(text)


PIECES = st.sampled_from(
    [
        "👩‍👩‍👧‍👦",
        "🇩🇪",
        "🇫",
        "👍🏽",
        "क्षि",
        "e\u0301",
        "\u200d",
        "\ufe0f",
        "한",
        "\r\n",
        "\ufffd",
        " \t",
        "שלום",
    ]
)
ANY_TEXT = st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=12).map("".join)


@pytest.mark.parametrize("kind", ["bytes", "characters", "bpe", "gpt2", "o200k_base"])
def test_whatever_the_text_its_segments_join_to_it(kind, request):
    @settings(max_examples=1000, deadline=None, database=None)
    @given(ANY_TEXT)
    def holds(text):
        if kind == "characters":
            tokenizer = char_tokenizer(text + "a")
        segments = tokenizers[kind]().segments(text) if kind != "characters" else tokenizer.segments(text)
        tokens = [token for group in segments for token in group]
        assert b"".join(token.data for token in tokens).decode() == text
        assert sum(len(token.data) for token in tokens) == len(text.encode())
        assert all("\ufffd" not in token.text or b"\xef\xbf\xbd" in token.data for token in tokens)
        for group in segments:  # whole characters, whatever the cut
            b"".join(token.data for token in group).decode()

    own = train_bpe("\n".join(HARD), 400)
    tokenizers = {"bytes": byte_tokenizer, "bpe": lambda: own, "characters": None}
    if kind not in tokenizers:
        loaded = request.getfixturevalue("published")(kind)
        tokenizers[kind] = lambda: loaded
    holds()


def test_a_genuine_replacement_character_is_itself(gpt2):
    (token,) = gpt2.tokens("\ufffd")
    assert (token.id, token.data, token.text) == (4210, b"\xef\xbf\xbd", "\ufffd")


def test_ids_are_located_without_cutting_again(any_tokenizer):
    for text in HARD:
        ids = any_tokenizer.encode(text)
        assert any_tokenizer.locate(ids[:5], text) == any_tokenizer.tokens(text)[:5]


def test_t01_a_typed_control_token_is_plain_text_unless_asked_for(gpt2):
    text = "hi <|endoftext|>"
    assert gpt2.encode(text) == [5303, 1279, 91, 437, 1659, 5239, 91, 29]
    assert gpt2.encode(text, special=True) == [5303, 220, 50256]
    assert gpt2.tokens(text, special=True)[-1].data == END_TEXT.encode()


@pytest.mark.parametrize("tokenizer", [byte_tokenizer(), char_tokenizer(SENTENCE), train_bpe(SENTENCE, 260)])
def test_m06_a_typed_mask_is_one_id_only_where_asked_for(tokenizer):
    text = "the [MASK] sat"
    assert tokenizer.encode(text, special=True).count(tokenizer.mask_id) == 1
    assert (
        tokenizer.encode("the ", special=True)
        == tokenizer.encode(text, special=True)[: len(tokenizer.encode("the "))]
    )
    assert tokenizer.tokens(text, special=True)[-1].byte_end == len(text)
    if tokenizer.name != "characters":  # its alphabet has no bracket
        assert tokenizer.mask_id not in tokenizer.encode(text)
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.token_bytes(tokenizer.mask_id) == b"[MASK]"


def test_m06_published_vocabularies_know_the_mask_too(gpt2):
    assert gpt2.encode("the [MASK] sat", special=True) == [1169, 220, 50257, 3332]
    assert gpt2.encode("the [MASK] sat").count(50257) == 0


def test_t02_the_halves_of_an_emoji_show_their_bytes(gpt2):
    tokens = gpt2.tokens("a😀b")
    assert [t.id for t in tokens] == [64, 47249, 222, 65]
    assert [t.data for t in tokens[1:3]] == [b"\xf0\x9f\x98", b"\x80"]
    assert [t.text for t in tokens[1:3]] == [r"\xf0\x9f\x98", r"\x80"]
    assert [t.start for t in tokens] == [0, 1, 1, 2]
    assert [len(group) for group in gpt2.segments("a😀b")] == [1, 2, 1]


def test_t05_lone_surrogates_are_replaced_and_pairs_joined(gpt2):
    assert gpt2.encode("\ud83d") == [4210] == gpt2.encode("\ufffd")
    assert gpt2.encode("\ud83d\udc4d") == [41840, 235] == gpt2.encode("👍")
    assert repair_text("a\ud83d") == ("a\ufffd", 1)
    assert repair_text("\ud83d\udc4d") == ("👍", 0)
    assert repair_text("\ufeff\udc4d\ud83d\ufffd!") == ("\ufeff\ufffd\ufffd\ufffd!", 2)
    for token in (t for group in gpt2.segments("a\ud83d\udc4d\udc4d") for t in group):
        assert token.data and token.text.encode()


def test_t05_the_characters_of_a_token_are_those_of_the_repaired_text():
    text = "\ud83d\udc4d\ud83d"
    found = [characters_of(token, text) for token in byte_tokenizer().tokens(text)]
    assert found == [[("👍", bytes([b]))] for b in "👍".encode()] + [
        [("\ufffd", bytes([b]))] for b in b"\xef\xbf\xbd"
    ]


def test_t05_characters_and_own_bpe_repair_too():
    assert char_tokenizer("ab👍\ufffd").encode("\ud83d\udc4d\ud83d") == [3, 2]
    text = "ab\ud83d" * 20
    tokenizer = train_bpe(text, 260)
    assert tokenizer.decode(tokenizer.encode(text)) == "ab\ufffd" * 20


def test_t06_carriage_returns_survive(gpt2):
    assert gpt2.encode("a\r\nb") == [64, 201, 198, 65]
    assert gpt2.encode("a\nb") == [64, 198, 65]
    assert gpt2.decode([64, 201, 198, 65]) == "a\r\nb"


@pytest.mark.parametrize(
    ("character", "n"),
    [("a", 250_000), ("^", 250_000), (" ", MILLION), ("\n", 500_000), ("😀", 2 * MILLION), ("0", 62_500)],
)
def test_t10_a_million_equal_characters_are_counted(gpt2, character, n):
    assert len(gpt2.encode(character * MILLION)) == n


def test_t10_a_million_blanks_before_a_word_do_not_panic(gpt2):
    """tiktoken's regex overflows here, with an exception that `except Exception` lets through."""
    blanks = " " * (MILLION + 1)
    assert gpt2.encode(blanks + "x") == [220] * MILLION + gpt2.encode(" x")
    assert gpt2.encode(f"[MASK]{blanks}x", special=True) == [50257, *[220] * MILLION, *gpt2.encode(" x")]


def test_t10_own_bpe_and_o200k_stand_a_million_blanks(published):
    text = "x" + "\t " * 600_000
    assert train_bpe("ab ab", 257).encode(text) == list(text.encode())
    assert published("o200k_base").decode(published("o200k_base").encode(text)) == text


def test_t10_a_corpus_with_a_million_blanks_can_be_learned_from():
    text = "ab" * 100 + " " * 1_200_000 + "ab"
    tokenizer = train_bpe(text, 260)
    assert tokenizer.vocab_size == 260 and tokenizer.decode(tokenizer.encode(text)) == text


def test_t11_leading_and_trailing_spaces_count(gpt2):
    assert gpt2.encode("Hello world") == [15496, 995]
    assert gpt2.encode("Hello world ") == [15496, 995, 220]
    assert (gpt2.encode("world"), gpt2.encode(" world")) == ([6894], [995])


def test_t12_white_space_is_kept_apart(gpt2):
    assert gpt2.encode("a  b") == [64, 220, 275]
    assert (gpt2.encode("\t"), gpt2.encode("\n")) == ([197], [198])
    assert [t.text for t in gpt2.tokens("a  b")] == ["a", " ", " b"]


def test_t13_what_is_generated_after_cjk_starts_after_the_prompts_tokens(gpt2):
    prompt = gpt2.encode("來")
    assert prompt == [160, 122, 228]
    assert len(gpt2.encode("你好，世界")) == 11 and gpt2.tokens("你好，世界")[-1].byte_end == 15
    ids = gpt2.encode("來你好")
    assert ids[:3] == prompt and gpt2.decode(ids[3:]) == "你好"


def test_t14_right_to_left_text_is_in_reading_order(gpt2):
    tokens = gpt2.tokens("שלום")
    assert [t.id for t in tokens] == [50227, 40010, 27072, 147, 251]
    assert tokens[0].text == "ש" and [t.start for t in tokens] == [0, 1, 2, 3, 3]


def test_t15_nothing_is_normalised(gpt2):
    assert gpt2.encode("\u00e9") == [2634]
    assert gpt2.encode("e\u0301") == [68, 136, 223]
    assert gpt2.decode([68, 136, 223]) == "e\u0301"


def test_t16_an_empty_text_has_no_tokens(any_tokenizer):
    assert any_tokenizer.encode("") == any_tokenizer.tokens("") == any_tokenizer.segments("") == []
    assert any_tokenizer.decode([]) == ""


@pytest.mark.parametrize("text", ["", "   ", "\n\t "])
def test_t16_a_blank_text_teaches_nothing(text):
    with pytest.raises(ValueError, match="blank"):
        train_bpe(text, 300)


def test_t16_no_characters_make_no_alphabet():
    with pytest.raises(ValueError, match="at least 1 character"):
        char_tokenizer("")


def test_t17_a_vocabulary_is_as_large_as_the_text_allows():
    tokenizer = train_bpe(SENTENCE, 1000)
    assert tokenizer.vocab_size == tokenizer.mask_id == 268
    assert tokenizer.token_bytes(267) in SENTENCE.encode()
    assert (tokenizer.model_vocab_size("clm"), tokenizer.model_vocab_size("mlm")) == (268, 269)


@pytest.mark.parametrize("size", [100, 0, -1, 255])
def test_t18_fewer_ids_than_bytes_are_refused_before_rustbpe_panics(size):
    with pytest.raises(ValueError, match=f"at least 256 ids.*not {size}"):
        train_bpe(SENTENCE, size)


def test_t18_a_model_of_1000_ids_with_a_mask_has_743_merges():
    dice = random.Random(0)
    text = " ".join("".join(dice.choices("abcdefgh", k=9)) for _ in range(2000))
    tokenizer = train_bpe(text, 1000 - 1)
    assert tokenizer.model_vocab_size("mlm") == 1000
    assert len(tokenizer.to_json()["merged"]) == 743


def test_t19_the_known_bpe_result():
    tokenizer = train_bpe("aaabdaaabac", 259, pattern=r"[\s\S]+")
    assert tokenizer.encode("aaabdaaabac") == [258, 100, 258, 97, 99]
    assert tokenizer.encode("aaa") == [256, 97]


@pytest.mark.parametrize("pattern", [r"[a-z]+", r"\p{L}+| \p{L}+", r"x"])
def test_a_split_that_skips_characters_loses_none(pattern):
    tokenizer = train_bpe(SENTENCE, 270, pattern=pattern)
    for text in (SENTENCE, "Caps & 123 …😀"):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_t23_unknown_characters_are_named():
    tokenizer = char_tokenizer("abc")
    assert tokenizer.encode("cab") == [2, 0, 1]
    with pytest.raises(ValueError, match=r"without '\?' 'd'\. Leave them out"):
        tokenizer.encode("d?")
    with pytest.raises(ValueError, match=r"without 'd'\. Leave it out"):
        tokenizer.tokens("ad")


def test_ids_after_the_ordinary_ones():
    for tokenizer, size in (
        (byte_tokenizer(), 256),
        (char_tokenizer("aaa"), 1),
        (train_bpe(SENTENCE, 260), 260),
    ):
        assert (tokenizer.vocab_size, tokenizer.mask_id, tokenizer.end_id) == (size, size, size + 1)
        assert tokenizer.encode(END_TEXT, special=True) == [size + 1]
        assert tokenizer.token_bytes(size + 1) == END_TEXT.encode()


@pytest.mark.parametrize("wrong", [-1, 258, 10**30])
@pytest.mark.parametrize("tokenizer", [byte_tokenizer(), char_tokenizer("ab"), train_bpe("b", 256)])
def test_an_id_that_does_not_exist_is_refused(tokenizer, wrong):
    with pytest.raises(ValueError, match=f"no id {wrong}"):
        tokenizer.token_bytes(wrong)


def test_a_gap_in_a_published_vocabulary_is_refused(published):
    with pytest.raises(ValueError, match="no id 100256"):
        published("cl100k_base").token_bytes(100256)
    assert 198 in published("cl100k_base").line_end_ids


def test_line_ends():
    assert byte_tokenizer().line_end_ids == [10]
    tokenizer = train_bpe("ab.\n" * 50, 260)
    assert all(tokenizer.token_bytes(i).endswith(b"\n") for i in tokenizer.line_end_ids)
    assert 10 in tokenizer.line_end_ids and len(tokenizer.line_end_ids) > 1


def test_json_gives_the_same_tokenizer_back(any_tokenizer, vocab_folder, monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(vocab_folder))
    again = tokenizer_from_json(json.loads(json.dumps(any_tokenizer.to_json())))
    for text in HARD:
        assert again.encode(text) == any_tokenizer.encode(text)
    assert (again.hash, again.name, again.vocab_size) == (
        any_tokenizer.hash,
        any_tokenizer.name,
        any_tokenizer.vocab_size,
    )


def test_another_vocabulary_has_another_hash():
    made = [
        byte_tokenizer(),
        char_tokenizer("ab"),
        char_tokenizer("abc"),
        train_bpe("abab", 257),
        train_bpe("cdcd", 257),
    ]
    assert len({t.hash for t in made}) == 5


@pytest.mark.parametrize(
    "spec", [{}, {"kind": "words"}, {"kind": "bpe"}, {"kind": "characters"}, {"kind": "bpe", "merged": 3}]
)
def test_a_description_that_is_not_ours_is_refused(spec):
    with pytest.raises(ValueError, match="tokenizer"):
        tokenizer_from_json(spec)


def test_s15_a_stream_holds_half_a_character_back(gpt2):
    stream = TextStream()
    assert [stream.push(gpt2.token_bytes(i)) for i in (47249, 222)] == ["", "😀"]
    assert stream.push("\ufffd!".encode()) == "\ufffd!"
    assert stream.push(gpt2.token_bytes(47249)) == "" and stream.end() == r"\xf0\x9f\x98"


def test_s15_a_stream_joins_to_the_text_whatever_the_pieces():
    for text in HARD + random_texts():
        stream = TextStream()
        assert "".join(stream.push(bytes([b])) for b in text.encode()) + stream.end() == text


@pytest.mark.parametrize("most", [1, 2, 5, 1000])
@pytest.mark.parametrize("text", ["a😀b 👩‍👩‍👧é", "one\r\ntwo 中文 x", "\ud83d broken", "a", ""])
def test_the_ending_is_the_end_of_all_tokens(text: str, most: int) -> None:
    for tokenizer in (byte_tokenizer(), train_bpe("one two three " * 30 + "中文 é 😀", 280)):
        tokens, before = tokenizer.ending(text, most)
        every = tokenizer.tokens(text)
        assert tokens == every[max(0, len(every) - most) :]
        assert before == max(0, len(every) - most)
