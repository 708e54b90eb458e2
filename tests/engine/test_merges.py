"""Merges read back from a vocabulary and repeated over a text, against a slow reference and tiktoken."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine import corpus
from engine.merges import recover_pairs, replay, truncated
from engine.tokenizers import Tokenizer, byte_tokenizer, char_tokenizer, train_bpe

WHOLE = r"[\s\S]+"
HARD = [
    "aaa",
    "aaaaaaa",
    "abababab abab",
    "a\n\n\n  b",
    " " * 40,
    "😀😀👨‍👩‍👧",
    "今天天气很好今天天气",
    "e\u0301e\u0301",
    "\u0378:\u0378",
    "\U0003d000:",
]


def merged(tokenizer: Tokenizer) -> list[bytes]:
    return [tokenizer.token_bytes(i) for i in range(256, tokenizer.vocab_size)]


def joined(ids: list[int], pair: tuple[int, int], new: int) -> list[int]:
    """The definition: from left to right, each pair becomes one."""
    out, i = [], 0
    while i < len(ids):
        here = tuple(ids[i : i + 2]) == pair
        out.append(new if here else ids[i])
        i += 2 if here else 1
    return out


def slow_pair(data: bytes, ranks: dict[bytes, int]) -> tuple[int, int]:
    """BPE of a token's bytes with the ranks before it: the lowest pair first, one at a time."""
    parts = [bytes([b]) for b in data]
    while len(parts) > 2:
        ranked = [(ranks.get(a + b, 1 << 30), i) for i, (a, b) in enumerate(pairwise(parts))]
        i = min(ranked)[1]
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return ranks[parts[0]], ranks[parts[1]]


def slow_pairs(tokens: list[bytes]) -> list[tuple[int, int]]:
    ranks, found = {bytes([b]): b for b in range(256)}, []
    for data in tokens:
        found.append(slow_pair(data, ranks))
        ranks[data] = len(ranks)
    return found


def slow_replay(tokenizer: Tokenizer, text: str) -> tuple[list[int], list[int], Counter[int]]:
    """Counts and lengths over the text as it stands, chunk for chunk, without any shortcut."""
    pieces = [list(m.group().encode()) for m in regex.finditer(tokenizer.to_json()["pattern"], text)]
    counts, lengths = [], [sum(map(len, pieces))]
    for n, pair in enumerate(slow_pairs(merged(tokenizer))):
        pieces = [joined(piece, pair, 256 + n) for piece in pieces]
        lengths.append(sum(map(len, pieces)))
        counts.append(lengths[-2] - lengths[-1])
    return counts, lengths, Counter(i for piece in pieces for i in piece)


def test_the_published_example() -> None:
    text = "aaabdaaabac"
    tokenizer = train_bpe(text, 259, pattern=WHOLE)
    history = replay(tokenizer, text)
    assert tokenizer.encode(text) == [258, 100, 258, 97, 99]
    assert history.pairs[0].tolist() == [97, 97]
    assert history.data[258] == b"aaab"
    assert history.counts.tolist() == [2, 2, 2] and history.lengths.tolist() == [11, 9, 7, 5]
    assert {i: int(n) for i, n in enumerate(history.uses) if n} == {258: 2, 97: 1, 99: 1, 100: 1}


def test_t19_of_overlapping_pairs_the_leftmost_is_joined() -> None:
    tokenizer = train_bpe("aaa", 257, pattern=WHOLE)
    history = replay(tokenizer, "aaa")
    assert tokenizer.encode("aaa") == [256, 97]
    assert history.counts.tolist() == [1] and history.lengths.tolist() == [3, 2]
    assert history.uses[[97, 256]].tolist() == [1, 1]


