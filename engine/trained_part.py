"""Which of a model's numbers learn: all of them, or only its last blocks and what comes after these.

What is frozen gets no gradient, no state in the optimizer and no decay, so it stays as it is bit for bit. The
gradient is only followed down to the first block that learns: below it nothing has to be kept for it.
"""

import math

from torch import nn

from engine.config import ModelConfig
from engine.hub_layout import our_shapes
from wording import words

say = words("engine.trained_part")


def learns(name: str, config: ModelConfig, last_blocks: int | None) -> bool:
    """Whether the weight of this name learns.

    With `last_blocks` those of the last blocks do, the final norm's, and the head's. A tied head is the
    embedding, which lies below all blocks: it stays frozen.

    >>> config = ModelConfig(vocab_size=9, n_layer=4)
    >>> names = ("embedding.weight", "blocks.2.mlp.up.weight", "blocks.3.mlp.up.weight", "final_norm.weight")
    >>> [learns(name, config, 1) for name in names]
    [False, False, True, True]
    """
    if last_blocks is None:
        return True
    if name.startswith("blocks."):
        return int(name.split(".")[1]) >= config.n_layer - last_blocks
    if name == "head.weight":
        return not config.tie_head
    return name.startswith(("final_norm.", "head_dense.", "head_norm.", "head."))


def trained_parameters(config: ModelConfig, last_blocks: int | None = None) -> int:
    """How many numbers learn.

    >>> config = ModelConfig(vocab_size=9, context_length=4, n_layer=3, n_head=1, d_model=2, bias=False)
    >>> trained_parameters(config, 1)  # 4 · 2² in attention, 2 · 2 · 8 in the MLP, 3 norms of 2
    54

    Raises:
        ValueError: if there are not so many blocks.
    """
    check_blocks(config, last_blocks)
    shapes = our_shapes(config)
    return sum(math.prod(shape) for name, shape in shapes.items() if learns(name, config, last_blocks))


def check_blocks(config: ModelConfig, last_blocks: int | None) -> None:
    """Refuse more blocks than the model has.

    Raises:
        ValueError: with both numbers.
    """
    if last_blocks is not None and not 1 <= last_blocks <= config.n_layer:
        raise ValueError(say("so_many_blocks", last_blocks=last_blocks, n_layer=config.n_layer))


def freeze(model: nn.Module, config: ModelConfig, last_blocks: int | None) -> list[nn.Parameter]:
    """Let only the chosen weights learn; gives those that were learning before and are frozen now."""
    check_blocks(config, last_blocks)
    frozen = [
        parameter
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and not learns(name, config, last_blocks)
    ]
    for parameter in frozen:
        parameter.requires_grad_(False)
    return frozen
