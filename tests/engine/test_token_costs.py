"""Counting words, tokens, and what a language costs."""

from pathlib import Path

import numpy as np
import pytest
import tiktoken

from engine.token_costs import Cost, count_tokens, count_words, measure, relative
from engine.tokenizers import byte_tokenizer, char_tokenizer, train_bpe

UDHR = Path(__file__).parents[3] / "shared" / "data" / "udhr"


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("Once upon a time, there", 5),
        ("don't, it’s; 'quoted'", 3),
        ("3.14 is 1,000", 5),
        ("well-known", 2),
        ("naïve cafe\u0301 déjà", 3),
        ("a  b\n\tc", 3),
        ("नमस्ते दुनिया", 2),
        ("क्\u200dषि", 1),
        ("שלום עולם", 2),
        ("안녕 세상", 2),
        ("…!? 😀", 0),
        ("", 0),
        ("早上，孩子们去上学。", None),
        ("朝、子どもたちは学校へ行きます。", None),
        ("เด็ก ๆ ไปโรงเรียน", None),
        ("Tokyo is 東京", 3),
    ],
)
def test_words(text, n):
    assert count_words(text) == n


def test_the_measures_of_a_cost():
    size = measure("été, 2 été")
    assert (size.characters, size.bytes, size.words) == (10, 14, 3)
    cost = Cost("x", 256, 7, size)
    assert cost.tokens_per_word == pytest.approx(7 / 3)
    assert (cost.characters_per_token, cost.bytes_per_token) == (10 / 7, 2.0)
    assert Cost("x", 256, 7, measure("早上")).tokens_per_word is None
    assert Cost("x", 256, 7, measure("…")).tokens_per_word is None


def test_counts_of_texts_by_vocabularies():
    texts = ["abab", "é", ""]
    counts = count_tokens([byte_tokenizer(), char_tokenizer("abé"), train_bpe("abab", 257)], texts)
    assert counts.tolist() == [[4, 4, 2], [2, 1, 2], [0, 0, 0]]


def test_relative_to_a_language():
    assert relative([[2, 5], [4, 5], [1, 10]], reference=1).tolist() == [[0.5, 1], [1, 1], [0.25, 2]]


def test_the_built_in_sentences_price_languages_as_a_long_text_does(published):
    """The price of a language, from two sentences, against the same from a whole declaration."""
    if not UDHR.is_dir():
        pytest.skip(f"no translated texts in {UDHR}")
    from ui.tokens_languages import SENTENCES

    files = {"en": "eng", "de": "deu", "fr": "fra", "es": "spa", "el": "ell_monotonic", "ru": "rus",
             "ar": "arb", "he": "heb", "hi": "hin", "th": "tha", "zh": "cmn_hans", "ja": "jpn",
             "ko": "kor"}  # fmt: skip
    assert list(files) == list(SENTENCES)
    tokenizers = [published(name) for name in ("gpt2", "cl100k_base", "o200k_base")]
    texts = [(UDHR / f"{file}.txt").read_text("utf-8") for file in files.values()]
    long = np.log(relative(count_tokens(tokenizers, texts)))
    short = np.log(relative(count_tokens(tokenizers, list(SENTENCES.values()))))
    assert np.abs(long - short).max() < np.log(1.6)
    for column in range(2):  # in the third, all languages cost nearly the same
        assert np.corrcoef(long[:, column], short[:, column])[0, 1] > 0.9


def test_counts_are_the_publisher_s(published, vocab_folder, monkeypatch):
    if not UDHR.is_dir():
        pytest.skip(f"no translated texts in {UDHR}")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(vocab_folder))
    texts = [path.read_text("utf-8") for path in sorted(UDHR.glob("*.txt"))]
    for name in ("gpt2", "cl100k_base", "o200k_base"):
        wanted = [len(tiktoken.get_encoding(name).encode_ordinary(text)) for text in texts]
        assert count_tokens([published(name)], texts)[:, 0].tolist() == wanted


def test_t05_half_a_character_is_measured_as_what_stands_for_it() -> None:
    assert measure("a\ud83d") == measure("a\ufffd")
    assert measure("\ud83d\udc4d") == measure("👍")
