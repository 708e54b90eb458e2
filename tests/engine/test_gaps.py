"""A text with gaps: [MASK] as one token, guesses in a gap, and which of two models is right."""

import math

import numpy as np
import pytest
import torch

from engine.config import ModelConfig
from engine.gaps import (
    fill_gaps,
    gap_tokens,
    guess,
    lead_of,
    mean_surprisal,
    positions_of,
    spelled,
)
from engine.metrics import cross_entropy, log_softmax
from engine.model import Transformer
from engine.tokenizers import Tokenizer, byte_tokenizer, char_tokenizer, train_bpe

TOKENIZERS = [
    byte_tokenizer(),
    train_bpe("the cat sat on the mat " * 20, 280),
    char_tokenizer("the cat sat[MASK]<|endoftext|>"),
]


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda t: t.name)
def test_mask_typed_is_exactly_one_mask_id(tokenizer: Tokenizer) -> None:
    text = "the [MASK] sat"
    tokens = gap_tokens(tokenizer, text)
    assert [t.id for t in tokens].count(tokenizer.mask_id) == 1
    assert b"".join(t.data for t in tokens).decode() == text
    assert [t.byte_start for t in tokens][1:] == [t.byte_end for t in tokens][:-1]
    assert (
        text[next(t.start for t in tokens if t.id == tokenizer.mask_id) :].lstrip().startswith("[MASK] sat")
    )
    assert tokenizer.mask_id not in tokenizer.encode(text)  # everywhere else it is plain text


def test_t05_half_a_character_beside_a_gap_is_a_replacement_character() -> None:
    pair, lone, repaired = "\ud83d\udc4d [MASK]", "\ud83d [MASK]", "\ufffd [MASK]"
    tokenizer = TOKENIZERS[0]
    assert gap_tokens(tokenizer, pair) == gap_tokens(tokenizer, "👍 [MASK]")
    assert gap_tokens(tokenizer, lone) == gap_tokens(tokenizer, repaired)
    tokens = tokenizer.tokens("a\ud83db")
    assert positions_of(tokens, "a\ud83db", "b") == [4]  # U+FFFD has three bytes
    assert positions_of(tokens, "a\ud83db", "\ud83d") == [1, 2, 3]


def test_the_space_before_a_typed_mask_belongs_to_the_gap_where_words_carry_theirs() -> None:
    pieces, characters = TOKENIZERS[1], TOKENIZERS[2]
    assert pieces.encode("the cat sat") == [t.id for w in ("the", " cat", " sat") for t in pieces.tokens(w)]
    ids = [t.id for t in gap_tokens(pieces, "the [MASK] sat")]
    assert ids == [*pieces.encode("the"), pieces.mask_id, *pieces.encode(" sat")]
    assert [t.data for t in gap_tokens(pieces, "[MASK][MASK]  [MASK]")] == [
        b"[MASK]", b"[MASK]", b" ", b" [MASK]"
    ]  # fmt: skip
    ids = [t.id for t in gap_tokens(characters, "the [MASK] sat")]
    assert ids == [*characters.encode("the "), characters.mask_id, *characters.encode(" sat")]


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda t: t.name)
def test_other_control_words_stay_plain_text(tokenizer: Tokenizer) -> None:
    ids = [t.id for t in gap_tokens(tokenizer, "the <|endoftext|>")]
    assert ids == tokenizer.encode("the <|endoftext|>")
    assert gap_tokens(tokenizer, "") == []


def test_positions_of_a_word_in_pieces() -> None:
    tokens = gap_tokens(byte_tokenizer(), "a cat, a cat 😀")
    assert positions_of(tokens, "a cat, a cat 😀", "cat") == [2, 3, 4, 9, 10, 11]
    assert positions_of(tokens, "a cat, a cat 😀", "cat", first=True) == [2, 3, 4]
    assert positions_of(tokens, "a cat, a cat 😀", "😀") == [13, 14, 15, 16]
    assert positions_of(tokens, "a cat, a cat 😀", "") == []


@pytest.fixture(scope="module")
def model() -> Transformer:
    config = ModelConfig(vocab_size=11, context_length=8, n_layer=2, n_head=2, d_model=16, objective="mlm")
    return Transformer(config, torch.Generator().manual_seed(4)).eval()


def test_fill_gaps_sees_the_mask_and_not_the_token(model: Transformer) -> None:
    with torch.no_grad():
        expected = model(torch.tensor([[1, 10, 3, 10]]))[0].numpy()
    for hidden_token in (2, 7):
        logits = fill_gaps(model, [1, hidden_token, 3, 4], [1, 3], 10)
        assert np.abs(logits - expected).max() < 1e-6
    with pytest.raises(ValueError, match="between 0 and 3"):
        fill_gaps(model, [1, 2, 3, 4], [4], 10)


