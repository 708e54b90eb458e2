"""Text to ids and back: bytes, characters, our own byte-level BPE, and the published vocabularies.

Every tokenizer gives back any text that it took, byte for byte. Ids run from 0 to `vocab_size - 1`; the
special ids follow: `mask_id` (what a masked model sees in place of a hidden token), then `end_id`.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import regex
import rustbpe
import tiktoken

from engine.ranks import checked_ranks
from wording import words

say = words("engine.tokenizers")

MASK_TEXT = "[MASK]"
END_TEXT = "<|endoftext|>"
# Two regional indicators are a flag. \X alone would count all those before each pair, in quadratic time.
GRAPHEME = regex.compile(r"[🇦-🇿]{2}[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*|\X")
BLANK_BLOCK = 250_000  # tiktoken's regex panics inside a run of about a million blanks


class Token(NamedTuple):
    r"""One token of a text.

    Attributes:
        id: its number in the vocabulary.
        data: its bytes.
        text: the bytes read as UTF-8; bytes that are only a part of a character stand as ``\xf0``.
        start: index of the character in the text in which its first byte lies.
        byte_start, byte_end: where it lies in the UTF-8 bytes of the text.
    """

    id: int
    data: bytes
    text: str
    start: int
    byte_start: int
    byte_end: int


def repair_text(text: str) -> tuple[str, int]:
    r"""Join surrogate pairs into their character and replace lone halves by U+FFFD.

    Returns:
        The text, now encodable as UTF-8, and how many lone halves were replaced.

    >>> repair_text("\ud83d\udc4d and \ud83d") == ("👍 and \ufffd", 1)
    True
    """
    try:
        text.encode("utf-8")
        return text, 0
    except UnicodeEncodeError:
        repaired = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return repaired, repaired.count("\ufffd") - text.count("\ufffd")


def _has_long_blank(text: str) -> bool:
    """Whether one of the text's blocks is all blank: true for every run of blanks of two blocks or more."""
    blocks = range(0, len(text) - BLANK_BLOCK + 1, BLANK_BLOCK)
    return any(text[i : i + BLANK_BLOCK].isspace() for i in blocks)


