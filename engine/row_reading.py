"""Many rows that begin alike, read by a causal model: what they share is read once, and kept."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from engine.cache import KVCache
from engine.metrics import log_softmax
from engine.model import Transformer

ROWS_AT_ONCE = 64
MOST_BYTES = 250_000_000  # of the keys, values and logits of the rows that are read at once

Tell = Callable[[int, int], None]
"""(done, all): called while many rows are read, so that a page can show how far it is, and be stopped."""


def quiet(done: int, n: int) -> None:
    """Tell nobody."""


def part_of(tell: Tell, i: int, parts: int) -> Tell:
    """A `Tell` of the i-th of several parts of one length, as part of the whole."""
    return lambda done, n: tell(i * n + done, parts * n)


class RowReading:
    """Rows of one length that a causal model has read so far; keys and values are kept.

    Args:
        model: a causal one.
        rows: of one length, at least one token; mostly a single one, from which others branch.
    """

    @torch.no_grad()
    def __init__(self, model: Transformer, rows: Sequence[Sequence[int]]) -> None:
        self.model = model
        weight = model.embedding.weight
        ids = torch.tensor([list(row) for row in rows], device=weight.device)
        room = {"batch_size": len(rows), "room": ids.shape[1]}
        self.cache = KVCache(model.config, device=weight.device, dtype=weight.dtype, **room)
        self.last = model.next_logits(ids, cache=self.cache)

    def at_once(self, length: int) -> int:
        """How many rows that go on by so many tokens are read at once: as many as memory is granted."""
        config = self.model.config
        numbers = 2 * config.n_layer * config.kv_heads * config.d_head * (self.cache.length + length)
        return max(1, min(ROWS_AT_ONCE, MOST_BYTES // (4 * numbers)))

    def next_log_probs(self) -> NDArray[np.float64]:
        """(rows, V) of the token after what each has read."""
        return log_softmax(self.last.float().cpu().numpy())

    @torch.no_grad()
    def tails(
        self, rows: NDArray[np.int64], pieces: list[list[int]], tell: Tell = quiet
    ) -> NDArray[np.float64]:
        """(N,) log-probability of each piece but its first token, read after one of the rows.

        Args:
            rows: (N,) the row that each piece comes after.
            pieces: N rows of one length.
            tell: see `Tell`.
        """
        found, n = np.zeros(len(pieces)), len(pieces[0])
        if n == 1:
            return found
        step = self.at_once(n)
        for at in range(0, len(pieces), step):
            tell(at, len(pieces))
            part = torch.tensor(pieces[at : at + step], device=self.model.device)
            found[at : at + step] = self._tail(self._branch(rows[at : at + step], n), part)
        return found

    def _tail(self, cache: KVCache, ids: torch.Tensor) -> NDArray[np.float64]:
        """(N,) log-probability of ids (N,T) but the first; as many positions at once as memory is granted."""
        n_rows, last = len(ids), ids.shape[1] - 1
        block = max(
            1, MOST_BYTES // (20 * n_rows * self.model.config.vocab_size)
        )  # float32, and float64 twice
        total = torch.zeros(n_rows, dtype=torch.float64, device=ids.device)
        for start in range(0, last, block):
            end = min(start + block, last)
            logits = self.model(ids[:, start:end], cache=cache).double()
            logs = logits.gather(2, ids[:, start + 1 : end + 1, None])[..., 0] - logits.logsumexp(dim=-1)
            total += logs.sum(dim=1)
        return total.cpu().numpy()

    @torch.no_grad()
    def ahead(self, pieces: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """(N,V) log-probabilities of the token after each of N pieces of one length, read after row 0."""
        step, found = self.at_once(len(pieces[0])), []
        for at in range(0, len(pieces), step):
            ids = torch.tensor([list(piece) for piece in pieces[at : at + step]], device=self.model.device)
            cache = self._branch(np.zeros(len(ids), np.int64), ids.shape[1])
            found.append(log_softmax(self.model.next_logits(ids, cache=cache).float().cpu().numpy()))
        return np.concatenate(found)

    @torch.no_grad()
    def go_on(self, rows: NDArray[np.int64], pieces: list[list[int]]) -> None:
        """Read pieces of one length after some of the rows; these replace all rows."""
        self.cache = self._branch(rows, len(pieces[0]))
        ids = torch.tensor(pieces, device=self.model.device)
        self.last = self.model.next_logits(ids, cache=self.cache)

    def _branch(self, rows: NDArray[np.int64], more: int) -> KVCache:
        at = torch.as_tensor(rows, device=self.cache.k.device)
        return self.cache.branch(at, self.cache.length + more)
