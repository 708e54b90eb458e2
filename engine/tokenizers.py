"""The kinds of tokenizer: bytes, characters, our own byte-level BPE, and the published vocabularies."""

import base64
import binascii
import hashlib
from functools import cache
from typing import Any

import rustbpe
import tiktoken

from engine.ranks import checked_ranks
from engine.refused import broken_entry
from engine.setting_checks import is_number
from engine.tokenizer import BLANK_BLOCK, END_TEXT, MASK_TEXT, has_long_blank, no_panic
from engine.tokenizer import Tokenizer as Tokenizer
from engine.tokens import Token as Token
from engine.tokens import repair_text
from wording import words

say = words("engine.tokenizers")

_LONGEST_PATTERN = 10_000  # characters
_WHOLE = (r"[\s\S]+|[\s\S]", r"[\s\S]+")  # nothing is cut
_PROBE = "It's 12 o'clock,\n\n  said Zoë;\tthen 日本 😀 \x00 e\u0301"  # a rule of cutting must keep all of it


class CharTokenizer(Tokenizer):
    """One id for every character of the text it was made from; any other character is refused."""

    def __init__(self, alphabet: str) -> None:
        self.alphabet = alphabet
        self._ids = {c: i for i, c in enumerate(alphabet)}
        self.name = "characters"
        self.vocab_size = self.mask_id = len(alphabet)
        self._spec = {"kind": "characters", "alphabet": alphabet}
        self._control = {MASK_TEXT: self.mask_id, END_TEXT: self.end_id}

    @property
    def end_id(self) -> int:
        """Id of ``<|endoftext|>``."""
        return self.vocab_size + 1

    def _encode_plain(self, text: str) -> list[int]:
        unknown = sorted(set(text) - self._ids.keys())
        if unknown:
            shown = " ".join(repr(c) for c in unknown[:10]) + (" …" if len(unknown) > 10 else "")
            raise ValueError(say("vocabulary_made_text_without", shown=shown, n=len(unknown)))
        return [self._ids[c] for c in text]

    def _piece(self, token_id: int) -> bytes:
        if token_id == self.end_id:
            return END_TEXT.encode()
        if token_id < 0:
            raise IndexError(token_id)
        return self.alphabet[token_id].encode("utf-8")


def _own(name: str, ranks: dict[bytes, int], pattern: str, spec: dict[str, Any]) -> Tokenizer:
    specials = {MASK_TEXT: len(ranks), END_TEXT: len(ranks) + 1}
    with no_panic(name):
        encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)
    return Tokenizer(name, encoding, len(ranks), spec)


def _byte_ranks() -> dict[bytes, int]:
    return {bytes([b]): b for b in range(256)}


def byte_tokenizer() -> Tokenizer:
    """256 ids: the UTF-8 bytes themselves."""
    return _own("bytes", _byte_ranks(), r"[\s\S]", {"kind": "bytes"})


def char_tokenizer(text: str) -> Tokenizer:
    """One id for each different character of `text`, in code-point order.

    Raises:
        ValueError: if the text is empty.
    """
    alphabet = "".join(sorted(set(repair_text(text)[0])))
    if not alphabet:
        raise ValueError(say("character_vocabulary_needs_text"))
    return CharTokenizer(alphabet)


def train_bpe(text: str, vocab_size: int, *, pattern: str | None = None) -> Tokenizer:
    r"""Learn a byte-level BPE (Gage 1994; Sennrich et al. 2016, arXiv:1508.07909) from a text.

    Starts from the 256 bytes and merges the most frequent pair `vocab_size - 256` times, or until no pair is
    left: read the real size off `.vocab_size`.

    Args:
        text: what to learn from.
        vocab_size: ordinary ids wanted, at least 256.
        pattern: regular expression that splits the text before merging; ``[\s\S]+`` splits nothing.
            None is rustbpe's default, the split of GPT-4.

    Raises:
        ValueError: if the text is blank, or the size is below 256.

    >>> train_bpe("aaabdaaabac", 259, pattern=r"[\s\S]+").encode("aaabdaaabac")
    [258, 100, 258, 97, 99]
    """
    if vocab_size < 256:  # checked here: rustbpe would panic, and a panic passes by `except Exception`
        raise ValueError(say("byte_level_vocabulary_needs", vocab_size=vocab_size))
    text = repair_text(text)[0]
    if not text.strip():
        raise ValueError(say("bpe_vocabulary_needs_text"))
    trainer = rustbpe.Tokenizer()
    step = BLANK_BLOCK if has_long_blank(text) else len(text)
    parts = [text[i : i + step] for i in range(0, len(text), step)]
    trainer.train_from_iterator(parts, vocab_size, pattern=None if pattern is None else pattern + r"|[\s\S]")
    ranks = sorted(trainer.get_mergeable_ranks(), key=lambda pair: pair[1])
    merged = [base64.b64encode(bytes(data)).decode() for data, _ in ranks[256:]]
    return tokenizer_from_json({"kind": "bpe", "pattern": trainer.get_pattern(), "merged": merged})


