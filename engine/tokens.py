"""The tokens of a text: what each one is, where it lies, and how they make whole characters."""

from collections.abc import Sequence
from typing import NamedTuple

import regex

# Two regional indicators are a flag. \X alone would count all those before each pair, in quadratic time.
GRAPHEME = regex.compile(r"[🇦-🇿]{2}[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*|\X")


class Token(NamedTuple):
    r"""One token of a text.

    Attributes:
        id: its number in the vocabulary.
        data: its bytes.
        text: the bytes read as UTF-8; bytes that are only a part of a character stand as ``\xf0``.
        start: index of the character in the text in which its first byte lies.
        byte_start, byte_end: where it lies in the UTF-8 bytes of the text.

    A token of no width (`byte_start == byte_end`) has no part of the text to itself; its `data` is then its
    spelling in the vocabulary. Such are the tokens that some published models want around a text (see
    `Tokenizer.frame`): [CLS] stands before the first byte, [SEP] behind the last one. All other tokens of a
    text together hold each of its bytes once, in order.
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


def whole_graphemes(tokens: Sequence[Token], text: str) -> list[list[Token]]:
    """Consecutive tokens of a text, grouped so that each group ends where a grapheme ends.

    Only the part of the text that the tokens cover is read; the last group may lack its end.
    """
    if not tokens:
        return []
    text = repair_text(text)[0]
    at, last = len(text[: tokens[0].start].encode("utf-8")), tokens[-1].byte_end
    ends = {at}  # a token of no width before the text stands alone
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
    text, found, index = repair_text(text)[0], [], token.start
    at = len(text[:index].encode("utf-8"))
    while at < token.byte_end:
        data = text[index].encode("utf-8")
        found.append((text[index], data[max(0, token.byte_start - at) : token.byte_end - at]))
        at += len(data)
        index += 1
    return found
