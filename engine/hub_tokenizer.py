"""The tokenizer of a published model: byte-level BPE, run by tiktoken, with the ids of its tokenizer.json."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import regex
import tiktoken

from engine import hub_files, hub_words
from engine.hub_bpe import Added, BeyondTiktoken, read_bpe
from engine.hub_frame import frame_of
from engine.hub_vocabulary import PublishedTokenizer
from engine.tokens import Token, repair_text
from wording import words

say = words("engine.hub")

TOKENIZER = "tokenizer.json"
_OTHERS = ("vocab.txt", "tokenizer.model", "spiece.model", "vocab.json", "merges.txt")
MASKED = ("bert", "roberta", "distilbert")  # model types that see both sides


class HubTokenizer(PublishedTokenizer):
    """A published byte-level BPE, run by tiktoken.

    If the published tokenizer puts texts into the form NFC first, positions count in that form, see `normal`.

    Args:
        name: how to call it.
        content: its tokenizer.json.
        rows: ids of the model.
        end_id: the id that ends a text; None if there is none.
        frame: ids that the model wants before and after a text.

    Raises:
        BeyondTiktoken: one sentence, if tiktoken can't give the same ids.
        ValueError: one sentence, if the content is damaged, or the model has fewer rows.
    """

    def __init__(
        self,
        name: str,
        content: Mapping[str, Any],
        rows: int,
        end_id: int | None = None,
        frame: tuple[Sequence[int], Sequence[int]] = ((), ()),
    ) -> None:
        self._bpe = bpe = read_bpe(content)
        self._encoding = tiktoken.Encoding(
            name, pat_str=bpe.pattern, mergeable_ranks=bpe.ranks, special_tokens={}
        )
        known = {i: data for data, i in zip(bpe.ranks, bpe.ids, strict=True) if i >= 0} | bpe.others
        known |= {one.id: one.text.encode("utf-8", "replace") for one in bpe.added}
        self._describe(name, content, rows, end_id, frame, known)
        self._present = bytes(set(range(256)) - set(bpe.missing))

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

    def locate(self, ids: Sequence[int], text: str) -> list[Token]:
        """The tokens with these ids, which are the first of `text`, with their bytes and where they lie."""
        return super().locate(ids, self.normal(text))

    def _ending(self, text: str, most: int) -> tuple[list[Token], int]:
        return super()._ending(self.normal(text), most)


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


def open_tokenizer(
    name: str,
    content: Mapping[str, Any],
    rows: int,
    end_id: int | None = None,
    frame: tuple[Sequence[int], Sequence[int]] = ((), ()),
) -> PublishedTokenizer:
    """The tokenizer of a tokenizer.json: run by tiktoken where that gives the same ids, else by `tokenizers`.

    Raises:
        ValueError: one sentence, if it is damaged, or needs the package and that is not there.
    """
    try:
        return HubTokenizer(name, content, rows, end_id, frame)
    except BeyondTiktoken as why:
        if not hub_words.installed():
            command = "pip install -r requirements-models.txt"
            package = {"package": hub_words.PACKAGE, "command": command}
            raise ValueError(say("needs_package", why=why, **package)) from why
        return hub_words.WordTokenizer(name, content, rows, end_id, frame)


def load_tokenizer(folder: str | Path, rows: int) -> PublishedTokenizer:
    """The tokenizer in a Hugging Face folder.

    Args:
        folder: with tokenizer.json, and config.json, which says the id that ends a text.
        rows: ids of the model.

    Raises:
        ValueError: one sentence, if there is none, it is damaged, or a masked model has no mask.
    """
    folder = Path(folder)
    if not (folder / TOKENIZER).exists():
        others = [name for name in _OTHERS if (folder / name).exists()]
        found = ", ".join(others) or "0"
        raise ValueError(say("no_tokenizer", folder=folder.name, file=TOKENIZER, found=found))
    content = hub_files.read_json(folder, TOKENIZER)
    settings = hub_files.read_json(folder, hub_files.CONFIG)
    end = settings.get("eos_token_id")
    end = end[0] if isinstance(end, list) and end else end
    end = end if type(end) is int and 0 <= end < rows else None
    masked = settings.get("model_type") in MASKED
    frame = frame_of(content.get("post_processor"), masked=masked)
    tokenizer = open_tokenizer(folder.name, content, rows, end, frame)
    if masked and tokenizer.mask_id >= rows:
        raise ValueError(say("no_mask", folder=folder.name, file=TOKENIZER))
    return tokenizer
