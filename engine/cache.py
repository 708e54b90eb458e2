"""Keys and values kept from one token to the next, so that writing doesn't compute them again."""

import torch
from torch import Tensor

from engine.config import ModelConfig

ROOM = 128  # tokens that a cache has room for at first; it doubles when they don't suffice


class KVCache:
    """Keys and values of the tokens seen so far, so that the next token costs one position.

    Holds at most `context_length` tokens. Beyond that a token's key and value would have to forget what fell
    out of the window, so the cache is refused and the caller reads what is left of the window anew.

    Attributes:
        k, v: (L,B,Hkv,room,D); what lies behind `length` means nothing. Going back to fewer tokens is setting
            `length`: a causal model's keys and values don't depend on what comes later.
        length: tokens that it holds.
        ids: (B,room) those tokens, of a model that mixes in the previous one; else None.
    """

    def __init__(
        self,
        config: ModelConfig,
        batch_size: int = 1,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        room: int = ROOM,
    ) -> None:
        self._most = config.context_length
        shape = (config.n_layer, batch_size, config.kv_heads, min(room, self._most), config.d_head)
        self.k = torch.zeros(shape, device=device, dtype=dtype)
        self.v = torch.zeros(shape, device=device, dtype=dtype)
        self.ids: Tensor | None = None
        if config.mix_previous:
            self.ids = torch.zeros(batch_size, shape[3], dtype=torch.int64, device=device)
        self.length = 0

    def read(self, ids: Tensor) -> Tensor | None:
        """Note the new tokens (B,T) where a later one asks for them; the ones before them (B,1), or None."""
        if self.ids is None:
            return None
        end = self.length + ids.shape[1]
        self.make_room(end)
        self.ids[:, self.length : end] = ids
        return self.ids[:, self.length - 1 : self.length] if self.length else None

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store (B,Hkv,T,D) of the new tokens; give back those of all tokens."""
        end = self.length + k.shape[2]
        self.make_room(end)
        self.k[layer, :, :, self.length : end] = k
        self.v[layer, :, :, self.length : end] = v
        return self.k[layer, :, :, :end], self.v[layer, :, :, :end]

    def branch(self, rows: Tensor, room: int) -> "KVCache":
        """Copies of some rows of the batch, each of which can go on by itself.

        Args:
            rows: (N,) numbers of rows; one may come several times.
            room: tokens that each will hold at most.
        """
        copy = KVCache.__new__(KVCache)
        copy._most, copy.length, n = self._most, self.length, self.length
        n_layer, _, heads, _, width = self.k.shape
        shape = (n_layer, len(rows), heads, max(min(room, self._most), n), width)
        copy.k, copy.v = self.k.new_zeros(shape), self.v.new_zeros(shape)
        copy.k[:, :, :, :n], copy.v[:, :, :, :n] = self.k[:, rows, :, :n], self.v[:, rows, :, :n]
        copy.ids = None
        if self.ids is not None:
            copy.ids = self.ids.new_zeros(len(rows), shape[3])
            copy.ids[:, :n] = self.ids[rows, :n]
        return copy

    def make_room(self, least: int) -> None:
        """Have room for so many tokens; to get it, for twice as many as before where the context has them."""
        if least <= self.k.shape[3]:
            return
        more = min(self._most, max(least, 2 * self.k.shape[3])) - self.k.shape[3]
        empty = self.k.new_zeros((*self.k.shape[:3], more, self.k.shape[4]))
        self.k, self.v = torch.cat([self.k, empty], dim=3), torch.cat([self.v, empty], dim=3)
        if self.ids is not None:
            self.ids = torch.cat([self.ids, self.ids.new_zeros(len(self.ids), more)], dim=1)