def test_a_token_is_cut_as_the_merges_made_it() -> None:
    assert recover_pairs([b"aa", b"aaa"]) == [(97, 97), (256, 97)]  # never (97, 256): leftmost first
    assert recover_pairs([b"bc", b"ab", b"abc"]) == [(98, 99), (97, 98), (97, 256)]
    assert recover_pairs([b"ab", b"bc", b"abc"]) == [(97, 98), (98, 99), (256, 99)]
    with pytest.raises(ValueError, match="Token 256 .* not made of two"):
        recover_pairs([b"abc"])


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("ab c\n"), min_size=1, max_size=80), st.integers(0, 40), st.booleans())
@example("aaaabaaaab aaab", 12, True)
def test_equals_the_slow_reference(text: str, n: int, whole: bool) -> None:
    if not text.strip():
        return
    tokenizer = train_bpe(text, 256 + n, pattern=WHOLE if whole else None)
    history = replay(tokenizer, text)
    counts, lengths, uses = slow_replay(tokenizer, text)
    assert [tuple(pair) for pair in history.pairs.tolist()] == slow_pairs(merged(tokenizer))
    assert history.counts.tolist() == counts and history.lengths.tolist() == lengths
    assert {i: int(u) for i, u in enumerate(history.uses) if u} == dict(uses)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60))
@example("ab" * 20 + "😀" * 9)
@example("\U0003d000:")  # a letter in newer Unicode tables than tiktoken's
def test_every_length_is_what_the_tokenizer_of_that_size_makes(text: str) -> None:
    if not text.strip():
        return
    tokenizer = train_bpe(text, 300)
    history = replay(tokenizer, text)
    for n in {0, 1, history.n_merges // 2, history.n_merges} & set(range(history.n_merges + 1)):
        assert history.lengths[n] == len(truncated(tokenizer, n).encode(text))
    assert (history.counts >= 1).all()  # each was learned because its pair was there


@pytest.mark.parametrize("text", HARD)
def test_hard_texts(text: str) -> None:
    if not text.strip():
        text += "x"
    tokenizer = train_bpe(text, 400)
    history = replay(tokenizer, text)
    assert history.lengths[-1] == len(tokenizer.encode(text)) == history.uses.sum()
    assert (history.uses * history.sizes).sum() == history.n_bytes == len(text.encode())


def test_a_real_text_at_several_sizes() -> None:
    text = corpus.python_docs().text[:60_000]
    tokenizer = train_bpe(text, 1000)
    history = replay(tokenizer, text)
    for n in (0, 1, 2, 3, 10, 100, 500, 744):
        smaller = truncated(tokenizer, n)
        assert smaller.vocab_size == 256 + n
        assert smaller.encode(text[:5000]) == train_bpe(text, 256 + n).encode(text[:5000])
        assert history.lengths[n] == len(smaller.encode(text))
    assert history.uses.tolist() == np.bincount(tokenizer.encode(text), minlength=1000).tolist()
    assert [history.data[a] + history.data[b] for a, b in history.pairs.tolist()] == history.data[256:]
    assert history.parts(256) == tuple(history.pairs[0].tolist()) and history.parts(255) is None


def test_another_text_than_the_one_it_was_learned_from() -> None:
    tokenizer = train_bpe("the cat sat on the mat", 1000)
    assert tokenizer.vocab_size == 268  # T17: twelve merges, then no pair is left
    history = replay(tokenizer, "the hat 😀")
    assert history.lengths[-1] == len(tokenizer.encode("the hat 😀"))
    assert replay(tokenizer, "").lengths.tolist() == [0] * 13


def test_without_merges_there_are_only_bytes() -> None:
    history = replay(byte_tokenizer(), "a😀")
    assert history.n_merges == 0 and history.pairs.shape == (0, 2) and history.lengths.tolist() == [5]
    assert history.uses.sum() == 5 and truncated(byte_tokenizer(), 0).encode("a") == [97]


def test_other_vocabularies_and_sizes_are_refused_in_words() -> None:
    with pytest.raises(ValueError, match="characters was not learned by merging"):
        replay(char_tokenizer("abc"), "abc")
    with pytest.raises(ValueError, match="BPE 258 has 2 merges, so 3 of them"):
        truncated(train_bpe("aaaa", 258, pattern=WHOLE), 3)


def test_tokens_of_a_megabyte() -> None:
    text = "a" * 1_000_000
    history = replay(train_bpe(text, 400), text)
    assert history.sizes.max() >= 1 << 19 and history.lengths[-1] == history.uses.sum()
    assert all(left == right for left, right in history.pairs[:19].tolist())
