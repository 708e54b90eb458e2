"""The texts that a run shows while it learns."""

import torch

from engine.config import ModelConfig
from engine.model import Transformer
from engine.samples import Sampler
from engine.tokenizers import byte_tokenizer


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
