"""Parts of a cut text: the first tokens, a window of them, the characters that a token touches."""

import pytest

from engine.metrics import most_likely, surprisal
from engine.tokenizers import byte_tokenizer, char_tokenizer, train_bpe
from engine.tokens import characters_of, whole_graphemes

TEXTS = ["", "a", "the cat sat", "a😀b 👨‍👩‍👧 Zoë e\u0301", "שלום\r\n", "來來來", "\x00 \t"]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("kind", ["bytes", "characters", "bpe"])
def test_the_first_tokens_are_those_of_the_whole_text(kind: str, text: str) -> None:
    bpe = train_bpe("the cat sat on the mat 👨‍👩‍👧 " * 20, 280)
    tokenizer = {"bytes": byte_tokenizer(), "characters": char_tokenizer(text or "a"), "bpe": bpe}[kind]
    tokens = tokenizer.tokens(text)
    for most in (0, 1, 3, len(tokens), len(tokens) + 5):
        assert tokenizer.tokens(text, most=most) == tokens[:most]
        groups = tokenizer.segments(text, most=most)
        assert [token for group in groups for token in group] == tokens[:most]
        assert groups[:-1] == tokenizer.segments(text)[: len(groups)][:-1]


@pytest.mark.parametrize("text", TEXTS)
def test_a_window_is_grouped_like_the_whole(text: str) -> None:
    tokenizer = byte_tokenizer()
    tokens, whole = tokenizer.tokens(text), tokenizer.segments(text)
    borders = {group[-1].byte_end for group in whole}
    for begin in range(len(tokens)):
        groups = whole_graphemes(tokens[begin:], text)
        assert [token for group in groups for token in group] == tokens[begin:]
        assert {group[-1].byte_end for group in groups} <= borders


@pytest.mark.parametrize("text", TEXTS)
def test_every_byte_of_a_token_belongs_to_a_character(text: str) -> None:
    tokenizer = train_bpe("來 😀 the cat " * 30, 270)
    for token in tokenizer.tokens(text):
        spelled = characters_of(token, text)
        assert b"".join(data for _, data in spelled) == token.data
        assert spelled[0][0] == text[token.start] and all(data for _, data in spelled)


def test_what_came_is_always_among_the_likeliest() -> None:
    top = most_likely([0.1, 0.5, 0.15, 0.25], 2, also=2)
    assert top.ids.tolist() == [1, 3, 2] and top.n_tail == 1
    assert top.tail == pytest.approx(0.1) and top.probs.sum() + top.tail == pytest.approx(1)
    assert most_likely([0.1, 0.5, 0.15, 0.25], 2, also=3).ids.tolist() == [1, 3]
    assert most_likely([0.6, 0.4], 9).n_tail == 0


def test_surprise_in_bits_and_nats() -> None:
    assert surprisal([0.0, -0.6931471805599453], "bits").tolist() == [0.0, 1.0]
    assert surprisal(-2.0).tolist() == 2.0
