"""The texts of the worked examples: pieces, shifted rows, windows, and a model that fits into a table."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engine.batches import Batch, clm_rows, need_tokens, row_starts, windows
from engine.dice import draw, throws
from engine.metrics import cross_entropy
from engine.stages import next_token_distribution
from wording import words

say = words("engine.worked_text")
_MOST_LOGITS = 40_000_000


def pieces(text: str, vocabulary: Collection[str]) -> list[str]:
    """Cut a text from left to right, each time at the longest piece that is in the vocabulary.

    Raises:
        ValueError: naming the first character with which no piece begins.

    >>> pieces("unkind", ["u", "n", "k", "i", "d", "un", "kind"])
    ['un', 'kind']
    """
    known, longest = set(vocabulary), max(map(len, vocabulary), default=0)
    found: list[str] = []
    at = 0
    while at < len(text):
        ends = range(min(at + longest, len(text)), at, -1)
        end = next((end for end in ends if text[at:end] in known), None)
        if end is None:
            raise ValueError(say("unknown_character", character=text[at]))
        found.append(text[at:end])
        at = end
    return found


def shift(rows: Sequence[Sequence[int]]) -> Batch:
    """Rows (B,T+1) of ids -> inputs without the last, targets without the first, both (B,T).

    Raises:
        ValueError: for rows of unequal length, or fewer than 2 ids.
    """
    if not rows or len({len(row) for row in rows}) > 1:
        raise ValueError(say("uneven_rows"))
    if len(rows[0]) < 2:
        raise ValueError(say("too_short", n=len(rows[0])))
    return clm_rows(torch.tensor([list(row) for row in rows]))


@dataclass(frozen=True, eq=False)
class Compared:
    """Logits (B,T,V) flattened to (B·T,V) and compared with the targets, flattened alike.

    Attributes:
        shape, flat_shape: of the logits.
        loss: the mean, nats.
    """

    shape: tuple[int, ...]
    flat_shape: tuple[int, ...]
    loss: float


def compare(batch: Batch, vocab_size: int, logits: NDArray | None = None, *, seed: int = 0) -> Compared:
    """Flatten and compare.

    Args:
        batch: (B,T) inputs and targets.
        vocab_size: V.
        logits: (B,T,V); None draws some, as a model gives before it has learned anything.
        seed: of that draw.

    Raises:
        ValueError: for a target outside the vocabulary, or logits of more than 40 million numbers.
    """
    b, t = batch.targets.shape
    if int(batch.targets.max()) >= vocab_size:
        raise ValueError(say("id_outside", largest=int(batch.targets.max()), last=vocab_size - 1))
    if b * t * vocab_size > _MOST_LOGITS:
        raise ValueError(say("too_many_logits", n=b * t * vocab_size))
    if logits is None:
        scores = 0.02 * torch.randn(b, t, vocab_size, generator=torch.Generator().manual_seed(seed))
    else:
        scores = torch.from_numpy(np.array(logits))
    flat = scores.reshape(-1, vocab_size)
    loss = float(cross_entropy(flat, batch.targets.reshape(-1)))
    return Compared(tuple(scores.shape), tuple(flat.shape), loss)


@dataclass(frozen=True, eq=False)
class Windows:
    """A batch cut out of a text.

    Attributes:
        starts: (B,) where each window begins, counted from 0.
        n_starts: how many places there are to begin, all equally likely: N - T.
        batch: inputs and targets, both (B,T).
    """

    starts: NDArray[np.int64]
    n_starts: int
    batch: Batch


def draw_windows(ids: Sequence[int], context_length: int, batch_size: int, seed: int) -> Windows:
    """Draw windows of T + 1 ids uniformly, as training does: T inputs and T targets overlap in T - 1 ids.

    The last start is N - T - 1: a window that began later would lack its last target.

    Raises:
        ValueError: if the text is shorter than one window.
    """
    need_tokens(len(ids), context_length)
    text = torch.tensor(list(ids))
    starts = row_starts(
        len(ids),
        batch_size=batch_size,
        context_length=context_length,
        generator=torch.Generator().manual_seed(seed),
    )
    batch = clm_rows(windows(text, starts, context_length + 1))
    return Windows(starts.numpy(), len(ids) - context_length, batch)


def crop(ids: Sequence[int], context_length: int) -> list[int]:
    """The last `context_length` ids, or all if there are fewer.

    >>> crop([1, 2, 3], 2), crop([1, 2, 3], 5)
    ([2, 3], [1, 2, 3])
    """
    if context_length < 1:
        raise ValueError(say("no_context", context_length=context_length))
    return list(ids)[-context_length:]


@dataclass(frozen=True, eq=False)
class Turn:
    """One turn of the loop that writes.

    Attributes:
        read: the tokens that were seen, after cropping.
        probs: (V,) what could come.
        u: the number in [0, 1) that picked; NaN where the likeliest was taken.
        picked: index into the vocabulary.
    """

    read: list[str]
    probs: NDArray[np.float64]
    u: float
    picked: int


def write(
    table: Mapping[str, Sequence[float]],
    start: Sequence[str],
    n: int,
    *,
    seed: int,
    temperature: float = 1.0,
    context_length: int = 1,
) -> list[Turn]:
    """Predict, pick, append, repeat: with a model that is a table of logits for each last token.

    Args:
        table: for each token the logits (V,) of the next one, in the order of the table's keys.
        start: the prompt.
        n: turns.
        seed: of the picks.
        temperature: 0 takes the likeliest.
        context_length: of the prompt and what was written, so many tokens are read.

    Raises:
        ValueError: for an empty prompt, or a token that the table lacks.
    """
    vocabulary = list(table)
    text, turns = list(start), []
    if not text:
        raise ValueError(say("no_prompt"))
    for token in text:
        if token not in table:
            raise ValueError(say("unknown_word", word=token, known=", ".join(vocabulary)))
    for u in throws(n, seed).tolist():
        read = text[-context_length:]
        probs = next_token_distribution(table[read[-1]], temperature=temperature)
        picked = draw(probs, u)
        turns.append(Turn(read, probs, u if temperature > 0 else float("nan"), picked))
        text.append(vocabulary[picked])
    return turns
