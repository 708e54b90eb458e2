"""Files that hold a vocabulary: their bytes to {token: rank}, and what a stranger's file may not do."""

import base64
import binascii
import json

from wording import words

say = words("engine.ranks")

MAX_BYTES = 8_000_000
MAX_LINES = 400_000
MAX_RANK = 1_000_000


def read_ranks(content: bytes) -> dict[bytes, int]:
    """Ranks of a published file, whose hash is known: a .tiktoken file or GPT-2's encoder.json."""
    if content[:1] == b"{":
        return _ranks_from_gpt2_json(content)
    lines = (line.split() for line in content.splitlines() if line)
    return {base64.b64decode(data): int(rank) for data, rank in lines}


def _ranks_from_gpt2_json(content: bytes) -> dict[bytes, int]:
    """GPT-2 spells a byte that is no visible character as chr(256 + n), n counting these bytes from 0."""
    visible = [b for b in range(256) if chr(b).isprintable() and chr(b) != " "]
    hidden = [b for b in range(256) if b not in set(visible)]
    byte_of = {chr(b): b for b in visible} | {chr(256 + n): b for n, b in enumerate(hidden)}
    ids = json.loads(content)
    return {bytes(byte_of[c] for c in text): rank for text, rank in ids.items() if text != "<|endoftext|>"}


def checked_ranks(content: bytes) -> dict[bytes, int]:
    r"""Ranks of a .tiktoken file that anybody may have written.

    Every one of the 256 bytes must have a number of its own: without it, tiktoken panics at the first text
    that holds the byte, and a panic passes by ``except Exception``.

    Raises:
        ValueError: one sentence on the first thing that is wrong, and where.

    >>> lines = [base64.b64encode(bytes([b])) + b" %d" % b for b in range(256)]
    >>> checked_ranks(b"\n".join(lines))[b"a"]
    97
    """
    if len(content) > MAX_BYTES:
        raise ValueError(say("file_has_bytes_vocabulary", n=len(content), most=MAX_BYTES))
    ranks: dict[bytes, int] = {}
    seen: set[int] = set()
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        if len(ranks) >= MAX_LINES:
            raise ValueError(say("file_has_more_than", most=MAX_LINES))
        data, rank = _entry(line, number)
        if data in ranks:
            raise ValueError(say("line_repeats_token_earlier", number=number))
        if rank in seen:
            raise ValueError(say("line_repeats_number_give", number=number, rank=rank))
        ranks[data] = rank
        seen.add(rank)
    _check_bytes(ranks)
    return ranks


def _entry(line: bytes, number: int) -> tuple[bytes, int]:
    """Token and rank of one line."""
    parts = line.split()
    try:
        if len(parts) != 2:
            raise ValueError
        data = base64.b64decode(parts[0], validate=True)
        if not parts[1].isdigit() or len(parts[1]) > 9 or not data:  # int() takes "1_0" and Thai digits too
            raise ValueError
    except (ValueError, binascii.Error):
        raise ValueError(say("line_not_token_number", number=number)) from None
    if int(parts[1]) > MAX_RANK:
        raise ValueError(say("line_has_number_largest", number=number, rank=int(parts[1]), most=MAX_RANK))
    return data, int(parts[1])


def _check_bytes(ranks: dict[bytes, int]) -> None:
    missing = [b for b in range(256) if bytes([b]) not in ranks]
    if not ranks:
        raise ValueError(say("file_empty"))
    if missing:
        shown = " ".join(f"{b:02X}" for b in missing[:8]) + (" …" if len(missing) > 8 else "")
        raise ValueError(say("vocabulary_has_no_token", n=len(missing), shown=shown))
