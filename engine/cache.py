"""Keys and values kept from one token to the next, so that writing doesn't compute them again."""

import torch
from torch import Tensor

from engine.config import ModelConfig


class KVCache:
    """Keys and values of the tokens seen so far, so that the next token costs one position.

    Holds at most `context_length` tokens. Beyond that a token's key and value would have to forget what fell
    out of the window, so the cache is refused and the caller runs the last `context_length` tokens anew.
    """

    def __init__(
        self,
        config: ModelConfig,
        batch_size: int = 1,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        shape = (config.n_layer, batch_size, config.kv_heads, config.context_length, config.d_head)
        self.k = torch.zeros(shape, device=device, dtype=dtype)
        self.v = torch.zeros(shape, device=device, dtype=dtype)
        self.length = 0

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store (B,Hkv,T,D) of the new tokens; give back those of all tokens."""
        end = self.length + k.shape[2]
        self.k[layer, :, :, self.length : end] = k
        self.v[layer, :, :, self.length : end] = v
        return self.k[layer, :, :, :end], self.v[layer, :, :, :end]
