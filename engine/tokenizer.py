"""A vocabulary and its rule: text to ids and back. `engine.tokenizers` makes the kinds that there are.

Every tokenizer gives back any text that it took, byte for byte, except some published ones, see
`engine.hub_words`. Ids run from 0 to `vocab_size - 1`; the special ids follow: `mask_id` (what a masked model
sees in place of a hidden token), then `end_id`. Published vocabularies have theirs among the others.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import regex
import tiktoken

from engine.tokens import Token, repair_text, whole_graphemes
from wording import words

say = words("engine.tokenizer")

MASK_TEXT = "[MASK]"
END_TEXT = "<|endoftext|>"
BLANK_BLOCK = 250_000  # tiktoken's regex panics inside a run of about a million blanks


def has_long_blank(text: str) -> bool:
    """Whether one of the text's blocks is all blank: true for every run of blanks of two blocks or more."""
    blocks = range(0, len(text) - BLANK_BLOCK + 1, BLANK_BLOCK)
    return any(text[i : i + BLANK_BLOCK].isspace() for i in blocks)


@contextmanager
def no_panic(name: str) -> Iterator[None]:
    """Let a panic of a package written in Rust be a sentence: it is no `Exception`, and would end the thread.

    Raises:
        ValueError: in its place.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # it can't be imported
            raise
        raise ValueError(say("cuts_badly", name=name)) from error


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

    @property
    def frame(self) -> tuple[list[int], list[int]]:
        """Ids that the model wants before and after a text: ([], []) for all of ours.

        Published masked models want [CLS] and [SEP], or <s> and </s>; some causal ones a token that begins a
        text, and never one after it, as a text goes on. `encode`, `tokens`, `locate` and `segments` give the
        text alone; `ending`, `engine.trace.trace` and what is read from them hold the frame too, as tokens of
        no width, see `Token`. Whoever gives ids to a model puts `frame[0]` before them (and `frame[1]` behind
        them). Tokens of the frame are never hidden and never scored; the first token of the text is then
        predicted from the one before it.
        """
        return [], []

    def framed(self, tokens: Sequence[Token]) -> list[Token]:
        """Consecutive tokens of a text with the frame's around them; no tokens stay none."""
        if not tokens:
            return []
        before, after = self.frame
        first, last = tokens[0], tokens[-1]
        own = last.data[: last.byte_end - last.byte_start]
        starts_one = [(byte & 0xC0) != 0x80 for byte in own]  # a continuation byte starts no character
        end = last.start + sum(starts_one) + (not all(starts_one[:1]))
        return [
            *(self._no_width(i, first.start, first.byte_start) for i in before),
            *tokens,
            *(self._no_width(i, end, last.byte_end) for i in after),
        ]

    def inner(self, n: int) -> range:
        """Positions of the text's own tokens among `n` framed ones."""
        before, after = self.frame
        return range(len(before), max(len(before), n - len(after)))

    def _no_width(self, token_id: int, start: int, at: int) -> Token:
        data = self.token_bytes(token_id)
        return Token(token_id, data, data.decode("utf-8", "backslashreplace"), start, at, at)

    def normal(self, text: str) -> str:
        """The form of a text in which its tokens lie: lone halves of characters are repaired."""
        return repair_text(text)[0]

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

    @cached_property
    def control_ids(self) -> frozenset[int]:
        """The tokens that no plain text gives."""
        return frozenset(self._control.values())

    def _encode_plain(self, text: str) -> list[int]:
        if not has_long_blank(text):
            with no_panic(self.name):
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
        """The last tokens of a text, `most` with the frame around them, and how many come before them."""
        before, after = self.frame
        tokens, unused = self._ending(text, max(1, most - len(before) - len(after)))
        return self.framed(tokens), unused

    def _ending(self, text: str, most: int) -> tuple[list[Token], int]:
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
        return whole_graphemes(self.tokens(text, special=special, most=most), self.normal(text))

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
