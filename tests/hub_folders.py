"""Tiny published models as Hugging Face folders, written here without transformers: random but sharp weights.

The names and shapes of the tensors come from the loader's own tables. That these are right is shown in
tests/engine/test_hub.py, against transformers; these folders are for what stands on the loader.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from engine.corpus import stories
from engine.hub_bpe import _alphabet
from engine.hub_families import family_of, shape_of
from engine.hub_layout import our_shapes
from engine.hub_settings import Settings
from engine.tokenizers import train_bpe

MISSING = b"\x04\x06\x13\xff"  # bytes that have no token in `write_llama`, as some of SmolLM2's
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
ROBERTA = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_CHARS = {byte: char for char, byte in _alphabet().items()}
_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
_DIGITS = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, _BYTE_LEVEL]}


def write_llama(
    folder: Path,
    *,
    n_layer: int = 2,
    n_head: int = 4,
    n_kv_head: int = 2,
    d_model: int = 32,
    context_length: int = 64,
    seed: int = 0,
    chat: bool = False,
) -> Path:
    """A causal model as SmolLM2 is one: rotary, grouped queries, control tokens first, bytes without a token.

    Args:
        folder: where to write it; made if it is not there.
        n_layer, n_head, n_kv_head, d_model, context_length: its shape.
        seed: of its weights.
        chat: whether to write a ChatML template beside it.
    """
    content = _tokenizer(CONTROL, _DIGITS, missing=MISSING)
    settings = {
        "model_type": "llama",
        "hidden_size": d_model,
        "intermediate_size": 2 * d_model,
        "num_hidden_layers": n_layer,
        "num_attention_heads": n_head,
        "num_key_value_heads": n_kv_head,
        "max_position_embeddings": context_length,
        "rope_theta": 100.0,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "eos_token_id": 2,
    }
    if chat:
        folder.mkdir(parents=True, exist_ok=True)
        template = (
            "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + "
            "'<|im_end|>' + '\\n'}}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
        )
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    return write_hub(folder, settings, content, seed)


def write_roberta(folder: Path, *, context_length: int = 48, seed: int = 1) -> Path:
    """A masked model that wants <s> before a text and </s> after it."""
    content = _tokenizer(ROBERTA, _BYTE_LEVEL)
    ends = {"cls": ["<s>", 0], "sep": ["</s>", 2]}
    content["post_processor"] = {
        "type": "RobertaProcessing", **ends, "trim_offsets": True, "add_prefix_space": False
    }  # fmt: skip
    settings = {**_masked("roberta", context_length + 2), "pad_token_id": 1, "type_vocab_size": 1}
    return write_hub(folder, settings, content, seed)


def write_bert(folder: Path, *, context_length: int = 48, seed: int = 2) -> Path:
    """A masked model that wants [CLS] before a text and [SEP] after it; its tokens are no WordPiece.

    So it needs no more than the app itself does.
    """
    content = _tokenizer(BERT, _BYTE_LEVEL)
    ends = [{"SpecialToken": {"id": name, "type_id": 0}} for name in ("[CLS]", "[SEP]")]
    content["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [ends[0], {"Sequence": {"id": "A", "type_id": 0}}, ends[1]],
        "pair": [ends[0], {"Sequence": {"id": "A", "type_id": 0}}, ends[1]],
        "special_tokens": {
            name: {"id": name, "ids": [BERT.index(name)], "tokens": [name]} for name in ("[CLS]", "[SEP]")
        },
    }
    return write_hub(folder, {**_masked("bert", context_length), "pad_token_id": 0}, content, seed)


def _masked(kind: str, positions: int) -> dict[str, Any]:
    return {
        "model_type": kind,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": positions,
        "layer_norm_eps": 1e-5,
    }


def write_hub(folder: Path, settings: Mapping[str, Any], tokenizer: Mapping[str, Any], seed: int) -> Path:
    """Any family's folder: config.json, model.safetensors with random weights, tokenizer.json."""
    settings = {"vocab_size": len(tokenizer["model"]["vocab"]), **settings}
    config = shape_of(settings, None)
    shapes, dice = our_shapes(config), torch.Generator().manual_seed(seed)
    tensors = {}
    for weight in family_of(settings).weights(Settings(settings), config, shapes):
        values = 0.3 * torch.randn(weight.shape(shapes), generator=dice)
        norm = "norm" in weight.ours[0] and weight.ours[0].endswith("weight")
        tensors[weight.theirs] = 1 + values if norm else values
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return folder


def _tokenizer(special: Sequence[str], cut: Mapping[str, Any], missing: bytes = b"") -> dict[str, Any]:
    """A tokenizer.json: the control tokens have the first ids, then the bytes, then what was merged."""
    ranks, merges = _merges()
    data = [one for one in sorted(ranks, key=lambda one: ranks[one]) if len(one) > 1 or one not in missing]
    added = [
        {
            "id": i,
            "content": text,
            "single_word": False,
            "lstrip": text == "<mask>",
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for i, text in enumerate(special)
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": dict(cut),
        "post_processor": None,
        "decoder": _BYTE_LEVEL,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {text: i for i, text in enumerate([*special, *map(_written, data)])},
            "merges": [[_written(part) for part in pair] for pair in merges],
        },
    }


def _written(data: bytes) -> str:
    return "".join(_CHARS[byte] for byte in data)


@cache
def _merges() -> tuple[dict[bytes, int], list[tuple[bytes, bytes]]]:
    """Bytes -> rank of a vocabulary of 360, and its merges in order."""
    tokenizer = train_bpe(stories(60, seed=3).text, 360)
    ranks = {tokenizer.token_bytes(i): i for i in range(tokenizer.vocab_size)}
    return ranks, [_parents(one, ranks) for one in sorted(ranks, key=lambda one: ranks[one]) if len(one) > 1]


def _parents(data: bytes, ranks: Mapping[bytes, int]) -> tuple[bytes, bytes]:
    """The two tokens that a token was merged from: what is left once all earlier merges are done."""
    parts = [bytes([byte]) for byte in data]
    while len(parts) > 2:
        pairs = [parts[i] + parts[i + 1] for i in range(len(parts) - 1)]
        at = min(range(len(pairs)), key=lambda i: ranks.get(pairs[i], len(ranks)))
        parts[at : at + 2] = [pairs[at]]
    return parts[0], parts[1]
