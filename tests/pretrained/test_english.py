"""The text of the model that writes English, and its report: by hand on small texts."""

from pathlib import Path

import pytest
import torch

from engine.config import ModelConfig
from engine.corpus import Corpus
from engine.model import Transformer
from engine.tokenizers import train_bpe
from pretrained.text_report import COPIED_WORDS, text_report
from pretrained.tiny_stories import stories_in, tiny_stories

LONG = "One day, a cat sat on a mat and saw a dog. " * 4


def test_paragraphs_of_a_story_become_one_line_and_stories_stay_apart() -> None:
    text = f"{LONG}\n\n{LONG}The end.\nThen {LONG}\n<|endoftext|>\nOnce {LONG}"
    stories = stories_in(text)
    assert [story.split()[0] for story in stories] == ["One", "Then", "Once"]
    assert stories[0].endswith("The end.") and not any("\n" in story for story in stories)


def test_misread_quotation_marks_become_plain_ones() -> None:
    said = LONG + "“It’s mine”, he said. Thatâ€™s â€œtrueâ€, she said."
    (story,) = stories_in(said)
    assert story.endswith('"It\'s mine", he said. That\'s "true", she said.')


def test_repeats_and_torn_ends_are_left_out() -> None:
    assert stories_in(f"{LONG}\n{LONG}\n{LONG} and th\nShort one.") == [LONG.strip()]


def test_a_file_is_split_by_stories(tmp_path: Path) -> None:
    file = tmp_path / "some.txt"
    file.write_text("\n".join(f"Story {i}. {LONG}" for i in range(200)), encoding="utf-8")
    found = tiny_stories(file)
    assert found.text.count("\n") == 190 and (found.val_text or "").count("\n") == 10
    assert not set(found.text.splitlines()) & set((found.val_text or "").splitlines())
    file.write_text(LONG, encoding="utf-8")
    with pytest.raises(ValueError, match="1 whole stories; at least 100"):
        tiny_stories(file)


def test_the_report_of_an_untrained_model_is_about_chance() -> None:
    text = Corpus("x", "x", "the cat sat on the mat. " * 40 + "\n", "the cat sat on the mat. " * 40 + "\n")
    tokenizer = train_bpe(text.text, 280)
    config = ModelConfig(vocab_size=tokenizer.vocab_size, context_length=32, n_layer=1, n_head=2, d_model=16)
    model = Transformer(config, torch.Generator().manual_seed(0))
    report = text_report(model, tokenizer, text, n_samples=2)
    assert report.loss == pytest.approx(torch.log(torch.tensor(280.0)).item(), abs=0.2)
    assert report.tokens == len(tokenizer.encode(text.val_text or "")) // 32 * 32
    assert report.trigram < 0.5 and report.copied == 0 and 0 <= report.known_words < 1
    assert COPIED_WORDS == 10 and report.samples == 2
