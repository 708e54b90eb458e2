import codecs

import pytest

from engine.corpus import (
    MAX_UPLOAD_BYTES,
    Corpus,
    UnknownEncoding,
    decode_upload,
    own_text,
    preview,
    python_docs,
    split,
    statistics,
    stories,
)
from engine.tokenizers import byte_tokenizer, char_tokenizer, train_bpe


@pytest.mark.parametrize(
    "data",
    [b"\xef\xbb\xbfhi", b"\xff\xfeh\x00i\x00", b"\xfe\xff\x00h\x00i", b"hi"],
    ids=["utf-8 with mark", "utf-16 little endian", "utf-16 big endian", "plain"],
)
def test_t08_a_byte_order_mark_is_no_part_of_the_text(data):
    assert decode_upload(data) == "hi"


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"\xff\xfeh\x00i\x00", "utf-16-le"),
        (b"\xef\xbb\xbfhi", "utf-8"),
        (b"\xef\xbb\xbfhi", "cp1252"),
        (b"\xef\xbb\xbfhi", "latin-1"),
    ],
)
def test_t08_nor_when_the_encoding_was_chosen_by_hand(data, encoding):
    assert decode_upload(data, encoding) == "hi"


def test_t08_the_first_prompt_matches(gpt2):
    assert gpt2.encode(decode_upload(codecs.BOM_UTF8 + b"hi")) == [5303]


def test_t09_other_encodings_are_asked_for_with_the_byte_that_does_not_fit():
    with pytest.raises(UnknownEncoding, match="byte 3 is 0xE9") as refusal:
        decode_upload(b"caf\xe9")
    assert refusal.value.offset == 3
    assert decode_upload(b"caf\xe9", "cp1252") == "café"


def test_t09_the_byte_is_counted_from_the_start_of_the_file_also_behind_a_mark():
    with pytest.raises(UnknownEncoding, match="byte 6 is 0xE9"):
        decode_upload(codecs.BOM_UTF8 + b"caf\xe9")


def test_t09_a_wrong_choice_is_refused_with_the_byte():
    with pytest.raises(ValueError, match="not valid shift_jis: byte 3"):
        decode_upload(b"caf\xe9", "shift_jis")


def test_t06_line_ends_are_kept():
    assert decode_upload(b"a\r\nb\rc\n") == "a\r\nb\rc\n"


@pytest.mark.parametrize("encoding", [None, "cp1252", "latin-1"])
def test_u09_a_picture_is_not_text(encoding):
    with pytest.raises(ValueError, match="not text"):
        decode_upload(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)), encoding)


def test_control_characters_without_zero_bytes_are_not_text_either():
    with pytest.raises(ValueError, match="not text"):
        decode_upload(b"\x01\x02\x03 hello")


def test_u09_a_file_above_the_limit_is_refused_with_both_sizes():
    with pytest.raises(ValueError, match="5,000,001 bytes.*5,000,000"):
        decode_upload(b"a" * (MAX_UPLOAD_BYTES + 1))


def test_statistics_count_by_hand():
    counted = statistics("One two\nthrée\n\nfour")
    assert (counted.characters, counted.bytes, counted.words, counted.lines) == (19, 20, 4, 4)
    assert counted.kinds == len(set("One twothréefour\n"))
    assert statistics("a\n").lines == 1 and statistics("").lines == 0


def test_the_split_keeps_every_character_and_its_order():
    corpus = own_text("abcdefghij")
    assert split(corpus, 0.2) == ("abcdefgh", "ij")
    assert split(corpus, 0.0) == ("abcdefghij", "")
    with pytest.raises(ValueError, match="between 0 and 0.5"):
        split(corpus, 0.6)


def test_a_validation_text_of_its_own_is_used_whole():
    assert split(Corpus("two", "stories", "train", "val"), 0.3) == ("train", "val")


def test_r02_a_short_validation_part_is_counted_as_no_rows():
    counted = preview(own_text("x" * 60), byte_tokenizer(), 32, 0.1)
    assert (counted.train_tokens, counted.val_tokens) == (54, 6)
    assert (counted.train_rows, counted.val_rows) == (1, 0)


def test_r03_one_symbol_is_too_short_for_bpe_and_the_message_counts_the_tokens():
    text = "a" * 1000
    tokenizer = train_bpe(text, 300)
    n = len(tokenizer.encode(text[:900]))
    assert n < 33
    with pytest.raises(ValueError, match=f"training text has {n} tokens.* needs 33"):
        preview(own_text(text), tokenizer, 32)
    assert preview(own_text(text), char_tokenizer(text), 32).train_rows == 899 // 32


def test_t05_a_pasted_text_holds_no_lone_surrogate():
    assert own_text("a\ud83d").text == "a\ufffd"


def test_t01_a_corpus_that_spells_a_control_token_is_plain_text():
    text = "hi <|endoftext|> and [MASK]"
    for tokenizer in (byte_tokenizer(), char_tokenizer(text), train_bpe(text * 9, 270)):
        ids = tokenizer.encode(own_text(text).text)
        assert max(ids) < tokenizer.vocab_size and tokenizer.decode(ids) == text


def test_the_python_docs_are_real_text_and_the_same_every_time():
    assert python_docs().text.count("Python") > 100
    assert python_docs().sha256 == python_docs().sha256
    assert len(python_docs().text) > 300_000


def test_stories_come_with_validation_stories_of_their_own():
    corpus = stories(20, 7)
    assert corpus.text.endswith("\n") and corpus.text.count("\n") == 20
    assert corpus.val_text and not set(corpus.val_text.splitlines()) & set(corpus.text.splitlines())
    assert stories(20, 8).sha256 != corpus.sha256
