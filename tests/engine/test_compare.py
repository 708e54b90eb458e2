"""Two models on one text: spans cover it, sums are conserved, distances by hand."""

import math
import random

import numpy as np
import pytest

from engine.compare import Scored, common_spans, compare, js_divergence
from engine.tokenizers import Token, Tokenizer, byte_tokenizer, char_tokenizer, train_bpe

TEXTS = ["the cat sat on the mat and the cat sat", "a😀b 👩‍👩‍👧 中文, é!", "aaaa", "ab"]


def tokenizers(text: str) -> list[Tokenizer]:
    return [
        byte_tokenizer(),
        char_tokenizer(text),
        train_bpe("the cat sat on the mat 😀 " * 20, 300),
        train_bpe("and 中文 sat, " * 20, 280),
    ]


def scored(tokenizer: Tokenizer, text: str, rng: np.random.Generator, drop: int = 0) -> Scored:
    tokens = tokenizer.tokens(text)[drop:]
    return Scored(tokens, -rng.exponential(2, len(tokens) - 1))


@pytest.mark.parametrize("text", TEXTS)
def test_spans_cover_the_bytes_that_both_predict_and_sums_are_kept(text: str) -> None:
    rng = np.random.default_rng(1)
    for one in tokenizers(text):
        for other in tokenizers(text):
            a, b = scored(one, text, rng), scored(other, text, rng)
            found = compare(a, b)
            end = len(text.encode())
            begin = max(a.tokens[0].byte_end, b.tokens[0].byte_end)
            if not found.spans:
                continue
            assert found.spans[0].byte_start >= begin and found.spans[-1].byte_end == end
            assert all(x.byte_end == y.byte_start for x, y in zip(found.spans, found.spans[1:], strict=False))
            for side, part in enumerate((a, b)):
                kept = [
                    -log_prob
                    for token, log_prob in zip(part.tokens[1:], part.log_probs, strict=True)
                    if token.byte_start >= found.spans[0].byte_start
                ]
                assert found.n_tokens[side] == len(kept)
                assert found.totals[side] == pytest.approx(sum(kept))
                assert found.bits_per_byte[side] == pytest.approx(sum(kept) / math.log(2) / found.n_bytes)
                for span, nats in zip(found.spans, found.nats[side], strict=True):
                    inside = part.tokens[span.first[side] : span.stop[side]]
                    data = b"".join(token.data for token in inside)
                    assert data == text.encode()[span.byte_start : span.byte_end]
                    logs = part.log_probs[span.first[side] - 1 : span.stop[side] - 1]
                    assert nats == pytest.approx(-logs.sum())


def test_the_same_tokens_are_the_spans() -> None:
    text, rng = TEXTS[0], np.random.default_rng(2)
    tokenizer = tokenizers(text)[2]
    a, b = scored(tokenizer, text, rng), scored(tokenizer, text, rng)
    found = compare(a, b)
    assert len(found.spans) == len(a.tokens) - 1
    np.testing.assert_allclose(found.nats, [-a.log_probs, -b.log_probs])
    np.testing.assert_allclose(found.difference, b.log_probs - a.log_probs)
    assert found.losses == pytest.approx((-a.log_probs.mean(), -b.log_probs.mean()))


def test_different_windows_are_compared_where_both_predict() -> None:
    text, rng = TEXTS[0], np.random.default_rng(3)
    tokenizer = tokenizers(text)[2]
    a, b = scored(tokenizer, text, rng), scored(tokenizer, text, rng, drop=5)
    found = compare(a, b)
    assert found.n_tokens == (len(b.tokens) - 1,) * 2
    assert found.n_bytes == len(text.encode()) - b.tokens[0].byte_end
    np.testing.assert_allclose(found.nats[0], -a.log_probs[5:])


def test_spans_by_hand() -> None:
    def cut(*pieces: str) -> list[Token]:
        at, found = 0, []
        for i, piece in enumerate(pieces):
            found.append(Token(i, piece.encode(), piece, at, at, at + len(piece)))
            at += len(piece)
        return found

    spans = common_spans(cut("a", "bc", "d", "ef", "g"), cut("ab", "c", "def", "g"))
    assert [(s.byte_start, s.byte_end) for s in spans] == [(3, 6), (6, 7)]
    assert [(s.first, s.stop) for s in spans] == [((2, 2), (4, 3)), ((4, 3), (5, 4))]
    assert common_spans(cut("ab"), cut("a", "b")) == []
    with pytest.raises(ValueError, match="end where the text ends"):
        common_spans(cut("a"), cut("a", "b"))


def test_js_by_hand_and_symmetric() -> None:
    assert js_divergence([0.5, 0.5], [0.5, 0.5]) == 0
    assert js_divergence([1, 0], [0, 1]) == pytest.approx(math.log(2))
    p, q = [0.75, 0.25], [0.25, 0.75]
    by_hand = 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)
    assert js_divergence(p, q) == pytest.approx(by_hand) == js_divergence(q, p)
    rng = random.Random(4)
    for _ in range(50):
        p, q = (np.array([rng.random() for _ in range(9)]) for _ in range(2))
        assert 0 <= js_divergence(p / p.sum(), q / q.sum()) <= math.log(2)
