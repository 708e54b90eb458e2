"""The vector of a word in its context, and of whole sentences: what a model makes of what stands around.

Letters in shapes: L layers, T tokens, C d_model, N vectors.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from engine.embeddings import norms
from engine.grammar import story_text
from engine.model import Transformer
from engine.recorder import Recorder
from engine.tokenizers import Token, Tokenizer
from wording import words

say = words("engine.contexts")

HELD_OUT = 3_000_017  # added to a seed: no shipped model learned from these stories
POOLINGS = ("mean", "last")
_WORD = re.compile(r"[^\W\d_]+(?:[-’'][^\W\d_]+)*")
_NEXT = re.compile(r"\s*(\w+|[^\w\s]+)")
_SENTENCE_END = re.compile(r"(?<=[.!?”])\s+(?=[A-Z“])")


def words_in(text: str) -> list[str]:
    """The different words of a text, in the order in which they first stand there.

    >>> words_in("A cold, cold day")
    ['A', 'cold', 'day']
    """
    return list(dict.fromkeys(_WORD.findall(text)))


def places_of_word(tokens: Sequence[Token], text: str, word: str, nth: int = 0) -> list[int]:
    """Positions of the tokens that hold a part of a whole word.

    Args:
        tokens: of the text, or of its end.
        text: the text.
        word: as `words_in` gives it.
        nth: which time it stands in the text, from 0.

    Raises:
        ValueError: if the text has no such word so often, or the tokens do not reach back to it.
    """
    found = [match for match in _WORD.finditer(text) if match[0] == word]
    if nth >= len(found):
        raise ValueError(say("text_has_word_times", word=word, n=len(found)))
    start, end = (len(text[:at].encode()) for at in found[nth].span())
    places = [i for i, token in enumerate(tokens) if token.byte_start < end and token.byte_end > start]
    if not places or tokens[places[0]].byte_start > start:
        raise ValueError(say("model_does_not_reach", word=word))
    return places


@torch.no_grad()
def stream(model: Transformer, ids: Sequence[int]) -> NDArray[np.float32]:
    """(L+1,T,C) the residual stream after the embedding and after each block.

    Raises:
        ValueError: for no ids or too many, or if the numbers are not finite.
    """
    recorder = Recorder(only=("residual",))
    model.stream(torch.tensor([list(ids)], dtype=torch.int64, device=model.device), recorder=recorder)
    found: NDArray[np.float32] = torch.stack([x[0] for x in recorder.kept["residual"]]).float().cpu().numpy()
    if not np.isfinite(found).all():
        raise ValueError(say("models_vectors_not_finite"))
    return found


def word_vectors(residual: NDArray, places: Collection[int]) -> NDArray[np.float64]:
    """(L+1,C) of a word at every layer: the mean over its tokens, if it is cut into several.

    Args:
        residual: (L+1,T,C).
        places: of its tokens.
    """
    rows: NDArray[np.float64] = residual[:, list(places)].astype(np.float64).mean(axis=1)
    return rows


def cosine(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """(…,) a · b / (|a| |b|) along the last axis, -1 to 1; NaN where a vector is zero."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (a * b).sum(axis=-1) / (norms(a) * norms(b))
    return np.asarray(np.clip(found, -1.0, 1.0))


@dataclass(frozen=True, eq=False)
class TwoContexts:
    """A word in two texts, by one model.

    Attributes:
        cosines: (L+1,) of its two vectors after the embedding and after each block.
        dots, lengths_a, lengths_b: (L+1,) what the cosines are made of.
        largest: (L+1,) the largest difference between two of their numbers.
        same_left: whether everything up to and including the word is the same in both.
        n_tokens: into how many tokens the word is cut, in each.
    """

    cosines: NDArray[np.float64]
    dots: NDArray[np.float64]
    lengths_a: NDArray[np.float64]
    lengths_b: NDArray[np.float64]
    largest: NDArray[np.float64]
    same_left: bool
    n_tokens: tuple[int, int]


def two_contexts(
    model: Transformer, a: Sequence[int], b: Sequence[int], in_a: Sequence[int], in_b: Sequence[int]
) -> TwoContexts:
    """Compare a word's vectors in two texts.

    Args:
        model: of either kind.
        a: ids of the first text.
        b: ids of the second.
        in_a: places of the word's tokens in the first.
        in_b: places of the word's tokens in the second.

    Raises:
        ValueError: if a text does not fit the context.
    """
    first = word_vectors(stream(model, a), in_a)
    second = word_vectors(stream(model, b), in_b)
    return TwoContexts(
        cosine(first, second),
        (first * second).sum(axis=-1),
        norms(first),
        norms(second),
        np.abs(first - second).max(axis=-1),
        list(a[: in_a[-1] + 1]) == list(b[: in_b[-1] + 1]),
        (len(in_a), len(in_b)),
    )


