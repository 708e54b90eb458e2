"""Published tokenizers that tiktoken can't run exactly, run by the package `tokenizers`.

WordPiece (BERT), Unigram and BPE over characters (SentencePiece's kinds), and byte-level BPE with rules of
its own. The package is optional: it is imported when such a tokenizer is opened.
"""

import importlib.util
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from engine.hub_bpe import spelled_bytes
from engine.hub_vocabulary import PublishedTokenizer
from engine.refused import broken_entry
from engine.tokens import Token
from wording import words

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Package

say = words("engine.hub")

PACKAGE = "tokenizers"
_BLANK = "▁"  # how SentencePiece writes a blank
_BYTE = regex.compile(r"<0x([0-9A-F]{2})>")  # and a byte of a character that it has no token for
_STAYS = regex.compile(r"[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*")  # belongs to what is before it
_PARTS = ("model", "normalizer", "pre_tokenizer", "decoder", "added_tokens")


def installed() -> bool:
    """Whether the package is there; it is not imported."""
    return importlib.util.find_spec(PACKAGE) is not None


class _Cut(NamedTuple):
    """How the package cuts a text: the ids, and from which characters each comes."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class WordTokenizer(PublishedTokenizer):
    """A published vocabulary, run by the package `tokenizers`; the ids are the package's.

    **What a token shows.** Such a tokenizer may change a text before it cuts it: lower-case it, strip its
    accents, drop white space, put a blank before it, or write [UNK] for what it has no token for. So the
    spelling of an id and the part of the text under a token are two things:

    - `token_bytes(id)` is the spelling: "##ing", "[UNK]"; a blank that SentencePiece writes as "▁" is a
      blank, "<0xE7>" is that byte.
    - `Token.data` and `Token.text` are the part of the text as it was typed, where the token lies: "ING", or
      the word that became [UNK]. `start`, `byte_start` and `byte_end` count in the text as it was typed. The
      tokens of a text together hold each of its bytes once, in order: what the tokenizer drops between two
      tokens belongs to the second one, an accent to the letter that it stands on, and what is dropped at the
      end to the last one. Where one character became several tokens, the first one has it and the others have
      no width; a token of no width shows its spelling.

    **Back to text.** `decode` gives the text again only where the tokenizer drops and changes nothing: never
    promised by WordPiece, and by SentencePiece's kinds only for texts in the normal form that they ask for;
    those that put no second blank before a text lose one with which it begins.

    Args:
        name: how to call it.
        content: its tokenizer.json.
        rows: ids of the model.
        end_id: the id that ends a text; None if there is none.
        frame: ids that the model wants before and after a text.

    Raises:
        ValueError: one sentence, if the content is damaged, draws lots, or the model has fewer rows.
    """

    def __init__(
        self,
        name: str,
        content: Mapping[str, Any],
        rows: int,
        end_id: int | None = None,
        frame: tuple[Sequence[int], Sequence[int]] = ((), ()),
    ) -> None:
        listed = content.get("added_tokens") or []
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            raise ValueError(say("tokenizer_damaged", why=broken_entry(TypeError(listed))))
        self._content: dict[str, Any] = {part: content.get(part) for part in _PARTS}
        self._content |= {"version": "1.0", "added_tokens": listed}
        self._kinds = set(_kinds([content.get(part) for part in _PARTS[1:4]]))
        try:
            if content["model"].get("dropout"):
                value = repr(content["model"]["dropout"])[:80]
                raise ValueError(say("tokenizer_setting", name="dropout", value=value))
            added: dict[int, str] = {one["id"]: str(one["content"]) for one in listed}
            self._package = _opened(self._content)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(say("tokenizer_damaged", why=broken_entry(error))) from error
        for i, text in added.items():
            if self._package.token_to_id(text) != i:
                raise ValueError(say("tokenizer_added_id", token=text[:80], id=i))
        vocab = self._package.get_vocab(with_added_tokens=False)
        known = {i: self._spelling(token) for token, i in vocab.items()}
        known |= {i: text.encode("utf-8", "replace") for i, text in added.items()}
        self._describe(name, content, rows, end_id, frame, known)

    @cached_property
    def _control(self) -> dict[str, int]:
        listed = [one for one in self._content["added_tokens"] if one.get("special")]
        control = {str(one["content"]): int(one["id"]) for one in listed}
        control.pop(self._content["model"].get("unk_token"), None)  # which a plain text may give
        return control

    @cached_property
    def _plain(self) -> "Package":
        """The same, but the spelling of a control token in a text is plain text."""
        package = _opened({**self._content, "model": _without_control(self._content)})
        listed = self._content["added_tokens"]
        ordinary = {one["content"]: one["id"] for one in listed if not one.get("special")}
        if any(package.token_to_id(text) != i for text, i in ordinary.items()):
            package = _opened(self._content)
        package.encode_special_tokens = True
        return package

    def _spelling(self, token: str) -> bytes:
        if "ByteLevel" in self._kinds:
            return spelled_bytes(token)
        if "ByteFallback" in self._kinds and (byte := _BYTE.fullmatch(token)):
            return bytes.fromhex(byte[1])
        if self._kinds & {"Metaspace", _BLANK}:
            token = token.replace(_BLANK, " ")
        return token.encode("utf-8", "replace")

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Ids of a text, without the ids that the model wants at its start and end.

        Raises:
            ValueError: if the tokenizer drops all of a text that is not empty, as WordPiece does with blanks.
        """
        text = self.normal(text)
        return self._something(text, self._cut(text, special)).ids

    def _something(self, text: str, cut: _Cut) -> _Cut:
        if text and not cut.ids:
            raise ValueError(say("nothing_left", name=self.name))
        return cut

    def _encode_plain(self, text: str) -> list[int]:
        return self.encode(text)

    def _cut(self, text: str, special: bool = False) -> _Cut:
        package = self._package if special else self._plain
        encoded = package.encode(text, add_special_tokens=False)
        return _Cut(list(encoded.ids), list(encoded.offsets))  # each look at the package's makes a new list

    def decode(self, ids: Sequence[int]) -> str:
        """Text of some ids, with blanks where the tokenizer's own rule puts them."""
        if "ByteLevel" in self._kinds or not all(int(i) in self._known for i in ids):
            return super().decode(ids)
        return str(self._package.decode([int(i) for i in ids], skip_special_tokens=False))

    def tokens(self, text: str, *, special: bool = False, most: int | None = None) -> list[Token]:
        """The tokens of a text, or the first `most` of them, and where they lie in it as typed.

        None if the tokenizer drops all of it, so that parts of a text can be cut one by one.
        """
        text = self.normal(text)
        cut = self._cut(text, special)
        return self._tokens(text, cut, 0, len(cut.ids) if most is None else most)

    def locate(self, ids: Sequence[int], text: str) -> list[Token]:
        """The tokens with these ids, which are the first of `text`, and where they lie in it as typed."""
        text = self.normal(text)
        cut = self._cut(text)
        if cut.ids[: len(ids)] != list(ids):
            cut = self._cut(text, special=True)
        return self._tokens(text, cut, 0, len(ids))

    def _ending(self, text: str, most: int) -> tuple[list[Token], int]:
        text = self.normal(text)
        cut = self._something(text, self._cut(text))
        before = max(0, len(cut.ids) - most)
        return self._tokens(text, cut, before, len(cut.ids)), before

    def _tokens(self, text: str, cut: _Cut, first: int, stop: int) -> list[Token]:
        """Tokens `first` to `stop - 1`."""
        if not cut.ids:
            return []
        data = text.encode("utf-8")
        raw = np.frombuffer(data, dtype=np.uint8)
        leads = np.flatnonzero((raw & 0xC0) != 0x80)  # byte at which each character begins
        ends = self._ends(text, cut, np.append(leads, len(data)))
        begins = np.append(0, ends[:-1])
        starts = np.searchsorted(leads, begins, side="right") - 1
        starts = np.where(begins == len(data), len(text), starts)
        rows = zip(cut.ids, starts.tolist(), begins.tolist(), ends.tolist(), strict=True)
        return [self._token(data, *row) for row in islice(rows, first, stop)]

    def _token(self, data: bytes, token_id: int, start: int, begin: int, end: int) -> Token:
        shown = data[begin:end] or self.token_bytes(token_id)
        return Token(token_id, shown, shown.decode("utf-8", "backslashreplace"), start, begin, end)

    def _ends(self, text: str, cut: _Cut, bytes_of: NDArray[np.int64]) -> NDArray[np.int64]:
        """(N,) byte of the text at which each token's part ends."""
        spelled = [self._known.get(i, b"") for i in cut.ids]
        joined, put_before = b"".join(spelled), 0
        if joined == b" " + text.encode("utf-8"):
            put_before = 1
        if put_before or joined == text.encode("utf-8"):  # the spellings are the text: exact to the byte
            return np.cumsum([len(piece) for piece in spelled]) - put_before
        return bytes_of[_character_ends(text, cut.offsets, spelled)]


