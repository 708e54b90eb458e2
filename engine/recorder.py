"""What one forward pass computes, kept for whoever looks inside; and parts of it silenced on the way."""

from collections import defaultdict
from collections.abc import Collection, Iterable

import torch
from torch import Tensor


class Recorder:
    """Collects what one forward pass computes; may silence heads and halves of blocks on the way.

    Args:
        ablate: (layer, head) pairs whose term is left out of what attention adds to the residual stream.
        ablate_parts: ("attention" | "mlp", layer) pairs: halves of blocks that add nothing, not even a bias.
        keeps: whether to keep anything; False when only the logits are wanted.
        only: names of what is kept; None is everything. What nobody holds costs no new memory.

    Attributes:
        kept: name -> one tensor per layer, in order. Names: "q", "k", "v", "weights", "heads" (B,H,T,D),
            "attention_out", "mlp_out", "middle" (B,T,C; the stream between the halves of a block),
            "residual" (B,T,C; L + 1 of them, the first is the embedding).
    """

    def __init__(
        self,
        ablate: Iterable[tuple[int, int]] = (),
        ablate_parts: Iterable[tuple[str, int]] = (),
        *,
        keeps: bool = True,
        only: Collection[str] | None = None,
    ) -> None:
        self.kept: defaultdict[str, list[Tensor]] = defaultdict(list)
        self._only = only if keeps else ()
        self._heads: defaultdict[int, list[int]] = defaultdict(list)
        self._parts = frozenset(ablate_parts)
        for layer, head in ablate:
            self._heads[layer].append(head)

    def keep(self, **tensors: Tensor) -> None:
        """Note one layer's tensors under their names."""
        for name, tensor in tensors.items():
            if self._only is None or name in self._only:
                self.kept[name].append(tensor.detach())

    def silence_heads(self, layer: int, heads: Tensor) -> Tensor:
        """(B,H,T,D) with zeros in the chosen heads; all of them where the whole half is silenced."""
        if ("attention", layer) in self._parts:
            return torch.zeros_like(heads)
        if layer not in self._heads:
            return heads
        chosen = torch.tensor(self._heads[layer], device=heads.device)
        return heads.index_fill(1, chosen, 0)  # a new tensor: what others hold stays as it was

    def silence_part(self, part: str, layer: int, out: Tensor) -> Tensor:
        """(B,T,C) as it is, or zeros where this half of the block is silenced."""
        return torch.zeros_like(out) if (part, layer) in self._parts else out