def test_fill_gaps_refuses_a_causal_model() -> None:
    causal = Transformer(ModelConfig(vocab_size=11, context_length=8, n_layer=1, n_head=1, d_model=8))
    with pytest.raises(ValueError, match="masked model"):
        fill_gaps(causal, [1, 2], [1], 10)


def test_masked_token_loss_is_the_loss_that_training_uses(model: Transformer) -> None:
    ids, hidden = [1, 2, 3, 4, 5], [1, 4]
    logits = fill_gaps(model, ids, hidden, 10)
    targets = torch.tensor([[-100, 2, -100, -100, 5]])
    expected = cross_entropy(torch.tensor(logits)[None], targets).item()
    assert mean_surprisal(logits, ids, hidden) == pytest.approx(expected, abs=1e-6)
    with pytest.raises(ValueError, match="at least one"):
        mean_surprisal(logits, ids, [])


def test_guess_by_hand() -> None:
    logits = np.array([3.2, 1.1, 0.4, 2.4, -1.0], np.float32)
    found = guess(logits, 2, true_id=4, true=np.array([0.5, 0.5, 0.0, 0.0]))
    assert found.top.ids.tolist() == [0, 3, 4]
    assert found.rank == 5
    assert found.surprisal == pytest.approx(4.6993, abs=5e-5)
    assert found.true_probs is not None and found.true_probs.tolist() == [0.5, 0, 0]
    # 0.5 ln(0.5/0.60695) + 0.5 ln(0.5/0.07432)
    assert found.cost == pytest.approx(
        0.5 * math.log(0.5 / 0.6069467366) + 0.5 * math.log(0.5 / 0.0743245295), abs=1e-6
    )
    unknown = guess(logits, 2)
    assert (unknown.rank, unknown.surprisal, unknown.true_probs, unknown.cost) == (None, None, None, None)
    with pytest.raises(ValueError, match="not finite"):
        guess(np.array([1.0, np.nan], np.float32), 1)


def test_a_lead_is_what_the_context_tells_and_what_was_learned() -> None:
    found = lead_of(0.4, 0.1, 0.5, 0.05)  # ln 4 = ln 10 + ln 0.4
    assert found.tells is not None and found.learned is not None
    assert found.lead == pytest.approx(math.log(4))
    assert found.tells == pytest.approx(math.log(10))
    assert found.learned == pytest.approx(math.log(0.4))
    assert lead_of(0.4, 0.1, None, 0.05).tells is None
    assert lead_of(0.4, 0.1, 0.0, 0.05).tells is None  # what no story has


@pytest.fixture(scope="module")
def letters() -> tuple[Transformer, Tokenizer]:
    tokenizer = byte_tokenizer()
    config = ModelConfig(vocab_size=tokenizer.vocab_size, context_length=6, n_layer=1, n_head=2, d_model=16)
    return Transformer(config, torch.Generator().manual_seed(2)).eval(), tokenizer


def test_a_word_in_anothers_tokens_is_the_product_of_their_probabilities(
    letters: tuple[Transformer, Tokenizer],
) -> None:
    model, tokenizer = letters
    with torch.no_grad():
        rows = log_softmax(model(torch.tensor([list(b"ab c")]))[0].numpy())
    expected = rows[1, ord(" ")] + rows[2, ord("c")] + rows[3, ord("d")]
    assert spelled(model, tokenizer, "ab", " cd") == (pytest.approx(expected, abs=1e-6), 3)
    with torch.no_grad():  # a long text: only the last 6 tokens are read
        last = log_softmax(model(torch.tensor([list(b"456789")]))[0].numpy())[-1, ord("x")]
    assert spelled(model, tokenizer, "0123456789", "x") == (pytest.approx(last, abs=1e-6), 1)
    with pytest.raises(ValueError, match="at least one token"):
        spelled(model, tokenizer, "", "x")


def test_a_word_that_joins_the_end_of_the_text_changes_both_spellings() -> None:
    tokenizer = train_bpe("abab " * 200, 258)  # "ab" is a token: "a" and then "b" is one token, not two
    assert len(tokenizer.encode("ab")) == 1
    config = ModelConfig(vocab_size=tokenizer.vocab_size, context_length=8, n_layer=1, n_head=1, d_model=8)
    model = Transformer(config, torch.Generator().manual_seed(3)).eval()
    c, a, ab = tokenizer.encode("c")[0], tokenizer.encode("a")[0], tokenizer.encode("ab")[0]
    with torch.no_grad():
        after_c = log_softmax(model(torch.tensor([[c]]))[0, 0].numpy())
    found, n = spelled(model, tokenizer, "ca", "b")
    assert tokenizer.encode("cab") == [c, ab] and n == 1
    assert found == pytest.approx(after_c[ab] - after_c[a], abs=1e-6)