class Tokenizer:
    """A vocabulary and its rule, run by `tiktoken.Encoding`.

    Args:
        encoding: ordinary ids first; its special tokens are read only with ``special=True``.
        vocab_size: number of ordinary ids.
        spec: what `to_json` writes; enough to build the tokenizer again.
    """

    def __init__(self, name: str, encoding: tiktoken.Encoding, vocab_size: int, spec: dict[str, Any]) -> None:
        self.name = name
        self.vocab_size = vocab_size
        self.mask_id = vocab_size
        self._encoding = encoding
        self._spec = spec

    def model_vocab_size(self, objective: str) -> int:
        """Rows that a model needs: the ordinary ids, and for "mlm" the mask."""
        return self.vocab_size + (objective == "mlm")

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Ids of a text. With ``special`` the control tokens' spellings become those tokens, else plain text.

        Raises:
            ValueError: from a character tokenizer, with the characters that its alphabet lacks.
        """
        text = repair_text(text)[0]
        if not special:
            return self._encode_plain(text)
        spellings = "|".join(regex.escape(spelling) for spelling in self._control)
        plain_first = regex.split(f"({spellings})", text)  # plain, control, plain, control, …, plain
        return [
            i
            for n, part in enumerate(plain_first)
            for i in ([self._control[part]] if n % 2 else self._encode_plain(part))
        ]

    @cached_property
    def _control(self) -> dict[str, int]:
        """Spelling -> id of the control tokens."""
        return {s: self._encoding.encode_single_token(s) for s in self._encoding.special_tokens_set}

    def _encode_plain(self, text: str) -> list[int]:
        if not _has_long_blank(text):
            return self._encoding.encode_ordinary(text)
        pattern = self._encoding._pat_str  # the same split by a slower engine, which survives
        pieces = (match.group() for match in regex.finditer(pattern, text))
        return [i for piece in pieces for i in self._encoding._encode_single_piece(piece)]

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of one id.

        Raises:
            ValueError: if the vocabulary has no such id.
        """
        if token_id == self.mask_id:
            return MASK_TEXT.encode()
        try:
            return self._piece(int(token_id))
        except (KeyError, IndexError, OverflowError) as error:
            raise ValueError(
                say("has_no_id_ids", name=self.name, token_id=token_id, last=self.vocab_size - 1)
            ) from error

    def _piece(self, token_id: int) -> bytes:
        return self._encoding.decode_single_token_bytes(token_id)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of some ids. Bytes that are no whole character become U+FFFD, as in any text file."""
        return b"".join(self.token_bytes(i) for i in ids).decode("utf-8", errors="replace")

    def tokens(self, text: str, *, special: bool = False, most: int | None = None) -> list[Token]:
        """The tokens of a text, or the first `most` of them, with their bytes and where they lie."""
        return self.locate(self.encode(text, special=special)[:most], text)

    def locate(self, ids: Sequence[int], text: str) -> list[Token]:
        """The tokens with these ids, which are the first of `text`, with their bytes and where they lie."""
        text = repair_text(text)[0]
        data_of = {i: self.token_bytes(i) for i in set(ids)}
        text_of = {i: data.decode("utf-8", "backslashreplace") for i, data in data_of.items()}
        sizes = np.array([len(data_of[i]) for i in ids], dtype=np.int64)
        ends = np.cumsum(sizes)
        begins = ends - sizes
        raw = np.frombuffer(text[: sizes.sum()].encode("utf-8"), dtype=np.uint8)
        starts = (np.cumsum((raw & 0xC0) != 0x80) - 1)[begins]  # a continuation byte starts no character
        data, texts = [data_of[i] for i in ids], [text_of[i] for i in ids]
        return list(map(Token, ids, data, texts, starts.tolist(), begins.tolist(), ends.tolist()))

    def ending(self, text: str, most: int) -> tuple[list[Token], int]:
        """The last `most` tokens of a text, and how many come before them; only these are built."""
        text = repair_text(text)[0]
        ids = self.encode(text)
        before = max(0, len(ids) - most)
        last = ids[before:]
        data = [self.token_bytes(i) for i in last]
        sizes = np.array([len(piece) for piece in data], dtype=np.int64)
        n_bytes = int(sizes.sum())
        begins = np.cumsum(sizes) - sizes
        raw = np.frombuffer(text[max(0, len(text) - n_bytes) :].encode("utf-8"), dtype=np.uint8)
        starts_one = (raw[len(raw) - n_bytes :] & 0xC0) != 0x80  # a continuation byte starts no character
        later = int(starts_one.sum()) - np.cumsum(starts_one)  # characters that start after each byte
        starts = len(text) - 1 - later[begins]
        offset = len(text.encode("utf-8")) - n_bytes
        texts = [piece.decode("utf-8", "backslashreplace") for piece in data]
        begin, end = (begins + offset).tolist(), (begins + sizes + offset).tolist()
        return list(map(Token, last, data, texts, starts.tolist(), begin, end)), before

    def segments(self, text: str, *, special: bool = False, most: int | None = None) -> list[list[Token]]:
        """`tokens` in the smallest groups that are whole graphemes, so that an emoji stays in one piece."""
        return whole_graphemes(self.tokens(text, special=special, most=most), text)

    @property
    def end_id(self) -> int:
        """Id of ``<|endoftext|>``."""
        return self._encoding.encode_single_token(END_TEXT)

    @cached_property
    def line_end_ids(self) -> list[int]:
        """Ids whose bytes end in a newline: where a line (in the stories: a story) is over."""
        found = []
        for token_id in range(self.vocab_size):
            try:
                if self.token_bytes(token_id).endswith(b"\n"):
                    found.append(token_id)
            except ValueError:  # a published vocabulary may leave gaps between its ids
                continue
        return found

    def to_json(self) -> dict[str, Any]:
        """A description from which `tokenizer_from_json` builds it again."""
        return self._spec

    @cached_property
    def hash(self) -> str:
        """Short fingerprint of the vocabulary: the same hash means the same ids for every text."""
        return hashlib.sha256(json.dumps(self._spec, sort_keys=True).encode()).hexdigest()[:16]


def whole_graphemes(tokens: Sequence[Token], text: str) -> list[list[Token]]:
    """Consecutive tokens of a text, grouped so that each group ends where a grapheme ends.

    Only the part of the text that the tokens cover is read; the last group may lack its end.
    """
    if not tokens:
        return []
    text = repair_text(text)[0]
    at, last = len(text[: tokens[0].start].encode("utf-8")), tokens[-1].byte_end
    ends = set()
    for match in GRAPHEME.finditer(text, tokens[0].start):
        at += len(match.group().encode("utf-8"))
        ends.add(at)
        if at >= last:
            break
    groups: list[list[Token]] = []
    whole = True
    for token in tokens:
        if whole:
            groups.append([])
        groups[-1].append(token)
        whole = token.byte_end in ends
    return groups


def characters_of(token: Token, text: str) -> list[tuple[str, bytes]]:
    r"""The characters of the text that a token touches, each with those of its bytes that lie in the token.

    >>> half = Token(222, b"\x80", "\\x80", start=0, byte_start=3, byte_end=4)
    >>> characters_of(half, "😀") == [("😀", b"\x80")]
    True
    """
    found, index = [], token.start
    at = len(text[:index].encode("utf-8"))
    while at < token.byte_end:
        data = text[index].encode("utf-8")
        found.append((text[index], data[max(0, token.byte_start - at) : token.byte_end - at]))
        at += len(data)
        index += 1
    return found


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
    step = BLANK_BLOCK if _has_long_blank(text) else len(text)
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
    kind = spec.get("kind")
    try:
        if kind == "bytes":
            return byte_tokenizer()
        if kind == "characters":
            return CharTokenizer(spec["alphabet"])
        if kind == "bpe":
            ranks = _byte_ranks()
            for text in spec["merged"]:
                ranks[base64.b64decode(text)] = len(ranks)
            return _own(f"BPE {len(ranks)}", ranks, spec["pattern"], spec)
        if kind == "published":
            return load_vocabulary(spec["name"])
    except (KeyError, TypeError) as error:
        raise ValueError(say("description_tokenizer_damaged", kind=kind, error=error)) from error
    raise ValueError(say("tokenizer_kind_unknown_known", kind=kind))


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
