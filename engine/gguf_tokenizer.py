"""The vocabulary of a GGUF file, told as tokenizer.json and tokenizer_config.json."""

from collections.abc import Mapping
from typing import Any

from engine.refused import RefusedError
from wording import words

say = words("engine.gguf_tokenizer")

_PLAIN, _CONTROL = 1, 3  # kinds of token, as the file has them


def ends(values: Mapping[str, Any], rows: int) -> dict[str, int]:
    """The ids that begin and end a text, where the file names them."""
    found = {name: values.get(f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos")}
    return {name: i for name, i in found.items() if type(i) is int and 0 <= i < rows}


def tokenizer_files(
    values: Mapping[str, Any], rows: int, context_length: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """tokenizer.json and tokenizer_config.json of the vocabulary in a file.

    llama.cpp's rule "smollm" cuts each digit off, then follows GPT-2: `Digits` and `ByteLevel`.

    Raises:
        ValueError: one sentence, if the lists don't fit each other.
    """
    tokens, types = _list(values, "tokens", str), _list(values, "token_type", int)
    merges = [merge.split(" ") for merge in _list(values, "merges", str)]
    if not len(tokens) == len(types) == len(set(tokens)) == rows or any(len(pair) != 2 for pair in merges):
        raise RefusedError(say.later("vocabulary"), n=len(tokens), rows=rows)
    if odd := [i for i, type_ in enumerate(types) if type_ not in (_PLAIN, _CONTROL)]:
        raise RefusedError(say.later("token_kind"), token=tokens[odd[0]][:80], kind=types[odd[0]])
    rule = {"add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    byte_level = {"type": "ByteLevel", **rule}
    digits = {"type": "Digits", "individual_digits": True}
    kind = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    control = [i for i, type_ in enumerate(types) if type_ == _CONTROL]
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "vocab": {token: i for i, token in enumerate(tokens)},
        "merges": merges,
    }
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, "content": tokens[i], **kind} for i in control],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": model,
    }
    more = {f"{name}_token": tokens[i] for name, i in ends(values, rows).items()}
    template = values.get("tokenizer.chat_template")
    if isinstance(template, str):
        more["chat_template"] = template
    shared = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    return content, {**shared, "model_max_length": context_length, **more}


def _list(values: Mapping[str, Any], name: str, kind: type) -> list[Any]:
    """A list of the tokenizer, all of one kind."""
    found = values.get(f"tokenizer.ggml.{name}")
    if not isinstance(found, list) or not all(type(item) is kind for item in found):
        raise RefusedError(say.later("list"), name=f"tokenizer.ggml.{name}")
    return found