def tokenizer_from_json(spec: dict[str, Any]) -> Tokenizer:
    """Build the tokenizer that `Tokenizer.to_json` described.

    Raises:
        ValueError: if it is no such description, or names a vocabulary that is not on this machine.
    """
    kind = spec.get("kind") if isinstance(spec, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(say("tokenizer_kind_unknown_known", kind=str(kind)[:80]))
    try:
        return _KINDS[kind](spec)
    except (KeyError, TypeError, AttributeError) as error:
        why = broken_entry(error)
        raise ValueError(say("description_tokenizer_damaged", kind=kind, error=why)) from error


def _read_characters(spec: dict[str, Any]) -> Tokenizer:
    alphabet = spec["alphabet"]
    if not isinstance(alphabet, str) or repair_text(alphabet)[1] or len(set(alphabet)) != len(alphabet):
        raise TypeError(alphabet)
    return CharTokenizer(alphabet)


def _read_bpe(spec: dict[str, Any]) -> Tokenizer:
    ranks = _byte_ranks()
    try:
        merged = [base64.b64decode(text, validate=True) for text in spec["merged"]]
    except (binascii.Error, ValueError) as error:
        raise TypeError(error) from error
    for data in merged:
        if data in ranks or not data:
            raise TypeError(data)
        ranks[data] = len(ranks)
    pattern = spec["pattern"]
    if not isinstance(pattern, str) or len(pattern) > _LONGEST_PATTERN:
        raise TypeError(pattern)
    try:
        tokenizer = _own(f"BPE {len(ranks)}", ranks, pattern, spec)
        whole = tokenizer.decode(tokenizer.encode(_PROBE)) == _PROBE
    except ValueError as error:  # the package refuses the pattern in its own words
        raise ValueError(say("bad_pattern")) from error
    if not whole:
        raise ValueError(say("bad_pattern"))
    return tokenizer


def _read_hub(spec: dict[str, Any]) -> Tokenizer:
    from engine.hub_tokenizer import open_tokenizer  # only who opens a published model needs it

    name, rows, end, frame = spec["name"], spec["rows"], spec["end"], spec.get("frame", ((), ()))
    sides = [i for side in frame for i in side]
    numbers = [rows, *sides, *([] if end is None else [end])]
    good = isinstance(name, str) and len(frame) == 2 and all(type(i) is int and is_number(i) for i in numbers)
    if not good or min(numbers) < 0 or not isinstance(spec["content"], dict):
        raise TypeError(spec.keys())
    return open_tokenizer(name, spec["content"], rows, end, frame)


def _read_published(spec: dict[str, Any]) -> Tokenizer:
    if not isinstance(spec["name"], str):
        raise TypeError(spec["name"])
    return load_vocabulary(spec["name"])


_KINDS = {
    "bytes": lambda spec: byte_tokenizer(),
    "characters": _read_characters,
    "bpe": _read_bpe,
    "published": _read_published,
    "hub": _read_hub,
}


@cache
def _usual_pattern() -> str:
    """How a text is cut before merging, if nobody says otherwise."""
    trainer = rustbpe.Tokenizer()
    trainer.train_from_iterator(["a"], 256)
    return str(trainer.get_pattern())


def has_known_pattern(tokenizer: Tokenizer) -> bool:
    """Whether a text is cut as Loupe's own vocabularies do it.

    Any other regular expression may be one that takes years on some text.
    """
    spec = tokenizer.to_json()
    return spec.get("kind") != "bpe" or spec["pattern"] in (_usual_pattern(), *_WHOLE)


def custom_vocabulary(content: bytes, name: str) -> Tokenizer:
    """The vocabulary in a .tiktoken file of which nothing is known.

    Such a file doesn't say how a text is split before merging: the split of cl100k_base is used.

    Args:
        content: of the file.
        name: how to call it; it becomes "custom: name".

    Raises:
        ValueError: one sentence, if the file is not a complete vocabulary.
    """
    from engine import vocabularies

    ranks = checked_ranks(content)
    vocab_size, called = max(ranks.values()) + 1, f"custom: {name}"
    specials = {MASK_TEXT: vocab_size, END_TEXT: vocab_size + 1}
    pattern = vocabularies.split_pattern("cl100k_base")
    encoding = tiktoken.Encoding(called, pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)
    spec = {"kind": "custom", "name": name, "sha256": hashlib.sha256(content).hexdigest()}
    return Tokenizer(called, encoding, vocab_size, spec)


def load_vocabulary(name: str) -> Tokenizer:
    """A published vocabulary ("gpt2", "cl100k_base", …) from a file on this machine, never the network.

    Raises:
        ValueError: if the name is unknown, or its file is in none of the folders of `vocabularies.folders`.
    """
    from engine import vocabularies  # its tables are only needed here

    ranks, pattern, specials = vocabularies.read(name)
    vocab_size = max(max(ranks.values()), *specials.values()) + 1
    encoding = tiktoken.Encoding(
        name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={**specials, MASK_TEXT: vocab_size}
    )
    return Tokenizer(name, encoding, vocab_size, {"kind": "published", "name": name})
