"""The texts that a run shows while it learns."""

from pathlib import Path

import torch

from engine.config import ModelConfig
from engine.hub import load_folder
from engine.model import Transformer
from engine.samples import Sampler
from engine.tokenizers import byte_tokenizer
from tests.hub_folders import write_bert


def untrained(objective: str) -> Sampler:
    tokenizer = byte_tokenizer()
    config = ModelConfig(tokenizer.model_vocab_size(objective), 32, 1, 1, 8, objective=objective)
    ids = torch.tensor(tokenizer.encode("The cat sat on the mat.\nThe dog sat on the log.\n"))
    return Sampler(Transformer(config), tokenizer, ids, "The", "pasted")


def test_a_beginner_s_broken_bytes_are_shown_as_bytes() -> None:
    record = untrained("clm").record()
    assert record["prompt"] == "The"
    assert "\ufffd" not in record["text"] and "\\x" in record["text"]  # 60 nearly random bytes are no UTF-8


def test_the_same_sampler_writes_the_same_text_again() -> None:
    sampler = untrained("clm")
    assert sampler.record() == sampler.record()


def test_a_masked_model_fills_the_sentence_that_it_did_not_see() -> None:
    record = untrained("mlm").record()
    assert record["truth"] == "The dog sat on the log.\n"
    assert "[MASK]" in record["masked"] and "[MASK]" not in record["text"]


def test_a_published_masked_model_does_not_fill_in_its_mask_either(tmp_path: Path) -> None:
    published = load_folder(write_bert(tmp_path / "Bert"))
    model, tokenizer = published.model, published.tokenizer
    with torch.no_grad():
        model.head.bias[tokenizer.mask_id] = 1000.0  # an id among the others, not after them
    ids = torch.tensor(tokenizer.encode("the cat sat on the mat"))
    record = Sampler(model, tokenizer, ids, None, "pasted").record()
    assert "[MASK]" in record["masked"] and "[MASK]" not in record["text"]
