"""Where a model's parameters are: how many stand in each of its parts, from the shapes alone."""

import math

from engine.config import ModelConfig
from engine.hub_layout import our_shapes

PARTS = ("embedding", "previous", "positions", "attention", "mlp", "norms", "head")
BYTES = 4  # of one float32


def parameter_parts(config: ModelConfig) -> dict[str, int]:
    """Parameters by part, in the order of `PARTS`; they add up to all of the model's.

    A tied head has no matrix of its own: its numbers are those of the embedding, and count there.

    >>> parameter_parts(ModelConfig(vocab_size=10, context_length=8, n_layer=1, n_head=2, d_model=4))
    {'embedding': 40, 'previous': 0, 'positions': 32, 'attention': 80, 'mlp': 148, 'norms': 24, 'head': 0}
    """
    found = dict.fromkeys(PARTS, 0)
    for name, shape in our_shapes(config).items():
        found[_part(name)] += math.prod(shape)
    return found


def _part(name: str) -> str:
    """The part that a parameter belongs to, by its name in `Transformer`."""
    outer = {"embedding": "embedding", "previous": "previous", "position": "positions"}
    first = name.split(".")[0]
    if first.startswith("head"):
        return "head"
    if "norm" in name:
        return "norms"
    return outer.get(first) or ("attention" if ".attention." in name else "mlp")


def parameter_count(config: ModelConfig) -> int:
    """Number of weights of a `Transformer`, a tied head counted once.

    >>> parameter_count(ModelConfig(10, context_length=4, n_layer=1, n_head=1, d_model=2, bias=False))
    82
    """
    return sum(math.prod(shape) for shape in our_shapes(config).values())


def memory_bytes(n: int) -> int:
    """Bytes that so many parameters take as float32."""
    return BYTES * n
