"""What moments of a training say of a text: the same as a trace of each checkpoint."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.checkpoint_list import list_checkpoints
from engine.checkpoints import load_checkpoint
from engine.config import ModelConfig
from engine.gaps import fill_gaps
from engine.hub import load_folder
from engine.metrics import log_softmax
from engine.model import Transformer
from engine.moments import (
    around,
    fill_in,
    leaders,
    look,
    look_everywhere,
    prompt_room,
    target_log_probs,
    write_on,
)
from engine.pseudo import pseudo_log_probs
from engine.sampling import generate
from engine.tokenizers import byte_tokenizer
from engine.trace import trace
from tests.hub_folders import write_bert

HISTORY = Path(__file__).parents[2] / "pretrained/history"
TEXT = "Once upon a time, there was a princess called Lily. She"


def tiny(objective: str = "clm", context_length: int = 24) -> Transformer:
    vocab_size = byte_tokenizer().model_vocab_size(objective)
    config = ModelConfig(vocab_size, context_length, 2, 2, 16, objective=objective)  # type: ignore[arg-type]
    model = Transformer(config, torch.Generator().manual_seed(2))
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(6)
    return model.eval()


@pytest.mark.parametrize("position", [0, 5, 12])
def test_each_shipped_moment_says_what_its_trace_says(position: int) -> None:
    for _, path in list_checkpoints(HISTORY / "stories-clm")[::8]:
        saved = load_checkpoint(path)
        seen, whole = (
            look(saved.model, saved.tokenizer, TEXT, position),
            trace(saved.model, saved.tokenizer, TEXT),
        )
        np.testing.assert_array_equal(seen.logits, whole.logits[position])
        np.testing.assert_array_equal(seen.attentions, whole.attentions)
        assert np.isnan(seen.log_probs[0])
        for t in range(1, len(whole.ids)):
            expected = np.log(whole.probs()[t - 1, whole.ids[t]])
            assert seen.log_probs[t] == pytest.approx(expected, abs=1e-9)


def test_all_positions_at_once_are_each_position() -> None:
    model, tokenizer = tiny(), byte_tokenizer()
    whole = look_everywhere(model, tokenizer, "a red hat")
    for position in range(9):
        seen = look(model, tokenizer, "a red hat", position)
        np.testing.assert_array_equal(whole.logits[position], seen.logits)
        np.testing.assert_array_equal(whole.log_probs, seen.log_probs)
    with pytest.raises(ValueError, match="one hidden position at a time"):
        look_everywhere(tiny("mlm"), tokenizer, "a red hat")


def test_a_masked_model_is_asked_for_each_token_alone() -> None:
    model, tokenizer = tiny("mlm"), byte_tokenizer()
    seen = look(model, tokenizer, "a hat", 2)
    ids = tokenizer.encode("a hat")
    np.testing.assert_allclose(seen.logits, fill_gaps(model, ids, [2], tokenizer.mask_id)[2], atol=1e-5)
    for t, token_id in enumerate(ids):
        alone = log_softmax(fill_gaps(model, ids, [t], tokenizer.mask_id)[t])[token_id]
        assert seen.log_probs[t] == pytest.approx(alone, abs=1e-5)


def test_a_published_masked_model_is_never_asked_for_what_stands_around_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = load_folder(write_bert(tmp_path / "Bert"))
    model, tokenizer = published.model, published.tokenizer
    ids = tokenizer.encode("the cat")
    found = look(model, tokenizer, "the cat", 1).log_probs
    assert np.isnan(found[[0, -1]]).all()  # [CLS] and [SEP]
    alone = pseudo_log_probs(model, ids, tokenizer.mask_id, frame=tokenizer.frame)
    np.testing.assert_allclose(found[1:-1], alone, atol=1e-5)
    monkeypatch.setattr("engine.moments.ASKED_TOKENS", len(found))
    at = len(ids)  # the last token of the text
    assert np.flatnonzero(np.isfinite(look(model, tokenizer, "the cat", at).log_probs)).tolist() == [at]


def test_in_a_long_text_only_the_tokens_around_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.moments.ASKED_TOKENS", 60)
    seen = look(tiny("mlm"), byte_tokenizer(), "twenty letters here!", 19)  # 60 / 20 are 3
    assert np.flatnonzero(np.isfinite(seen.log_probs)).tolist() == [17, 18, 19]


def test_a_long_text_is_read_from_its_end() -> None:
    seen = look(tiny(), byte_tokenizer(), "x" * 100 + "the end", 23)
    assert len(seen.log_probs) == 24
    same = look(tiny(), byte_tokenizer(), ("x" * 100 + "the end")[-24:], 23)
    np.testing.assert_allclose(seen.logits, same.logits, atol=1e-6)


@pytest.mark.parametrize("objective", ["clm", "mlm"])
@pytest.mark.parametrize("text", ["a", "😀", "né\n\u202e"])
def test_short_and_odd_texts(objective: str, text: str) -> None:
    n = len(text.encode())
    seen = look(tiny(objective), byte_tokenizer(), text, n - 1)
    assert seen.log_probs.shape == (n,) and np.isfinite(seen.logits).all()


@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_a_place_outside_the_text_is_refused(objective: str) -> None:
    with pytest.raises(ValueError, match="between 0 and 2"):
        look(tiny(objective), byte_tokenizer(), "abc", 3)


def test_scores_of_many_rows_are_those_of_each() -> None:
    logits = np.random.default_rng(0).normal(size=(150, 7)).astype(np.float32) * 5  # more than one part
    targets = [random.Random(1).randrange(7) for _ in range(150)]
    expected = [log_softmax(row)[t] for row, t in zip(logits, targets, strict=True)]
    np.testing.assert_allclose(target_log_probs(logits, targets), expected, atol=1e-12)
    assert target_log_probs(logits[:0], []).shape == (0,)


def test_leaders_are_those_that_once_stood_highest() -> None:
    probs = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.2, 0.6, 0.1], [0.2, 0.5, 0.2, 0.1]])
    assert leaders(probs, 2).tolist() == [0, 2]  # 0.7 and 0.6; at the end both have 0.2: by id
    assert leaders(probs, 2, also=3).tolist() == [0, 3]
    assert leaders(probs, 9).tolist() == [1, 0, 2, 3]


def test_around_stays_inside_and_holds_the_place() -> None:
    for n in range(1, 9):
        for position in range(n):
            for most in range(1, 12):
                found = around(n, position, most)
                assert position in found and len(found) == min(most, n)
                assert found.start >= 0 and found.stop <= n


def test_writing_on_is_generating_from_the_end_of_the_text() -> None:
    model, tokenizer = tiny(), byte_tokenizer()
    ids = tokenizer.encode("a text that is longer than its context")
    n, room = prompt_room(24, 40)
    assert (n, room) == (12, 12)
    steps = list(generate(model, ids[-room:], n_tokens=n, seed=7))
    data = b"".join(tokenizer.token_bytes(step.id) for step in steps)
    written = write_on(model, tokenizer, ids, n_tokens=40, seed=7)
    assert written == data.decode("utf-8", "backslashreplace")
    assert written == write_on(model, tokenizer, ids, n_tokens=40, seed=7)


def test_all_gaps_are_filled_at_once_with_the_likeliest() -> None:
    model, tokenizer = tiny("mlm"), byte_tokenizer()
    ids = tokenizer.encode("a red hat")
    logits = fill_gaps(model, ids, [1, 4], tokenizer.mask_id)
    best = logits[[1, 4], : tokenizer.mask_id].argmax(axis=1).tolist()
    assert fill_in(model, ids, [1, 4], tokenizer.mask_id) == best


def test_no_gap_is_filled_with_the_mask_not_even_before_the_first_step() -> None:
    """Its own vector stands in the stream there, and is the head's row, too: it has the largest logit."""
    tokenizer = byte_tokenizer()
    config = ModelConfig(tokenizer.model_vocab_size("mlm"), 64, 2, 2, 32, objective="mlm")
    model, ids = Transformer(config), tokenizer.encode("Once upon a time there was a cat")
    hidden = range(1, len(ids), 3)
    likeliest = fill_gaps(model, ids, hidden, tokenizer.mask_id)[list(hidden)].argmax(axis=1)
    assert (likeliest == tokenizer.mask_id).any()
    assert tokenizer.mask_id not in fill_in(model, ids, hidden, tokenizer.mask_id)