def sentence_vector(residual: NDArray, layer: int, pooling: str) -> NDArray[np.float64]:
    """(C,) of a sentence: the mean of its tokens' vectors after a block, or the last token's.

    Args:
        residual: (L+1,T,C).
        layer: 0 is the embedding, L the last block.
        pooling: "mean" or "last".
    """
    if pooling not in POOLINGS:
        raise ValueError(say("vector_sentence_mean_last", pooling=pooling))
    rows = residual[layer].astype(np.float64)
    return np.asarray(rows.mean(axis=0) if pooling == "mean" else rows[-1])


@dataclass(frozen=True)
class Near:
    """One of the nearest: its number in the set, and the cosine."""

    index: int
    cosine: float


def nearest(vectors: ArrayLike, query: ArrayLike, n: int, *, leave_out: int | None = None) -> list[Near]:
    """The `n` most alike of (N,C) by cosine, after the mean of the N is taken off all, the query too.

    Without that, what all vectors of a model share would make every pair look alike.

    Args:
        vectors: the set.
        query: (C,).
        n: how many.
        leave_out: one of the set that is not an answer, for instance the query itself.
    """
    rows = np.asarray(vectors, np.float64)
    middle = rows.mean(axis=0)
    found = np.nan_to_num(cosine(rows - middle, np.asarray(query, np.float64) - middle), nan=-2.0)
    order = [int(i) for i in np.argsort(-found, kind="stable") if i != leave_out]
    return [Near(i, float(found[i])) for i in order[:n]]


def story_sentences(n: int, seed: int) -> list[str]:
    """`n` different sentences of stories that no shipped model learned from."""
    found: dict[str, None] = {}
    more = seed + HELD_OUT
    while len(found) < n:
        for line in story_text(more, 50).splitlines():
            found.update(dict.fromkeys(_SENTENCE_END.split(line)))
        more += 1
    return list(found)[:n]


@dataclass(frozen=True)
class Use:
    """A word in a story.

    Attributes:
        ids: of the story, or of its beginning that fits the context.
        places: of the word's tokens.
        after: the word or the signs that follow it.
        sentence: the one that it stands in.
    """

    ids: tuple[int, ...]
    places: tuple[int, ...]
    after: str
    sentence: str


def uses_of(tokenizer: Tokenizer, word: str, n: int, seed: int, *, context_length: int) -> list[Use]:
    """Up to `n` uses of a word, one a story, in 1,000 stories that no shipped model learned from."""
    found: list[Use] = []
    if not word:
        return found
    whole = re.compile(rf"(?<![^\W\d_’'-]){re.escape(word)}(?![^\W\d_]|[-’'][^\W\d_])")
    for line in story_text(seed + HELD_OUT, 1000).splitlines():
        if len(found) == n:
            break
        match = whole.search(line)
        if match is None:
            continue
        tokens = tokenizer.tokens(line + "\n")[:context_length]
        start, end = (len(line[:at].encode()) for at in match.span())
        places = tuple(i for i, t in enumerate(tokens) if t.byte_start < end and t.byte_end > start)
        if places and places[-1] + 1 < len(tokens):
            ids = tuple(token.id for token in tokens)
            sentence = next(s for s in _SENTENCE_END.split(line) if whole.search(s))
            found.append(Use(ids, places, _follows(line, match.end()), sentence))
    return found


def _follows(line: str, at: int) -> str:
    """The word or the signs that follow a place; empty at the end."""
    found = _NEXT.match(line, at)
    return found[1] if found else ""


@dataclass(frozen=True)
class Agreement:
    """How often the nearest other use of a word has the same label.

    Attributes:
        n_same, n: uses.
        chance: how often two uses that are picked by chance have the same.
    """

    n_same: int
    n: int
    chance: float


def agreement(vectors: ArrayLike, labels: Sequence[str]) -> Agreement:
    """Compare each use's label with that of its nearest neighbour, itself left out.

    Args:
        vectors: (N,C); their mean is taken off.
        labels: (N,).

    Raises:
        ValueError: for fewer than two uses.
    """
    rows = np.asarray(vectors, np.float64)
    if len(rows) < 2:
        raise ValueError(say("neighbour_needs_least_2"))
    same = sum(labels[nearest(rows, rows[i], 1, leave_out=i)[0].index] == labels[i] for i in range(len(rows)))
    counts = np.unique(labels, return_counts=True)[1]
    chance = float((counts * (counts - 1)).sum() / (len(rows) * (len(rows) - 1)))
    return Agreement(int(same), len(rows), chance)
