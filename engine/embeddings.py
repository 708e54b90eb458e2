"""Token vectors: looking one up, comparing them, and a map of them.

Letters in shapes: V vocabulary, C d_model, N vectors, S steps, K directions of a map.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engine.model import Transformer
from wording import words

say = words("engine.embeddings")

ROWS = 4096  # of a matrix in float64 at once: 20 MB of 600 numbers each


def one_hot(token_id: int, vocab_size: int) -> NDArray[np.float32]:
    """(V,) zeros with a single 1 at the token's id.

    Raises:
        ValueError: if there is no such id.

    >>> one_hot(2, 4).tolist()
    [0.0, 0.0, 1.0, 0.0]
    """
    if not 0 <= token_id < vocab_size:
        raise ValueError(say("there_no_id_ids", token_id=token_id, last=vocab_size - 1))
    row = np.zeros(vocab_size, dtype=np.float32)
    row[token_id] = 1
    return row


def look_up(matrix: NDArray, token_id: int) -> NDArray:
    """One-hot vector times matrix (V,C): (C,), really multiplied; the same bits as row `token_id`."""
    return one_hot(token_id, len(matrix)).astype(matrix.dtype) @ matrix


@dataclass(frozen=True, eq=False)
class Rows:
    """Some neighbouring rows of a matrix, as many as a picture can show.

    Attributes:
        ids: (R,) which rows they are.
        values: (R,C).
    """

    ids: NDArray[np.int64]
    values: NDArray


def rows_around(matrix: NDArray, token_id: int, most: int = 13) -> Rows:
    """At most `most` rows of (V,C) with `token_id` in the middle, or nearer the edge at either end."""
    n = min(most, len(matrix))
    first = min(max(token_id - n // 2, 0), len(matrix) - n)
    return Rows(np.arange(first, first + n), matrix[first : first + n])


def token_vectors(model: Transformer) -> NDArray[np.float32]:
    """(V,C) the embedding matrix; of float32 weights on a CPU the model's own memory: read only."""
    found = np.asarray(model.embedding.weight.detach().float().cpu().numpy())
    found.setflags(write=False)
    return found


def _pieces(matrix: ArrayLike) -> Iterator[NDArray[np.float64]]:
    """The rows of (N,C) as float64, some at a time: a whole vocabulary of them would take much memory."""
    rows = np.asarray(matrix)
    for begin in range(0, max(len(rows), 1), ROWS):
        yield rows[begin : begin + ROWS].astype(np.float64)


def norms(matrix: ArrayLike) -> NDArray[np.float64]:
    """(N,) lengths √Σx² of the rows of (N,C); of any other shape along the last axis."""
    rows = np.asarray(matrix)
    pieces = _pieces(rows) if rows.ndim > 1 else [rows.astype(np.float64)[None]]
    found = np.concatenate([np.sqrt(np.einsum("...c,...c->...", piece, piece)) for piece in pieces])
    return found if rows.ndim > 1 else found[0]


