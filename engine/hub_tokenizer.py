"""The tokenizer of a published model: byte-level BPE, run by tiktoken, with the ids of its tokenizer.json."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import regex
import tiktoken

from engine import hub_files
from engine.hub_bpe import Added, read_bpe
from engine.tokenizer import MASK_TEXT, Tokenizer
from engine.tokens import Token, repair_text, whole_graphemes
from wording import words

say = words("engine.hub")

TOKENIZER = "tokenizer.json"
_OTHERS = ("vocab.txt", "tokenizer.model", "spiece.model", "vocab.json", "merges.txt")
_KEPT = ("model", "pre_tokenizer", "normalizer", "added_tokens")
_MASKS = ("<mask>", MASK_TEXT)


class HubTokenizer(Tokenizer):
    """A published vocabulary under its own ids.

    The ids may lie in any order and have gaps; `vocab_size` counts the rows of the model, so that each id
    that the model can predict has bytes to show, also a row that was never used. If the published tokenizer
    puts texts into the form NFC first, positions count in that form.

    Args:
        name: how to call it.
        content: its tokenizer.json.
        rows: ids of the model.
        end_id: the id that ends a text; None if there is none.

    Raises:
        ValueError: one sentence, if tiktoken can't give the same ids, or the model has fewer rows.
    """

    def __init__(self, name: str, content: Mapping[str, Any], rows: int, end_id: int | None = None) -> None:
        self._bpe = bpe = read_bpe(content)
        spec = {key: content[key] for key in _KEPT if key in content}
        encoding = tiktoken.Encoding(name, pat_str=bpe.pattern, mergeable_ranks=bpe.ranks, special_tokens={})
        super().__init__(
            name, encoding, rows, {"kind": "hub", "name": name, "rows": rows, "end": end_id, "content": spec}
        )
        self._end = end_id
        self._known = {i: data for data, i in zip(bpe.ranks, bpe.ids, strict=True) if i >= 0} | bpe.others
        self._known |= {one.id: one.text.encode("utf-8", "replace") for one in bpe.added}
        if max(self._known) >= rows:
            raise ValueError(say("more_ids_than_rows", name=name, n=max(self._known) + 1, rows=rows))
        self._present = bytes(set(range(256)) - set(bpe.missing))
        masks = [one.id for one in bpe.added if one.text in _MASKS]
        self.mask_id = masks[0] if masks else rows

    def model_vocab_size(self, objective: str) -> int:
        """Rows of the model, which already count the mask if it has one."""
        return self.vocab_size

    @cached_property
    def _control(self) -> dict[str, int]:
        return {one.text: one.id for one in self._bpe.added if one.special}

    def normal(self, text: str) -> str:
        """The form of a text in which its tokens lie."""
        text = repair_text(text)[0]
        if not self._bpe.nfc or unicodedata.is_normalized("NFC", text):
            return text
        raw = [one for one in self._bpe.added if not one.normalized]
        return "".join(
            part if one else unicodedata.normalize("NFC", part) for part, one in _cut_out(text, raw)
        )

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Ids of a text, without the ids that a model may want at its start and end.

        Raises:
            ValueError: if the text has a byte without a token, or white space that a control token swallows.
        """
        added = [one for one in self._bpe.added if special or not one.special]
        raw = [one for one in added if not one.normalized]
        late = [one for one in added if one.normalized]
        ids: list[int] = []
        for part, one in _cut_out(self.normal(text), raw):
            pieces = [(part, one)] if one else _cut_out(part, late)
            for piece, token in pieces:
                ids += [token.id] if token else self._merged(piece)
        return ids

    def _encode_plain(self, text: str) -> list[int]:
        return self.encode(text)

    def _merged(self, text: str) -> list[int]:
        """Ids of a part of a text in which no added token is looked for."""
        if left := text.encode("utf-8").translate(None, self._present):
            raise ValueError(say("bytes_without_token", name=self.name, shown=left[:8].hex(" ").upper()))
        return [self._bpe.ids[rank] for rank in super()._encode_plain(text)]

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of one id; of a row that no token has, its number in brackets."""
        if token_id == self.mask_id == self.vocab_size:
            return MASK_TEXT.encode()
        if not 0 <= token_id < self.vocab_size:
            return super().token_bytes(token_id)
        return self._known.get(int(token_id), f"[{int(token_id)}]".encode())

    def _piece(self, token_id: int) -> bytes:
        raise KeyError(token_id)

    def locate(self, ids: Sequence[int], text: str) -> list[Token]:
        """The tokens with these ids, which are the first of `text`, with their bytes and where they lie."""
        return super().locate(ids, self.normal(text))

    def ending(self, text: str, most: int) -> tuple[list[Token], int]:
        """The last `most` tokens of a text, and how many come before them."""
        return super().ending(self.normal(text), most)

    def segments(self, text: str, *, special: bool = False, most: int | None = None) -> list[list[Token]]:
        """`tokens` in the smallest groups that are whole graphemes."""
        return whole_graphemes(self.tokens(text, special=special, most=most), self.normal(text))

    @property
    def end_id(self) -> int:
        """The id that ends a text.

        Raises:
            ValueError: if the model names none.
        """
        if self._end is None:
            raise ValueError(say("no_end", name=self.name))
        return self._end


def _cut_out(text: str, added: Sequence[Added]) -> Iterator[tuple[str, Added | None]]:
    """The text in parts: plain ones, and added tokens, the leftmost and longest first."""
    if not added:
        yield text, None
        return
    by_text = {one.text: one for one in added}
    longest_first = sorted(by_text, key=len, reverse=True)
    at = 0
    for match in regex.finditer("|".join(map(regex.escape, longest_first)), text):
        one, before, after = by_text[match.group()], text[at : match.start()], text[match.end() :][:1]
        if one.strips and (before[-1:].isspace() or after.isspace()):
            raise ValueError(say("token_swallows", token=one.text))
        if before:
            yield before, None
        yield match.group(), one
        at = match.end()
    if at < len(text):
        yield text[at:], None


def load_tokenizer(folder: str | Path, rows: int) -> HubTokenizer:
    """The tokenizer in a Hugging Face folder.

    Args:
        folder: with tokenizer.json, and config.json, which says the id that ends a text.
        rows: ids of the model.

    Raises:
        ValueError: one sentence, if there is none, or tiktoken can't give the same ids for every text.
    """
    folder = Path(folder)
    if not (folder / TOKENIZER).exists():
        others = [name for name in _OTHERS if (folder / name).exists()]
        found = ", ".join(others) or "0"
        raise ValueError(say("no_tokenizer", folder=folder.name, file=TOKENIZER, found=found))
    content = hub_files.read_json(folder, TOKENIZER)
    end = hub_files.read_json(folder, hub_files.CONFIG).get("eos_token_id")
    end = end[0] if isinstance(end, list) and end else end
    return HubTokenizer(folder.name, content, rows, end if type(end) is int and 0 <= end < rows else None)
