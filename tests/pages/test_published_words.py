"""Every page on published models whose tokens are WordPiece, or come after a token that begins a text."""

import json
from pathlib import Path

import pytest

from engine.hub import load_folder
from engine.hub_words import WordTokenizer
from tests.engine.hub_vocabularies import tokenizer_json
from tests.hub_folders import _masked, write_hub
from tests.pages.conftest import OpenPage

ROWS = 500
TEXTS = [
    "Héllo  wörld, jumping ☂ unwanted. A ½ [MASK] 😀 é\u0301 end. " * 3,  # more than the models read at once
    "   ",  # WordPiece leaves nothing of it
]
PAGES: list[tuple[str, dict[str, str]]] = [
    ("home", {}),
    ("next_token", {"look": "surprise"}),
    ("next_token", {"look": "any-length"}),
    ("attention", {}),
    ("tokens", {"view": "pieces"}),
    ("tokens", {"view": "side-by-side"}),
    ("compare", {}),
    ("inside", {"inside": "logit-lens"}),
    ("embeddings", {"vectors": "look-up"}),
    ("generation", {}),
    ("masking", {}),
]


@pytest.fixture
def words(loupe_home: Path) -> Path:
    """The models folder: "bert" with WordPiece, [CLS] and [SEP], and "mistral" with <s> and byte fallback."""
    folder = loupe_home / "models"
    bert = {**_masked("bert", 40), "vocab_size": ROWS, "pad_token_id": 0}
    write_hub(folder / "bert", bert, json.loads(tokenizer_json("wordpiece")), 3)
    mistral = {
        "model_type": "mistral",
        "vocab_size": ROWS,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 40,
        "eos_token_id": 2,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
    }
    write_hub(folder / "mistral", mistral, json.loads(tokenizer_json("sentencepiece")), 4)
    return folder


@pytest.mark.parametrize("model", ["bert", "mistral"])
@pytest.mark.parametrize(("page", "view"), PAGES, ids=str)
def test_every_page_opens(
    open_page: OpenPage, words: Path, page: str, view: dict[str, str], model: str
) -> None:
    for text in TEXTS:
        at = open_page(page, text=text, model=f"hub:{model}", **view)
        assert not at.exception, (text, at.exception[0].value)
        assert text.isspace() or not at.error, (text, [error.value for error in at.error])


def test_they_are_what_they_are_called(words: Path) -> None:
    for name in ("bert", "mistral"):
        tokenizer = load_folder(words / name).tokenizer
        assert isinstance(tokenizer, WordTokenizer) and tokenizer.frame[0]