def cosines(matrix: ArrayLike, token_id: int) -> NDArray[np.float64]:
    """(V,) cos(a,b) = a·b / (|a||b|) of one row with every row, -1 to 1; NaN for a row of zeros.

    Raises:
        ValueError: if the row itself is all zeros: it points nowhere.
    """
    rows = np.asarray(matrix)
    lengths, one = norms(rows), rows[token_id].astype(np.float64)
    if lengths[token_id] == 0:
        raise ValueError(say("all_numbers_token_0", token_id=token_id))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.concatenate([piece @ one for piece in _pieces(rows)]) / (lengths * lengths[token_id])
    return np.asarray(np.clip(found, -1.0, 1.0))


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The rows most and least like one row, itself left out.

    Attributes:
        near: ids, the most alike first.
        far: ids, the most opposite last.
        cosines: (V,) to every row.
        mean, spread: mean and standard deviation of the cosines to all other rows.
    """

    near: NDArray[np.int64]
    far: NDArray[np.int64]
    cosines: NDArray[np.float64]
    mean: float
    spread: float


def neighbours(matrix: ArrayLike, token_id: int, n_near: int = 12, n_far: int = 4) -> Neighbours:
    """The nearest and the most opposite tokens by cosine, over all V; equal ones by id.

    Raises:
        ValueError: see `cosines`.
    """
    values = cosines(matrix, token_id)
    others = np.flatnonzero(np.isfinite(values) & (np.arange(len(values)) != token_id))
    order = others[np.argsort(-values[others], kind="stable")]
    near = order[:n_near]
    far = order[n_near:][-n_far:] if n_far else order[:0]
    rest = values[others]
    mean, spread = (float(rest.mean()), float(rest.std())) if len(rest) else (math.nan, math.nan)
    return Neighbours(near, far, values, mean, spread)


@dataclass(frozen=True, eq=False)
class Basis:
    """The directions in which some vectors differ most (principal components).

    Attributes:
        mean: (C,) their mean, which becomes the origin.
        directions: (K,C) of length 1, at right angles; zeros where the vectors have no more directions.
        shares: (K,) share of the vectors' whole variance that lies along each, 0 to 1.
    """

    mean: NDArray[np.float64]
    directions: NDArray[np.float64]
    shares: NDArray[np.float64]

    def project(self, matrix: ArrayLike) -> NDArray[np.float64]:
        """Coordinates (N,K) of any vectors (N,C), also others than those fitted: (x - mean) · direction."""
        return np.concatenate([(piece - self.mean) @ self.directions.T for piece in _pieces(matrix)])


def fit_basis(matrix: ArrayLike, k: int = 3) -> Basis:
    """Principal components (Pearson 1901; Jolliffe 2002, §3.5) of (N,C), by an exact SVD in float64.

    A direction and its opposite serve alike: the one whose largest number is positive is taken, so that the
    same vectors always give the same picture.

    Raises:
        ValueError: if there are no vectors.
    """
    rows = np.asarray(matrix, dtype=np.float64)
    if not len(rows):
        raise ValueError(say("map_needs_least_1"))
    mean = rows.mean(axis=0)
    _, sizes, directions = np.linalg.svd(rows - mean, full_matrices=False)
    total = float((sizes**2).sum())
    n = min(k, len(sizes))
    found, shares = np.zeros((k, rows.shape[1])), np.zeros(k)
    largest = np.abs(directions[:n]).argmax(axis=1)
    found[:n] = directions[:n] * np.where(directions[np.arange(n), largest] < 0, -1.0, 1.0)[:, None]
    shares[:n] = sizes[:n] ** 2 / total if total > 0 else 0.0
    return Basis(mean, found, shares)


def limits(points: ArrayLike, margin: float = 0.06) -> NDArray[np.float64]:
    """Ends of the axes (K,2) that hold all points (…,K), with a margin as a share of their extent."""
    flat = np.asarray(points, dtype=np.float64)
    flat = flat.reshape(-1, flat.shape[-1])
    low, high = flat.min(axis=0), flat.max(axis=0)
    room = np.where(high > low, (high - low) * margin, 1.0)
    return np.stack((low - room, high + room), axis=-1)


def token_counts(ids: ArrayLike, vocab_size: int) -> NDArray[np.int64]:
    """(V,) how often each id occurs."""
    return np.bincount(np.asarray(ids, dtype=np.int64), minlength=vocab_size)


def most_frequent(counts: NDArray, n: int) -> NDArray[np.int64]:
    """The `n` ids that occur most, the most frequent first; equal ones by id."""
    return np.argsort(-np.asarray(counts, dtype=np.int64), kind="stable")[:n]


@dataclass(frozen=True)
class Relation:
    """How the lengths of vectors go with how often their tokens occur, over the tokens that do occur.

    Attributes:
        n: how many tokens these are.
        pearson: correlation of the length with log10 of the count: how near the points are to a line.
        spearman: correlation of the ranks: how steadily one grows with the other, along any curve.
            Both are NaN where fewer than 3 tokens occur or all are alike.
    """

    n: int
    pearson: float
    spearman: float


def relation(counts: ArrayLike, lengths: ArrayLike) -> Relation:
    """Correlations (Pearson 1896; Spearman 1904, with mean ranks for equal values) of length and count."""
    counts, lengths = np.asarray(counts), np.asarray(lengths, dtype=np.float64)
    seen = counts > 0
    logs, sizes = np.log10(counts[seen]), lengths[seen]
    return Relation(int(seen.sum()), _correlation(logs, sizes), _correlation(_ranks(logs), _ranks(sizes)))


def _correlation(x: NDArray, y: NDArray) -> float:
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    return float(np.corrcoef(x, y)[0, 1])


def _ranks(x: NDArray) -> NDArray:
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, sizes = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(sizes) - (sizes - 1) / 2)[place]