def _character_ends(text: str, offsets: Sequence[tuple[int, int]], spelled: Sequence[bytes]) -> list[int]:
    """(N,) character of the text at which each token's part ends.

    Args:
        text: the whole text.
        offsets: (N,) from which characters the package says that each token comes.
        spelled: (N,) spellings.
    """
    ends, end = [], 0
    followers = [*(begin for begin, _ in offsets[1:]), len(text)]
    for (begin, stop), follower, piece in zip(offsets, followers, spelled, strict=True):
        put_there = piece == b" " and (follower < stop or not text[begin:stop].isspace())
        if not put_there:  # by the tokenizer, before a character that is not a blank
            end = max(end, stop)
            stays = _STAYS.match(text, end, max(end, follower))
            end = stays.end() if stays else end
        ends.append(end)
    ends[-1] = len(text)
    return ends


def _opened(content: Mapping[str, Any]) -> "Package":
    from tokenizers import Tokenizer as Package

    try:
        return Package.from_str(json.dumps(content))
    except Exception as error:  # the package raises nothing narrower
        raise ValueError(say("tokenizer_damaged", why=str(error)[:80])) from error


def _without_control(content: Mapping[str, Any]) -> dict[str, Any]:
    """The model with control tokens spelled as no text is, under the same ids.

    Else a Unigram would find "<s>" in a text among its pieces, even where control tokens are not looked for.
    """
    model = dict(content["model"])
    control = {one["content"] for one in content["added_tokens"] if one.get("special")}
    control -= {model.get("unk_token")}
    if isinstance(model["vocab"], list):
        unknown = model.get("unk_id")
        pieces = [[_unsaid(text, control) if i != unknown else text, score]
                  for i, (text, score) in enumerate(model["vocab"])]  # fmt: skip
        return model | {"vocab": pieces}
    if model.get("merges"):  # what no merge makes is not found in a text
        return model
    return model | {"vocab": {_unsaid(text, control): i for text, i in model["vocab"].items()}}


def _unsaid(text: str, control: Collection[str]) -> str:
    return f"\ufdd0{text}\ufdd0" if text in control else text  # Unicode gives no character that number


def _kinds(component: Any) -> Iterator[str]:
    """The types that stand anywhere in a part of a tokenizer.json; "▁" if blanks are written so."""
    if isinstance(component, Mapping):
        if isinstance(kind := component.get("type"), str):
            yield kind
        if _BLANK in (component.get("content"), component.get("String")):  # of a Replace, or its pattern
            yield _BLANK
        component = list(component.values())
    if isinstance(component, list):
        for inner in component:
            yield from _kinds(inner)
