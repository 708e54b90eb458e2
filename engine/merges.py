"""What a byte-level BPE learned, merge by merge: each pair, how often it was joined, and what that saved.

A trained vocabulary only keeps the bytes of its tokens, in the order in which they were learned. That is
enough: which two tokens were joined follows from the bytes, and repeating the merges over the text gives
every count. Nothing is trained again.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import regex
from numpy.typing import NDArray

from engine.tokenizers import Tokenizer, tokenizer_from_json
from engine.tokens import repair_text
from wording import words

say = words("engine.merges")

N_BYTES = 256  # tokens before the first merge
_UNASSIGNED = "\u0378"
_BARRIER, _GONE = -1, -2  # what stands between two chunks; what was joined to its left neighbour


@dataclass(frozen=True, eq=False)
class History:
    """A vocabulary's merges, repeated over a text. Merge n (from 1) makes the token 255 + n.

    Attributes:
        tokenizer: the whole vocabulary.
        pairs: (M,2) int64, left and right id of each merge.
        counts: (M,) int64, how many pairs of tokens became one when it was made.
        lengths: (M+1,) int64, tokens of the text after 0, 1, … M merges; `lengths[0]` are its bytes.
        uses: (256+M,) int64, how often each token is in the text after the last merge.
    """

    tokenizer: Tokenizer
    pairs: NDArray[np.int64]
    counts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    uses: NDArray[np.int64]

    @property
    def n_merges(self) -> int:
        """How many merges there are."""
        return len(self.pairs)

    @property
    def n_bytes(self) -> int:
        """Bytes of the text."""
        return int(self.lengths[0])

    @cached_property
    def data(self) -> list[bytes]:
        """(256+M,) the bytes of each token."""
        return [self.tokenizer.token_bytes(i) for i in range(self.tokenizer.vocab_size)]

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """(256+M,) how many bytes each token has."""
        return np.array([len(data) for data in self.data], dtype=np.int64)

    def parts(self, token_id: int) -> tuple[int, int] | None:
        """The two tokens from which a token was made; None for a byte."""
        if token_id < N_BYTES:
            return None
        left, right = self.pairs[token_id - N_BYTES]
        return int(left), int(right)


def replay(tokenizer: Tokenizer, text: str) -> History:
    r"""Repeat the merges of an own BPE over a text, in the order in which they were learned.

    Args:
        tokenizer: from `train_bpe`, or any of kind "bpe" or "bytes".
        text: usually the one that it was learned from; any other can be counted too.

    Raises:
        ValueError: if the tokenizer has no merges of its own, or the text can't be split as it does.

    >>> from engine.tokenizers import train_bpe
    >>> history = replay(train_bpe("aaabdaaabac", 259, pattern=r"[\s\S]+"), "aaabdaaabac")
    >>> history.counts.tolist(), history.lengths.tolist()
    ([2, 2, 2], [11, 9, 7, 5])
    """
    text, pairs = repair_text(text)[0], recover_pairs(_merged(tokenizer))
    n_tokens = len(tokenizer.encode(text))
    for read in (str, _without_new_letters):
        history = _repeat(tokenizer, pairs, _chunks(tokenizer, text, read(text)))
        if history.lengths[-1] == n_tokens:
            return history
    raise ValueError(
        say(
            "repeating_merges_gives_tokens",
            n=history.lengths[-1],
            name=tokenizer.name,
            n_wanted=n_tokens,
        )
    )


def _repeat(tokenizer: Tokenizer, pairs: Sequence[tuple[int, int]], chunks: Counter[str]) -> History:
    line = _Line(list(chunks.keys()), np.fromiter(chunks.values(), dtype=np.int64, count=len(chunks)))
    n_bytes = sum(len(chunk.encode()) * count for chunk, count in chunks.items())
    counts = np.array([line.join(*pair, N_BYTES + n) for n, pair in enumerate(pairs)], dtype=np.int64)
    return History(
        tokenizer,
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        counts,
        n_bytes - np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        line.uses(N_BYTES + len(pairs)),
    )


def truncated(tokenizer: Tokenizer, n_merges: int) -> Tokenizer:
    """The vocabulary as it was after its first `n_merges` merges.

    Raises:
        ValueError: if it is no own BPE, or has fewer merges.
    """
    total = len(_merged(tokenizer))
    if not 0 <= n_merges <= total:
        raise ValueError(say("has_merges_them_cant", name=tokenizer.name, total=total, n=n_merges))
    spec = tokenizer.to_json()
    return tokenizer_from_json(
        {**spec, "merged": spec["merged"][:n_merges]} if spec["kind"] == "bpe" else spec
    )


def _merged(tokenizer: Tokenizer) -> list[bytes]:
    """Bytes of the tokens that merges made, in order."""
    if tokenizer.to_json()["kind"] not in ("bpe", "bytes"):
        raise ValueError(say("not_learned_merging_here", name=tokenizer.name))
    return [tokenizer.token_bytes(i) for i in range(N_BYTES, tokenizer.vocab_size)]


def recover_pairs(merged: Sequence[bytes]) -> list[tuple[int, int]]:
    """Which two tokens each merge joined.

    Of all cuts of a token into two earlier ones, the right one is the one that the earlier merges themselves
    arrive at: none of them joins across the cut.

    Args:
        merged: bytes of the tokens 256, 257, …, in order.

    >>> recover_pairs([b"aa", b"ab", b"aaab"])
    [(97, 97), (97, 98), (256, 257)]
    """
    ids = {bytes([b]): b for b in range(N_BYTES)}
    sizes: set[int] = {1}
    made: dict[tuple[int, int], int] = {}
    pairs: list[tuple[int, int]] = []
    for data in merged:
        cuts = [c for c in sizes if len(data) - c in sizes]
        found = [(ids[data[:c]], ids[data[c:]]) for c in cuts if data[:c] in ids and data[c:] in ids]
        if len(found) > 1:
            found = [pair for pair in found if not _joins_across(*pair, pairs, made)]
        if len(found) != 1:
            raise ValueError(say("token_not_made_two", id=N_BYTES + len(pairs), data=data[:20]))
        made[found[0]] = ids[data] = N_BYTES + len(pairs)
        pairs += found
        sizes.add(len(data))
    return pairs


def _joins_across(
    left: int, right: int, pairs: Sequence[tuple[int, int]], made: dict[tuple[int, int], int]
) -> bool:
    """Whether the merges so far would join something across the border of two neighbouring tokens.

    While the merges go on, the token at the border's left grows: from the last byte of `left` up to `left`
    itself; each of these stands there from its own merge to the next one's. At the right it is the same. A
    merge joins across if its two tokens stand there at its time. Of equal pairs that overlap, as in `aaa`,
    the leftmost is joined: so at the left a token is taken first by its own left neighbour, at the right the
    border comes first.
    """
    never = N_BYTES + len(pairs)
    for a, until_a in _edge(left, 1, pairs, never):
        for b, until_b in _edge(right, 0, pairs, never):
            if made.get((a, b), never) < until_a and made[a, b] <= until_b:
                return True
    return False


def _edge(token: int, side: int, pairs: Sequence[tuple[int, int]], until: int) -> Iterator[tuple[int, int]]:
    """The tokens that stood at one side (0 left, 1 right) of a token, and the merge that took each."""
    while True:
        yield token, until
        if token < N_BYTES:
            return
        token, until = pairs[token - N_BYTES][side], token


def _chunks(tokenizer: Tokenizer, text: str, readable: str) -> Counter[str]:
    """The pieces within which tokens are merged, and how often each occurs: the text, split as `readable`."""
    pattern = tokenizer.to_json().get("pattern", r"[\s\S]")  # bytes are never merged: any split will do
    return Counter(text[match.start() : match.end()] for match in regex.finditer(pattern, readable))


def _without_new_letters(text: str) -> str:
    """The text with one unassigned character for all those that this Python doesn't know.

    The regex package may know letters of a newer Unicode than the one in tiktoken, to which they are
    unassigned.
    """
    return "".join(_UNASSIGNED if unicodedata.category(char) == "Cn" else char for char in text)


class _Line:
    """All different chunks one after the other, each token with what stands after it.

    A joined token stays where its left half was; its right half is marked as gone and skipped. When half of
    the places are gone, they are thrown out.

    Args:
        chunks: different texts.
        counts: (K,) how often each occurs.
    """

    def __init__(self, chunks: Sequence[str], counts: NDArray[np.int64]) -> None:
        encoded = [chunk.encode() for chunk in chunks]
        sizes = np.array([len(data) + 1 for data in encoded], dtype=np.int64)
        # A byte 255 is in no UTF-8 text: after each chunk it holds the place of the barrier.
        raw = np.frombuffer(b"\xff".join([*encoded, b""]), dtype=np.uint8)
        self.ids = raw.astype(np.int32)  # (N,)
        self.ids[raw == 0xFF] = _BARRIER
        self.weights = np.repeat(counts, sizes)  # (N,)
        self.live = len(self.ids)
        self._link()

    def _link(self) -> None:
        """The last place is a barrier, which no pair begins with: where it points to does not matter."""
        self.after = np.arange(1, len(self.ids) + 1, dtype=np.int64)  # (N,)
        self.after[-1:] = len(self.ids) - 1

    def join(self, left: int, right: int, new: int) -> int:
        """Make every pair of these tokens one, leftmost first; gives how many there were in the text."""
        at = np.flatnonzero(self.ids == left)
        at = at[self.ids[self.after[at]] == right]
        if left == right:
            at = _every_second(at, self.after)
        count = int(self.weights[at].sum())
        taken = self.after[at]
        self.ids[at], self.ids[taken] = new, _GONE
        self.after[at] = self.after[taken]
        self.live -= len(at)
        if self.live < len(self.ids) // 2:
            kept = self.ids != _GONE
            self.ids, self.weights = self.ids[kept], self.weights[kept]
            self._link()
        return count

    def uses(self, n: int) -> NDArray[np.int64]:
        """(n,) how often each token is in the text."""
        tokens = self.ids >= 0
        counted = np.zeros(n, dtype=np.int64)
        np.add.at(counted, self.ids[tokens], self.weights[tokens])
        return counted


def _every_second(at: NDArray[np.int64], after: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of places in order, those with an even number of others that lead up to them without a gap."""
    if not len(at):
        return at
    order = np.arange(len(at))
    starts = np.concatenate([[True], after[at[:-1]] != at[1:]])
    return at[(order - np.maximum.accumulate(np.where(starts, order, 0))) % 2 == 0]
